//! Zstandard (RFC 8878), with the window that RFC 9659 allows on the web.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::sink::{End, Sink};

/// 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;
/// A state that came to more than this is not kept. One for the usual window of 2 MiB is.
pub(super) const KEPT_BYTES_MAX: usize = 4 << 20;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Of the first byte of a frame to be skipped the low half is free.
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// Frames that bring less than this on average are there to keep us busy.
const FRAME_BYTES_MIN: usize = 64;
/// That many may be as small as they like.
const FRAMES_FREE: usize = 1_024;

/// A state ready for a first stream.
pub(super) fn state() -> Option<DCtx<'static>> {
    let mut state = DCtx::try_create()?;
    state.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).ok()?;
    Some(state)
}

/// Undoes `zstd`: frame after frame. What follows the last one and is none is left alone.
pub(super) fn unzstd(state: &mut DCtx<'static>, coded: &[u8], sink: &mut Sink<'_>) -> End {
    if state.reset(ResetDirective::SessionOnly).is_err() {
        return End::Corrupt;
    }
    let mut read = 0;
    let mut frames = 0;
    while read < coded.len() {
        match starts_frame(&coded[read..]) {
            Some(true) => {}
            Some(false) if frames == 0 => return End::Corrupt,
            Some(false) => return End::Whole,
            None => return End::Cut,
        }
        match frame(state, coded, &mut read, sink) {
            End::Whole => frames += 1,
            end => return end,
        }
        if frames > FRAMES_FREE + sink.produced() / FRAME_BYTES_MIN {
            return End::Bomb;
        }
    }
    if frames > 0 { End::Whole } else { End::Cut }
}

/// Whether a frame begins here; None if there are too few bytes to say.
fn starts_frame(bytes: &[u8]) -> Option<bool> {
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    let mut masked = [0; 4];
    masked[..start.len()].copy_from_slice(start);
    masked[0] &= 0xf0;
    let known = MAGIC.starts_with(start) || SKIPPABLE.starts_with(&masked[..start.len()]);
    if known && start.len() < MAGIC.len() { None } else { Some(known) }
}

/// One frame. A call that fails takes back what it wrote, so a call never does more than one thing: it gets the block
/// that the state asks for, and no input while decoded bytes wait for room.
fn frame(state: &mut DCtx<'static>, coded: &[u8], read: &mut usize, sink: &mut Sink<'_>) -> End {
    let mut wanted = MAGIC.len();
    let mut flushing = false;
    loop {
        let room = match sink.room(*read) {
            Ok(room) => room,
            Err(end) => return end,
        };
        let room_bytes = room.len();
        let piece_bytes = if flushing { 0 } else { wanted.min(coded.len() - *read) };
        let mut input = InBuffer::around(&coded[*read..*read + piece_bytes]);
        let mut output = OutBuffer::around(room);
        let hint = state.decompress_stream(&mut output, &mut input);
        let (took, wrote) = (input.pos(), output.pos());
        *read += took;
        sink.fill(wrote);
        match hint {
            Ok(0) => return End::Whole,
            Err(_) => return End::Corrupt,
            Ok(_) if took == 0 && wrote == 0 && !flushing && *read == coded.len() => {
                return End::Cut;
            }
            Ok(hint) => wanted = hint,
        }
        flushing = wrote == room_bytes;
    }
}
