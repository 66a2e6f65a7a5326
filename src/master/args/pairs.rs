/// The last page of each URL without one of its parameters: as many as fit, the later in the place of the earlier.
pub(super) struct Pairs {
    slots: Box<[Slot]>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    digest: u64,
    value: u32,
}

/// 6 MB.
const SLOTS: usize = 1 << 18;

/// A page that was seen before with another value.
pub(super) struct Pair {
    pub is_same: bool,
    pub values: [u32; 2],
}

impl Default for Pairs {
    fn default() -> Pairs {
        Pairs { slots: vec![Slot::default(); SLOTS].into_boxed_slice() }
    }
}

impl Pairs {
    /// Notes a page, and tells the pair that it makes with the one before.
    pub fn see(&mut self, key: u64, value: u32, digest: u64) -> Option<Pair> {
        let key = key.max(1);
        let slot = &mut self.slots[key as usize % SLOTS];
        let before = std::mem::replace(slot, Slot { key, digest, value });
        (before.key == key && before.value != value)
            .then_some(Pair { is_same: before.digest == digest, values: [before.value, value] })
    }
}
