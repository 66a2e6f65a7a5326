//! A segment as memory: one writer, one keeper, no copy between the compressor and the file. An index as memory: many
//! readers, and no writer.
//!
//! The writer owns every byte at or past the published tail and only ever moves the tail forward; the keeper
//! hands the bytes before it to the disk and reads them only after the writer has ended. So two threads share a map, and
//! no byte of it is ever written by one while the other reads it.
#![allow(unsafe_code)]

mod segment;
mod view;

pub use segment::{Segment, SegmentWriter};
pub use view::View;
