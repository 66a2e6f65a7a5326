use super::line::{self, Open, Step};
use super::reject::{Reject, RejectReason, Told};
use super::stamp::StampReader;
use memchr::memchr;
use std::mem;

/// The longest line; what is longer is a reject up to its end.
pub const LINE_BYTES_MAX: usize = 64 * 1_024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a reader has come by, over all its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflogCounts {
    pub lines: u64,
    pub records: u64,
    pub rejects: u64,
    /// Lines that are no part of a record, and not blank.
    pub unknown: u64,
    /// Hits beyond what a record or a reject has room for.
    pub hits_beyond: u64,
}

/// Records and rejects out of the bytes of a reflog, however they are cut.
///
/// What lies whole in the bytes that are handed in is borrowed from them; only what a cut goes through is kept: a record
/// that is open, in one or two lines, and the beginning of a line.
#[derive(Debug, Default)]
pub struct ReflogReader {
    counts: ReflogCounts,
    /// Lines of this file that have ended.
    lines: u64,
    /// The lines of the open record, and what has come of the line behind them.
    kept: Vec<u8>,
    /// Takes turns with it.
    spare: Vec<u8>,
    open: Option<Kept>,
    /// In a line that is too long, and has been told.
    skips: bool,
    stamps: StampReader,
}

/// The place of an open record in what is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    line: u64,
    first_bytes: usize,
    second_bytes: Option<usize>,
}

impl ReflogReader {
    /// Takes the next bytes of a file.
    pub fn read(&mut self, bytes: &[u8], mut told: impl FnMut(Told<'_>)) {
        let mut kept = mem::take(&mut self.kept);
        let lines_end = self.open.map_or(0, Kept::end);
        let mut rest = bytes;
        let mut is_ended = false;
        if kept.len() > lines_end {
            let room = LINE_BYTES_MAX + 1 - (kept.len() - lines_end);
            let window = &rest[..rest.len().min(room)];
            let end = memchr(b'\n', window);
            kept.extend_from_slice(&window[..end.unwrap_or(window.len())]);
            is_ended = end.is_some();
            rest = &rest[end.map_or(window.len(), |end| end + 1)..];
            if !is_ended && kept.len() - lines_end <= LINE_BYTES_MAX {
                self.kept = kept;
                return;
            }
        }
        let mut open = self.open.take().and_then(|place| place.restore(&kept));
        match &kept[lines_end..] {
            [] => {}
            text if is_ended => self.line(&mut open, text, &mut told),
            text => self.too_long(&mut open, text, &mut told),
        }
        let tail = self.body(&mut open, rest, &mut told);
        let mut next = mem::take(&mut self.spare);
        next.clear();
        self.open = open.map(|open| Kept::keep(&open, &mut next));
        next.extend_from_slice(tail);
        (self.kept, self.spare) = (next, kept);
    }

    /// A file has ended; the next begins with line 1.
    pub fn end(&mut self, mut told: impl FnMut(Told<'_>)) {
        let kept = mem::take(&mut self.kept);
        let lines_end = self.open.map_or(0, Kept::end);
        let mut open = self.open.take().and_then(|place| place.restore(&kept));
        match &kept[lines_end..] {
            [] if self.skips => self.counts.lines += 1,
            [] => {}
            text => self.line(&mut open, text, &mut told),
        }
        self.cut(&mut open, &mut told);
        (self.lines, self.skips) = (0, false);
    }

    /// A record has begun, and its end has not come.
    pub fn is_open(&self) -> bool {
        self.open.is_some() || !self.kept.is_empty()
    }

    /// Lines of this file that have ended.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    pub fn counts(&self) -> ReflogCounts {
        self.counts
    }

    /// Lines from the beginning of one; gives back what has not ended.
    fn body<'a>(
        &mut self,
        open: &mut Option<Open<'a>>,
        mut rest: &'a [u8],
        told: &mut impl FnMut(Told<'_>),
    ) -> &'a [u8] {
        while !rest.is_empty() {
            if self.skips {
                let Some(end) = memchr(b'\n', rest) else { return &[] };
                self.skips = false;
                self.count_line();
                rest = &rest[end + 1..];
                continue;
            }
            if let Some((record, bytes)) = line::plain(rest, &mut self.stamps) {
                self.cut(open, told);
                self.count_line();
                self.counts.records += 1;
                told(Told::Record { line: self.lines, record });
                rest = &rest[bytes..];
                continue;
            }
            let window = &rest[..rest.len().min(LINE_BYTES_MAX + 1)];
            match memchr(b'\n', window) {
                Some(end) => {
                    self.line(open, &window[..end], told);
                    rest = &rest[end + 1..];
                }
                None if window.len() <= LINE_BYTES_MAX => return rest,
                None => {
                    self.too_long(open, window, told);
                    rest = &rest[window.len()..];
                }
            }
        }
        &[]
    }

