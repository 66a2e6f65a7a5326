use super::id_key::IdKey;
use super::row::{CurrentRow, ROW_BYTES};
use crate::base::{u32_at, u64_at};
use crate::storage::NewFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A current_log on disk.
///
/// ```text
///   block 0      magic 8 · version 4 · now 4 · key check 8 · rows 8 · rows before each partition 256 × 8 · … · crc 4
///   block 1 …    146 rows of 28 bytes (id, sent, seen, hits, tag), in the order of ids · 4 of zero · crc 4
/// ```
///
/// A block has 4 KiB, and its crc is of its number and of all its bytes. Opening it reads one block.
pub struct CurrentLog {
    file: File,
    now_s: u32,
    key_check: u64,
    /// Rows before each partition, and all of them.
    starts: Box<[u64; 257]>,
}

const VERSION: u32 = 1;
const BLOCK_BYTES: usize = 4_096;
const CRC_AT: usize = BLOCK_BYTES - 4;
const STARTS_AT: usize = 32;
const ROWS_PER_BLOCK: u64 = 146;
/// Blocks that are read at once.
const BLOCKS_AT_ONCE: u64 = 64;

const _: () = assert!(ROWS_PER_BLOCK as usize * ROW_BYTES <= CRC_AT && STARTS_AT + 256 * 8 <= CRC_AT);

fn crc_of(number: u64, block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &block[..CRC_AT])
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("current_log: {what}"))
}

impl CurrentLog {
    /// How one begins.
    pub const MAGIC: &[u8; 8] = b"NEPHCURR";

    pub fn open(path: &Path) -> io::Result<CurrentLog> {
        let file = File::open(path)?;
        let mut head = [0; BLOCK_BYTES];
        let bytes = file.metadata()?.len();
        if bytes < BLOCK_BYTES as u64 {
            return Err(damaged("too short to be one"));
        }
        file.read_exact_at(&mut head, 0)?;
        if !head.starts_with(CurrentLog::MAGIC) {
            return Err(damaged("does not begin like one"));
        }
        if u32_at(&head, 8) != VERSION {
            return Err(damaged(&format!("version {} is not known here", u32_at(&head, 8))));
        }
        if u32_at(&head, CRC_AT) != crc_of(0, &head) {
            return Err(damaged("its first block is damaged"));
        }
        let rows = u64_at(&head, 24);
        let mut starts = Box::new([rows; 257]);
        for (at, start) in starts[..256].iter_mut().enumerate() {
            *start = u64_at(&head, STARTS_AT + at * 8);
        }
        let blocks = rows.div_ceil(ROWS_PER_BLOCK).saturating_add(1);
        if starts[0] != 0 || !starts.is_sorted() || blocks.checked_mul(BLOCK_BYTES as u64) != Some(bytes) {
            return Err(damaged("its length is not that of its rows"));
        }
        Ok(CurrentLog { file, now_s: u32_at(&head, 12), key_check: u64_at(&head, 16), starts })
    }

    pub fn rows(&self) -> u64 {
        self.starts[256]
    }

    /// The time of the epoch that made it.
    pub fn now_s(&self) -> u32 {
        self.now_s
    }

    pub fn is_keyed_by(&self, key: &IdKey) -> bool {
        self.key_check == key.check()
    }

    /// The rows of a partition, in the order of their ids.
    pub fn partition(&self, partition: u8) -> CurrentRows<'_> {
        let at = usize::from(partition);
        self.between(self.starts[at], self.starts[at + 1])
    }

    /// All rows, in the order of their ids.
    pub fn all(&self) -> CurrentRows<'_> {
        self.between(0, self.rows())
    }

    fn between(&self, from: u64, to: u64) -> CurrentRows<'_> {
        CurrentRows { log: self, next: from, end: to, blocks: Vec::new(), first_row: 0, rows: 0 }
    }

    /// The row of an id.
    pub fn find(&self, id: u64) -> io::Result<Option<CurrentRow>> {
        let at = (id >> 56) as usize;
        let (mut from, mut to) = (self.starts[at], self.starts[at + 1]);
        let mut block = [0; BLOCK_BYTES];
        while from < to {
            let middle = from + (to - from) / 2;
            self.read_blocks(&mut block, middle / ROWS_PER_BLOCK)?;
            let row = row_at(&block, middle % ROWS_PER_BLOCK);
            match row.id.cmp(&id) {
                std::cmp::Ordering::Equal => return Ok(Some(row)),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Ok(None)
    }

    /// Whole blocks of rows, of which this is the first.
    fn read_blocks(&self, out: &mut [u8], first: u64) -> io::Result<()> {
        self.file.read_exact_at(out, (first + 1) * BLOCK_BYTES as u64)?;
        for (block, number) in out.chunks_exact(BLOCK_BYTES).zip(first + 1..) {
            if u32_at(block, CRC_AT) != crc_of(number, block) {
                return Err(damaged(&format!("block {number} is damaged")));
            }
        }
        Ok(())
    }
}

fn row_at(block: &[u8], at: u64) -> CurrentRow {
    let from = at as usize * ROW_BYTES;
    CurrentRow::read(block[from..].first_chunk().expect("a row lies within its block"))
}

/// Rows, one after the other.
pub struct CurrentRows<'a> {
    log: &'a CurrentLog,
    next: u64,
    end: u64,
    /// What was read last, and which rows that are.
    blocks: Vec<u8>,
    first_row: u64,
    rows: u64,
}

