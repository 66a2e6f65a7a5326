use super::page::Entry;
use super::pages::Pages;
use super::run::{Run, RunHead, Span};
use super::writer::RunWriter;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Neighbouring runs on their way to be one. It is done in steps, for the whole may take minutes, and nobody is to wait
/// so long.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// The next entry of each source that is not at its end.
    heap: BinaryHeap<Reverse<(Entry, usize)>>,
    writer: RunWriter,
}

impl Merge {
    /// Begins to merge runs, given in the order of their documents.
    pub fn begin(folder: &Path, runs: &[Arc<Run>]) -> io::Result<Merge> {
        let mut sources: Vec<Source> = runs.iter().map(|run| Source::of(Arc::clone(run))).collect();
        let mut heap = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            heap.extend(source.next()?.map(|entry| Reverse((entry, index))));
        }
        let span = Span { first: runs[0].span().first, last: runs[runs.len() - 1].span().last };
        let count = runs.iter().map(|run| run.count()).sum();
        let writer = RunWriter::create(folder, RunHead { span, count, ..runs[0].head() })?;
        Ok(Merge { sources, heap, writer })
    }

    /// Moves up to `entries_max` entries, which it takes off that number. Whether all of them are moved.
    pub fn step(&mut self, entries_max: &mut u64) -> io::Result<bool> {
        while *entries_max > 0
            && let Some(mut least) = self.heap.peek_mut()
        {
            let Reverse((entry, index)) = *least;
            self.writer.push(entry)?;
            match self.sources[index].next()? {
                Some(entry) => *least = Reverse((entry, index)),
                None => drop(PeekMut::pop(least)),
            }
            *entries_max -= 1;
        }
        Ok(self.heap.is_empty())
    }

    /// The merged run, durable.
    pub fn finish(self) -> io::Result<Run> {
        self.writer.finish()
    }
}

/// A run, and how far it is read.
struct Source {
    pages: Pages<Arc<Run>>,
    /// Of the page that is being read.
    entries: Vec<Entry>,
    at: usize,
}

impl Source {
    fn of(run: Arc<Run>) -> Source {
        Source { pages: Pages::of(run), entries: Vec::new(), at: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        if self.at == self.entries.len() {
            self.entries.clear();
            self.at = 0;
            let Some(page) = self.pages.advance()? else {
                return Ok(None);
            };
            self.entries.extend(page.iter());
        }
        self.at += 1;
        Ok(Some(self.entries[self.at - 1]))
    }
}
