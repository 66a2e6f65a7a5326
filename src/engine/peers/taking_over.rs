use super::arriving::moved_docs;
use super::copies::Aside;
use super::giving::Giving;
use super::index_asks::IndexAsks;
use crate::base::{Now, SortedSet};
use crate::doc_index::{Origin, PageElsewhere};
use crate::engine::inspect::peer_words::MovedDocs;
use crate::engine::runtime::journaling::Journaling;
use crate::proto::partition::{Partition, Share};
use crate::proto::peer_wire::{FrameBuffer, PeerWord};
use crate::store_server::Holdings;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// What a node knew that is taken over, out of its copy on this disk into the index and the journal of hosts. Its partitions are
/// this node's in the table already; they are in the index once it has all of it.
pub(super) struct TakingOver {
    current: Option<Current>,
    journal: Journaling,
}

struct Current {
    aside: Aside,
    /// What came to this node with it: of other hosts it knows better.
    partitions: SortedSet<Partition>,
    share: Arc<Share>,
    files: VecDeque<(PathBuf, bool)>,
    reading: Option<Reading>,
    /// What the index was given.
    given: Option<Giving>,
    documents: u64,
    pages: Pages,
}

/// The pages in the copy of a node that is gone.
struct Pages {
    node: u16,
    /// Those that were fetched before are there, but for what the node let go itself.
    upto_s: u32,
    /// Nothing if they cannot be read.
    holdings: Option<Holdings>,
}

struct Reading {
    file: File,
    frames: FrameBuffer,
    /// What became of a document counts only if the links that it led to are there.
    is_whole: bool,
}

/// What became of it.
pub(super) enum Taken {
    Nothing,
    /// A step further.
    Goes,
    /// The index and the journal have all that this copy had: so many documents.
    All {
        aside: Aside,
        documents: u64,
    },
}

const BYTES_AT_ONCE: usize = 128 << 10;
/// From when a page is said to have been fetched until it is in a segment, at the most.
const STORED_WITHIN_S: u32 = 600;

impl TakingOver {
    pub fn new(journal: Journaling) -> TakingOver {
        TakingOver { current: None, journal }
    }

    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// The node that it is of; 0 for none.
    pub fn node(&self) -> u16 {
        self.current.as_ref().map_or(0, |current| current.aside.node)
    }

    /// Begins with a copy; the index goes by this share.
    pub fn begin(&mut self, aside: Aside, share: Arc<Share>) {
        self.current = Some(Current::new(aside, share));
    }

    pub fn next_due(&self) -> Option<Now> {
        self.current.as_ref()?.given.as_ref()?.next_due()
    }

    /// Goes on.
    pub fn turn(&mut self, now: Now, asks: &IndexAsks) -> Taken {
        let Some(current) = &mut self.current else { return Taken::Nothing };
        if let Some(given) = &mut current.given {
            if !given.turn(now, asks, &mut self.journal) {
                return Taken::Nothing;
            }
            current.given = None;
        }
        match current.next() {
            Some(docs) => {
                current.documents += docs.docs.len() as u64;
                current.given = Some(Giving::begin(docs, asks, now));
                Taken::Goes
            }
            None => {
                let Some(Current { aside, documents, .. }) = self.current.take() else {
                    return Taken::Nothing;
                };
                Taken::All { aside, documents }
            }
        }
    }
}

impl Current {
    fn new(aside: Aside, share: Arc<Share>) -> Current {
        let (partitions, files) = (aside.partitions(), aside.files().into());
        let pages = Pages::of(&aside);
        Current { aside, partitions, share, files, reading: None, given: None, documents: 0, pages }
    }

    /// The next batch of the copy. What is torn at the end of a file, or cannot be read, ends that file.
    fn next(&mut self) -> Option<MovedDocs> {
        loop {
            if self.reading.is_none() {
                let (path, is_whole) = self.files.pop_front()?;
                let file = File::open(path).ok();
                self.reading = file.map(|file| Reading { file, frames: FrameBuffer::default(), is_whole });
            }
            let Some(reading) = &mut self.reading else { continue };
            match reading.next() {
                Ok(Some(mut docs)) => {
                    self.pages.judge(&mut docs);
                    docs.nice = self.lines(&docs.nice);
                    return Some(docs);
                }
                Ok(None) | Err(_) => self.reading = None,
            }
        }
    }

    /// Lines about addresses, and about the hosts that came to this node.
    fn lines(&self, nice: &str) -> String {
        let comes = |line: &&str| {
            let Some(told) = line.strip_prefix("pace ") else { return true };
            let origin = told.split(' ').next().unwrap_or("");
            self.share.has_some_in(origin, &self.partitions)
        };
        nice.lines().filter(comes).flat_map(|line| [line, "\n"]).collect()
    }
}

impl Pages {
    fn of(aside: &Aside) -> Pages {
        let (node, upto_s) = (aside.node, aside.upto());
        Pages { node, upto_s, holdings: Holdings::open(&aside.folder).ok() }
    }

    /// A page that did not come here in time is to be fetched again: nothing counts that nobody can read.
    fn judge(&self, docs: &mut MovedDocs) {
        for doc in &mut docs.docs {
            let page = PageElsewhere::of(&doc.row).filter(|page| page.node == self.node);
            let is_recent =
                |page: &PageElsewhere| page.fetched_s.saturating_add(STORED_WITHIN_S) > self.upto_s;
            if page.filter(is_recent).is_some() && !self.holds(&doc.url) {
                doc.row = Box::default();
            }
        }
    }

    fn holds(&self, url: &str) -> bool {
        self.holdings.as_ref().is_some_and(|holdings| holdings.holds(url).unwrap_or(false))
    }
}

impl Reading {
    fn next(&mut self) -> io::Result<Option<MovedDocs>> {
        loop {
            let frame = self.frames.next_frame().map_err(|error| io::Error::other(error.to_string()))?;
            if let Some(frame) = frame {
                let Ok(PeerWord::Copy { batch, .. }) = frame.word() else {
                    return Err(io::Error::other("a copy has something else in it"));
                };
                // The node that knew it is gone: whoever owns something of it now is told.
                let mut docs = moved_docs(&batch, Origin::VIA_PEER, batch.lines.to_string());
                if !self.is_whole {
                    docs.docs.iter_mut().for_each(|doc| doc.row = Box::default());
                }
                return Ok(Some(docs));
            }
            let mut piece = vec![0; BYTES_AT_ONCE];
            let read = self.file.read(&mut piece)?;
            if read == 0 {
                return Ok(None);
            }
            self.frames.push(&piece[..read]);
        }
    }
}

/// All that files of a copy have, for a test.
#[cfg(test)]
pub(super) fn read_copy(files: Vec<(PathBuf, bool)>) -> Vec<MovedDocs> {
    let read = |(path, is_whole): (PathBuf, bool)| {
        let mut reading =
            Reading { file: File::open(path).unwrap(), frames: FrameBuffer::default(), is_whole };
        std::iter::from_fn(move || reading.next().ok().flatten())
    };
    files.into_iter().flat_map(read).collect()
}
