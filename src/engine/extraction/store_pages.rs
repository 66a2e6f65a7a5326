use super::waiting::{FetchedStory, Page, Pages};
use crate::store_server::{Document, Reader, Record};
use std::io;
use std::path::PathBuf;

/// Pages out of the store of a crawl. A story that was fetched has its record behind the durable point.
pub(crate) struct StorePages {
    data: PathBuf,
}

impl StorePages {
    pub fn new(data: PathBuf) -> StorePages {
        StorePages { data }
    }

    fn find(&self, doc_ids: &[u32], mut show: impl FnMut(usize, Option<Page>)) -> io::Result<()> {
        // What was written since is found by opening it again.
        let reader = Reader::open(&self.data).map_err(io::Error::other)?;
        let shown = reader.find_pages(doc_ids, |index, found| {
            show(index, found.map(|(record, document)| page(&record, document)))
        });
        shown.map_err(io::Error::other)
    }
}

impl Pages for StorePages {
    fn read(
        &mut self,
        stories: &[FetchedStory],
        show: &mut dyn FnMut(usize, Option<Page>),
    ) -> io::Result<()> {
        let doc_ids: Vec<u32> = stories.iter().map(|story| story.doc_id).collect();
        let mut missing: Vec<usize> = Vec::new();
        self.find(&doc_ids, |index, found| match found {
            Some(page) => show(index, Some(page)),
            None => missing.push(index),
        })?;
        // Segments may have been packed into others meanwhile.
        let again: Vec<u32> = missing.iter().map(|&index| doc_ids[index]).collect();
        match again.is_empty() {
            true => Ok(()),
            false => self.find(&again, |nth, found| show(missing[nth], found)),
        }
    }
}

fn page(record: &Record, document: Document) -> Page {
    let fetched_s = (record.fetched_unix_ms / 1_000) as i64;
    Page { content_type: content_type(&document.head).to_vec(), body: document.body, fetched_s }
}

/// The value of the first header of that name in a head that was stored.
fn content_type(head: &[u8]) -> &[u8] {
    const NAME: &[u8] = b"content-type:";
    head.split(|&octet| octet == b'\n')
        .find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))
        .map_or(b"", |line| line[NAME.len()..].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_heads() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n\r\n", "text/html; charset=x"),
            ("HTTP/1.1 200 OK\r\ncontent-type:a/b\r\nContent-Type: c/d\r\n\r\n", "a/b"),
            ("HTTP/1.1 200 OK\r\nX-Content-Type: a/b\r\n\r\n", ""),
            ("", ""),
        ] {
            assert_eq!(content_type(head.as_bytes()), expected.as_bytes(), "{head}");
        }
    }
}