impl CurrentRows<'_> {
    /// The next; `None` behind the last.
    #[expect(clippy::should_implement_trait, reason = "an error ends it, which an iterator would not")]
    pub fn next(&mut self) -> io::Result<Option<CurrentRow>> {
        if self.next == self.end {
            return Ok(None);
        }
        if self.next - self.first_row >= self.rows {
            let first = self.next / ROWS_PER_BLOCK;
            let blocks = (self.end.div_ceil(ROWS_PER_BLOCK) - first).min(BLOCKS_AT_ONCE);
            self.blocks.resize(blocks as usize * BLOCK_BYTES, 0);
            self.log.read_blocks(&mut self.blocks, first)?;
            (self.first_row, self.rows) = (first * ROWS_PER_BLOCK, blocks * ROWS_PER_BLOCK);
        }
        let at = self.next - self.first_row;
        self.next += 1;
        let block = &self.blocks[(at / ROWS_PER_BLOCK) as usize * BLOCK_BYTES..];
        Ok(Some(row_at(block, at % ROWS_PER_BLOCK)))
    }
}

/// A current_log that is being written; it takes its name when it is whole and durable.
pub struct CurrentWriter {
    new: NewFile,
    head: Vec<u8>,
    starts: Box<[u64; 257]>,
    rows: u64,
    last_id: u64,
    /// Whole blocks that were not written yet, and the beginning of one.
    blocks: Vec<u8>,
    in_block: u64,
    /// Blocks in the file, the first aside.
    written: u64,
}

impl CurrentWriter {
    pub fn create(path: &Path, key: &IdKey, now_s: u32) -> io::Result<CurrentWriter> {
        CurrentWriter::create_with(path, key.check(), now_s)
    }

    pub(super) fn create_with(path: &Path, key_check: u64, now_s: u32) -> io::Result<CurrentWriter> {
        let mut head = vec![0; BLOCK_BYTES];
        head[..8].copy_from_slice(CurrentLog::MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&now_s.to_le_bytes());
        head[16..24].copy_from_slice(&key_check.to_le_bytes());
        Ok(CurrentWriter {
            new: NewFile::create(path)?,
            head,
            starts: Box::new([0; 257]),
            rows: 0,
            last_id: 0,
            blocks: Vec::with_capacity(BLOCKS_AT_ONCE as usize * BLOCK_BYTES),
            in_block: 0,
            written: 0,
        })
    }

