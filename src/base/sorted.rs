use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Borrow;
use std::fmt;
use std::iter::Map;
use std::marker::PhantomData;
use std::ops::{Bound, Index, RangeBounds};
use std::slice;

/// A map of few keys, in their order: one list, searched by halves. It is a fraction of a tree's code in each kind that the
/// program has of it. A key that is not the last moves all behind it, so what may have tens of thousands stands in a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedMap<K, V> {
    // Keys ascend, each is there once.
    entries: Vec<(K, V)>,
}

/// A set of few, in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedSet<K> {
    keys: SortedMap<K, ()>,
}

/// The place of a key in a map, whether it is there or not.
pub enum Entry<'a, K, V> {
    Occupied(&'a mut V),
    Vacant(Vacant<'a, K, V>),
}

pub struct Vacant<'a, K, V> {
    entries: &'a mut Vec<(K, V)>,
    at: usize,
    key: K,
}

type Pairs<'a, K, V> = Map<slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;
type PairsMut<'a, K, V> = Map<slice::IterMut<'a, (K, V)>, fn(&'a mut (K, V)) -> (&'a K, &'a mut V)>;
type Keys<'a, K> = Map<slice::Iter<'a, (K, ())>, fn(&'a (K, ())) -> &'a K>;
type IntoKeys<K> = Map<std::vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

impl<K: Ord, V> SortedMap<K, V> {
    pub const fn new() -> SortedMap<K, V> {
        SortedMap { entries: Vec::new() }
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        match self.entries.last() {
            // What is counted up comes in order.
            Some((last, _)) if last.borrow() < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(known, _)| known.borrow().cmp(key)),
        }
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &self.entries[at].1)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &mut self.entries[at].1)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Returns what stood there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.entries.remove(at).1)
    }

    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.place(&key) {
            Ok(at) => Entry::Occupied(&mut self.entries[at].1),
            Err(at) => Entry::Vacant(Vacant { entries: &mut self.entries, at, key }),
        }
    }

    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Pairs<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let from = match range.start_bound() {
            Bound::Included(key) => self.place(key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => self.place(key).map_or_else(|at| at, |at| at + 1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(key) => self.place(key).map_or_else(|at| at, |at| at + 1),
            Bound::Excluded(key) => self.place(key).unwrap_or_else(|at| at),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries[from.min(to)..to].iter().map(|(key, value)| (key, value))
    }

    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.entries.is_empty()).then(|| self.entries.remove(0))
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K, V> SortedMap<K, V> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.entries.first().map(|(key, value)| (key, value))
    }

    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.entries.last().map(|(key, value)| (key, value))
    }

    pub fn iter(&self) -> Pairs<'_, K, V> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub fn iter_mut(&mut self) -> PairsMut<'_, K, V> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator {
        self.entries.into_iter().map(|(key, _)| key)
    }

    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }
}

impl<'a, K, V> Entry<'a, K, V> {
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Entry::Occupied(value) => value,
            Entry::Vacant(vacant) => vacant.insert(value()),
        }
    }

    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Entry<'a, K, V> {
        if let Entry::Occupied(value) = &mut self {
            change(value);
        }
        self
    }
}

impl<'a, K, V> Vacant<'a, K, V> {
    pub fn insert(self, value: V) -> &'a mut V {
        self.entries.insert(self.at, (self.key, value));
        &mut self.entries[self.at].1
    }
}

impl<K: Ord> SortedSet<K> {
    pub const fn new() -> SortedSet<K> {
        SortedSet { keys: SortedMap::new() }
    }

    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.contains_key(key)
    }

    /// Whether it was not there before.
    pub fn insert(&mut self, key: K) -> bool {
        self.keys.insert(key, ()).is_none()
    }

    /// Whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.remove(key).is_some()
    }

    pub fn pop_first(&mut self) -> Option<K> {
        self.keys.pop_first().map(|(key, ())| key)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.keys.retain(|key, ()| keep(key));
    }

    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator
    where
        K: Borrow<Q>,
    {
        self.keys.range(range).map(|(key, ())| key)
    }

    /// Those that are not in another set.
    pub fn difference<'a>(&'a self, other: &'a SortedSet<K>) -> impl Iterator<Item = &'a K> {
        self.iter().filter(|key| !other.contains(*key))
    }

    /// Those that are in another set, too.
    pub fn intersection<'a>(&'a self, other: &'a SortedSet<K>) -> impl Iterator<Item = &'a K> {
        self.iter().filter(|key| other.contains(*key))
    }

    pub fn is_subset(&self, other: &SortedSet<K>) -> bool {
        self.difference(other).next().is_none()
    }

    pub fn is_disjoint(&self, other: &SortedSet<K>) -> bool {
        self.intersection(other).next().is_none()
    }
}

