use super::merge::Merge;
use super::page::Entry;
use super::pages::Entries;
use super::run::{Run, RunHead, Span};
use super::writer::RunWriter;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Neighbouring runs on their way to be one, in steps: the whole may take minutes.
pub(super) struct Merging {
    entries: Merge<Entry, Entries>,
    writer: RunWriter,
}

impl Merging {
    /// Begins to merge runs, given in the order of their documents.
    pub fn begin(folder: &Path, runs: &[Arc<Run>]) -> io::Result<Merging> {
        let entries = Merge::new(runs.iter().map(|run| Entries::of(Arc::clone(run))).collect())?;
        let span = Span { first: runs[0].span().first, last: runs[runs.len() - 1].span().last };
        let count = runs.iter().map(|run| run.count()).sum();
        let writer = RunWriter::create(folder, RunHead { span, count, ..runs[0].head() })?;
        Ok(Merging { entries, writer })
    }

    /// Moves up to `entries_max` entries, which it takes off that number. Returns whether all of them are moved.
    pub fn step(&mut self, entries_max: &mut u64) -> io::Result<bool> {
        while *entries_max > 0
            && let Some(entry) = self.entries.next()
        {
            self.writer.push(entry?)?;
            *entries_max -= 1;
        }
        Ok(self.entries.is_empty())
    }

    /// Returns the merged run, durable.
    pub fn finish(self) -> io::Result<Run> {
        self.writer.finish()
    }
}
