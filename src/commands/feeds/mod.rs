//! `nephila feeds`: what there is to do with feeds, one file each.

mod add;
mod args;
mod change;
mod desk;
mod export;
mod feed_told;
mod given;
mod import;
mod list;
mod ls;
mod parse;
mod show;

pub(super) use args::FeedsArgs;
pub(super) use given::read_feeds;
