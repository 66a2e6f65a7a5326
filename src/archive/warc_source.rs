use super::export::ArchiveError;
use crate::proto::warc::{WarcError, WarcHead, WarcParser, WarcStep};
use flate2::bufread::GzDecoder;
use memchr::memmem;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A WARC file, plain or gzipped, record by record. What cannot be read is reported, and reading continues with the next
/// record that can be found.
pub(super) struct WarcSource {
    input: Input,
    parser: WarcParser,
    /// Plain bytes that were not parsed yet are `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// In a plain file, where `buffer[start]` lies.
    at: u64,
    /// Of a gzip member: where it begins, and records of it that were shown.
    member: u64,
    nth: u32,
    /// The head of the next record of the member, which was read with the record before.
    pending: Option<WarcHead>,
    is_over: bool,
    records: u64,
}

enum Input {
    Plain(Counted),
    /// Inside of a member.
    Packed(Box<GzDecoder<Counted>>),
    /// Between members.
    Between(Counted),
    /// While one of the others is replaced.
    Moved,
}

/// Where a record lies: a place in the file, and its number in the gzip member there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecordPlace {
    pub offset: u64,
    pub nth: u32,
}

/// Parts of a record as they are read.
pub(super) enum Seen<'a> {
    Head(&'a WarcHead),
    Block(&'a [u8]),
}

#[derive(Debug)]
pub(super) enum Step {
    /// A whole record was shown. Its length in the file is not known if it shares its gzip member with others.
    Record {
        at: RecordPlace,
        length: Option<u64>,
    },
    /// What was shown since the last step must not be used.
    Fault(Fault),
    End,
}

/// Bytes that are no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub offset: u64,
    pub cause: String,
}

const BUFFER_BYTES: usize = 1 << 16;
/// A block that claims to be longer is an error.
const BLOCK_BYTES_MAX: u64 = 1 << 36;
/// Bytes that are read to find the end of a gzip member that holds no record.
const DRAINED_BYTES_MAX: u64 = 1 << 30;
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const RECORD_BEGIN: &[u8] = b"WARC/";

impl WarcSource {
    pub fn open(path: &Path) -> Result<WarcSource, ArchiveError> {
        let source = |cause| ArchiveError::Source { path: path.to_path_buf(), cause };
        let mut file = Counted::new(File::open(path).map_err(source)?);
        let begin = file.fill_buf().map_err(source)?;
        // If the beginning is damaged, the name of the file decides.
        let is_packed = begin.starts_with(&GZIP_MAGIC[..2])
            || !begin.starts_with(RECORD_BEGIN) && path.extension().is_some_and(|ending| ending == "gz");
        let input = if is_packed { Input::Between(file) } else { Input::Plain(file) };
        Ok(WarcSource {
            input,
            parser: WarcParser::new(BLOCK_BYTES_MAX),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            at: 0,
            member: 0,
            nth: 0,
            pending: None,
            is_over: false,
            records: 0,
        })
    }

    /// Goes to a record that was shown before. Within a gzip member it goes forward, so that records of one member in their
    /// order cost one pass over it.
    pub fn go_to(&mut self, place: RecordPlace) -> io::Result<()> {
        let is_ahead = matches!(self.input, Input::Packed(_)) && self.member == place.offset;
        if !is_ahead || self.nth > place.nth {
            self.reset();
            self.seek(place.offset)?;
        }
        for _ in self.nth..place.nth {
            self.next(&mut |_| {});
        }
        Ok(())
    }

