use crate::base::front_code::{put_text, take_text};
use crate::base::varint::{put, take, take_bytes, take_u32};
use crate::search::postings::{Extent, damaged};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Keys of a block, which is read whole.
const KEYS: usize = 32;

/// Where the data of a word is: its postings, and behind them its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub stories: u32,
    pub at: u64,
    pub postings_bytes: u32,
    pub places_bytes: u32,
}

/// A dictionary on its way: words in order, their data one behind the other.
pub struct DictionaryWriter {
    blocks: Vec<u8>,
    index: Vec<u8>,
    last: String,
    keys: usize,
    /// Where the data of the next word is.
    at: u64,
}

impl DictionaryWriter {
    pub fn new(at: u64) -> DictionaryWriter {
        DictionaryWriter { blocks: Vec::new(), index: Vec::new(), last: String::new(), keys: 0, at }
    }

    pub fn put(&mut self, key: &str, stories: u32, postings_bytes: u32, places_bytes: u32) {
        if self.keys.is_multiple_of(KEYS) {
            put(&mut self.index, key.len() as u64);
            self.index.extend_from_slice(key.as_bytes());
            put(&mut self.index, self.blocks.len() as u64);
            put(&mut self.blocks, self.at);
            self.last.clear();
        }
        put_text(&mut self.blocks, key, &mut self.last);
        put(&mut self.blocks, u64::from(stories));
        put(&mut self.blocks, u64::from(postings_bytes));
        put(&mut self.blocks, u64::from(places_bytes));
        self.keys += 1;
        self.at += u64::from(postings_bytes) + u64::from(places_bytes);
    }

    /// The dictionary, and its index.
    pub fn finish(self) -> (Vec<u8>, Vec<u8>) {
        (self.blocks, self.index)
    }
}

/// The dictionary of a segment: the first key of each block in memory, blocks on disk.
pub struct Dictionary {
    file: Arc<File>,
    from: u64,
    bytes: usize,
    /// First keys, one behind the other, and where each ends.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    blocks_at: Vec<u32>,
}

impl Dictionary {
    /// Reads the index of a dictionary that lies in a file.
    pub fn read(file: Arc<File>, from: u64, bytes: usize, mut index: &[u8]) -> io::Result<Dictionary> {
        let mut read = Dictionary { file, from, bytes, keys: vec![], key_ends: vec![], blocks_at: vec![] };
        while !index.is_empty() {
            read.take(&mut index).ok_or_else(|| damaged("the index of its dictionary is damaged"))?;
        }
        Ok(read)
    }

    fn take(&mut self, index: &mut &[u8]) -> Option<()> {
        let length = take(index)? as usize;
        let key = take_bytes(index, length)?;
        let at = take_u32(index)?;
        let is_next = self.blocks_at.last().map_or(at == 0, |last| *last < at) && (at as usize) < self.bytes;
        self.keys.extend_from_slice(key);
        self.key_ends.push(u32::try_from(self.keys.len()).ok()?);
        self.blocks_at.push(at);
        is_next.then_some(())
    }

    fn first_key(&self, block: usize) -> &[u8] {
        let from = block.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        &self.keys[from as usize..self.key_ends[block] as usize]
    }

