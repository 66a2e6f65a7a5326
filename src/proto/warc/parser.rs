use super::HEAD_BYTES_MAX;
use super::head::WarcHead;
use memchr::memchr;
use thiserror::Error;

/// Reads records from the bytes of a file, which is not compressed any more, however they are cut.
///
/// ```text
///   Between ──first byte──► Head ──blank line──► Block ──Content-Length bytes──► Between
/// ```
pub struct WarcParser {
    state: State,
    length_max: u64,
    /// Of a head that is not whole yet.
    // held.len() <= HEAD_BYTES_MAX
    held: Vec<u8>,
}

enum State {
    /// Line ends between records.
    Between,
    /// A head; its last line has so many bytes, CR aside, and lies in `held`.
    Head { line_bytes: usize },
    /// So many bytes of the block are still to come.
    Block { left: u64 },
    /// No sense was made of what came; nothing more is read.
    Failed(WarcError),
}

/// What the bytes so far come to.
#[derive(Debug, PartialEq, Eq)]
pub enum WarcStep<'a> {
    /// All bytes were taken; show more.
    NeedMore,
    /// A record begins.
    Head(WarcHead),
    /// A piece of its block, never empty.
    Block(&'a [u8]),
    /// The block is over.
    End,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WarcError {
    #[error("no record begins here")]
    NotARecord,
    #[error("the head of a record is larger than {HEAD_BYTES_MAX} bytes")]
    HeadTooLarge,
    #[error("a record has a block of more bytes than the limit")]
    BlockTooLarge,
    #[error("the file ends within a record")]
    Cut,
}

impl WarcParser {
    /// Blocks of more than `length_max` bytes are an error.
    pub fn new(length_max: u64) -> WarcParser {
        WarcParser { state: State::Between, length_max, held: Vec::new() }
    }

    /// Takes some of the bytes and says how many, and what they were. Call again with the rest. After an error the
    /// answer stays the same.
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, WarcStep<'a>), WarcError> {
        match self.state {
            State::Between => {
                let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                if blank == bytes.len() {
                    return Ok((blank, WarcStep::NeedMore));
                }
                self.state = State::Head { line_bytes: 0 };
                let (taken, step) = self.head(&bytes[blank..], 0)?;
                Ok((blank + taken, step))
            }
            State::Head { line_bytes } => self.head(bytes, line_bytes),
            State::Block { left: 0 } => {
                self.state = State::Between;
                Ok((0, WarcStep::End))
            }
            State::Block { .. } if bytes.is_empty() => Ok((0, WarcStep::NeedMore)),
            State::Block { left } => {
                let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.state = State::Block { left: left - taken as u64 };
                Ok((taken, WarcStep::Block(&bytes[..taken])))
            }
            State::Failed(error) => Err(error),
        }
    }

    /// No record has begun; line ends that come are nobody's.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Whether the end of the file is a good place to end.
    pub fn end(&self) -> Result<(), WarcError> {
        match self.state {
            State::Between => Ok(()),
            State::Head { .. } | State::Block { .. } => Err(WarcError::Cut),
            State::Failed(error) => Err(error),
        }
    }

    fn head<'a>(&mut self, bytes: &[u8], mut line_bytes: usize) -> Result<(usize, WarcStep<'a>), WarcError> {
        let mut taken = 0;
        while let Some(lf) = memchr(b'\n', &bytes[taken..]) {
            let line = &bytes[taken..taken + lf];
            line_bytes += line.iter().filter(|&&byte| byte != b'\r').count();
            taken += lf + 1;
            if line_bytes == 0 {
                return self.whole(&bytes[..taken]).map(|head| (taken, WarcStep::Head(head)));
            }
            line_bytes = 0;
            if self.held.len() + taken > HEAD_BYTES_MAX {
                break;
            }
        }
        let rest = &bytes[taken..];
        line_bytes += rest.iter().filter(|&&byte| byte != b'\r').count();
        if self.held.len() + bytes.len() > HEAD_BYTES_MAX {
            return Err(self.fail(WarcError::HeadTooLarge));
        }
        self.held.extend_from_slice(bytes);
        // What does not even begin like a record is not waited for.
        let begin = &self.held[..self.held.len().min(BEGIN.len())];
        if !BEGIN.starts_with(begin) {
            return Err(self.fail(WarcError::NotARecord));
        }
        self.state = State::Head { line_bytes };
        Ok((bytes.len(), WarcStep::NeedMore))
    }

    fn whole(&mut self, last: &[u8]) -> Result<WarcHead, WarcError> {
        if self.held.len() + last.len() > HEAD_BYTES_MAX {
            return Err(self.fail(WarcError::HeadTooLarge));
        }
        let head = match self.held.is_empty() {
            true => WarcHead::read(last),
            false => {
                self.held.extend_from_slice(last);
                WarcHead::read(&self.held)
            }
        };
        self.held.clear();
        match head {
            None => Err(self.fail(WarcError::NotARecord)),
            Some(head) if head.length() > self.length_max => Err(self.fail(WarcError::BlockTooLarge)),
            Some(head) => {
                self.state = State::Block { left: head.length() };
                Ok(head)
            }
        }
    }

    fn fail(&mut self, error: WarcError) -> WarcError {
        self.held = Vec::new();
        self.state = State::Failed(error);
        error
    }
}

