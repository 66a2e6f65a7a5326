/// URLs found by one page, in normal form, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkBatch {
    text: String,
    /// Where each URL ends in `text`.
    ends: Vec<u32>,
}

impl LinkBatch {
    pub fn push(&mut self, url: &str) {
        self.text.push_str(url);
        self.ends.push(self.text.len() as u32);
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let url = &self.text[start..end as usize];
            start = end as usize;
            url
        })
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
