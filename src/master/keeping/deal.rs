use super::super::epoch::Joined;
use super::super::{EpochCounts, FilteredRow, RowPlace};
use super::state::Held;
use crate::storage::NewFile;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What an epoch is to send: what [`Joined`] is, and what stands in for it in tests.
pub trait SentRows {
    /// As if all were sent.
    fn counts(&self) -> EpochCounts;

    /// Every row that is to be sent, always in the same order.
    fn each(&self, told: &mut dyn FnMut(FilteredRow<'_>) -> io::Result<()>) -> io::Result<()>;

    fn unsend(&mut self, place: RowPlace);

    fn write_current(self, path: &Path) -> io::Result<()>;
}

impl SentRows for Joined {
    fn counts(&self) -> EpochCounts {
        Joined::counts(self)
    }

    fn each(&self, told: &mut dyn FnMut(FilteredRow<'_>) -> io::Result<()>) -> io::Result<()> {
        self.for_each_sent(told)
    }

    fn unsend(&mut self, place: RowPlace) {
        Joined::unsend(self, place);
    }

    fn write_current(self, path: &Path) -> io::Result<()> {
        Joined::write_current(self, path)
    }
}

/// Lines that cannot be sent now, on their way to `held/N`. The file is made with the first.
pub(super) struct Holding<'a> {
    path: &'a Path,
    epoch: u64,
    file: Option<(NewFile, BufWriter<std::fs::File>)>,
    line: Vec<u8>,
    places: HeldRows,
    held: Held,
}

/// Rows of the next current_log whose lines are held: a bit for each row, however many are held.
#[derive(Default)]
pub(super) struct HeldRows {
    bits: BTreeMap<u8, Vec<u64>>,
    count: u64,
}

impl HeldRows {
    fn add(&mut self, place: RowPlace) {
        let (bits, word) = (self.bits.entry(place.partition).or_default(), place.row as usize / 64);
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        bits[word] |= 1 << (place.row % 64);
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn each(self, mut told: impl FnMut(RowPlace)) {
        for (partition, bits) in self.bits {
            for (word, bits) in (0..).zip(bits) {
                (0..64).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| {
                    told(RowPlace { partition, row: word * 64 + bit });
                });
            }
        }
    }
}

impl<'a> Holding<'a> {
    pub fn new(path: &'a Path, epoch: u64) -> Holding<'a> {
        let held = Held { epoch, bytes: 0, crc: 0, lines: 0, hits: 0, earliest: u32::MAX };
        Holding { path, epoch, file: None, line: Vec::new(), places: HeldRows::default(), held }
    }

    pub fn add(&mut self, row: &FilteredRow<'_>) -> io::Result<()> {
        let (_, out) = match &mut self.file {
            Some(file) => file,
            slot => {
                let new = NewFile::create(&self.path.join(self.epoch.to_string()))?;
                let out = BufWriter::with_capacity(1 << 16, new.file().try_clone()?);
                slot.insert((new, out))
            }
        };
        self.line.clear();
        row.record.write(&mut self.line);
        out.write_all(&self.line)?;
        let held = &mut self.held;
        held.bytes += self.line.len() as u64;
        held.crc = crc32c::crc32c_append(held.crc, &self.line);
        held.lines += 1;
        held.hits += u64::from(row.record.hits);
        held.earliest = held.earliest.min(row.record.at.s());
        self.places.add(row.at);
        Ok(())
    }

    /// Makes it durable; `None` if nothing is held.
    pub fn finish(self) -> io::Result<(Option<Held>, HeldRows)> {
        let Some((new, mut out)) = self.file else { return Ok((None, self.places)) };
        out.flush()?;
        new.commit()?;
        Ok((Some(self.held), self.places))
    }
}
