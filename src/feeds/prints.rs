use super::ids::SourceId;
use super::week::Week;
use crate::storage::seen::{Answer, Seen};
use rapidhash::fast::RapidHashMap;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What an entry is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintKind {
    Url = 0,
    Guid = 1,
    Title = 2,
}

/// Fingerprints of all that stories are known by, with the number of each.
///
/// Between two flushes what is new is in `fresh`; a flush hands it to the seen-set, once the ledger has it.
pub(super) struct Prints {
    seed: u64,
    seen: Seen,
    fresh: RapidHashMap<u64, u32>,
    /// The same in the order they came.
    order: Vec<(u64, u32)>,
    scratch: Vec<u8>,
}

/// Numbers of entries in the seen-set: four to an entry, one for each kind.
pub(super) const KINDS: u32 = 4;
/// The highest number that an entry may have.
pub(super) const NUMBER_MAX: u32 = u32::MAX / KINDS - 1;

impl Prints {
    pub fn in_memory(seed: u64) -> Prints {
        Prints::of(seed, Seen::in_memory())
    }

    pub fn open(folder: &Path, seed: u64, bytes_max: usize) -> io::Result<Prints> {
        Ok(Prints::of(seed, Seen::open(folder, seed, bytes_max)?))
    }

    fn of(seed: u64, seen: Seen) -> Prints {
        Prints { seed, seen, fresh: RapidHashMap::default(), order: Vec::new(), scratch: Vec::new() }
    }

    /// Runs that could not be used, and were removed.
    pub fn removed(&self) -> usize {
        self.seen.removed().len()
    }

    /// The last entry that the runs on disk have all prints of.
    pub fn covered(&self) -> u32 {
        // The last print of an entry need not be there: the next entry's is.
        (self.seen.covered() / KINDS).saturating_sub(1)
    }

    /// The last entry that the runs on disk know of.
    pub fn known(&self) -> u32 {
        self.seen.covered() / KINDS
    }

    /// The fingerprint of a URL or guid in a source.
    pub fn of_text(&mut self, kind: PrintKind, source: SourceId, text: &str) -> u64 {
        self.print(kind, source, 0, text)
    }

    /// Of a title in its normal form, in a source and a week.
    pub fn of_title(&mut self, source: SourceId, week: Week, normal: &str) -> u64 {
        self.print(PrintKind::Title, source, week.0, normal)
    }

    fn print(&mut self, kind: PrintKind, source: SourceId, week: u16, text: &str) -> u64 {
        print_of(self.seed, kind, source, week, text, &mut self.scratch)
    }

    /// Whether memory and disk know of each, in place of what was in `known`.
    pub fn ask(&self, prints: &[u64], answers: &mut Vec<Answer>, known: &mut Vec<bool>) -> io::Result<()> {
        known.clear();
        self.seen.ask(prints, answers);
        for (&print, answer) in prints.iter().zip(answers.iter()) {
            known.push(match answer {
                Answer::Known => true,
                Answer::New => self.fresh.contains_key(&print),
                Answer::Unresolved => self.find(print)?.is_some(),
            });
        }
        Ok(())
    }

    pub fn is_fresh(&self, print: u64) -> bool {
        self.fresh.contains_key(&print)
    }

    /// The entry that a fingerprint is of.
    pub fn find(&self, print: u64) -> io::Result<Option<u32>> {
        match self.fresh.get(&print) {
            Some(number) => Ok(Some(number / KINDS)),
            None => Ok(self.seen.find(print)?.map(|number| number / KINDS)),
        }
    }

    /// Takes in a fingerprint of an entry; entries come in the order of their numbers.
    pub fn insert(&mut self, print: u64, kind: PrintKind, number: u32) {
        let number = number * KINDS + kind as u32;
        if self.fresh.insert(print, number).is_none() {
            self.order.push((print, number));
        }
    }

    /// Hands what is new to the seen-set. What cannot be handed over stays.
    pub fn settle(&mut self) -> io::Result<()> {
        let mut settled = 0;
        let mut all = Ok(());
        'all: for some in self.order.chunks(TOUCHED) {
            self.seen.touch(some.iter().map(|(print, _)| *print));
            for &(print, number) in some {
                all = self.seen.insert(print, number);
                if all.is_err() {
                    break 'all;
                }
                settled += 1;
            }
        }
        match all.is_ok() {
            true => {
                self.order.clear();
                self.fresh.clear();
            }
            false => {
                for (print, _) in self.order.drain(..settled) {
                    self.fresh.remove(&print);
                }
            }
        }
        if self.order.is_empty() && self.order.capacity() > FRESH_KEPT {
            (self.order, self.fresh) = (Vec::new(), RapidHashMap::default());
        }
        // What is asked of it is found by the whole of it only once memory cannot tell any more.
        if !self.seen.is_complete() {
            self.seen.order();
        }
        all
    }

    /// Writes all of it into runs.
    pub fn close(&mut self) -> io::Result<()> {
        self.settle()?;
        self.seen.flush()
    }

    pub fn ram_bytes(&self) -> usize {
        self.seen.ram_bytes() + self.fresh.capacity() * 18 + self.order.capacity() * 16
    }
}

/// Fingerprints that memory is asked for at once.
const TOUCHED: usize = 32;
/// Room that is kept for what is new.
const FRESH_KEPT: usize = 128 << 10;

/// The fingerprint of what an entry is known by.
pub(super) fn print_of(
    seed: u64,
    kind: PrintKind,
    source: SourceId,
    week: u16,
    text: &str,
    scratch: &mut Vec<u8>,
) -> u64 {
    scratch.clear();
    scratch.extend_from_slice(&source.0.to_le_bytes());
    scratch.extend_from_slice(&week.to_le_bytes());
    scratch.push(kind as u8);
    scratch.extend_from_slice(text.as_bytes());
    xxh3_64_with_seed(scratch, seed).max(1)
}
