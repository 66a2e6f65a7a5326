//! Brotli (RFC 7932).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::sink::{End, Sink};

/// Bytes fed at once. What was decoded is handed out before more is asked for, so of a stream that goes bad no more
/// is lost than what such a piece held.
const PIECE_BYTES: usize = 1_024;

/// Undoes `br`. Its state begins anew with every stream, and so nothing is kept. Bytes after the stream are left
/// alone, and windows larger than the 16 MiB of the standard are not taken.
pub(super) fn unbrotli(coded: &[u8], sink: &mut Sink<'_>) -> End {
    let alloc = StandardAlloc::default();
    let mut state = BrotliState::new(alloc, alloc, alloc);
    let (mut left, mut read, mut total) = (0, 0, 0);
    loop {
        let room = match sink.room(read) {
            Ok(room) => room,
            Err(end) => return end,
        };
        let (mut room_left, mut wrote) = (room.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            coded,
            &mut room_left,
            &mut wrote,
            room,
            &mut total,
            &mut state,
        );
        sink.fill(wrote);
        match result {
            BrotliResult::ResultSuccess => return End::Whole,
            BrotliResult::NeedsMoreInput if read == coded.len() => return End::Cut,
            BrotliResult::NeedsMoreInput => left = PIECE_BYTES.min(coded.len() - read),
            BrotliResult::ResultFailure => return End::Corrupt,
            BrotliResult::NeedsMoreOutput => {}
        }
    }
}
