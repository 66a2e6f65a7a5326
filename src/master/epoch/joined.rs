use super::current_log::CurrentWriter;
use super::row::{CurrentRow, ROW_BYTES};
use super::row_set::RowSet;
use super::sent::Sent;
use super::spill_file::{Part, SpillFile};
use crate::master::{EpochCounts, FilteredRow};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// What came of an epoch: rows that are to be sent, and the next current_log, which may still be told that some cannot be.
pub struct Joined {
    counts: EpochCounts,
    key_check: u64,
    now_s: u32,
    /// By partition.
    outputs: Vec<PartitionOutput>,
    spill: SpillFile,
    /// Rows that cannot be sent.
    unsent: RowSet,
}

/// What came of a partition: rows of the next current_log, and those that are sent.
#[derive(Default)]
pub(super) struct PartitionOutput {
    pub rows: Vec<Part>,
    pub sent: Vec<Part>,
}

impl Joined {
    pub(super) fn new(
        counts: EpochCounts,
        key_check: u64,
        now_s: u32,
        outputs: Vec<PartitionOutput>,
        spill: SpillFile,
    ) -> Joined {
        assert_eq!(outputs.len(), 256);
        Joined { counts, key_check, now_s, outputs, spill, unsent: RowSet::default() }
    }

    /// As if all were sent that are to be; what is held is counted by whoever holds it.
    pub fn counts(&self) -> EpochCounts {
        self.counts
    }

    /// Every row that is to be sent, by partition and id: in the order of ids.
    pub fn for_each_sent(&self, mut told: impl FnMut(FilteredRow<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut room = Vec::new();
        (0..=255).try_for_each(|partition| self.sent_of(partition, &mut room, |sent| told(sent.row)))
    }

    fn sent_of(
        &self,
        partition: u8,
        room: &mut Vec<u8>,
        mut told: impl FnMut(Sent<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in &self.outputs[usize::from(partition)].sent {
            let mut rest = self.spill.part(part, room)?;
            while let Some((sent, others)) = Sent::read(rest) {
                told(sent)?;
                rest = others;
            }
            assert!(rest.is_empty(), "what was to be sent is read as it was written");
        }
        Ok(())
    }

    /// Says which rows cannot be sent now. The row of each in current_log says again when it was sent before, and with which
    /// tag; hits and tag come again with the line that is held.
    pub fn unsend(&mut self, rows: RowSet) {
        self.unsent = rows;
    }

    /// Writes the next current_log: durable when it comes back.
    pub fn write_current(self, path: &Path) -> io::Result<()> {
        let mut writer = CurrentWriter::create_with(path, self.key_check, self.now_s)?;
        let mut room = Vec::new();
        for partition in 0..=255 {
            let before = self.before_of_unsent(partition)?;
            let mut number = 0;
            for part in &self.outputs[usize::from(partition)].rows {
                for bytes in self.spill.part(part, &mut room)?.as_chunks::<ROW_BYTES>().0 {
                    let row = CurrentRow::read(bytes);
                    match before.get(&number) {
                        Some(before) => writer.push(&CurrentRow { seen_s: row.seen_s, ..*before })?,
                        None => writer.push(&row)?,
                    }
                    number += 1;
                }
            }
        }
        writer.commit()
    }

    /// What rows said before, of those of a partition that cannot be sent.
    fn before_of_unsent(&self, partition: u8) -> io::Result<BTreeMap<u32, CurrentRow>> {
        let mut found = BTreeMap::new();
        if !self.unsent.has_of(partition) {
            return Ok(found);
        }
        self.sent_of(partition, &mut Vec::new(), |Sent { row, tag_before }| {
            if self.unsent.has(row.at) {
                let (id, sent_s) = (row.id, row.sent_before_s);
                found.insert(row.at.row, CurrentRow { id, sent_s, seen_s: 0, hits: 0, tag: tag_before });
            }
            Ok(())
        })?;
        Ok(found)
    }
}
