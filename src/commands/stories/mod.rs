//! `nephila stories`: what feeds have brought, one file each.

mod args;
mod export;
mod ls;
mod show;
mod story_told;
mod why;

pub(super) use args::StoriesArgs;
