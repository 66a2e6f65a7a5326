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

    /// Takes all of them into a batch of just their size.
    pub fn take(&mut self) -> LinkBatch {
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
}
