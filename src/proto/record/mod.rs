//! What a fetch came to, as one byte each: the result code (ours) and the HTTP code (the server's); and the record that a
//! spider sends to a store server; and segments of records, as far as they are told.
//!
//! The codes are enumerations with a stable number and a name; `nephila store codes` prints them. They travel in
//! records, on the wire and in the index, so a number is never given to another meaning.

mod http_code;
mod result_code;
mod segment_state;
mod status_action;
mod wire;
mod wire_decoder;

pub use http_code::HttpCode;
pub(crate) use result_code::Fault;
pub use result_code::ResultCode;
pub use segment_state::{SegmentPiece, SegmentState};
pub(crate) use status_action::StatusAction;
pub use wire::BadRecord;
pub(crate) use wire::{WIRE_HEADER_BYTES, WireRecord};
pub use wire_decoder::WireDecoder;