impl<K> SortedSet<K> {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
    }

    pub fn first(&self) -> Option<&K> {
        self.keys.first_key_value().map(|(key, ())| key)
    }

    pub fn last(&self) -> Option<&K> {
        self.keys.last_key_value().map(|(key, ())| key)
    }

    pub fn iter(&self) -> Keys<'_, K> {
        self.keys.entries.iter().map(|(key, ())| key)
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SortedMap<K, V> {
        let mut map = SortedMap::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> SortedMap<K, V> {
        entries.into_iter().collect()
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<'a, K: Ord + Copy> Extend<&'a K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = &'a K>>(&mut self, keys: I) {
        self.extend(keys.into_iter().copied());
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> SortedSet<K> {
        let mut set = SortedSet::new();
        set.extend(keys);
        set
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for SortedSet<K> {
    fn from(keys: [K; N]) -> SortedSet<K> {
        keys.into_iter().collect()
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap { entries: Vec::new() }
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> SortedSet<K> {
        SortedSet { keys: SortedMap::default() }
    }
}

impl<K: Borrow<Q> + Ord, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the key is in the map")
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Pairs<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut SortedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = PairsMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = IntoKeys<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.entries.into_iter().map(|(key, ())| key)
    }
}

impl<'a, K> IntoIterator for &'a SortedSet<K> {
    type Item = &'a K;
    type IntoIter = Keys<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: fmt::Debug> fmt::Debug for SortedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<K: Serialize> Serialize for SortedSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SortedMap<K, V>, D::Error> {
        deserializer.deserialize_map(Read::<Self>(PhantomData))
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for SortedSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SortedSet<K>, D::Error> {
        deserializer.deserialize_seq(Read::<Self>(PhantomData))
    }
}

/// Reads a map or a set.
struct Read<T>(PhantomData<T>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Read<SortedMap<K, V>> {
    type Value = SortedMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<SortedMap<K, V>, A::Error> {
        let mut map = SortedMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<'de, K: Deserialize<'de> + Ord> Visitor<'de> for Read<SortedSet<K>> {
    type Value = SortedSet<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut keys: A) -> Result<SortedSet<K>, A::Error> {
        let mut set = SortedSet::new();
        while let Some(key) = keys.next_element()? {
            set.insert(key);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_map_is_what_a_tree_would_be_after_whatever_was_done_to_it() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
            for _ in 0..200 {
                let (key, value) = (rng.below(30) as u32, rng.below(1_000) as u32);
                match rng.below(7) {
                    0 | 1 => assert_eq!(map.insert(key, value), tree.insert(key, value)),
                    2 => assert_eq!(map.remove(&key), tree.remove(&key)),
                    3 => assert_eq!(
                        map.entry(key).and_modify(|of| *of += 1).or_insert(value),
                        tree.entry(key).and_modify(|of| *of += 1).or_insert(value)
                    ),
                    4 if rng.below(4) == 0 => assert_eq!(map.pop_first(), tree.pop_first()),
                    5 => {
                        map.retain(|key, value| *key % 7 != *value % 7);
                        tree.retain(|key, value| *key % 7 != *value % 7);
                    }
                    _ => {
                        let to = key + rng.below(9) as u32;
                        assert!(map.range(key..to).eq(tree.range(key..to)));
                        assert!(map.range(..=key).rev().eq(tree.range(..=key).rev()));
                        let behind = (Bound::Excluded(key), Bound::Unbounded);
                        assert!(map.range(behind).eq(tree.range(behind)));
                    }
                }
                assert!(map.iter().eq(&tree) && map.len() == tree.len());
                assert_eq!(map.get(&key), tree.get(&key));
                assert_eq!(map.first_key_value(), tree.first_key_value());
                assert_eq!(map.last_key_value(), tree.last_key_value());
            }
            let text = serde_json::to_string(&map).unwrap();
            assert_eq!(text, serde_json::to_string(&tree).unwrap());
            assert_eq!(serde_json::from_str::<SortedMap<u32, u32>>(&text).unwrap(), map);
        }
    }

    #[test]
    fn sets_are_compared_like_trees() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let mut some = || -> Vec<u16> { (0..rng.below(12)).map(|_| rng.below(20) as u16).collect() };
            let (one, other) = (some(), some());
            let (set, others): (SortedSet<u16>, SortedSet<u16>) =
                (one.iter().copied().collect(), other.iter().copied().collect());
            let (tree, trees): (BTreeSet<u16>, BTreeSet<u16>) =
                (one.into_iter().collect(), other.into_iter().collect());
            assert!(set.iter().eq(&tree));
            assert!(set.difference(&others).eq(tree.difference(&trees)));
            assert!(set.intersection(&others).eq(tree.intersection(&trees)));
            assert_eq!(set.is_subset(&others), tree.is_subset(&trees));
            assert_eq!(set.is_disjoint(&others), tree.is_disjoint(&trees));
            assert_eq!(format!("{set:?}"), format!("{tree:?}"));
        }
    }
}
