use super::ids::StoryId;
use crate::base::fingerprint;
use hashbrown::HashTable;

/// Stories whose downloads have not succeeded yet, by the documents that these are in the doc index.
#[derive(Default)]
pub(super) struct Waiting {
    /// One document may be the download of several stories.
    downloads: HashTable<(u32, StoryId)>,
}

/// Room that is kept, for so few that it does not count.
const KEPT: usize = 1_024;
/// Room for more than so many times what waits is given back.
const SPARE: usize = 8;

fn hash_of(doc_id: u32) -> u64 {
    fingerprint(&doc_id.to_le_bytes())
}

impl Waiting {
    pub fn insert(&mut self, doc_id: u32, story: StoryId) {
        let hash = hash_of(doc_id);
        if self.downloads.find(hash, |&known| known == (doc_id, story)).is_none() {
            self.downloads.insert_unique(hash, (doc_id, story), |&(doc_id, _)| hash_of(doc_id));
        }
    }

    pub fn has(&self, doc_id: u32) -> bool {
        self.downloads.find(hash_of(doc_id), |&(of, _)| of == doc_id).is_some()
    }

    /// The stories that a document is the download of.
    pub fn of(&self, doc_id: u32) -> Vec<StoryId> {
        let all = self.downloads.iter_hash(hash_of(doc_id));
        all.filter(|&&(of, _)| of == doc_id).map(|&(_, story)| story).collect()
    }

    pub fn remove(&mut self, doc_id: u32, story: StoryId) {
        if let Ok(found) = self.downloads.find_entry(hash_of(doc_id), |&known| known == (doc_id, story)) {
            found.remove();
        }
        let room = self.downloads.capacity();
        if room > KEPT && room > SPARE * self.downloads.len() {
            self.downloads.shrink_to(self.downloads.len() * 2, |&(doc_id, _)| hash_of(doc_id));
        }
    }

    pub fn ram_bytes(&self) -> usize {
        self.downloads.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_stories_until_they_are_removed() {
        let mut waiting = Waiting::default();
        for (doc_id, story) in [(7, 1), (7, 2), (8, 3), (7, 1)] {
            waiting.insert(doc_id, StoryId(story));
        }
        let mut of = waiting.of(7);
        of.sort_unstable();
        assert_eq!(
            (of, waiting.of(8), waiting.of(9)),
            (vec![StoryId(1), StoryId(2)], vec![StoryId(3)], vec![])
        );
        waiting.remove(7, StoryId(1));
        waiting.remove(7, StoryId(1));
        assert!(waiting.has(7) && waiting.has(8) && !waiting.has(9));
        waiting.remove(7, StoryId(2));
        assert!(!waiting.has(7));
    }

    #[test]
    fn memory_of_very_many_is_given_back() {
        let mut waiting = Waiting::default();
        for n in 0..100_000 {
            waiting.insert(n, StoryId(n));
        }
        let full = waiting.ram_bytes();
        for n in 0..99_000 {
            waiting.remove(n, StoryId(n));
        }
        assert!(waiting.ram_bytes() * 10 < full, "{} of {full} bytes", waiting.ram_bytes());
        assert!((99_000..100_000).all(|n| waiting.of(n) == [StoryId(n)]));
    }
}
