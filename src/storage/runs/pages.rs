use super::page::{Entry, PAGE_BYTES, Page};
use super::run::Run;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A run from its beginning to its end, many pages a read.
pub(crate) struct Pages<R> {
    run: R,
    buffer: Vec<u8>,
    /// The pages that are in the buffer.
    held: Range<u64>,
    /// The page that [`Pages::advance`] comes to next.
    next: u64,
}

/// Pages of one read.
const READ_PAGES: u64 = 64;

impl<R: Deref<Target = Run>> Pages<R> {
    pub fn of(run: R) -> Pages<R> {
        Pages { run, buffer: Vec::new(), held: 0..0, next: 0 }
    }

    /// Returns the page after the last one, if there is one more and it checks.
    pub fn advance(&mut self) -> io::Result<Option<Page<'_>>> {
        if self.next == self.run.pages() {
            return Ok(None);
        }
        if self.next == self.held.end {
            let end = self.run.pages().min(self.next + READ_PAGES);
            self.buffer.resize((end - self.next) as usize * PAGE_BYTES, 0);
            self.run.read_pages(self.next, &mut self.buffer)?;
            self.held = self.next..end;
        }
        let at = (self.next - self.held.start) as usize * PAGE_BYTES;
        let page = Page::read(&self.buffer[at..at + PAGE_BYTES], self.run.entries_of(self.next))?;
        self.next += 1;
        Ok(Some(page))
    }
}

/// The entries of a run, in order. After an error it is of no use any more.
pub(super) struct Entries {
    pages: Pages<Arc<Run>>,
    /// Of the page that is being read.
    entries: Vec<Entry>,
    at: usize,
}

impl Entries {
    pub fn of(run: Arc<Run>) -> Entries {
        Entries { pages: Pages::of(run), entries: Vec::new(), at: 0 }
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<io::Result<Entry>> {
        if self.at == self.entries.len() {
            self.entries.clear();
            self.at = 0;
            match self.pages.advance() {
                Ok(page) => self.entries.extend(page?.iter()),
                Err(error) => return Some(Err(error)),
            }
        }
        self.at += 1;
        Some(Ok(self.entries[self.at - 1]))
    }
}
