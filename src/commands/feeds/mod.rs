//! `nephila feeds`: what there is to do with feeds, one file each.

mod add;
mod args;
mod change;
mod desk;
mod export;
mod feed_told;
mod import;
mod list;
mod ls;
mod show;

pub(super) use args::FeedsArgs;
