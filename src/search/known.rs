use std::collections::HashMap;

/// Numbers of stories, a bit each, by pages: a story that is not here needs nothing deleted.
#[derive(Default)]
pub(super) struct Known {
    pages: HashMap<u64, [u64; 8]>,
}

impl Known {
    /// True if it was there before.
    pub fn insert(&mut self, story: u64) -> bool {
        let page = self.pages.entry(story / 512).or_default();
        let (word, bit) = (&mut page[(story / 64 % 8) as usize], 1 << (story % 64));
        let was_there = *word & bit != 0;
        *word |= bit;
        was_there
    }
}
