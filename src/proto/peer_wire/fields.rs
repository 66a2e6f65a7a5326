use super::{FrameError, FrameKind};
use crate::limits::PEER_FRAME_BYTES_MAX;

/// The fields of a body, taken off its front one after the other. Nothing is copied, so that no length makes room for what
/// is not there.
pub(super) struct Fields<'a> {
    kind: FrameKind,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(kind: FrameKind, body: &'a [u8]) -> Fields<'a> {
        Fields { kind, rest: body }
    }

    pub fn unreadable<T>(&self, what: &'static str) -> Result<T, FrameError> {
        Err(FrameError::Unreadable { kind: self.kind, what })
    }

    pub fn u8(&mut self) -> Result<u8, FrameError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    /// 0 or 1.
    pub fn yes_or_no(&mut self) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.unreadable("with a byte that is neither yes nor no"),
        }
    }

    /// A byte with no other bits than these.
    pub fn flags(&mut self, known: u8) -> Result<u8, FrameError> {
        match self.u8()? {
            flags if flags & !known == 0 => Ok(flags),
            _ => self.unreadable("with a flag that means nothing"),
        }
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => self.unreadable(CUT),
        }
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => self.unreadable(CUT),
        }
    }

    /// Bytes behind their length.
    pub fn value(&mut self, bytes_max: usize) -> Result<&'a [u8], FrameError> {
        let count = self.u32()? as usize;
        if count > bytes_max {
            return self.unreadable("with a value over its bound");
        }
        self.bytes(count)
    }

    /// Text behind its length.
    pub fn text(&mut self, bytes_max: usize) -> Result<&'a str, FrameError> {
        let count = usize::from(self.u16()?);
        if count > bytes_max {
            return self.unreadable("with a text over its bound");
        }
        let bytes = self.bytes(count)?;
        str::from_utf8(bytes).or_else(|_| self.unreadable("with a text that is not UTF-8"))
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), FrameError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(FrameError::Trailing { kind: self.kind, bytes }),
        }
    }
}

const CUT: &str = "that ends within its fields";

/// Writes bytes behind their length.
///
/// # Panics
///
/// If there are more than the bound: what a node says has been checked when it was made.
pub(super) fn put_value(out: &mut Vec<u8>, value: &[u8], bytes_max: usize) {
    assert!(
        value.len() <= bytes_max && bytes_max <= PEER_FRAME_BYTES_MAX,
        "a value of {} bytes",
        value.len()
    );
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

/// Writes text behind its length; panics as [`put_value`] does.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    assert!(text.len() <= bytes_max && bytes_max <= usize::from(u16::MAX), "a text of {} bytes", text.len());
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