    /// One line, without its end.
    fn line<'a>(&mut self, open: &mut Option<Open<'a>>, text: &'a [u8], told: &mut impl FnMut(Told<'_>)) {
        self.count_line();
        let text = match self.lines {
            1 => text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text),
            _ => text,
        };
        let text = line::trimmed(text);
        if text.trim_ascii().is_empty() {
            return;
        }
        // What has the shape of a record begins one; what goes on with one may look like a bad record.
        let step = Open::begin(text, self.lines, true)
            .map(|step| (step, true))
            .or_else(|| open.and_then(|open| open.go_on(text)).map(|step| (step, false)))
            .or_else(|| Open::begin(text, self.lines, false).map(|step| (step, true)));
        let Some((step, begins)) = step else {
            self.cut(open, told);
            self.counts.unknown += 1;
            return;
        };
        if begins {
            self.cut(open, told);
        }
        match (step, open.take()) {
            (Step::Open(next), _) => *open = Some(next),
            (Step::Whole(record, beyond), before) => {
                self.counts.records += 1;
                self.counts.hits_beyond = self.counts.hits_beyond.saturating_add(beyond);
                told(Told::Record { line: before.map_or(self.lines, |open| open.line), record });
            }
            (Step::Bad(reject, beyond), _) => {
                self.counts.hits_beyond = self.counts.hits_beyond.saturating_add(beyond);
                self.reject(reject, told);
            }
        }
    }

    fn too_long(&mut self, open: &mut Option<Open<'_>>, text: &[u8], told: &mut impl FnMut(Told<'_>)) {
        self.cut(open, told);
        self.skips = true;
        let (line, why) = (self.lines + 1, RejectReason::LineTooLong);
        self.reject(Reject { line, why, text: line::beginning(text), hits: 0 }, told);
    }

    /// Gives up the open record, if there is one.
    fn cut(&mut self, open: &mut Option<Open<'_>>, told: &mut impl FnMut(Told<'_>)) {
        if let Some(open) = open.take() {
            self.reject(open.reject(RejectReason::Unfinished, 0), told);
        }
    }

    fn reject(&mut self, reject: Reject<'_>, told: &mut impl FnMut(Told<'_>)) {
        self.counts.rejects += 1;
        told(Told::Reject(reject));
    }

    fn count_line(&mut self) {
        self.lines += 1;
        self.counts.lines += 1;
    }
}

impl Kept {
    fn keep(open: &Open<'_>, out: &mut Vec<u8>) -> Kept {
        out.extend_from_slice(open.text);
        out.extend_from_slice(open.second.unwrap_or_default());
        Kept { line: open.line, first_bytes: open.text.len(), second_bytes: open.second.map(<[u8]>::len) }
    }

    fn end(self) -> usize {
        self.first_bytes + self.second_bytes.unwrap_or(0)
    }

    /// What was open is open again: the same lines say the same.
    fn restore(self, kept: &[u8]) -> Option<Open<'_>> {
        let (first, second) = kept[..self.end()].split_at(self.first_bytes);
        let Some(Step::Open(open)) = Open::begin(first, self.line, false) else { return None };
        match self.second_bytes {
            None => Some(open),
            Some(_) => match open.go_on(second) {
                Some(Step::Open(open)) => Some(open),
                _ => None,
            },
        }
    }
}
