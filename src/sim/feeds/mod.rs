//! Feeds: a node that polls them for weeks or a year of virtual time, and is killed again and again.
//!
//! ```text
//!   FeedsPlan ──► FeedsWorld ──► the engine's own node over files, killed and begun anew
//!                     │               over SimDriver
//!                     └──► NewsWeb: servers of feeds and stories ──► FeedsJudge
//!                                                                       │ Expected: when a feed may be asked, and how
//!                                                                       └ StoryBook: what is a story, and what is told again
//! ```
//!
//! | file          | holds                                                                          |
//! |---------------|--------------------------------------------------------------------------------|
//! | `plan`        | what a seed stands for: sources, feeds and their habits, kills                  |
//! | `web`         | the servers: what they post, and what they answer                               |
//! | `listing`     | a feed as it is written, and what its entries say                               |
//! | `expected`    | the model of polls: when the next may come, where, and with which validators    |
//! | `story_book`  | the model of stories: which entries are new                                     |
//! | `judge`       | every request held against the models                                           |
//! | `world`       | the node, its lives and deaths, and the judgement at the end                    |
//!
//! Neither model asks the product for anything but the normal form of a title.

mod expected;
mod judge;
mod listing;
mod plan;
mod story_book;
mod web;
mod world;

pub use world::{run_feeds, run_feeds_for};