    /// Records that were shown, or skipped on the way to another.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Shows the next record.
    pub fn next(&mut self, show: &mut dyn FnMut(Seen<'_>)) -> Step {
        if self.is_over {
            return Step::End;
        }
        let mut at = RecordPlace { offset: self.member, nth: self.nth };
        let step = self.read(show, &mut at);
        match step {
            Ok(Some(length)) => {
                self.nth += 1;
                self.records += 1;
                let alone = length.filter(|_| at.nth == 0 && self.pending.is_none());
                Step::Record { at, length: alone }
            }
            Ok(None) => {
                self.is_over = true;
                Step::End
            }
            Err(trouble) => {
                let offset = if let Input::Plain(_) = self.input { at.offset } else { self.member };
                let recovered = self.recover(offset, &trouble);
                self.is_over = recovered.is_err();
                let cause = recovered.err().map_or(trouble.to_string(), |cause| cause.to_string());
                Step::Fault(Fault { offset, cause })
            }
        }
    }

    /// One record: its length if that is known, `None` at the end of the file.
    fn read(
        &mut self,
        show: &mut dyn FnMut(Seen<'_>),
        at: &mut RecordPlace,
    ) -> Result<Option<Option<u64>>, Trouble> {
        let mut is_whole = false;
        if let Some(head) = self.pending.take() {
            show(Seen::Head(&head));
        }
        loop {
            if self.parser.is_between() {
                self.skip_blank();
                if !is_whole {
                    *at = match self.input {
                        Input::Plain(_) => RecordPlace { offset: self.at, nth: 0 },
                        _ => RecordPlace { offset: self.member, nth: self.nth },
                    };
                }
            }
            let bytes = &self.buffer[self.start..self.end];
            let (taken, step) = self.parser.step(bytes).map_err(Trouble::Warc)?;
            let begun = self.start;
            self.start += taken;
            self.at += taken as u64;
            match step {
                WarcStep::Head(head) if is_whole => {
                    self.pending = Some(head);
                    return Ok(Some(None));
                }
                WarcStep::Head(head) => show(Seen::Head(&head)),
                WarcStep::Block(_) => show(Seen::Block(&self.buffer[begun..begun + taken])),
                WarcStep::End => {
                    is_whole = true;
                    if let Input::Plain(_) = self.input {
                        return Ok(Some(Some(self.at - at.offset)));
                    }
                }
                WarcStep::NeedMore => {
                    if let Some(ended) = self.fill()? {
                        self.parser.end().map_err(Trouble::Warc)?;
                        match (is_whole, ended) {
                            (true, end) => return Ok(Some(Some(end - at.offset))),
                            (false, _) if self.is_at_end()? => return Ok(None),
                            // A member of nothing.
                            (false, _) => {}
                        }
                    }
                }
            }
        }
    }

    fn skip_blank(&mut self) {
        let bytes = &self.buffer[self.start..self.end];
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.start += blank;
        self.at += blank as u64;
    }

    /// Reads on; where a member or the file ends, says at which place. Called with an empty buffer.
    fn fill(&mut self) -> Result<Option<u64>, Trouble> {
        debug_assert_eq!(self.start, self.end, "all was parsed");
        if let Input::Between(_) = self.input {
            self.begin_member()?;
        }
        let read = match &mut self.input {
            Input::Plain(file) => file.read(&mut self.buffer).map_err(Trouble::Read)?,
            Input::Packed(member) => member.read(&mut self.buffer).map_err(Trouble::Gzip)?,
            Input::Between(file) => return Ok(Some(file.at)),
            Input::Moved => 0,
        };
        (self.start, self.end) = (0, read);
        if read > 0 {
            return Ok(None);
        }
        Ok(Some(match std::mem::replace(&mut self.input, Input::Moved) {
            Input::Packed(member) => {
                let file = member.into_inner();
                let end = file.at;
                self.input = Input::Between(file);
                end
            }
            input => {
                self.input = input;
                self.at
            }
        }))
    }

    /// Opens the next member, unless the file is over.
    fn begin_member(&mut self) -> Result<(), Trouble> {
        let Input::Between(file) = &mut self.input else { return Ok(()) };
        (self.member, self.nth) = (file.at, 0);
        let begin = file.fill_buf().map_err(Trouble::Read)?;
        if begin.is_empty() {
            return Ok(());
        }
        if let Input::Between(file) = std::mem::replace(&mut self.input, Input::Moved) {
            self.input = Input::Packed(Box::new(GzDecoder::new(file)));
        }
        Ok(())
    }

    fn is_at_end(&mut self) -> Result<bool, Trouble> {
        match &mut self.input {
            Input::Plain(_) => Ok(true),
            Input::Between(file) => Ok(file.fill_buf().map_err(Trouble::Read)?.is_empty()),
            Input::Packed(_) | Input::Moved => Ok(false),
        }
    }

    /// Finds the next place where a record may begin, behind one at `offset` that was none.
    fn recover(&mut self, offset: u64, trouble: &Trouble) -> io::Result<()> {
        self.reset();
        match (&mut self.input, trouble) {
            (_, Trouble::Read(_)) => Err(io::Error::other(trouble.to_string())),
            (Input::Plain(file), _) => {
                let found = find_record(file, offset + 1)?;
                self.at = found;
                file.seek_to(found)
            }
            // The member itself is sound: its end is the next one's begin.
            (Input::Packed(member), Trouble::Warc(_)) => {
                let drained = io::copy(&mut member.take(DRAINED_BYTES_MAX), &mut io::sink());
                let mut probe = [0];
                match drained.and_then(|_| member.read(&mut probe)) {
                    Ok(0) => self.seek_behind_member(),
                    _ => self.seek_member(offset + 1),
                }
            }
            (Input::Between(_), Trouble::Warc(_)) => Ok(()),
            _ => self.seek_member(offset + 1),
        }
    }

    /// Forgets what was read and not shown.
    fn reset(&mut self) {
        self.parser = WarcParser::new(BLOCK_BYTES_MAX);
        self.pending = None;
        (self.start, self.end) = (0, 0);
    }

    fn seek_behind_member(&mut self) -> io::Result<()> {
        if let Input::Packed(member) = std::mem::replace(&mut self.input, Input::Moved) {
            self.input = Input::Between(member.into_inner());
        }
        Ok(())
    }

    /// Goes to the first member from `from` on that begins like a record.
    fn seek_member(&mut self, from: u64) -> io::Result<()> {
        let mut from = from;
        loop {
            let mut file = self.take_file();
            let found = find(&mut file, from, &GZIP_MAGIC);
            let found = match found {
                Ok(Some(found)) => found,
                Ok(None) => {
                    let end = file.inner.seek(SeekFrom::End(0));
                    file.at = end?;
                    self.input = Input::Between(file);
                    return Ok(());
                }
                Err(e) => {
                    self.input = Input::Between(file);
                    return Err(e);
                }
            };
            file.seek_to(found)?;
            let mut member = GzDecoder::new(file);
            let mut begin = [0; RECORD_BEGIN.len()];
            let is_record = member.read_exact(&mut begin).is_ok() && begin == *RECORD_BEGIN;
            let mut file = member.into_inner();
            file.seek_to(found)?;
            self.input = Input::Between(file);
            if is_record {
                return Ok(());
            }
            from = found + 1;
        }
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let is_plain = matches!(self.input, Input::Plain(_));
        let mut file = self.take_file();
        file.seek_to(offset)?;
        (self.at, self.member, self.nth, self.is_over) = (offset, offset, 0, false);
        self.input = if is_plain { Input::Plain(file) } else { Input::Between(file) };
        Ok(())
    }

    fn take_file(&mut self) -> Counted {
        match std::mem::replace(&mut self.input, Input::Moved) {
            Input::Plain(file) | Input::Between(file) => file,
            Input::Packed(member) => member.into_inner(),
            Input::Moved => unreachable!("the file is always put back"),
        }
    }
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Warc(WarcError),
    #[error("gzip: {0}")]
    Gzip(io::Error),
    #[error("{0}")]
    Read(io::Error),
}

/// Where a line that begins like a record begins, from `from` on; the end of the file if there is none.
fn find_record(file: &mut Counted, from: u64) -> io::Result<u64> {
    let found = find(file, from, b"\nWARC/")?;
    match found {
        Some(at) => Ok(at + 1),
        None => file.inner.seek(SeekFrom::End(0)),
    }
}

fn find(file: &mut Counted, from: u64, wanted: &[u8]) -> io::Result<Option<u64>> {
    file.seek_to(from)?;
    let mut window = Vec::new();
    let mut start = from;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let read = bytes.len();
        window.extend_from_slice(bytes);
        file.consume(read);
        if let Some(at) = memmem::find(&window, wanted) {
            return Ok(Some(start + at as u64));
        }
        // It may begin in this piece and end in the next.
        let keep = window.len().min(wanted.len() - 1);
        start += (window.len() - keep) as u64;
        window.drain(..window.len() - keep);
    }
}

/// A file that knows where it is read.
struct Counted {
    inner: BufReader<File>,
    at: u64,
}

impl Counted {
    fn new(file: File) -> Counted {
        Counted { inner: BufReader::with_capacity(BUFFER_BYTES, file), at: 0 }
    }

    fn seek_to(&mut self, at: u64) -> io::Result<()> {
        self.at = self.inner.seek(SeekFrom::Start(at))?;
        Ok(())
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.inner.consume(bytes);
    }
}
