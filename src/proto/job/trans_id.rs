use std::fmt;

/// Names one hand-out of a URL to a spider: host slot, place in its active window, and a generation above them,
/// so that finding the transaction is an index and a late answer is recognised.
///
/// ```text
///   63        40 39      32 31              0
///   | generation | active   | host slot      |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransId(u64);

impl TransId {
    pub fn new(host_slot: u32, active_slot: u8, generation: u32) -> TransId {
        TransId(u64::from(generation & 0xff_ffff) << 40 | u64::from(active_slot) << 32 | u64::from(host_slot))
    }

    pub fn host_slot(self) -> u32 {
        self.0 as u32
    }

    pub fn active_slot(self) -> u8 {
        (self.0 >> 32) as u8
    }

    pub fn generation(self) -> u32 {
        (self.0 >> 40) as u32
    }

    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl From<u64> for TransId {
    fn from(word: u64) -> TransId {
        TransId(word)
    }
}

impl fmt::Debug for TransId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.host_slot(), self.active_slot(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let id = TransId::new(u32::MAX, 255, 0xff_ffff);
        assert_eq!((id.host_slot(), id.active_slot(), id.generation()), (u32::MAX, 255, 0xff_ffff));
        let id = TransId::from(TransId::new(1, 2, 3).as_u64());
        assert_eq!((id.host_slot(), id.active_slot(), id.generation()), (1, 2, 3));
    }
}
