use super::LineError;
use crate::limits::LINE_BYTES_MAX;

/// Cuts a stream into lines. However the bytes come in pieces, the same lines come out, and the same error after
/// them.
///
/// It holds no more than the piece last pushed and one unfinished line, if its owner takes every line before it
/// pushes again.
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Lines up to here were handed out.
    taken: usize,
    /// No LF up to here. `taken <= searched <= bytes.len()`
    searched: usize,
    /// Of a line with its LF.
    line_bytes_max: usize,
}

impl Default for LineBuffer {
    fn default() -> LineBuffer {
        LineBuffer::of_lines(LINE_BYTES_MAX)
    }
}

impl LineBuffer {
    /// Of lines that have so many bytes at most, their LF included.
    pub fn of_lines(line_bytes_max: usize) -> LineBuffer {
        LineBuffer { bytes: Vec::new(), taken: 0, searched: 0, line_bytes_max }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, without its LF and a CR before it; `None` until more bytes come. A line that is too
    /// long is an error for good: where the next one would begin is nobody's to guess.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineError> {
        let Some(at) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            return if self.bytes.len() - self.taken >= self.line_bytes_max {
                Err(LineError::TooLong { bytes_max: self.line_bytes_max })
            } else {
                Ok(None)
            };
        };
        let (start, end) = (self.taken, self.searched + at);
        if end + 1 - start > self.line_bytes_max {
            return Err(LineError::TooLong { bytes_max: self.line_bytes_max });
        }
        self.taken = end + 1;
        self.searched = self.taken;
        let line = &self.bytes[start..end];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines and the error that ended them, from bytes that came in these pieces.
    fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Option<LineError>) {
        let (mut buffer, mut lines) = (LineBuffer::default(), Vec::new());
        for piece in pieces {
            buffer.push(piece);
            loop {
                match buffer.next_line() {
                    Ok(Some(line)) => lines.push(line.to_vec()),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(buffer.next_line(), Err(error.clone()), "for good");
                        return (lines, Some(error));
                    }
                }
            }
        }
        (lines, None)
    }

    #[test]
    fn cut_at_every_byte() {
        let stream = b"GET 1\nDONE 2\r\n\n\r\nlast\r\r\nunfinished";
        let expected = ["GET 1", "DONE 2", "", "", "last\r"].map(|line| line.as_bytes().to_vec());
        for at in 0..=stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(lines([head, tail]), (expected.to_vec(), None), "cut at {at}");
        }
        assert_eq!(lines(stream.chunks(1)).0, expected);
    }

    #[test]
    fn the_limit_counts_the_line_feed() {
        let too_long_error = LineError::TooLong { bytes_max: LINE_BYTES_MAX };
        let longest = [&vec![b'x'; LINE_BYTES_MAX - 1][..], b"\n"].concat();
        let too_long = [&b"x"[..], &longest].concat();
        for piece in [1, 7, LINE_BYTES_MAX - 1, LINE_BYTES_MAX, 3 * LINE_BYTES_MAX] {
            let stream = [&b"GET 1\n"[..], &longest, b"GET 2\n"].concat();
            assert_eq!(lines(stream.chunks(piece)).0.len(), 3);
            let stream = [&b"GET 1\n"[..], &too_long, b"GET 2\n"].concat();
            assert_eq!(lines(stream.chunks(piece)), (vec![b"GET 1".to_vec()], Some(too_long_error.clone())));
        }
        // It need not end to be too long.
        assert_eq!(lines([&too_long[..LINE_BYTES_MAX]]).1, Some(too_long_error.clone()));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            stream in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..300),
            piece in 1usize..50,
        ) {
            prop_assert_eq!(lines(stream.chunks(piece)), lines([&stream[..]]));
        }
    }
}
