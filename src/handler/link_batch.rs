/// Memory that a handler keeps for the links of the next page.
pub(super) const LINKS_BYTES_KEPT: usize = 1 << 20;

/// URLs found by one page, in normal form, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkBatch {
    /// Each with a line feed behind it, which no URL has in it.
    text: String,
    count: usize,
}

impl LinkBatch {
    pub fn push(&mut self, url: &str) {
        debug_assert!(!url.contains('\n'), "a URL in normal form");
        self.text.push_str(url);
        self.text.push('\n');
        self.count += 1;
    }

    /// Takes all of them into a batch of just their size. Memory for more than is usual goes with them.
    pub fn take(&mut self) -> LinkBatch {
        if self.text.capacity() > LINKS_BYTES_KEPT {
            return std::mem::take(self);
        }
        let taken = self.clone();
        self.text.clear();
        self.count = 0;
        taken
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split_terminator('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_out_as_they_went_in() {
        let mut batch = LinkBatch::default();
        for url in ["http://a/", "", "http://b/c"] {
            batch.push(url);
        }
        assert_eq!(batch.iter().collect::<Vec<_>>(), ["http://a/", "", "http://b/c"]);
    }

    #[test]
    fn the_memory_of_a_page_with_very_many_links_is_not_kept() {
        let mut batch = LinkBatch::default();
        let url = format!("http://a/{}", "x".repeat(8_000));
        for _ in 0..1_000 {
            batch.push(&url);
        }
        let taken = batch.take();
        assert_eq!((taken.len(), batch.len(), batch.text.capacity()), (1_000, 0, 0));
        batch.push(&url);
        let taken = batch.take();
        assert_eq!(taken.iter().collect::<Vec<_>>(), [&url], "{}", taken.len());
        assert!(batch.is_empty() && batch.text.capacity() >= url.len(), "usual memory stays");
    }
}
