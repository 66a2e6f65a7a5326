/// Bytes of the first part of a list, and of the largest; in between each is twice as large as the one before. Each ends with
/// where the next one begins.
const FIRST_BYTES: u32 = 16;
const LEVELS: u8 = 8;
const LINK_BYTES: u32 = 4;

/// Very many lists of bytes that grow at their ends, in parts that lie in one piece of memory.
#[derive(Default)]
pub(super) struct Lists {
    memory: Vec<u8>,
}

/// One of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: u32,
    /// Where the next byte comes, and where the part ends in front of its link. Both are 0 in a list without any.
    at: u32,
    end: u32,
    level: u8,
}

impl Lists {
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Reads a bit of where a list goes on: of several at once, so that what is not in the cache comes at one time.
    #[inline]
    pub fn touch(&self, list: &List) -> u32 {
        self.memory.get(list.at as usize).map_or(0, |byte| u32::from(*byte))
    }

    /// Appends a number of seven bits a byte.
    #[inline]
    pub fn put(&mut self, list: &mut List, mut number: u32) {
        while number >= 0x80 {
            self.push(list, number as u8 | 0x80);
            number >>= 7;
        }
        self.push(list, number as u8);
    }

    #[inline]
    fn push(&mut self, list: &mut List, byte: u8) {
        if list.at == list.end {
            self.grow(list);
        }
        self.memory[list.at as usize] = byte;
        list.at += 1;
    }

    #[cold]
    fn grow(&mut self, list: &mut List) {
        let at = self.memory.len() as u32;
        if list.end == 0 {
            list.first = at;
        } else {
            let link = list.end as usize;
            self.memory[link..link + LINK_BYTES as usize].copy_from_slice(&at.to_le_bytes());
            list.level = (list.level + 1).min(LEVELS);
        }
        let bytes = FIRST_BYTES << list.level;
        self.memory.resize((at + bytes) as usize, 0);
        (list.at, list.end) = (at, at + bytes - LINK_BYTES);
    }

    /// Appends what is in a list to `out`.
    pub fn read(&self, list: &List, out: &mut Vec<u8>) {
        let (mut from, mut level) = (list.first, 0);
        loop {
            let end = (from + (FIRST_BYTES << level)).saturating_sub(LINK_BYTES);
            // A list without any has no part.
            if list.end == 0 || end == list.end {
                return out.extend_from_slice(&self.memory[from as usize..list.at as usize]);
            }
            out.extend_from_slice(&self.memory[from as usize..end as usize]);
            from = crate::base::u32_at(&self.memory, end as usize);
            level = (level + 1).min(LEVELS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::base::varint::put;
    use crate::search::tests::skewed;

    #[test]
    fn lists_that_grow_beside_each_other_keep_what_they_have() {
        let (mut rng, mut lists) = (Rng::new(2), Lists::default());
        let mut all: Vec<(List, Vec<u8>)> = vec![Default::default(); 40];
        for _ in 0..60_000 {
            let at = skewed(&mut rng, 40) as usize;
            let number = (rng.below(1 << 31) >> rng.below(31)) as u32;
            lists.put(&mut all[at].0, number);
            put(&mut all[at].1, u64::from(number));
        }
        for (list, expected) in &all {
            let mut read = vec![];
            lists.read(list, &mut read);
            assert_eq!(read, *expected);
        }
    }
}
