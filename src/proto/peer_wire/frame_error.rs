use super::FrameKind;
use crate::limits::PEER_FRAME_BYTES_MAX;
use thiserror::Error;

/// Why bytes of another node are not taken. Where the next frame would begin is nobody's to guess, so that it is for good.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("a frame of {bytes} bytes, over the {PEER_FRAME_BYTES_MAX} that a node may send")]
    TooLong { bytes: u32 },
    #[error("a frame of kind {0}, which this version does not know")]
    UnknownKind(u8),
    #[error("a frame with flags {flags:#04x} and {unused:#06x}, which this version does not know")]
    Flags { flags: u8, unused: u16 },
    #[error("{kind} frame whose checksum does not match")]
    Checksum { kind: FrameKind },
    #[error("{kind} frame {what}")]
    Unreadable { kind: FrameKind, what: &'static str },
    #[error("{kind} frame with {bytes} bytes behind its last field")]
    Trailing { kind: FrameKind, bytes: usize },
}
