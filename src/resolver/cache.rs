use super::lookup::Answer;
use crate::base::Now;
use rapidhash::fast::RapidHashMap;
use std::sync::Arc;

/// Answers and until when they hold; no more than `count_max` of them.
///
/// What makes room is chosen by a hand that goes round: it takes the first answer that is out of date or was not
/// used since the hand came by last. Every step of the hand takes away a mark that a use had set, so an insert
/// costs a constant number of steps per use before it.
pub(super) struct Cache {
    entries: Vec<Entry>,
    places: RapidHashMap<Arc<str>, u32>,
    hand: usize,
    count_max: usize,
}

struct Entry {
    name: Arc<str>,
    answer: Answer,
    until: Now,
    used: bool,
}

impl Cache {
    pub(super) fn new(count_max: usize) -> Cache {
        Cache { entries: Vec::new(), places: RapidHashMap::default(), hand: 0, count_max }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&mut self, name: &str, now: Now) -> Option<Answer> {
        let entry = &mut self.entries[*self.places.get(name)? as usize];
        if entry.until <= now {
            return None;
        }
        entry.used = true;
        Some(entry.answer.clone())
    }

    pub(super) fn put(&mut self, name: &str, answer: Answer, until: Now, now: Now) {
        if self.count_max == 0 {
            return;
        }
        if let Some(&place) = self.places.get(name) {
            let entry = &mut self.entries[place as usize];
            (entry.answer, entry.until) = (answer, until);
            return;
        }
        let name: Arc<str> = name.into();
        let entry = Entry { name: name.clone(), answer, until, used: false };
        let place = if self.entries.len() < self.count_max {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.make_room(now);
            let old = std::mem::replace(&mut self.entries[place], entry);
            self.places.remove(&old.name);
            place
        };
        self.places.insert(name, place as u32);
        debug_assert_eq!(self.places.len(), self.entries.len());
    }

    fn make_room(&mut self, now: Now) -> usize {
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = &mut self.entries[place];
            if entry.until <= now || !std::mem::take(&mut entry.used) {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup::Failure;
    use super::*;

    const NO: Answer = Err(Failure::NoSuchName);

    #[test]
    fn holds_until_its_time_and_no_more_than_its_bound() {
        let mut cache = Cache::new(3);
        let at = Now::from_us;
        for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
            cache.put(name, NO, at(100 + n as u64), at(0));
        }
        assert_eq!(cache.get("a", at(99)), Some(NO));
        assert_eq!(cache.get("a", at(100)), None, "its time is over");
        assert_eq!(cache.get("c", at(100)), Some(NO));
        cache.put("d", NO, at(200), at(100));
        assert_eq!(cache.get("b", at(100)), Some(NO), "the one out of date made room");
        cache.put("e", NO, at(200), at(100));
        assert_eq!(cache.get("d", at(100)), None, "the one that was not used made room");
        for name in ["b", "c", "e"] {
            assert_eq!(cache.get(name, at(100)), Some(NO), "{name}");
        }
        cache.put("f", NO, at(200), at(100));
        assert_eq!(cache.len(), 3, "all were used: one goes all the same");
        assert_eq!(cache.get("f", at(100)), Some(NO));
        cache.put("f", Err(Failure::NoAddress), at(300), at(100));
        assert_eq!(cache.get("f", at(250)), Some(Err(Failure::NoAddress)), "the newer answer counts");
    }
}
