//! What the index takes of memory and disk, and how it keeps within its bounds.

use super::DocIndex;
use std::io;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexBytes {
    pub seen_ram: u64,
    /// Of it, `tables_ram` is not the queues themselves.
    pub frontier_ram: u64,
    pub other_ram: u64,
    /// What grows with every host and every document, and cannot go to disk. It is counted in the others.
    pub tables_ram: u64,
    pub ledger_disk: u64,
    pub documents_disk: u64,
    pub seen_disk: u64,
    pub frontier_disk: u64,
    /// Memory alone tells of every URL whether it is known.
    pub seen_is_complete: bool,
}

/// Shares of the memory, as divisors of it: what the seen-set and the pending URLs may take, and what they are left
/// with however many hosts there are.
const SEEN_SHARE: usize = 2;
const FRONTIER_SHARE: usize = 4;
const DUE_SHARE: usize = 16;
const SEEN_FLOOR: usize = 16;
const FRONTIER_FLOOR: usize = 32;

impl DocIndex {
    /// Writes to disk what memory has no room for. What hosts and documents take of it in any case is taken, one half
    /// each, from the seen-set, which stops growing, and from the pending URLs, which go to disk sooner.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        let seen_max = self.left(SEEN_SHARE, SEEN_FLOOR);
        self.known.seen_mut().bound(seen_max);
        self.frontier.make_room(self.left(FRONTIER_SHARE, FRONTIER_FLOOR))?;
        if self.due.ram_bytes() > self.rules.memory_bytes / DUE_SHARE {
            self.due.spill(self.frontier.spill_mut())?;
        }
        Ok(())
    }

    /// Makes the seen-set, which was loaded before it was known how many hosts there are, give back what they take.
    pub(super) fn shrink_seen(&mut self) -> io::Result<()> {
        let seen_max = self.left(SEEN_SHARE, SEEN_FLOOR);
        self.known.seen_mut().shrink(seen_max)
    }

    /// What a share of the memory is without its half of what hosts and documents take.
    fn left(&self, share: usize, floor: usize) -> usize {
        let memory = self.rules.memory_bytes;
        (memory / share).saturating_sub(self.table_bytes() / 2).max(memory / floor)
    }

    /// Memory that grows with every host and every document.
    fn table_bytes(&self) -> usize {
        self.frontier.table_bytes()
            + self.books.table_bytes()
            + self.documents.table_bytes()
            + self.ledger.ram_bytes()
            + self.budgets.ram_bytes()
            + self.known.table_bytes()
            + self.said.ram_bytes()
    }

    /// Memory and disk that it takes.
    pub fn bytes(&self) -> IndexBytes {
        let tables = self.table_bytes();
        let other = self.known.unresolved().ram_bytes()
            + self.due.ram_bytes()
            + self.documents.ram_bytes()
            + self.books.ram_bytes();
        IndexBytes {
            seen_ram: self.known.seen().ram_bytes() as u64,
            frontier_ram: self.frontier.ram_bytes() as u64,
            other_ram: (other + tables - self.frontier.table_bytes()) as u64,
            tables_ram: tables as u64,
            ledger_disk: self.ledger.disk_bytes(),
            documents_disk: self.documents.disk_bytes(),
            seen_disk: self.known.seen().disk_bytes(),
            frontier_disk: self.frontier.spill().disk_bytes(),
            seen_is_complete: self.known.seen().is_complete(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doc_index::tests::{Folder, NOW_S, candidates};
    use crate::doc_index::{IndexRules, Origin};

    #[test]
    fn what_hosts_take_is_taken_from_the_rest_but_not_all_of_it() {
        let folder = Folder::new("hosts");
        let memory_bytes = 4 << 20;
        let (mut index, _) = folder.open(IndexRules { memory_bytes, ..IndexRules::default() });
        let before = index.bytes().tables_ram;
        let hosts = 40_000;
        for host in 0..hosts {
            // Shorter ones are left in memory.
            let url = format!("http://host-{host}.test/{}", "x".repeat(120));
            index.discover([&*url], Origin::link(0, 1), NOW_S);
            if host % 1_000 == 0 {
                index.flush(false).unwrap();
            }
        }
        index.flush(true).unwrap();
        let bytes = index.bytes();
        let per_host = (bytes.tables_ram - before) / hosts;
        assert!((200..370).contains(&per_host), "{per_host} bytes a host, its place on disk among them");
        assert!(bytes.tables_ram > memory_bytes as u64 / 2, "the test is of nothing if they are few");
        let queues = index.frontier.used_bytes();
        assert!(queues <= memory_bytes / super::FRONTIER_FLOOR, "{queues} bytes of queues");
        assert!(bytes.seen_ram < memory_bytes as u64 / 4, "{} bytes of the seen-set", bytes.seen_ram);
        assert!(bytes.frontier_disk > 0, "queues are on disk");
        index.close().unwrap();
        let seen_ram = index.bytes().seen_ram;
        drop(index);
        let (mut index, _) = folder.open(IndexRules { memory_bytes, ..IndexRules::default() });
        assert!(
            index.bytes().seen_ram <= seen_ram * 5 / 4,
            "{} bytes after {seen_ram}",
            index.bytes().seen_ram
        );
        assert_eq!(candidates(&mut index, 50_000).len(), hosts as usize, "and none is lost");
    }
}
