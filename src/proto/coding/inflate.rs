//! Deflate streams, in the wrapping of zlib (RFC 1950) and bare (RFC 1951).

use flate2::{Decompress, FlushDecompress, Status};

use super::sink::{End, Sink};

/// Undoes `deflate`, in either reading. The bytes decide; where they could be both, zlib is tried first.
pub(super) fn undeflate(state: &mut Decompress, coded: &[u8], sink: &mut Sink<'_>) -> End {
    for zlib in [true, false] {
        if zlib && !is_zlib(coded) {
            continue;
        }
        state.reset(zlib);
        let (end, _) = inflate(state, coded, 0, sink, |_| {});
        if !zlib || end != End::Corrupt || sink.produced() > 0 {
            return end;
        }
    }
    End::Corrupt
}

/// Method, window and check bits of a zlib header.
fn is_zlib(coded: &[u8]) -> bool {
    let Some(&header) = coded.first_chunk::<2>() else {
        return false;
    };
    header[0] & 0x0f == 8 && header[0] >> 4 <= 7 && u16::from_be_bytes(header).is_multiple_of(31)
}

/// Runs one stream to its end, and says how much of `coded` it took. `read_before` bytes of the layer were read
/// before it. Each decoded piece is shown to `see`.
pub(super) fn inflate(
    state: &mut Decompress,
    coded: &[u8],
    read_before: usize,
    sink: &mut Sink<'_>,
    mut see: impl FnMut(&[u8]),
) -> (End, usize) {
    loop {
        let read = state.total_in() as usize;
        let written = state.total_out();
        let room = match sink.room(read_before + read) {
            Ok(room) => room,
            Err(end) => return (end, read),
        };
        let status = state.decompress(&coded[read..], room, FlushDecompress::None);
        let wrote = (state.total_out() - written) as usize;
        sink.fill(wrote);
        see(sink.last(wrote));
        let now_read = state.total_in() as usize;
        match status {
            Ok(Status::StreamEnd) => return (End::Whole, now_read),
            Err(_) => return (End::Corrupt, now_read),
            // With room, and nothing done: it wants bytes that are not there.
            Ok(_) if wrote == 0 && now_read == read => return (End::Cut, now_read),
            Ok(_) => {}
        }
    }
}
