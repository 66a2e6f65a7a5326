//! A file of a reflog, as plain bytes, however it is packed.
//!
//! ```text
//!   file ──► Raw: what it was at its opening, and a digest of it ──► plain │ gzip members │ zstd frames ──► chunks
//! ```
//!
//! What is packed is bounded by [`InputBounds`]; what broke off or went bad keeps every byte before it, and is told as an
//! [`InputFault`] that says whether the file or the machine is at fault.

mod file;
mod raw;
mod reader;
#[cfg(test)]
mod tests;

pub use file::{InputError, InputFault, InputFile};
pub use raw::InputSum;
pub use reader::{InputBounds, InputReader};
