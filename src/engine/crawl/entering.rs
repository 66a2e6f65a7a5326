use crate::base::shown;
use crate::doc_index::{Mention, TagHash};
use crate::engine::inspect::entries::Entered;
use crate::proto::reflog::{ReflogRecord, RejectReason};
use crate::proto::url::{CrawlUrl, is_normal};

/// What comes of entries, while they are taken in.
#[derive(Default)]
pub(super) struct Entering {
    pub entered: Entered,
    pub into_scope: Vec<CrawlUrl>,
    /// For the form of a URL; kept for its memory.
    pub scratch: String,
}

impl Entering {
    pub fn bad(&mut self, line: &[u8], why: &str) {
        self.entered.taken.bad += 1;
        self.entered.first_bad.get_or_insert_with(|| {
            let line = shown(&String::from_utf8_lossy(line), 100);
            format!("\"{line}\": {}", shown(why, 200))
        });
    }
}

/// The first line, and what is behind it.
pub(super) fn next_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', text)?;
    Some((&text[..end], &text[end + 1..]))
}

/// An entry whose URL is in normal form.
pub(super) fn plain_mention(line: &[u8]) -> Option<Mention<'_>> {
    let record = ReflogRecord::read(line).ok().filter(|record| is_normal(record.url))?;
    Some(mention_of(&record, str::from_utf8(record.url).ok()?))
}

/// An entry whose URL is brought into its form.
pub(super) fn mention(line: &[u8]) -> Result<(CrawlUrl, Mention<'static>), String> {
    let record = ReflogRecord::read(line).map_err(RejectReason::about)?;
    let url = str::from_utf8(record.url).map_err(|error| error.to_string())?;
    let url = CrawlUrl::parse(url).map_err(|error| error.to_string())?;
    Ok((url, mention_of(&record, "")))
}

fn mention_of<'a>(record: &ReflogRecord<'_>, url: &'a str) -> Mention<'a> {
    let ReflogRecord { priority, hits, tag, at, .. } = *record;
    Mention { url, priority, hits, tag: TagHash::of_bytes(tag), at_s: at.s() }
}
