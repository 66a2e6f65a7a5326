use super::page::{self, PAGE_BYTES, PAGE_ENTRIES, Page, broken};
use super::pages::Pages;
use super::query::Query;
use crate::base::{u32_at, u64_at};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of entries sorted by fingerprint: those of the documents from `first` to `last`.
///
/// ```text
///   0      the header page: crc32c at 4092 like every page, zeros where nothing is said
///          0   8  magic "NEPHRUN1"
///          8   8  seed check: tells runs of another seed
///          16  4  first document
///          20  4  last document
///          24  8  entries
///   4096   pages of entries, all of them full but the last
/// ```
///
/// The header has a page of its own, so that the pages of the file are those of the kernel's cache.
pub(crate) struct Run {
    file: File,
    head: RunHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunHead {
    pub seed_check: u64,
    pub span: Span,
    pub count: u64,
}

/// The documents of a run, by the numbers of the first and the last. Not every number between has an entry; none of
/// them has one elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub first: u32,
    pub last: u32,
}

const MAGIC: &[u8; 8] = b"NEPHRUN1";
const SEED_CHECK: usize = 8;
const FIRST: usize = 16;
const LAST: usize = 20;
const COUNT: usize = 24;
const HEAD_BYTES: usize = 32;

/// Interpolation is right within a page or two for fingerprints as they should be. What is not found by then is
/// bisected.
const GUESSES: u32 = 6;
/// A point search reads a few pages from anywhere, which costs as much as this many pages in a row.
const SEARCH_PAGES: u64 = if cfg!(test) { 1 } else { 16 };

impl Span {
    pub fn name(self) -> String {
        format!("{:010}-{:010}.run", self.first, self.last)
    }

    /// `None` for what is not the name of a run.
    pub fn of_name(name: &str) -> Option<Span> {
        let (first, last) = name.strip_suffix(".run")?.split_once('-')?;
        let span = Span { first: first.parse().ok()?, last: last.parse().ok()? };
        (span.name() == name).then_some(span)
    }
}

impl RunHead {
    pub fn to_page(self) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        bytes[..SEED_CHECK].copy_from_slice(MAGIC);
        bytes[SEED_CHECK..FIRST].copy_from_slice(&self.seed_check.to_le_bytes());
        bytes[FIRST..LAST].copy_from_slice(&self.span.first.to_le_bytes());
        bytes[LAST..COUNT].copy_from_slice(&self.span.last.to_le_bytes());
        bytes[COUNT..HEAD_BYTES].copy_from_slice(&self.count.to_le_bytes());
        page::seal(&mut bytes);
        bytes
    }

    fn from_page(bytes: &[u8]) -> io::Result<RunHead> {
        let held = page::check(bytes)?;
        if held[..SEED_CHECK] != *MAGIC {
            return Err(broken("not a run"));
        }
        let span = Span { first: u32_at(held, FIRST), last: u32_at(held, LAST) };
        Ok(RunHead { seed_check: u64_at(held, SEED_CHECK), span, count: u64_at(held, COUNT) })
    }

    fn pages(&self) -> u64 {
        self.count.div_ceil(PAGE_ENTRIES as u64)
    }

    fn bytes(&self) -> u64 {
        (1 + self.pages()) * PAGE_BYTES as u64
    }
}

impl Run {
    /// Opens the run of that span. A file that is not one, or not whole, is `InvalidData`; what its pages hold is seen
    /// when they are read.
    pub fn open(folder: &Path, span: Span, seed_check: u64) -> io::Result<Run> {
        let file = File::open(folder.join(span.name()))?;
        let mut bytes = [0; PAGE_BYTES];
        read_exact(&file, &mut bytes, 0)?;
        let head = RunHead::from_page(&bytes)?;
        if head.seed_check != seed_check {
            return Err(broken("a run of another seed"));
        }
        let span_count = u64::from(span.last) + 1 - u64::from(span.first);
        if head.span != span || span.first == 0 || !(1..=span_count).contains(&head.count) {
            return Err(broken("a run whose header and name disagree"));
        }
        if file.metadata()?.len() != head.bytes() {
            return Err(broken("a run that was cut"));
        }
        Ok(Run { file, head })
    }

