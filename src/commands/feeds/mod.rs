//! `nephila feeds`: what there is to do with feeds, one file each.

mod args;
mod parse;

pub(super) use args::FeedsArgs;
