use crate::base::SortedMap;
use crate::storage::{checked, checked_lines, replace};
use crate::store_server::SealedSegment;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How far a follower is. In `content/` of the data directory as `NAME.cursor`, replaced whole:
///
/// ```text
///   nephila content.cursor 1
///   to 127.0.0.1/crawl
///   sent 4711
///   refused 0
///   gone 0
///   done 1 33554432 1794744001000000000
///   wait 3 31457280 1794744061000000000
///   at 3 8192
///   crc32c 1f2e3d4c
/// ```
///
/// A line for every sealed segment that was last seen: its number, bytes and time. Segments that are still written have
/// none, so the numbers may have gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Where documents go, as it is shown. Another place has nothing yet.
    pub to: String,
    /// Documents that were confirmed, those that the other side refused for their own sake, and segments that went before
    /// they were copied.
    pub sent: u64,
    pub refused: u64,
    pub gone: u64,
    segments: SortedMap<u64, Segment>,
    /// In which segment it is, and from where on that is not copied.
    at: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    bytes: u64,
    written_ns: i64,
    is_done: bool,
}

#[derive(Debug, Error)]
pub(super) enum CursorError {
    #[error("{path}: {cause}")]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error(
        "{path} is damaged: {what} (remove it to copy everything again; what is there already changes nothing)"
    )]
    Damaged { path: PathBuf, what: &'static str },
}

/// What a look at the segments told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// Segments that went, or lost records, before they were copied.
    pub gone: u64,
    pub is_changed: bool,
}

const HEAD: &str = "nephila content.cursor 1";
/// More than a million segments have.
const BYTES_MAX: u64 = 64 << 20;

impl Cursor {
    pub fn new(to: String) -> Cursor {
        Cursor { to, ..Cursor::default() }
    }

