use std::fmt;

/// A slab index together with the generation of its slot.
///
/// A key outlives what it names: once the slot is given to something else its generation has moved on, and a
/// late completion, timer or DONE that still carries the old key is recognised and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

impl Key {
    pub const fn new(index: u32, generation: u32) -> Key {
        Key { index, generation: generation & GENERATION_MASK }
    }

    pub fn index(self) -> usize {
        self.index as usize
    }

    pub fn generation(self) -> u32 {
        self.generation
    }

    /// The generation that follows this one; it wraps after 16 million reuses of one slot.
    pub fn next_generation(generation: u32) -> u32 {
        generation.wrapping_add(1) & GENERATION_MASK
    }

    /// 32 bits of index, 24 of generation, and 8 bits on top for an operation code.
    pub fn pack(self, tag: u8) -> u64 {
        u64::from(tag) << 56 | u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub fn unpack(word: u64) -> (Key, u8) {
        (Key::new(word as u32, (word >> 32) as u32), (word >> 56) as u8)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.index, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks() {
        for key in [Key::new(0, 0), Key::new(u32::MAX, GENERATION_MASK), Key::new(7, 9)] {
            for tag in [0, 1, 255] {
                assert_eq!(Key::unpack(key.pack(tag)), (key, tag));
            }
        }
        assert_eq!(Key::next_generation(GENERATION_MASK), 0);
    }
}
