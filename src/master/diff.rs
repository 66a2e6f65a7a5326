//! Two masters that are given the same files, held against each other: what each has sent for every minute of reflog time,
//! and which files only one of them has taken.

use super::keeping::{FileTold, MasterView};
use super::queue::{BlockKind, Entry, QueueError, QueueReader};
use crate::base::SortedMap;
use rapidhash::fast::RapidHashSet;
use serde::Serialize;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// What two masters have sent and taken.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MasterDiff {
    pub a: Side,
    pub b: Side,
    /// Minutes from this time on are compared, in seconds since 1970: what was sent before it is not kept by both any more.
    pub from_s: u32,
    pub minutes: u64,
    pub minutes_differ: u64,
    /// The first of them.
    pub differences: Vec<MinuteDiff>,
}

/// One of the two.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    pub epoch: u64,
    /// URLs of the minutes that are compared.
    pub sent: u64,
    /// URLs that it has taken and cannot send now.
    pub held: u64,
    pub files: u64,
    pub files_only_here: u64,
    /// The last of them.
    pub only_here: Vec<FileTold>,
}

/// A minute for which two masters have not sent the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MinuteDiff {
    /// Seconds since 1970; 0 stands for everything that is older than a week.
    pub minute_s: u32,
    pub sent_a: u64,
    pub sent_b: u64,
    #[serde(serialize_with = "hex")]
    pub sum_a: u64,
    #[serde(serialize_with = "hex")]
    pub sum_b: u64,
}

/// URLs of a minute, and the sum of their hashes: ids are keyed by each master, these are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    urls: u64,
    hashes: u64,
}

/// Minutes and files that are told.
const TOLD_MAX: usize = 10_000;
/// Minutes that are this much older than the latest count as one.
const OLDEST_S: u32 = 7 * 86_400;

impl MasterDiff {
    pub fn of(a: &mut MasterView, b: &mut MasterView) -> io::Result<MasterDiff> {
        let latest_s = a.latest_s().max(b.latest_s());
        let from_s = kept_from(a)?.max(kept_from(b)?);
        let of = |view: &mut MasterView| minutes(view, from_s, latest_s.saturating_sub(OLDEST_S));
        let (sums_a, sums_b) = (of(a)?, of(b)?);
        let mut diff =
            MasterDiff { a: side(a, &sums_a), b: side(b, &sums_b), from_s, ..MasterDiff::default() };
        let mut both: SortedMap<u32, (Sum, Sum)> =
            sums_a.into_iter().map(|(minute, sum)| (minute, (sum, Sum::default()))).collect();
        for (minute, sum) in sums_b {
            both.entry(minute).or_default().1 = sum;
        }
        diff.minutes = both.len() as u64;
        for (minute_s, (one, other)) in both.into_iter().filter(|(_, (one, other))| one != other) {
            diff.minutes_differ += 1;
            if diff.differences.len() < TOLD_MAX {
                let (sent_a, sent_b) = (one.urls, other.urls);
                let (sum_a, sum_b) = (one.hashes, other.hashes);
                diff.differences.push(MinuteDiff { minute_s, sent_a, sent_b, sum_a, sum_b });
            }
        }
        let (files_a, files_b) = (a.files_taken(), b.files_taken());
        only_here(&mut diff.a, &files_a, &files_b);
        only_here(&mut diff.b, &files_b, &files_a);
        Ok(diff)
    }

    pub fn is_same(&self) -> bool {
        self.minutes_differ == 0 && self.a.files_only_here == 0 && self.b.files_only_here == 0
    }
}

fn side(view: &MasterView, sums: &SortedMap<u32, Sum>) -> Side {
    Side {
        epoch: view.epoch().0,
        sent: sums.values().map(|sum| sum.urls).sum(),
        held: view.held().map_or(0, |held| held.lines),
        ..Side::default()
    }
}

fn only_here(side: &mut Side, ours: &[FileTold], theirs: &[FileTold]) {
    let known: RapidHashSet<&str> = theirs.iter().map(|file| file.digest.as_str()).collect();
    side.files = ours.len() as u64;
    let mut only: Vec<FileTold> =
        ours.iter().rev().filter(|file| !known.contains(file.digest.as_str())).cloned().collect();
    side.files_only_here = only.len() as u64;
    only.truncate(TOLD_MAX);
    side.only_here = only;
}

/// The first whole minute of which a master has let go nothing; 0 if it still has all that it ever sent.
fn kept_from(view: &mut MasterView) -> io::Result<u32> {
    let mut from_s = 0;
    for (_, queue) in view.queues().filter(|(_, queue)| queue.first_seq() > 0) {
        // What is gone was committed before the first epoch that is here from its beginning, and is not later than what
        // had been committed then.
        let (mut first, mut before_s) = (None, 0);
        each_block(queue, |header_epoch, header_before_s, _, _| {
            before_s = header_before_s;
            *first.get_or_insert(header_epoch) == header_epoch
        })?;
        from_s = from_s.max((before_s / 60 + 1) * 60);
    }
    Ok(from_s)
}

/// What was sent for each minute.
fn minutes(view: &mut MasterView, from_s: u32, old_s: u32) -> io::Result<SortedMap<u32, Sum>> {
    let mut sums: SortedMap<u32, Sum> = SortedMap::new();
    for (_, queue) in view.queues() {
        each_block(queue, |_, _, kind, lines| {
            // What a domain brought along was sent before.
            if kind != BlockKind::Epoch {
                return true;
            }
            for line in lines.split(|byte| *byte == b'\n') {
                let Entry::Url(record) = Entry::read(line) else { continue };
                let at_s = record.at.s();
                if at_s < from_s {
                    continue;
                }
                let sum = sums.entry(if at_s < old_s { 0 } else { at_s / 60 * 60 }).or_default();
                sum.urls += 1;
                sum.hashes = sum.hashes.wrapping_add(xxh3_64(record.url));
            }
            true
        })?;
    }
    Ok(sums)
}

/// Tells epoch, latest time before it, kind and lines of every block that can be read, until `each` says no. What is
/// damaged was not sent from here, and shows as a difference.
fn each_block(
    queue: &mut QueueReader,
    mut each: impl FnMut(u64, u32, BlockKind, &[u8]) -> bool,
) -> io::Result<()> {
    let mut from = queue.first_seq();
    loop {
        match queue.blocks(from, |header, lines| each(header.epoch, header.before_s, header.kind, lines)) {
            Ok(_) => return Ok(()),
            Err(QueueError::Damaged { seq, next, .. }) => from = next.max(seq + 1),
            Err(QueueError::Io(e)) => return Err(e),
            Err(other) => return Err(io::Error::other(other.to_string())),
        }
    }
}

fn hex<S: serde::Serializer>(sum: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{sum:016x}"))
}
