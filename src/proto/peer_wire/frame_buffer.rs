use super::{FRAME_HEADER_BYTES, Frame, FrameError};

/// Cuts a stream into frames. However the bytes come in pieces, the same frames come out, and the same error after them.
///
/// It holds no more than the piece last pushed and one unfinished frame, if its owner takes every frame before it pushes
/// again; never more than came, as a header that promises much makes no room for it; and nothing after an error.
#[derive(Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Frames up to here were handed out. `taken <= bytes.len()`
    taken: usize,
    failed: Option<FrameError>,
}

/// Memory beyond this is given back once it is not in use: most frames are small.
const KEPT_BYTES_MAX: usize = 256 * 1_024;

impl FrameBuffer {
    pub fn push(&mut self, piece: &[u8]) {
        self.push_with(piece.len(), |bytes| bytes.extend_from_slice(piece));
    }

    /// The same, with a piece of about so many bytes that `append` puts behind what there is.
    pub fn push_with<T>(&mut self, bytes: usize, append: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.len() + bytes <= KEPT_BYTES_MAX && self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        }
        let appended = append(&mut self.bytes);
        if self.failed.is_some() {
            self.bytes.clear();
        }
        appended
    }

    /// The next whole frame; `None` until more bytes come. After an error there is nothing but that error.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        match Frame::check(&self.bytes[self.taken..]) {
            Ok(None) => Ok(None),
            Ok(Some((kind, body_bytes))) => {
                let start = self.taken + FRAME_HEADER_BYTES;
                self.taken = start + body_bytes;
                Ok(Some(Frame { kind, body: &self.bytes[start..self.taken] }))
            }
            Err(failed) => {
                *self = FrameBuffer { failed: Some(failed), ..FrameBuffer::default() };
                Err(failed)
            }
        }
    }

    /// Bytes that came and were not handed out.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.taken
    }
}
