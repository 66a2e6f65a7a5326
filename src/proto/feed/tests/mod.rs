//! The promise: what a feed says is read, however it is written, and what it does to us is bounded.

mod broken;
mod charsets;
mod entries;
mod formats;
mod lists;
mod support;