    /// The block that has a key, if any has.
    fn block_of(&self, key: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.key_ends.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.first_key(middle) <= key.as_bytes() { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    fn block_bounds(&self, block: usize) -> (usize, usize) {
        let end = self.blocks_at.get(block + 1).map_or(self.bytes, |at| *at as usize);
        (self.blocks_at[block] as usize, end)
    }

    pub fn find(&self, key: &str) -> io::Result<Option<Found>> {
        let Some(block) = self.block_of(key) else { return Ok(None) };
        let (from, to) = self.block_bounds(block);
        let mut bytes = vec![0; to - from];
        self.file.read_exact_at(&mut bytes, self.from + from as u64)?;
        let mut reader = BlockReader::default();
        let mut rest = &bytes[..];
        while let Some(found) = reader.next(&mut rest)? {
            match reader.key.as_str().cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Some(found)),
                std::cmp::Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    /// All words from a key on, in order.
    pub fn scan(self: &Arc<Dictionary>, from: &str) -> DictionaryScan {
        DictionaryScan {
            extent: Extent::new(self.file.clone(), self.from, self.bytes),
            dictionary: self.clone(),
            block: self.block_of(from).unwrap_or(0),
            bytes: Vec::new(),
            used: 0,
            reader: BlockReader::default(),
        }
    }
}

/// Words of a block, one after the other.
#[derive(Default)]
struct BlockReader {
    key: String,
    at: u64,
    is_begun: bool,
}

impl BlockReader {
    /// The next word, whose key is then in `key`.
    fn next(&mut self, bytes: &mut &[u8]) -> io::Result<Option<Found>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        self.take(bytes).map(Some).ok_or_else(|| damaged("its dictionary is damaged"))
    }

    fn take(&mut self, bytes: &mut &[u8]) -> Option<Found> {
        if !self.is_begun {
            (self.at, self.is_begun) = (take(bytes)?, true);
            self.key.clear();
        }
        take_text(bytes, &mut self.key)?;
        let (stories, postings_bytes, places_bytes) = (take_u32(bytes)?, take_u32(bytes)?, take_u32(bytes)?);
        let found = Found { stories, at: self.at, postings_bytes, places_bytes };
        self.at = self.at.checked_add(u64::from(postings_bytes) + u64::from(places_bytes))?;
        Some(found)
    }
}

/// Words of a dictionary in order, from some block on.
pub struct DictionaryScan {
    dictionary: Arc<Dictionary>,
    extent: Extent,
    /// The block that is read next; what was read of the one before, and how much of it was used.
    block: usize,
    bytes: Vec<u8>,
    used: usize,
    reader: BlockReader,
}

impl DictionaryScan {
    /// The next word, whose key is then [`DictionaryScan::key`].
    pub fn next(&mut self) -> io::Result<Option<Found>> {
        if self.used == self.bytes.len() {
            if self.block == self.dictionary.blocks_at.len() {
                return Ok(None);
            }
            let (from, to) = self.dictionary.block_bounds(self.block);
            self.bytes.clear();
            self.bytes.extend_from_slice(self.extent.bytes(from, to)?);
            (self.block, self.used, self.reader.is_begun) = (self.block + 1, 0, false);
        }
        let mut rest = &self.bytes[self.used..];
        let found = self.reader.next(&mut rest)?;
        self.used = self.bytes.len() - rest.len();
        Ok(found)
    }

    pub fn key(&self) -> &str {
        &self.reader.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::BTreeMap;
    use std::io::Write;

    fn written(bytes: &[u8]) -> Arc<File> {
        let path = std::env::temp_dir().join(format!("nephila-dictionary-{}", std::process::id()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        std::fs::remove_file(path).unwrap();
        Arc::new(file)
    }

    #[test]
    fn every_word_is_found_no_other_and_damage_is_no_panic() {
        let mut rng = Rng::new(9);
        let mut words: BTreeMap<String, (u32, u32, u32)> = BTreeMap::new();
        for _ in 0..2_000 {
            let word = format!("\u{3}{}é{}", rng.below(60), rng.below(900));
            words.insert(word, (rng.below(9) as u32, rng.below(1_000) as u32, rng.below(1_000) as u32));
        }
        let mut writer = DictionaryWriter::new(77);
        words
            .iter()
            .for_each(|(key, (stories, postings, places))| writer.put(key, *stories, *postings, *places));
        let (blocks, index) = writer.finish();
        let dictionary = Arc::new(Dictionary::read(written(&blocks), 0, blocks.len(), &index).unwrap());
        let (mut scan, mut at) = (dictionary.scan(""), 77);
        for (key, (stories, postings_bytes, places_bytes)) in &words {
            let found =
                Found { stories: *stories, at, postings_bytes: *postings_bytes, places_bytes: *places_bytes };
            assert_eq!(dictionary.find(key).unwrap(), Some(found));
            assert_eq!(dictionary.find(&format!("{key}!")).unwrap(), None);
            assert_eq!((scan.next().unwrap(), scan.key()), (Some(found), key.as_str()));
            at += u64::from(postings_bytes + places_bytes);
        }
        assert_eq!((scan.next().unwrap(), dictionary.find("").unwrap()), (None, None));
        for _ in 0..300 {
            let (mut blocks, mut index) = (blocks.clone(), index.clone());
            let at = rng.below(blocks.len() as u64) as usize;
            blocks[at] ^= 1 << rng.below(8);
            let at = rng.below(index.len() as u64) as usize;
            index[at] ^= (rng.below(4) as u8) << rng.below(7);
            if let Ok(wrong) = Dictionary::read(written(&blocks), 0, blocks.len(), &index) {
                let (wrong, mut words) = (Arc::new(wrong), 0);
                let _ = wrong.find("\u{3}33é400");
                let mut scan = wrong.scan("");
                while let Ok(Some(_)) = scan.next() {
                    words += 1;
                }
                assert!(words <= blocks.len());
            }
        }
    }
}
