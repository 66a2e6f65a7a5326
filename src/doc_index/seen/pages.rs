use super::page::{PAGE_BYTES, Page};
use super::run::Run;
use std::io;
use std::ops::{Deref, Range};

/// A run from its beginning to its end, many pages a read.
pub(super) struct Pages<R> {
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

    /// The page after the last one, if there is one more and it checks.
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