    /// `None` for a follower that never was.
    pub fn read(path: &Path) -> Result<Option<Cursor>, CursorError> {
        let damaged = |what| CursorError::Damaged { path: path.to_path_buf(), what };
        match std::fs::metadata(path) {
            Ok(found) if found.len() > BYTES_MAX => return Err(damaged("it is too large")),
            _ => {}
        }
        match std::fs::read(path) {
            Ok(text) => Cursor::parse(&text).map(Some).map_err(damaged),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CursorError::Unreadable { path: path.to_path_buf(), cause }),
        }
    }

    /// Durable when it returns.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        replace(path, self.text().as_bytes())
    }

    /// Compares what is known with the segments as they are. Whatever is not as it was is followed from its beginning.
    pub fn look(&mut self, present: &[SealedSegment]) -> Looked {
        let mut looked = Looked::default();
        let mut before = std::mem::take(&mut self.segments);
        for &SealedSegment { number, bytes, written_ns } in present {
            let known = before.remove(&number);
            let is_same = known.is_some_and(|known| (known.bytes, known.written_ns) == (bytes, written_ns));
            if !is_same {
                looked.is_changed = true;
                // Cut to what others need of it, while it waited.
                looked.gone += u64::from(known.is_some_and(|known| !known.is_done && bytes < known.bytes));
                self.at.take_if(|(at, _)| *at == number);
            }
            let is_done = is_same && known.is_some_and(|known| known.is_done);
            self.segments.insert(number, Segment { bytes, written_ns, is_done });
        }
        looked.is_changed |= !before.is_empty();
        looked.gone += before.values().filter(|segment| !segment.is_done).count() as u64;
        self.at.take_if(|(at, _)| before.contains_key(at));
        self.gone += looked.gone;
        looked
    }

    /// The oldest segment that is not copied, other than those that are passed over, and from where on.
    pub fn next(&self, is_passed_over: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let waits = |(number, segment): (&u64, &Segment)| (!segment.is_done).then_some(*number);
        let number = self.segments.iter().filter_map(waits).find(|&number| !is_passed_over(number))?;
        Some((number, self.at.filter(|(at, _)| *at == number).map_or(0, |(_, offset)| offset)))
    }

    /// What lies before this place of a segment is copied.
    pub fn move_to(&mut self, number: u64, offset: u64) {
        self.at = Some((number, offset));
    }

    /// All of a segment is copied.
    pub fn finish(&mut self, number: u64) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.is_done = true;
        }
        self.at.take_if(|(at, _)| *at == number);
    }

    /// Segments that there were when it last looked.
    pub fn segments(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments that are not copied, or not all of them.
    pub fn waiting(&self) -> u64 {
        self.segments.values().filter(|segment| !segment.is_done).count() as u64
    }

    fn text(&self) -> String {
        let Cursor { to, sent, refused, gone, .. } = self;
        let mut text = format!("{HEAD}\nto {to}\nsent {sent}\nrefused {refused}\ngone {gone}\n");
        for (number, Segment { bytes, written_ns, is_done }) in &self.segments {
            let word = if *is_done { "done" } else { "wait" };
            let _ = writeln!(text, "{word} {number} {bytes} {written_ns}");
        }
        if let Some((number, offset)) = self.at {
            let _ = writeln!(text, "at {number} {offset}");
        }
        checked(text)
    }

    fn parse(text: &[u8]) -> Result<Cursor, &'static str> {
        let mut cursor = Cursor::default();
        for line in checked_lines(text, HEAD)? {
            cursor.take(line).ok_or("a line cannot be read")?;
        }
        Ok(cursor)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        let figure = |text: &str| text.parse::<u64>().ok();
        match word {
            "to" => self.to = rest.to_string(),
            "sent" => self.sent = figure(rest)?,
            "refused" => self.refused = figure(rest)?,
            "gone" => self.gone = figure(rest)?,
            "at" => {
                let (number, offset) = rest.split_once(' ')?;
                self.at = Some((figure(number)?, figure(offset)?));
            }
            "done" | "wait" => {
                let (number, rest) = rest.split_once(' ')?;
                let (bytes, written_ns) = rest.split_once(' ')?;
                let (bytes, written_ns) = (figure(bytes)?, written_ns.parse().ok()?);
                let segment = Segment { bytes, written_ns, is_done: word == "done" };
                self.segments.insert(figure(number)?, segment);
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: u64, bytes: u64, written_ns: i64) -> SealedSegment {
        SealedSegment { number, bytes, written_ns }
    }

    fn any(_: u64) -> bool {
        false
    }

    fn cursor() -> Cursor {
        let mut cursor = Cursor::new("127.0.0.1/crawl of u".to_string());
        cursor.look(&[sealed(1, 100, 1), sealed(3, 200, -1), sealed(9, u64::MAX, i64::MAX)]);
        cursor.finish(1);
        cursor.move_to(3, 4_096);
        (cursor.sent, cursor.refused, cursor.gone) = (u64::MAX, 7, 1);
        cursor
    }

    #[test]
    fn a_cursor_is_written_and_read() {
        for cursor in [cursor(), Cursor::new(String::new())] {
            assert_eq!(Cursor::parse(cursor.text().as_bytes()), Ok(cursor));
        }
        let folder = std::env::temp_dir().join(format!("nephila-cursor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("postgres.cursor");
        assert_eq!(Cursor::read(&path).unwrap(), None);
        cursor().write(&path).unwrap();
        assert_eq!(Cursor::read(&path).unwrap(), Some(cursor()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_byte_that_is_flipped_or_missing_is_noticed() {
        let text = cursor().text();
        for at in 0..text.len() {
            assert!(Cursor::parse(&text.as_bytes()[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1 << bit;
                let read = Cursor::parse(&damaged);
                // Digits of the checksum may be written in capitals.
                assert!(read.is_err() || read == Ok(cursor()), "bit {bit} of {at}");
            }
        }
    }

    #[test]
    fn shards_seal_in_any_order_and_no_segment_is_passed_by() {
        let mut cursor = Cursor::new(String::new());
        // 1 is still written.
        assert_eq!(cursor.look(&[sealed(2, 10, 1)]), Looked { gone: 0, is_changed: true });
        assert_eq!(cursor.next(any), Some((2, 0)));
        cursor.move_to(2, 5);
        assert_eq!(cursor.next(any), Some((2, 5)));
        // The oldest first, and from where it was in each.
        cursor.look(&[sealed(1, 10, 2), sealed(2, 10, 1)]);
        assert_eq!(cursor.next(any), Some((1, 0)));
        assert_eq!(cursor.next(|number| number == 1), Some((2, 5)));
        cursor.finish(1);
        cursor.finish(2);
        assert_eq!((cursor.next(any), cursor.waiting()), (None, 0));
        assert_eq!(cursor.look(&[sealed(1, 10, 2), sealed(2, 10, 1)]), Looked::default());
    }

    #[test]
    fn what_was_packed_is_followed_anew_and_what_went_is_counted() {
        let mut cursor = Cursor::new(String::new());
        let all = [1, 2, 3, 4].map(|number| sealed(number, 100, 1));
        cursor.look(&all);
        [2, 3].into_iter().for_each(|number| cursor.finish(number));
        cursor.move_to(1, 50);
        // 1 and 2 are packed into 2, which was copied: its records of 1 were not.
        assert_eq!(cursor.look(&[sealed(2, 120, 2), all[2], all[3]]), Looked { gone: 1, is_changed: true });
        assert_eq!((cursor.next(any), cursor.waiting()), (Some((2, 0)), 2));
        // 4 is cut to what others refer to before it was copied, 3 after that.
        let cut = [sealed(2, 120, 2), sealed(3, 20, 3), sealed(4, 20, 3)];
        assert_eq!(cursor.look(&cut), Looked { gone: 1, is_changed: true });
        // All go, and numbers begin anew.
        [2, 3, 4].into_iter().for_each(|number| cursor.finish(number));
        assert_eq!(cursor.look(&[]), Looked { gone: 0, is_changed: true });
        cursor.look(&[sealed(2, 120, 9)]);
        assert_eq!((cursor.next(any), cursor.gone), (Some((2, 0)), 2));
    }
}
