use super::super::EpochCounts;
use super::super::epoch::{DomainBy, JoinRules};
use super::super::map::{DomainsEnd, ServerState};
use super::super::queue::QueueEnd;
use crate::base::SortedMap;
use crate::proto::reflog::Stamp;
use rapidhash::fast::RapidHashSet;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A line of the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Record {
    /// All that the lines before said. Only the first line is one.
    Checkpoint(Box<State>),
    Begin(Begin),
    Commit(Box<Commit>),
    /// Rows, entries and words between epochs.
    Keep(Keep),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Begin {
    pub epoch: u64,
    pub now: u32,
    pub files: Vec<InputName>,
    /// What nodes said that they have still to fetch.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub loads: SortedMap<u16, u64>,
    /// Bytes of each queue that its node does not have.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub queued: SortedMap<u16, u64>,
    /// Whether inputs move to `done/` when it is committed.
    pub done: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct InputName {
    /// Bytes that are no text are escaped.
    path: String,
    digest: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Commit {
    pub epoch: u64,
    pub counts: EpochCounts,
    /// Those that have grown.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub queues: SortedMap<u16, QueueEnd>,
    pub domains: DomainsEnd,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The latest time of what was sent so far.
    pub latest: u32,
    /// Since when new domains cannot be placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unplaced_since: Option<u32>,
    pub rules: EpochRules,
}

/// What an epoch went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRules {
    pub resend_after: u32,
    pub keep_repeats: u32,
    pub by_host: bool,
}

impl EpochRules {
    pub fn by(&self) -> DomainBy {
        if self.by_host { DomainBy::Host } else { DomainBy::Registrable }
    }
}

impl From<JoinRules> for EpochRules {
    fn from(rules: JoinRules) -> EpochRules {
        EpochRules {
            resend_after: rules.resend_after_s,
            keep_repeats: rules.keep_repeats_s,
            by_host: rules.by == DomainBy::Host,
        }
    }
}

impl Default for EpochRules {
    fn default() -> EpochRules {
        JoinRules::default().into()
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Keep {
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub queues: SortedMap<u16, QueueEnd>,
    pub domains: DomainsEnd,
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub states: SortedMap<u16, ServerState>,
    /// Words that others keep here; `null` takes one away.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub notes: SortedMap<String, Option<String>>,
}

/// Lines that could not be sent in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub epoch: u64,
    pub bytes: u64,
    pub crc: u32,
    pub lines: u64,
    pub hits: u64,
    /// The earliest time of them.
    pub earliest: u32,
}

/// What became of everything since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub epochs: u64,
    pub lines: u64,
    pub sent: u64,
    pub rejected: u64,
    pub hits_in: u64,
    pub hits_sent: u64,
    pub hits_expired: u64,
    pub hits_rejected: u64,
    #[serde(default)]
    pub hits_capped: u64,
    #[serde(default)]
    pub files: u64,
}

/// What the journal says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The last that is committed; 0 before the first.
    pub epoch: u64,
    pub now: u32,
    pub queues: SortedMap<u16, QueueEnd>,
    pub domains: DomainsEnd,
    pub held: Option<Held>,
    pub latest: u32,
    pub unplaced_since: Option<u32>,
    pub states: SortedMap<u16, ServerState>,
    pub notes: SortedMap<String, String>,
    /// Digests of files that were taken, and when; the oldest first.
    pub digests: VecDeque<(String, u32)>,
    pub counts: EpochCounts,
    pub rules: EpochRules,
    pub totals: Totals,
    /// The epoch that is not committed.
    pub begun: Option<Begin>,
    /// What the last epoch was made of, to be moved to `done/`.
    pub taken: Vec<InputName>,
    #[serde(skip)]
    pub known: RapidHashSet<u128>,
    /// Counts of epochs that the journal still tells one by one.
    #[serde(skip)]
    pub history: Vec<(Begin, Commit)>,
}

/// Digests are remembered for so long, and so many in any case.
const DIGESTS_S: u32 = 36_000;
const DIGESTS_KEPT: usize = 10_000;
const DIGESTS_MAX: usize = 1_000_000;

impl State {
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Checkpoint(state) => {
                *self = *state;
                self.known = self.digests.iter().filter_map(|(digest, _)| parse_digest(digest)).collect();
            }
            Record::Begin(begin) => self.begun = Some(begin),
            Record::Commit(commit) => self.commit(*commit),
            Record::Keep(keep) => {
                self.queues.extend(keep.queues);
                self.domains = keep.domains;
                self.states.extend(keep.states);
                for (name, note) in keep.notes {
                    match note {
                        Some(note) => drop(self.notes.insert(name, note)),
                        None => drop(self.notes.remove(&name)),
                    }
                }
            }
        }
    }

    /// The latest time of what was sent; 0 if it is from the future, as after a run with a clock that was ahead: then it is
    /// not known what was sent up to now.
    pub fn latest_by(&self, now_s: u32) -> u32 {
        if Stamp::from_s(self.latest).is_credible(now_s) { self.latest } else { 0 }
    }

    fn commit(&mut self, commit: Commit) {
        let begun = self.begun.take().unwrap_or_default();
        // What was taken before was taken before now, whatever the clock said then.
        if self.digests.back().is_some_and(|(_, at)| *at > begun.now) {
            self.digests.iter_mut().for_each(|(_, at)| *at = (*at).min(begun.now));
        }
        (self.epoch, self.now) = (commit.epoch, begun.now);
        self.queues.extend(commit.queues.iter().map(|(server, end)| (*server, *end)));
        (self.domains, self.held, self.latest) = (commit.domains, commit.held, commit.latest);
        (self.unplaced_since, self.counts) = (commit.unplaced_since, commit.counts);
        self.rules = commit.rules;
        for file in &begun.files {
            if let Some(digest) = parse_digest(&file.digest) {
                self.known.insert(digest);
                self.digests.push_back((file.digest.clone(), begun.now));
            }
        }
        self.forget_digests();
        self.taken = if begun.done { begun.files.clone() } else { Vec::new() };
        let counts = &commit.counts;
        let totals = &mut self.totals;
        totals.epochs += 1;
        totals.lines += counts.lines;
        totals.sent += counts.sent;
        totals.rejected += counts.rejected;
        totals.hits_in += counts.hits_in;
        totals.hits_sent += counts.hits_sent;
        totals.hits_expired += counts.hits_expired;
        totals.hits_rejected += counts.hits_rejected;
        totals.hits_capped += counts.hits_capped;
        totals.files += begun.files.len() as u64;
        self.history.push((begun, commit));
    }

    fn forget_digests(&mut self) {
        while let Some((digest, at)) = self.digests.front() {
            let is_old = self.digests.len() > DIGESTS_KEPT && self.now.saturating_sub(*at) > DIGESTS_S;
            if !is_old && self.digests.len() <= DIGESTS_MAX {
                break;
            }
            if let Some(digest) = parse_digest(digest) {
                self.known.remove(&digest);
            }
            self.digests.pop_front();
        }
    }
}

impl InputName {
    pub fn new(path: &Path, digest: u128) -> InputName {
        InputName { path: escape(path.as_os_str()), digest: format!("{digest:032x}") }
    }

    pub fn path(&self) -> PathBuf {
        unescape(&self.path)
    }

    pub fn digest(&self) -> Option<u128> {
        parse_digest(&self.digest)
    }
}

fn parse_digest(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok()
}

/// A path as text: `%` and what is no UTF-8 as `%XX`.
fn escape(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' { text.push_str("%25") } else { text.push(c) }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

fn unescape(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| byte == b'%');
        let code = code.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code {
            Some(code) => (bytes.push(code), rest = &behind[2..]).1,
            None => (bytes.push(byte), rest = behind).1,
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back() {
        for path in [&b"/spool/a b.gz"[..], b"100%", b"\xff\xfe%41", "gr\u{fc}n\n".as_bytes()] {
            let name = InputName::new(Path::new(OsStr::from_bytes(path)), 7);
            assert_eq!(name.path().as_os_str().as_bytes(), path);
            assert_eq!(name.digest(), Some(7));
        }
    }
}
