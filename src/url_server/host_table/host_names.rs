/// The names of all hosts, end to end. An allocation for each name would cost a host its length again.
#[derive(Default)]
pub(super) struct HostNames {
    bytes: Vec<u8>,
    /// Bytes that no name uses.
    garbage: usize,
}

/// Where a name is.
#[derive(Clone, Copy)]
pub(super) struct HostName {
    at: u32,
    len: u16,
    /// Bytes that are its own, used or not.
    room: u16,
}

/// Less garbage than this is left alone.
const GARBAGE_MIN: usize = 1 << 20;

impl HostNames {
    pub fn get(&self, name: HostName) -> &str {
        str::from_utf8(self.bytes(name)).expect("a name went in as text")
    }

    /// As bytes, to compare or to hash.
    pub fn bytes(&self, name: HostName) -> &[u8] {
        let at = name.at as usize;
        &self.bytes[at..at + usize::from(name.len)]
    }

    /// A URL has at most 8,000 bytes, and so has a name.
    pub fn insert(&mut self, text: &str) -> HostName {
        let at = u32::try_from(self.bytes.len()).expect("names of all hosts fit in four gigabytes");
        self.bytes.extend_from_slice(text.as_bytes());
        HostName { at, len: text.len() as u16, room: text.len() as u16 }
    }

    /// Puts one name in the place of another.
    pub fn replace(&mut self, old: HostName, text: &str) -> HostName {
        if text.len() > usize::from(old.room) {
            self.garbage += usize::from(old.room);
            return self.insert(text);
        }
        let at = old.at as usize;
        self.bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        HostName { len: text.len() as u16, ..old }
    }

    /// Whether half of it is garbage by now: time for `gather`.
    pub fn is_wasteful(&self) -> bool {
        self.garbage > GARBAGE_MIN && self.garbage > self.bytes.len() / 2
    }

    /// Moves the names that are in use together.
    pub fn gather<'a>(&mut self, in_use: impl Iterator<Item = &'a mut HostName>) {
        let before = std::mem::take(self);
        for name in in_use {
            *name = self.insert(before.get(*name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn names_stay_what_they_are() {
        let mut rng = Rng::new(1);
        let mut names = HostNames::default();
        let text = |rng: &mut Rng| format!("http://{}", "n".repeat(rng.below(60) as usize + 1));
        let mut model: Vec<String> = (0..40_000).map(|_| text(&mut rng)).collect();
        let mut kept: Vec<HostName> = model.iter().map(|text| names.insert(text)).collect();
        let mut gathered = 0;
        for _ in 0..200_000 {
            let n = rng.below(40_000) as usize;
            model[n] = text(&mut rng);
            kept[n] = names.replace(kept[n], &model[n]);
            if names.is_wasteful() {
                names.gather(kept.iter_mut());
                gathered += 1;
            }
        }
        assert!(kept.iter().zip(&model).all(|(name, text)| names.get(*name) == text));
        assert!(names.bytes.len() <= 2 * 67 * 40_000 + GARBAGE_MIN && gathered < 20, "{gathered}");
    }
}
