//! A segment as memory: one writer, one keeper, no copy between the compressor and the file.
//!
//! The writer owns every byte at or past the published tail and only ever moves the tail forward; the keeper
//! hands the bytes before it to the disk and never looks at them. So two threads share a map, and no byte of it
//! is ever reached from both.
#![allow(unsafe_code)]

mod segment;

pub use segment::{Segment, SegmentWriter};
