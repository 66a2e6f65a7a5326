use crate::base::u32_at;
use crate::storage::{Piece, Spill};
use std::collections::BTreeMap;
use std::io;

/// Documents that are due at a time to come, for a retry or to be looked at again. Those of the next hours are in
/// memory by the second; of those far off, most may be on disk, by the hour.
#[derive(Default)]
pub(super) struct Due {
    near: BTreeMap<u32, Vec<u32>>,
    far: BTreeMap<u32, Hour>,
    /// What is due before this is in `near`.
    horizon_s: u32,
    len: u64,
    far_in_memory: usize,
}

#[derive(Default)]
struct Hour {
    docs: Vec<(u32, u32)>,
    pieces: Vec<Piece>,
}

const HOUR_S: u32 = 3_600;
/// Entries of an hour that are worth a piece on disk.
const PIECE_DOCS_MIN: usize = 512;

impl Due {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn ram_bytes(&self) -> usize {
        self.far_in_memory * 8 + self.near.len() * 48
    }

    pub fn put(&mut self, doc_id: u32, due_s: u32) {
        self.len += 1;
        if due_s < self.horizon_s {
            self.near.entry(due_s).or_default().push(doc_id);
        } else {
            self.far.entry(due_s / HOUR_S).or_default().docs.push((due_s, doc_id));
            self.far_in_memory += 1;
        }
    }

    /// When the next is due; for one far off, the beginning of its hour at the soonest.
    pub fn next_s(&self) -> Option<u32> {
        let far = || {
            let (hour, docs) = self.far.first_key_value()?;
            let exact = docs.docs.iter().map(|&(due_s, _)| due_s).min().filter(|_| docs.pieces.is_empty());
            Some(exact.unwrap_or(hour * HOUR_S))
        };
        self.near.first_key_value().map(|(&due_s, _)| due_s).or_else(far)
    }

    /// Takes a document that is due, with the time it was due at.
    pub fn take(&mut self, now_s: u32, spill: &mut Spill) -> io::Result<Option<(u32, u32)>> {
        self.bring_near(now_s, spill)?;
        let Some(mut first) = self.near.first_entry() else { return Ok(None) };
        let due_s = *first.key();
        if due_s > now_s {
            return Ok(None);
        }
        let doc_id = first.get_mut().pop();
        if first.get().is_empty() {
            first.remove();
        }
        self.len -= u64::from(doc_id.is_some());
        Ok(doc_id.map(|doc_id| (doc_id, due_s)))
    }

    fn bring_near(&mut self, now_s: u32, spill: &mut Spill) -> io::Result<()> {
        while let Some(mut first) = self.far.first_entry()
            && *first.key() <= now_s / HOUR_S
        {
            while let Some(&piece) = first.get().pieces.last() {
                let bytes = spill.read(piece)?;
                let (docs, _) = bytes.as_chunks::<8>();
                first.get_mut().pieces.pop();
                first.get_mut().docs.extend(docs.iter().map(|doc| (u32_at(doc, 0), u32_at(doc, 4))));
                self.far_in_memory += docs.len();
            }
            let hour_end = (*first.key() + 1).saturating_mul(HOUR_S);
            let hour = first.remove();
            self.far_in_memory -= hour.docs.len();
            for (due_s, doc_id) in hour.docs {
                self.near.entry(due_s).or_default().push(doc_id);
            }
            self.horizon_s = self.horizon_s.max(hour_end);
        }
        Ok(())
    }

