use crate::limits::RECENT_LINKS;

/// Fingerprints of links seen lately: nine of ten links of a page were on another page just before, and need
/// not travel to the doc index. Forgetting one costs a question, never a URL.
pub(super) struct Recent {
    slots: Box<[u64]>,
}

impl Recent {
    pub fn new() -> Recent {
        Recent {
            slots: vec![0; RECENT_LINKS].into(),
        }
    }

    pub fn holds(&self, fingerprint: u64) -> bool {
        // 0 marks an empty slot; the one URL that hashes to it is never held, which is harmless.
        fingerprint != 0 && self.slots[fingerprint as usize & (RECENT_LINKS - 1)] == fingerprint
    }

    pub fn note(&mut self, fingerprint: u64) {
        self.slots[fingerprint as usize & (RECENT_LINKS - 1)] = fingerprint;
    }
}