/// What every record begins with.
const BEGIN: &[u8] = b"WARC/";

#[cfg(test)]
mod tests {
    use super::super::write_record;
    use super::*;
    use proptest::prelude::*;

    /// What a file comes to: targets and blocks, and how it ended.
    type Read = (Vec<(Option<String>, Vec<u8>)>, Result<(), WarcError>);

    fn read(pieces: &[&[u8]], length_max: u64) -> Read {
        let mut parser = WarcParser::new(length_max);
        let mut records: Vec<(Option<String>, Vec<u8>)> = Vec::new();
        let mut ended = 0;
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let (taken, step) = match parser.step(rest) {
                    Ok(step) => step,
                    Err(error) => return (records, Err(error)),
                };
                rest = &rest[taken..];
                match step {
                    WarcStep::NeedMore => break,
                    WarcStep::Head(head) => {
                        records.push((head.get("WARC-Target-URI").map(str::to_string), Vec::new()));
                    }
                    WarcStep::Block(bytes) => {
                        assert!(!bytes.is_empty());
                        records.last_mut().unwrap().1.extend_from_slice(bytes);
                    }
                    WarcStep::End => ended += 1,
                }
            }
            assert!(rest.is_empty(), "all of it is taken");
        }
        let end = parser.end();
        assert!(end.is_err() || ended == records.len());
        (records, end)
    }

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        for (url, block) in
            [("http://a/", &b"one"[..]), ("http://b/", b""), ("http://c/", b"\r\n\r\nWARC/1.1\r\n")]
        {
            write_record(&mut bytes, &[("WARC-Target-URI", url)], &[block]);
        }
        bytes
    }

    #[test]
    fn a_file_reads_the_same_however_it_is_cut() {
        let bytes = sample();
        let whole = read(&[&bytes], 100);
        assert_eq!(whole.1, Ok(()));
        assert_eq!(whole.0.len(), 3);
        assert_eq!(whole.0[2].1, b"\r\n\r\nWARC/1.1\r\n");
        for at in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..at], &bytes[at..]], 100), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, 100), whole);
    }

    #[test]
    fn a_file_that_ends_early_says_so() {
        let bytes = sample();
        // Only between records may a file end.
        let mut good = 0;
        for at in 0..bytes.len() {
            let (records, end) = read(&[&bytes[..at]], 100);
            assert!(records.len() <= 3);
            match end {
                Ok(()) => good += 1,
                Err(error) => assert_eq!(error, WarcError::Cut, "{at}"),
            }
        }
        assert!((3..=15).contains(&good), "{good}");
    }

    #[test]
    fn what_is_no_record_or_too_much_is_refused() {
        let refused = |bytes: &[u8]| read(&[bytes], 100).1.unwrap_err();
        assert_eq!(refused(b"GET / HTTP/1.1\r\n"), WarcError::NotARecord);
        assert_eq!(refused(b"x"), WarcError::NotARecord);
        assert_eq!(refused(b"WARC/9.9\r\nContent-Length: 0\r\n\r\n"), WarcError::NotARecord);
        assert_eq!(refused(b"WARC/1.1\r\nContent-Length: 101\r\n\r\n"), WarcError::BlockTooLarge);
        let long = [&b"WARC/1.1\r\nX: "[..], &[b'x'; HEAD_BYTES_MAX]].concat();
        assert_eq!(refused(&long), WarcError::HeadTooLarge);
        let lines = [&b"WARC/1.1\r\n"[..], &b"X: y\r\n".repeat(HEAD_BYTES_MAX / 6), b"\r\n"].concat();
        assert_eq!(refused(&lines), WarcError::HeadTooLarge);
        let single: Vec<&[u8]> = lines.chunks(1).collect();
        assert_eq!(read(&single, 100).1, Err(WarcError::HeadTooLarge));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            cut in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            for block in &blocks {
                let (left, right) = block.split_at(block.len() / 2);
                write_record(&mut bytes, &[("WARC-Type", "resource")], &[left, right]);
            }
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            let (records, end) = read(&pieces, 1_000);
            prop_assert_eq!(end, Ok(()));
            let read: Vec<Vec<u8>> = records.into_iter().map(|(_, block)| block).collect();
            prop_assert_eq!(read, blocks);
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..500), cut in 1_usize..50) {
            let mut any = b"WARC/1.0\r\nContent-Length: 3\r\n".to_vec();
            any.extend_from_slice(&bytes);
            let pieces: Vec<&[u8]> = any.chunks(cut).collect();
            prop_assert_eq!(read(&pieces, 1_000), read(&[&any], 1_000));
        }
    }
}
