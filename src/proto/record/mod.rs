//! What a fetch came to, as one byte each: the result code (ours) and the HTTP code (the server's).
//!
//! Both are enumerations with a stable number and a name; `nephila store codes` prints them. They travel in
//! records, on the wire and in the index, so a number is never given to another meaning.

mod http_code;
mod result_code;
mod status_action;

pub use http_code::HttpCode;
pub use result_code::{Fault, ResultCode};
pub use status_action::StatusAction;
