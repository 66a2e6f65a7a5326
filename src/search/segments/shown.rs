use crate::base::varint::{put, take, take_bytes};

/// Bytes of a block before it is packed.
const BLOCK_BYTES: usize = 4 << 10;
/// No block is larger: one story may be larger than a block.
const BLOCK_BYTES_MAX: usize = 32 << 10;

/// What is shown of a story that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub story: u64,
    pub published_s: Option<i64>,
    pub language: String,
    pub source: String,
    pub title: String,
    pub url: String,
}

/// Blocks of what is shown, packed, one behind the other.
#[derive(Default)]
pub struct ShownBlocks {
    packed: Vec<u8>,
    /// Of each block the number of its first story, and where it begins in `packed`.
    blocks: Vec<(u32, usize)>,
    /// The block that is not packed yet, and the number of its first story.
    open: Vec<u8>,
    first: u32,
    stories: u32,
    record: Vec<u8>,
}

impl ShownBlocks {
    /// Of stories from a number on.
    pub fn from(first: u32) -> ShownBlocks {
        ShownBlocks { first, stories: first, ..ShownBlocks::default() }
    }

    pub fn put(&mut self, shown: &Shown) {
        self.record.clear();
        put(&mut self.record, shown.story);
        // Bits whose lowest is that of the sign, and none as a mark of its own.
        match shown.published_s {
            None => self.record.push(0),
            Some(at_s) => {
                self.record.push(1);
                put(&mut self.record, (at_s << 1 ^ at_s >> 63) as u64);
            }
        }
        for text in [&shown.language, &shown.source, &shown.title, &shown.url] {
            put(&mut self.record, text.len() as u64);
            self.record.extend_from_slice(text.as_bytes());
        }
        put(&mut self.open, self.record.len() as u64);
        self.open.extend_from_slice(&self.record);
        self.stories += 1;
        if self.open.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        self.blocks.push((self.first, self.packed.len()));
        put(&mut self.packed, self.open.len() as u64);
        self.packed.extend_from_slice(&lz4_flex::block::compress(&self.open));
        self.open.clear();
        self.first = self.stories;
    }

    pub fn bytes(&self) -> usize {
        self.packed.len() + self.open.len()
    }

    /// Goes through all blocks with the number of the first story of each, and begins anew with the next story.
    pub fn drain<E>(&mut self, tell: impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<(), E> {
        if !self.open.is_empty() {
            self.end_block();
        }
        self.drain_packed(tell)
    }

    /// The same of those that are packed.
    pub fn drain_packed<E>(&mut self, mut tell: impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let ends = self.blocks.iter().skip(1).map(|block| block.1).chain([self.packed.len()]);
        for ((first, from), end) in self.blocks.iter().zip(ends) {
            tell(*first, &self.packed[*from..end])?;
        }
        self.packed.clear();
        self.blocks.clear();
        Ok(())
    }
}

/// Records of a packed block, each of a story; None if it is damaged.
pub fn unpacked(mut packed: &[u8]) -> Option<Vec<u8>> {
    let bytes = take(&mut packed).filter(|bytes| *bytes <= BLOCK_BYTES_MAX as u64)? as usize;
    lz4_flex::block::decompress(packed, bytes).ok().filter(|plain| plain.len() == bytes)
}

/// Takes a record off the front.
pub fn take_record<'b>(records: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = take(records)? as usize;
    take_bytes(records, length)
}

pub fn read_record(mut record: &[u8]) -> Option<Shown> {
    let story = take(&mut record)?;
    let published_s = match take(&mut record)? {
        0 => None,
        _ => {
            let bits = take(&mut record)?;
            Some((bits >> 1) as i64 ^ -((bits & 1) as i64))
        }
    };
    let mut text = || {
        let length = take(&mut record)? as usize;
        Some(str::from_utf8(take_bytes(&mut record, length)?).ok()?.to_string())
    };
    let (language, source, title, url) = (text()?, text()?, text()?, text()?);
    Some(Shown { story, published_s, language, source, title, url })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(story: u64) -> Shown {
        Shown {
            story: story * 1_000_000_007,
            published_s: (!story.is_multiple_of(3)).then_some((story as i64 - 50) * 1_000),
            language: if story.is_multiple_of(2) { "en".to_string() } else { String::new() },
            source: "Äther".to_string(),
            title: "t".repeat(story as usize * 37 % 4_000),
            url: format!("http://example.org/{story}"),
        }
    }

    #[test]
    fn stories_are_shown_as_they_were_put() {
        let mut blocks = ShownBlocks::from(5);
        (0..100).for_each(|story| blocks.put(&shown(story)));
        let (mut read, mut starts) = (Vec::new(), Vec::new());
        let mut tell = |first: u32, packed: &[u8]| {
            starts.push((first, read.len() as u32 + 5));
            let plain = unpacked(packed).ok_or(())?;
            let mut records = &plain[..];
            while !records.is_empty() {
                read.push(take_record(&mut records).and_then(read_record).ok_or(())?);
            }
            for cut in 0..packed.len() {
                unpacked(&packed[..cut]);
            }
            Ok::<(), ()>(())
        };
        blocks.drain(&mut tell).unwrap();
        assert!(starts.len() > 5 && starts.iter().all(|(first, before)| first == before), "{starts:?}");
        assert_eq!(read, (0..100).map(shown).collect::<Vec<_>>());
        for seconds in [i64::MIN, -1, 0, i64::MAX] {
            let mut blocks = ShownBlocks::default();
            blocks.put(&Shown { published_s: Some(seconds), ..shown(1) });
            blocks
                .drain(|_, packed| {
                    let plain = unpacked(packed).unwrap();
                    let read = read_record(take_record(&mut &plain[..]).unwrap()).unwrap();
                    assert_eq!(read.published_s, Some(seconds));
                    Ok::<(), ()>(())
                })
                .unwrap();
        }
    }
}
