use crate::doc_index::{DocIndex, MOVED};
use crate::engine::inspect::domains::{Domains, is_of};
use crate::engine::inspect::entries::HandedOver;
use crate::engine::inspect::handover::{HandoverWriter, write_handover};
use crate::proto::job::{Candidate, DocKind};
use crate::proto::reflog::{ReflogRecord, Stamp};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Domains that are with other servers, or on their way there.
#[derive(Default)]
pub(crate) struct AwayDomains {
    /// What is pending of them is to be handed over.
    leaving: Domains,
    /// What is pending of them is left out.
    closed: Domains,
    /// The last word on each domain that ever moved: its fence, and whether it came here.
    fences: RapidHashMap<Box<str>, (u32, bool)>,
    /// Where handovers are written down.
    directory: Option<PathBuf>,
}

impl AwayDomains {
    /// Handovers are written down in this directory.
    pub fn kept_in(directory: &Path) -> AwayDomains {
        AwayDomains { directory: Some(directory.to_path_buf()), ..AwayDomains::default() }
    }

    /// The last word on a domain that an earlier process had.
    pub fn remember(&mut self, domain: &str, fence: u32, comes: bool) {
        self.fences.insert(domain.into(), (fence, comes));
    }

    /// What is pending of a domain is to be handed over, or was.
    pub fn add(&mut self, domain: &str, is_leaving: bool) {
        if is_leaving { &mut self.leaving } else { &mut self.closed }.insert(domain);
    }

    /// Whether nothing waits to be handed over.
    pub fn are_settled(&self) -> bool {
        self.leaving.is_empty()
    }

    pub fn is_leaving(&self, origin: &str) -> bool {
        self.leaving.holds_origin(origin)
    }

    pub fn is_closed(&self, url: &CrawlUrl) -> bool {
        self.closed.holds(url)
    }

    /// Whether a word on a domain is news: one that was heard already, from another master, is none. The very last may be
    /// said again, as what came of it may be unknown.
    fn rises(&mut self, domain: &str, fence: u32, comes: bool) -> bool {
        let is_news = self.fences.get(domain).is_none_or(|&(last, last_comes)| {
            fence > last
                || (fence == last && comes == last_comes && !comes && self.leaving.holds_name(domain))
        });
        if is_news {
            self.fences.insert(domain.into(), (fence, comes));
        }
        is_news
    }

    /// A domain is to leave. True if that is news.
    pub fn closes(&mut self, domain: &str, fence: u32) -> bool {
        let is_news = self.rises(domain, fence, false);
        if is_news {
            self.closed.remove(domain);
            self.leaving.insert(domain);
        }
        is_news
    }

    /// A domain has come. True if that is news.
    pub fn opens(&mut self, domain: &str, fence: u32) -> bool {
        let is_news = self.rises(domain, fence, true);
        if is_news {
            self.closed.remove(domain);
            self.leaving.remove(domain);
        }
        is_news
    }

    pub fn has_come(&self, domain: &str) -> bool {
        self.fences.get(domain).is_some_and(|&(_, comes)| comes)
    }

    /// Writes down what a closed domain brings along: lines about its hosts, and every URL that is pending. From then on
    /// those are left out here.
    pub fn hand_over(&mut self, index: &mut DocIndex, domain: &str, nice: &str, now_s: u32) -> HandedOver {
        let origins: RapidHashSet<Box<str>> = origins_of(index, domain).into_iter().collect();
        let is_out = |origin: &str| index.host(origin).is_some_and(|host| host.handed_out > 0);
        if origins.iter().any(|origin| is_out(origin)) {
            return HandedOver::NotYet;
        }
        let (mut taken, mut kept) = (Vec::new(), None);
        let directory = self.directory.clone();
        let written = match &directory {
            Some(directory) => write_handover(directory, domain, |writer| {
                write_pending(index, writer, nice, &origins, &mut taken, now_s)
            }),
            None => {
                let mut bytes = Vec::new();
                let made =
                    HandoverWriter::new(&mut bytes as &mut dyn Write, domain).and_then(|mut writer| {
                        write_pending(index, &mut writer, nice, &origins, &mut taken, now_s)?;
                        writer.end().map(drop)
                    });
                kept = Some(bytes);
                made
            }
        };
        if let Err(cause) = written {
            taken.into_iter().for_each(|(doc_id, _)| index.put_back(doc_id));
            return HandedOver::Refused(cause.to_string());
        }
        let urls = taken.iter().filter(|(_, is_told)| *is_told).count() as u64;
        taken.into_iter().for_each(|(doc_id, _)| index.exclude(doc_id, MOVED, now_s));
        self.leaving.remove(domain);
        self.closed.insert(domain);
        HandedOver::Whole { urls, kept }
    }
}

/// Pending URLs that are taken at once, to be written down.
const PENDING_AT_ONCE: usize = 10_000;
/// Takes every pending document of these hosts, also those that wait for another try, and writes down those that are pages.
fn write_pending(
    index: &mut DocIndex,
    writer: &mut HandoverWriter<&mut dyn Write>,
    nice: &str,
    origins: &RapidHashSet<Box<str>>,
    taken: &mut Vec<(u32, bool)>,
    now_s: u32,
) -> io::Result<()> {
    for line in nice.lines() {
        writer.nice(line.as_bytes())?;
    }
    let mut line = Vec::new();
    // When they are due goes by whoever gets them, and by what their host asked for.
    index.wake_retries(origins);
    loop {
        let found = index.candidates_but(PENDING_AT_ONCE, |origin| !origins.contains(origin), now_s);
        if found.is_empty() {
            return Ok(());
        }
        let pages = |found: &Candidate| found.provenance.kind == DocKind::Content;
        taken.extend(found.iter().map(|found| (found.doc_id, pages(found))));
        for candidate in found.iter().filter(|found| pages(found)) {
            let (priority, hits) = index.wanted(candidate.doc_id);
            let (at, url) = (Stamp::from_s(now_s), candidate.url.as_str().as_bytes());
            line.clear();
            ReflogRecord { batch: b"0", priority, at, page: b"0", url, hits, tag: b"" }.write(&mut line);
            writer.url(&line)?;
        }
    }
}

/// The hosts of a domain that are known.
pub(crate) fn origins_of(index: &DocIndex, domain: &str) -> Vec<Box<str>> {
    index.origins().filter(|origin| is_of(origin, domain)).map(Box::from).collect()
}