    /// A run that was just written.
    pub fn written(file: File, head: RunHead) -> Run {
        Run { file, head }
    }

    pub fn head(&self) -> RunHead {
        self.head
    }

    pub fn span(&self) -> Span {
        self.head.span
    }

    pub fn count(&self) -> u64 {
        self.head.count
    }

    pub fn bytes(&self) -> u64 {
        self.head.bytes()
    }

    pub fn pages(&self) -> u64 {
        self.head.pages()
    }

    pub fn entries_of(&self, page: u64) -> usize {
        (self.head.count - page * PAGE_ENTRIES as u64).min(PAGE_ENTRIES as u64) as usize
    }

    /// As many pages as the buffer has room for, from `first` on.
    pub fn read_pages(&self, first: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_exact(&self.file, buffer, (1 + first) * PAGE_BYTES as u64)
    }

    /// Reads all of it: every page checks, fingerprints ascend, documents are of the span.
    pub fn verify(&self) -> io::Result<()> {
        let Span { first, last } = self.head.span;
        let mut pages = Pages::of(self);
        let mut before = 0;
        while let Some(page) = pages.advance()? {
            for entry in page.iter() {
                if entry.fingerprint < before.max(1) || !(first..=last).contains(&entry.doc_id) {
                    return Err(broken("a run that is out of order"));
                }
                before = entry.fingerprint;
            }
        }
        Ok(())
    }

    /// The document of a fingerprint.
    pub fn find(&self, fingerprint: u64) -> io::Result<Option<u32>> {
        let mut buffer = [0; PAGE_BYTES];
        // The page, if there is one, is in low..high, and its fingerprints are in least..=most.
        let (mut low, mut high) = (0, self.pages());
        let (mut least, mut most) = (0, u64::MAX);
        let mut guesses = 0;
        while low < high {
            let middle = match guesses < GUESSES {
                true => low + fraction(fingerprint - least, most - least, high - low),
                false => low + (high - low) / 2,
            };
            guesses += 1;
            self.read_pages(middle, &mut buffer)?;
            let page = Page::read(&buffer, self.entries_of(middle))?;
            if fingerprint < page.fingerprint_first() {
                (high, most) = (middle, page.fingerprint_first());
            } else if fingerprint > page.fingerprint_last() {
                (low, least) = (middle + 1, page.fingerprint_last());
            } else {
                return Ok(page.find(fingerprint));
            }
        }
        Ok(None)
    }

    /// Marks those of the queries, sorted by fingerprint, that this run has.
    pub fn resolve(&self, queries: &mut [Query]) -> io::Result<()> {
        let open = queries.iter().filter(|query| !query.known).count() as u64;
        if open.saturating_mul(SEARCH_PAGES) < self.pages() {
            for query in queries.iter_mut().filter(|query| !query.known) {
                query.known = self.find(query.fingerprint.max(1))?.is_some();
            }
            return Ok(());
        }
        let mut queries = queries.iter_mut().filter(|query| !query.known).peekable();
        let mut pages = Pages::of(self);
        while queries.peek().is_some()
            && let Some(page) = pages.advance()?
        {
            while let Some(query) = queries.next_if(|query| query.fingerprint <= page.fingerprint_last()) {
                query.known = page.find(query.fingerprint.max(1)).is_some();
            }
        }
        Ok(())
    }
}

/// `part / whole` of the pages, and never past the last.
fn fraction(part: u64, whole: u64, pages: u64) -> u64 {
    let at = u128::from(part) * u128::from(pages) / u128::from(whole.max(1));
    (at as u64).min(pages - 1)
}

/// A file that ends too early is as broken as one with the wrong bytes in it.
fn read_exact(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => broken("a run that was cut"),
        _ => e,
    })
}
