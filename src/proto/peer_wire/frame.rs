use super::FrameError;
use crate::base::{u16_at, u32_at};
use crate::limits::PEER_FRAME_BYTES_MAX;
use std::fmt;

/// One word on its way, not looked into. A header of 12 bytes, little-endian, then the body:
///
/// | offset | bytes | field                                                      |
/// |--------|-------|------------------------------------------------------------|
/// | 0      | 4     | bytes of the body, at most [`PEER_FRAME_BYTES_MAX`]        |
/// | 4      | 1     | kind                                                       |
/// | 5      | 1     | flags, 0: another value is refused                         |
/// | 6      | 2     | unused, 0: another value is refused                        |
/// | 8      | 4     | crc32c of the eight bytes before it and of the body        |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: FrameKind,
    pub body: &'a [u8],
}

const LENGTH: usize = 0;
const KIND: usize = 4;
const FLAGS: usize = 5;
const UNUSED: usize = 6;
const CRC: usize = 8;
pub const FRAME_HEADER_BYTES: usize = 12;

const _: () = assert!(CRC + 4 == FRAME_HEADER_BYTES);

/// Which word a frame holds. A number is never given to another word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    Hello = 1,
    Refused = 2,
    TableAsk = 3,
    Table = 4,
    Prepare = 5,
    Accept = 6,
    Promise = 7,
    Accepted = 8,
    Later = 9,
    Urls = 10,
    Counted = 11,
    NotMine = 12,
    Status = 13,
    NoVote = 14,
    Want = 15,
    Grant = 16,
    Wait = 17,
    Back = 18,
    Beat = 19,
    StatusAsk = 20,
    Move = 21,
    Moved = 22,
    Copy = 23,
    Copied = 24,
    PagesAsk = 25,
    PagesHeld = 26,
    Pages = 27,
    PagesGone = 28,
    PagesUpto = 29,
    VerifyAsk = 30,
    Verified = 31,
    SumAsk = 32,
    Sum = 33,
    SafeAsk = 34,
    Safe = 35,
}

impl FrameKind {
    pub const ALL: [FrameKind; 35] = [
        FrameKind::Hello,
        FrameKind::Refused,
        FrameKind::TableAsk,
        FrameKind::Table,
        FrameKind::Prepare,
        FrameKind::Accept,
        FrameKind::Promise,
        FrameKind::Accepted,
        FrameKind::Later,
        FrameKind::Urls,
        FrameKind::Counted,
        FrameKind::NotMine,
        FrameKind::Status,
        FrameKind::NoVote,
        FrameKind::Want,
        FrameKind::Grant,
        FrameKind::Wait,
        FrameKind::Back,
        FrameKind::Beat,
        FrameKind::StatusAsk,
        FrameKind::Move,
        FrameKind::Moved,
        FrameKind::Copy,
        FrameKind::Copied,
        FrameKind::PagesAsk,
        FrameKind::PagesHeld,
        FrameKind::Pages,
        FrameKind::PagesGone,
        FrameKind::PagesUpto,
        FrameKind::VerifyAsk,
        FrameKind::Verified,
        FrameKind::SumAsk,
        FrameKind::Sum,
        FrameKind::SafeAsk,
        FrameKind::Safe,
    ];

    pub fn from_u8(number: u8) -> Option<FrameKind> {
        FrameKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            FrameKind::Hello => "HELLO",
            FrameKind::Refused => "REFUSED",
            FrameKind::TableAsk => "TABLE_ASK",
            FrameKind::Table => "TABLE",
            FrameKind::Prepare => "PREPARE",
            FrameKind::Accept => "ACCEPT",
            FrameKind::Promise => "PROMISE",
            FrameKind::Accepted => "ACCEPTED",
            FrameKind::Later => "LATER",
            FrameKind::Urls => "URLS",
            FrameKind::Counted => "COUNTED",
            FrameKind::NotMine => "NOT_MINE",
            FrameKind::Status => "STATUS",
            FrameKind::NoVote => "NO_VOTE",
            FrameKind::Want => "WANT",
            FrameKind::Grant => "GRANT",
            FrameKind::Wait => "WAIT",
            FrameKind::Back => "BACK",
            FrameKind::Beat => "BEAT",
            FrameKind::StatusAsk => "STATUS_ASK",
            FrameKind::Move => "MOVE",
            FrameKind::Moved => "MOVED",
            FrameKind::Copy => "COPY",
            FrameKind::Copied => "COPIED",
            FrameKind::PagesAsk => "PAGES_ASK",
            FrameKind::PagesHeld => "PAGES_HELD",
            FrameKind::Pages => "PAGES",
            FrameKind::PagesGone => "PAGES_GONE",
            FrameKind::PagesUpto => "PAGES_UPTO",
            FrameKind::VerifyAsk => "VERIFY_ASK",
            FrameKind::Verified => "VERIFIED",
            FrameKind::SumAsk => "SUM_ASK",
            FrameKind::Sum => "SUM",
            FrameKind::SafeAsk => "SAFE_ASK",
            FrameKind::Safe => "SAFE",
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Frame<'_> {
    /// Appends it to `out`.
    ///
    /// # Panics
    ///
    /// If the body is longer than [`PEER_FRAME_BYTES_MAX`]: every word has a bound below.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_framed(out, self.kind, |out| out.extend_from_slice(self.body));
    }

    /// Bytes that it takes on the wire.
    pub fn wire_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.body.len()
    }

    /// Kind and body bytes of the frame at the front, checked; `None` if it is not all there. What is wrong with a header is
    /// known as soon as the header is there.
    pub(super) fn check(bytes: &[u8]) -> Result<Option<(FrameKind, usize)>, FrameError> {
        let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
        let length = u32_at(header, LENGTH);
        if length as usize > PEER_FRAME_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: length });
        }
        let kind = FrameKind::from_u8(header[KIND]).ok_or(FrameError::UnknownKind(header[KIND]))?;
        let (flags, unused) = (header[FLAGS], u16_at(header, UNUSED));
        if (flags, unused) != (0, 0) {
            return Err(FrameError::Flags { flags, unused });
        }
        let Some(body) = rest.get(..length as usize) else { return Ok(None) };
        if checksum(header, body) != u32_at(header, CRC) {
            return Err(FrameError::Checksum { kind });
        }
        Ok(Some((kind, body.len())))
    }
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..CRC]), body)
}

/// Appends a frame with the body that `write_body` appends.
pub(super) fn write_framed(out: &mut Vec<u8>, kind: FrameKind, write_body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    write_body(out);
    let (header, body) = out[start..].split_at_mut(FRAME_HEADER_BYTES);
    assert!(body.len() <= PEER_FRAME_BYTES_MAX, "a {kind} of {} bytes", body.len());
    header[LENGTH..KIND].copy_from_slice(&(body.len() as u32).to_le_bytes());
    header[KIND] = kind as u8;
    let crc = checksum(header, body);
    header[CRC..].copy_from_slice(&crc.to_le_bytes());
}
