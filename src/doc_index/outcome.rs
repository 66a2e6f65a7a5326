use super::documents::Note;
use crate::proto::record::ResultCode;

/// What became of a document that was handed out. Told once its record is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub doc_id: u32,
    pub result: ResultCode,
    /// 0 without a response.
    pub status: u16,
    /// When it was answered for, seconds since 1970.
    pub at_s: u32,
    /// Of its document; 0 without one.
    pub digest: u64,
    /// Its robots rules could not be had: another time may be better.
    pub unreachable: bool,
    pub note: Option<Box<Note>>,
}

impl Outcome {
    /// One of which nothing more is known.
    pub fn new(doc_id: u32, result: ResultCode, at_s: u32) -> Outcome {
        Outcome { doc_id, result, status: 0, at_s, digest: 0, unreachable: false, note: None }
    }
}
