use crate::base::{SortedMap, SortedSet};
use crate::proto::peer_wire::StoreName;
use crate::proto::record::SegmentState;

/// A segment, by its store and its number.
pub(super) type SegmentKey = (StoreName, u64);

/// What a follower says that it has of segments, with their bytes: these are told every turn, and are not added up for it.
#[derive(Default)]
pub(super) struct HeldSegments {
    states: SortedMap<SegmentKey, SegmentState>,
    bytes: u64,
}

impl HeldSegments {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, key: &SegmentKey) -> Option<&SegmentState> {
        self.states.get(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &SegmentKey> {
        self.states.keys()
    }

    pub fn insert(&mut self, key: SegmentKey, state: SegmentState) {
        self.bytes += state.bytes;
        let before = self.states.insert(key, state);
        self.bytes -= before.map_or(0, |before| before.bytes);
    }

    pub fn remove(&mut self, key: &SegmentKey) {
        self.bytes -= self.states.remove(key).map_or(0, |before| before.bytes);
    }

    /// Lets those go that are none of these.
    pub fn keep(&mut self, listed: &SortedSet<SegmentKey>) {
        let bytes = &mut self.bytes;
        self.states.retain(|key, state| {
            let stays = listed.contains(key);
            *bytes -= if stays { 0 } else { state.bytes };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn bytes_are_those_of_all_that_is_held() {
        let (mut held, mut rng) = (HeldSegments::default(), Rng::new(7));
        let key = |rng: &mut Rng| (StoreName { node: rng.below(2) as u16, count: 0 }, rng.below(20));
        for _ in 0..2_000 {
            let at = key(&mut rng);
            match rng.below(8) {
                0 => held.keep(&(0..30).map(|_| key(&mut rng)).collect()),
                1 => held.remove(&at),
                _ => {
                    let (bytes, print, shard) = (rng.below(1 << 20), 1, 0);
                    held.insert(at, SegmentState { segment: at.1, shard, print, bytes, is_sealed: false });
                }
            }
            let sum: u64 = held.keys().filter_map(|key| held.get(key)).map(|state| state.bytes).sum();
            assert_eq!(held.bytes(), sum);
        }
    }
}
