use crate::base::{Rng, fingerprint};

/// Words as they stand in texts, by their bytes and their language: a table whose slots are half a line of the cache each, so
/// that to look for a short word is to look at one place.
#[derive(Default)]
pub(super) struct Forms {
    /// A power of two of them, at most three quarters of which are filled; none before the first word.
    slots: Vec<Slot>,
    filled: usize,
    /// Words that are too long for a slot, one behind the other.
    long: Vec<u8>,
}

/// A word that is looked for.
#[derive(Clone, Copy)]
pub(super) struct Form {
    bytes: [u8; SHORT_BYTES],
    hash: u32,
    length: u8,
    language: u8,
}

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    /// Of a long word it has where its bytes are.
    form: Form,
    /// One more than the number of what it is; 0 in an empty slot.
    number: u32,
}

/// Nearly no word is longer.
const SHORT_BYTES: usize = 22;
const SLOTS_FIRST: usize = 1 << 10;

const EMPTY: Slot =
    Slot { form: Form { bytes: [0; SHORT_BYTES], hash: 0, length: 0, language: 0 }, number: 0 };

const _: () = assert!(size_of::<Slot>() == 32);

impl Form {
    /// No word is longer than a length of eight bits. The seed is nobody's who makes up words.
    #[inline]
    pub fn new(word: &[u8], language: u8, seed: u64) -> Form {
        let hash =
            (Rng::mix(fingerprint(word) ^ seed) >> 32) as u32 ^ u32::from(language).wrapping_mul(0x9e37_79b9);
        let mut bytes = [0; SHORT_BYTES];
        if let Some(short) = bytes.get_mut(..word.len()) {
            short.copy_from_slice(word);
        }
        Form { bytes, hash, length: word.len() as u8, language }
    }

    fn is_long(&self) -> bool {
        usize::from(self.length) > SHORT_BYTES
    }
}

impl Forms {
    /// Memory that all of it takes.
    pub fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.long.len()
    }

    /// Reads a bit of where a word would be: of several at once, so that what is not in the cache comes at one time.
    #[inline]
    pub fn touch(&self, form: &Form) -> u32 {
        self.slots.get(form.hash as usize & self.slots.len().wrapping_sub(1)).map_or(0, |slot| slot.number)
    }

    /// What a word is the number of.
    #[inline]
    pub fn find(&self, form: &Form, word: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = form.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == 0 {
                return None;
            }
            let known = &slot.form;
            if known.hash == form.hash
                && (known.length, known.language) == (form.length, form.language)
                && if form.is_long() { self.long_of(known) == word } else { known.bytes == form.bytes }
            {
                return Some(slot.number - 1);
            }
            at = (at + 1) & mask;
        }
    }

    fn long_of(&self, form: &Form) -> &[u8] {
        let from = crate::base::u32_at(&form.bytes, 0) as usize;
        &self.long[from..from + usize::from(form.length)]
    }

    /// Adds a word that is not there.
    pub fn insert(&mut self, mut form: Form, word: &[u8], number: u32) {
        if form.is_long() {
            form.bytes[..4].copy_from_slice(&(self.long.len() as u32).to_le_bytes());
            self.long.extend_from_slice(word);
        }
        if self.filled * 4 >= self.slots.len() * 3 {
            let slots = vec![EMPTY; (self.slots.len() * 2).max(SLOTS_FIRST)];
            let before = std::mem::replace(&mut self.slots, slots);
            before.into_iter().filter(|slot| slot.number > 0).for_each(|slot| self.fill(slot));
        }
        self.fill(Slot { form, number: number + 1 });
        self.filled += 1;
    }

    fn fill(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = slot.form.hash as usize & mask;
        while self.slots[at].number > 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::HashMap;

    #[test]
    fn words_have_the_numbers_that_they_were_given() {
        let (mut rng, mut forms, mut model) = (Rng::new(6), Forms::default(), HashMap::new());
        for number in 0..60_000_u32 {
            let word = format!("{}{}", "é".repeat(rng.below(3) as usize * 8), rng.below(9_000));
            let language = rng.below(3) as u8;
            let form = Form::new(word.as_bytes(), language, 77);
            let known = model.get(&(word.clone(), language)).copied();
            assert_eq!(forms.find(&form, word.as_bytes()), known, "{word}");
            if known.is_none() {
                forms.insert(form, word.as_bytes(), number);
                model.insert((word, language), number);
            }
        }
    }
}
