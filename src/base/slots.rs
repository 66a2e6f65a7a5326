use super::Key;
use slab::Slab;

/// A bounded slab whose keys carry the generation of their slot.
pub struct Slots<T> {
    slab: Slab<T>,
    /// Generation of every slot ever used; it moves on when the slot is freed.
    generations: Vec<u32>,
    count_max: usize,
}

/// Beyond this many, slots grow as they are needed.
const ROOM_MAX: usize = 16_384;

impl<T> Slots<T> {
    /// Room for most is taken at once: nothing is copied when there are more of them, no hole is left where they were, and
    /// what was never used takes no memory.
    pub fn new(count_max: usize) -> Slots<T> {
        let room = count_max.min(ROOM_MAX);
        Slots { slab: Slab::with_capacity(room), generations: Vec::with_capacity(room), count_max }
    }

    pub fn len(&self) -> usize {
        self.slab.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.slab.len() >= self.count_max
    }

    /// Takes a slot. `None` when all of them are taken.
    pub fn insert(&mut self, value: T) -> Option<Key> {
        if self.is_full() {
            return None;
        }
        let index = self.slab.insert(value);
        if index == self.generations.len() {
            self.generations.push(0);
        }
        Some(Key::new(index as u32, self.generations[index]))
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        self.holds(key).then(|| &self.slab[key.index()])
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.holds(key).then(|| &mut self.slab[key.index()])
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        if !self.holds(key) {
            return None;
        }
        self.generations[key.index()] = Key::next_generation(key.generation());
        Some(self.slab.remove(key.index()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slab.iter().map(|(index, value)| (Key::new(index as u32, self.generations[index]), value))
    }

    /// The key of whatever is in a slot.
    pub fn key_at(&self, index: usize) -> Option<Key> {
        self.slab.contains(index).then(|| Key::new(index as u32, self.generations[index]))
    }

    fn holds(&self, key: Key) -> bool {
        self.slab.contains(key.index()) && self.generations[key.index()] == key.generation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_makes_old_keys_stale() {
        let mut slots = Slots::new(1);
        let first = slots.insert("a").unwrap();
        assert!(slots.insert("b").is_none(), "the bound holds");
        assert_eq!(slots.remove(first), Some("a"));
        let second = slots.insert("c").unwrap();
        assert_eq!(first.index(), second.index());
        assert!(slots.get(first).is_none() && slots.remove(first).is_none());
        assert_eq!(slots.get(second), Some(&"c"));
    }
}