    /// Ids must rise.
    pub fn push(&mut self, row: &CurrentRow) -> io::Result<()> {
        assert!(self.rows == 0 || row.id > self.last_id, "rows come in the order of their ids");
        self.last_id = row.id;
        self.starts[usize::from(row.partition()) + 1] += 1;
        self.rows += 1;
        self.blocks.extend_from_slice(&row.bytes());
        self.in_block += 1;
        if self.in_block == ROWS_PER_BLOCK {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.blocks.resize(self.blocks.len().next_multiple_of(BLOCK_BYTES), 0);
        let number = self.written + (self.blocks.len() / BLOCK_BYTES) as u64;
        let block_at = self.blocks.len() - BLOCK_BYTES;
        let block = &mut self.blocks[block_at..];
        let crc = crc_of(number, block);
        block[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        self.in_block = 0;
        if self.blocks.len() >= BLOCKS_AT_ONCE as usize * BLOCK_BYTES {
            self.write_blocks()?;
        }
        Ok(())
    }

    fn write_blocks(&mut self) -> io::Result<()> {
        self.new.file().write_all_at(&self.blocks, (self.written + 1) * BLOCK_BYTES as u64)?;
        self.written += (self.blocks.len() / BLOCK_BYTES) as u64;
        self.blocks.clear();
        Ok(())
    }

    /// Makes it durable, and gives it its name.
    pub fn commit(mut self) -> io::Result<()> {
        if self.in_block > 0 {
            self.end_block()?;
        }
        self.write_blocks()?;
        self.head[24..32].copy_from_slice(&self.rows.to_le_bytes());
        let mut before = 0u64;
        for (partition, rows) in self.starts[1..].iter().enumerate() {
            let at = STARTS_AT + partition * 8;
            self.head[at..at + 8].copy_from_slice(&before.to_le_bytes());
            before += rows;
        }
        let crc = crc_of(0, &self.head);
        self.head[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        self.new.file().write_all_at(&self.head, 0)?;
        self.new.commit().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::master::epoch::TagMark;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("nephila-current-{name}-{}", std::process::id()))
    }

    fn rows(count: u64) -> Vec<CurrentRow> {
        let mut rng = Rng::new(7);
        let mut ids: Vec<u64> = (0..count).map(|_| rng.next_u64()).collect();
        ids.sort_unstable();
        ids.dedup();
        let row =
            |(at, id)| CurrentRow { id, sent_s: at, seen_s: at + 1, hits: at / 3, tag: TagMark::of(b"2") };
        (0..).zip(ids).map(row).collect()
    }

    fn write(path: &Path, rows: &[CurrentRow]) -> CurrentLog {
        let mut writer = CurrentWriter::create(path, &IdKey::from_seed(1), 77).unwrap();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        writer.commit().unwrap();
        CurrentLog::open(path).unwrap()
    }

    fn read(mut some: CurrentRows<'_>) -> io::Result<Vec<CurrentRow>> {
        let mut all = Vec::new();
        while let Some(row) = some.next()? {
            all.push(row);
        }
        Ok(all)
    }

    #[test]
    fn rows_come_back_by_partition_and_by_id() {
        let path = path("back");
        for count in [0, 1, 146, 147, 146 * 64, 30_000] {
            let rows = rows(count);
            let log = write(&path, &rows);
            assert_eq!((log.rows(), log.now_s()), (count, 77));
            assert!(log.is_keyed_by(&IdKey::from_seed(1)) && !log.is_keyed_by(&IdKey::from_seed(2)));
            assert_eq!(read(log.all()).unwrap(), rows);
            let by_partition: Vec<CurrentRow> =
                (0..=255).flat_map(|partition| read(log.partition(partition)).unwrap()).collect();
            assert_eq!(by_partition, rows);
            for row in rows.iter().step_by(997) {
                assert_eq!(log.find(row.id).unwrap(), Some(*row));
                assert_eq!(log.find(row.id ^ 1).unwrap(), None);
            }
            assert!(count < 30_000 || std::fs::metadata(&path).unwrap().len() <= 32 * count);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn every_flipped_byte_is_found_out() {
        let path = path("flip");
        write(&path, &rows(200));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 3 * BLOCK_BYTES);
        let is_taken = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            CurrentLog::open(&path).is_ok_and(|log| read(log.all()).is_ok())
        };
        assert!(is_taken(&bytes));
        let file = File::options().write(true).open(&path).unwrap();
        for (at, byte) in (0..).zip(&bytes) {
            file.write_all_at(&[byte ^ 1 << (at % 8)], at).unwrap();
            assert!(!CurrentLog::open(&path).is_ok_and(|log| read(log.all()).is_ok()), "byte {at}");
            file.write_all_at(&[*byte], at).unwrap();
        }
        for length in [0, 100, BLOCK_BYTES, 2 * BLOCK_BYTES, bytes.len() - 1] {
            assert!(!is_taken(&bytes[..length]), "cut to {length}");
        }
        let swapped =
            [&bytes[..BLOCK_BYTES], &bytes[2 * BLOCK_BYTES..], &bytes[BLOCK_BYTES..2 * BLOCK_BYTES]].concat();
        assert!(!is_taken(&swapped) && !is_taken(&[bytes.as_slice(), &[0; BLOCK_BYTES]].concat()));
        std::fs::remove_file(&path).unwrap();
    }
}
