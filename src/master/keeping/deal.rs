use super::super::FilteredRow;
use super::super::epoch::RowSet;
use super::state::Held;
use crate::storage::NewFile;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Lines that cannot be sent now, on their way to `held/N`. The file is made with the first.
pub(super) struct Holding<'a> {
    path: &'a Path,
    epoch: u64,
    file: Option<(NewFile, BufWriter<std::fs::File>)>,
    line: Vec<u8>,
    places: RowSet,
    held: Held,
}

impl<'a> Holding<'a> {
    pub fn new(path: &'a Path, epoch: u64) -> Holding<'a> {
        let held = Held { epoch, bytes: 0, crc: 0, lines: 0, hits: 0, earliest: u32::MAX };
        Holding { path, epoch, file: None, line: Vec::new(), places: RowSet::default(), held }
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
    pub fn finish(self) -> io::Result<(Option<Held>, RowSet)> {
        let Some((new, mut out)) = self.file else { return Ok((None, self.places)) };
        out.flush()?;
        new.commit()?;
        Ok((Some(self.held), self.places))
    }
}