    /// Takes out up to `max` documents that are asked for, whenever they are due: those of the next hours first.
    pub fn take_out(
        &mut self,
        max: u64,
        spill: &mut Spill,
        mut is_asked_for: impl FnMut(u32, u32) -> io::Result<bool>,
    ) -> io::Result<Vec<(u32, u32)>> {
        let mut out = Vec::new();
        let mut trouble = Ok(());
        let mut stays = |doc_id: u32, due_s: u32| {
            if trouble.is_err() || out.len() as u64 >= max {
                return true;
            }
            match is_asked_for(doc_id, due_s) {
                Ok(true) => out.push((doc_id, due_s)),
                Ok(false) => return true,
                Err(error) => {
                    trouble = Err(error);
                    return true;
                }
            }
            false
        };
        for (&due_s, docs) in &mut self.near {
            docs.retain(|&doc_id| stays(doc_id, due_s));
        }
        self.near.retain(|_, docs| !docs.is_empty());
        for hour in self.far.values_mut() {
            let before = hour.docs.len();
            hour.docs.retain(|&(due_s, doc_id)| stays(doc_id, due_s));
            self.far_in_memory -= before - hour.docs.len();
            // A piece that is read is gone: what stays of it is in memory until the next time that memory is short.
            for piece in std::mem::take(&mut hour.pieces) {
                let bytes = spill.read(piece)?;
                let (docs, _) = bytes.as_chunks::<8>();
                let docs = docs.iter().map(|doc| (u32_at(doc, 0), u32_at(doc, 4)));
                let before = hour.docs.len();
                hour.docs.extend(docs.filter(|&(due_s, doc_id)| stays(doc_id, due_s)));
                self.far_in_memory += hour.docs.len() - before;
            }
        }
        self.far.retain(|_, hour| !hour.docs.is_empty());
        self.len -= out.len() as u64;
        trouble.map(|()| out)
    }

    /// Writes what is far off to disk.
    pub fn spill(&mut self, spill: &mut Spill) -> io::Result<()> {
        for hour in self.far.values_mut().rev() {
            if hour.docs.len() >= PIECE_DOCS_MIN {
                let words = hour.docs.iter().flat_map(|&(due_s, doc_id)| [due_s, doc_id]);
                let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
                hour.pieces.push(spill.write(&bytes)?);
                self.far_in_memory -= hour.docs.len();
                hour.docs = Vec::new();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_when_they_are_due_and_not_before() {
        let mut spill = Spill::in_memory();
        let mut due = Due::default();
        let at = |n: u32| 1_000_000 + n * 7 % 20_000;
        for n in 0..10_000 {
            due.put(n, at(n));
            if n == 6_000 {
                due.spill(&mut spill).unwrap();
                assert!(due.far_in_memory < 3_000);
            }
        }
        assert_eq!(due.len(), 10_000);
        let mut taken = 0;
        for now_s in (1_000_000 - 50..1_021_000).step_by(13) {
            while let Some((doc_id, due_s)) = due.take(now_s, &mut spill).unwrap() {
                assert_eq!(due_s, at(doc_id));
                assert!(due_s <= now_s && due_s + 13 > now_s, "{due_s} at {now_s}");
                taken += 1;
            }
        }
        assert_eq!((taken, due.len(), due.next_s()), (10_000, 0, None));
        // What is due within the hour that is under way comes as soon.
        due.put(5, 1_021_001);
        due.put(6, 1_021_003);
        assert_eq!(due.next_s(), Some(1_021_001));
        assert_eq!(due.take(1_021_002, &mut spill).unwrap(), Some((5, 1_021_001)));
        assert_eq!(due.take(1_021_002, &mut spill).unwrap(), None);
    }

    #[test]
    fn some_are_taken_out_from_memory_and_disk_and_the_others_stay() {
        let mut spill = Spill::in_memory();
        let mut due = Due::default();
        due.put(0, 1_000_000);
        assert_eq!(due.take(1_000_000, &mut spill).unwrap(), Some((0, 1_000_000)));
        for n in 1..=3_000 {
            due.put(n, 1_000_000 + n * 10);
        }
        due.spill(&mut spill).unwrap();
        for n in 3_001..=4_000 {
            due.put(n, 1_000_000 + n * 10);
        }
        let mut out = due.take_out(u64::MAX, &mut spill, |doc_id, _| Ok(doc_id % 4 == 0)).unwrap();
        out.sort_unstable();
        assert_eq!(out, (1..=1_000).map(|n| (4 * n, 1_000_000 + 40 * n)).collect::<Vec<_>>());
        assert_eq!(due.take_out(2, &mut spill, |_, _| Ok(true)).unwrap(), [(1, 1_000_010), (2, 1_000_020)]);
        assert!(due.take_out(2, &mut spill, |_, _| Err(io::ErrorKind::Other.into())).is_err());
        let mut left = 0;
        while let Some((doc_id, due_s)) = due.take(2_000_000, &mut spill).unwrap() {
            assert!(doc_id % 4 != 0 && due_s == 1_000_000 + doc_id * 10);
            left += 1;
        }
        assert_eq!((left, due.len(), due.far_in_memory), (2_998, 0, 0));
    }
}
