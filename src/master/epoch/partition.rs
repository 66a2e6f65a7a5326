use super::buckets::{Buckets, Ways};
use super::filter_url::{Fate, Incoming, stays};
use super::groups::{Grouped, Groups};
use super::job::JoinRules;
use super::known::{KnownRows, KnownText};
use super::row::{CurrentRow, TagMark};
use super::spill_file::{Part, SpillFile};
use crate::master::EpochCounts;
use std::io;
use std::mem;

/// What becomes of each URL of a partition, in the order of ids.
pub(super) trait Sink {
    fn sent(&mut self, sent: &SentNow<'_>) -> io::Result<()>;
    /// A row that stays, with the lines that came for it and what was known of it.
    fn kept(
        &mut self,
        next: &CurrentRow,
        came: Option<&Grouped<'_>>,
        known: Option<KnownText<'_>>,
    ) -> io::Result<()>;
}

/// A URL that is sent.
pub(super) struct SentNow<'a> {
    pub came: &'a Grouped<'a>,
    pub hits: u32,
    /// The last that says something; its text may be known only from before.
    pub tag: TagMark,
    pub next: &'a CurrentRow,
    /// Its row in the partition.
    pub row: u32,
    pub before: Option<&'a CurrentRow>,
    pub known: Option<KnownText<'a>>,
}

/// The join of one partition.
pub(super) struct PartitionJoin<'j, R, S> {
    pub rules: &'j JoinRules,
    pub now_s: u32,
    pub horizon_s: u32,
    pub spill: &'j SpillFile,
    /// More than this does not fit, and is dealt out by the next bits of ids before it is grouped.
    pub bytes_max: usize,
    pub place: &'j mut Workplace,
    pub rows: R,
    pub sink: S,
    pub counts: EpochCounts,
    /// Rows of the next current_log.
    pub row: u32,
}

/// What a worker needs for one partition and has for the next.
#[derive(Default)]
pub(super) struct Workplace {
    groups: Groups,
    /// For lines that were spilled.
    room: Vec<u8>,
    /// Empty ones, for what is dealt out: pages that were there once are there again.
    blocks: Vec<Vec<u8>>,
}

/// Ids are told apart by what follows their first bits.
const SHARED_MAX: u32 = 48;
/// A partition of more bytes is dealt out once, though it fits: groups and lines that lie further apart than the caches
/// reach cost more than the copy.
const NEAR_BYTES: usize = 6 << 20;
/// What each way of it has at most, about: few ways are written to at once, and what lies in one is near.
const WAY_BYTES: usize = 2 << 20;
/// Groups that are brought near at once.
const TOUCHED: usize = 32;

impl<R: KnownRows, S: Sink> PartitionJoin<'_, R, S> {
    pub fn run(mut self, parts: Vec<Part>) -> io::Result<(S, EpochCounts)> {
        self.join(parts, Ways::PARTITIONS.shared_behind())?;
        while let Some(row) = self.peek()? {
            self.only_known(&row)?;
        }
        Ok((self.sink, self.counts))
    }

    /// The next row that is known, without times from the future.
    fn peek(&mut self) -> io::Result<Option<CurrentRow>> {
        let (now_s, ahead_s) = (self.now_s, self.rules.ahead_s);
        Ok(self.rows.peek()?.map(|row| row.believed(now_s, ahead_s)))
    }

    /// Lines whose ids share some bits.
    fn join(&mut self, parts: Vec<Part>, shared: u32) -> io::Result<()> {
        let bytes = parts.iter().map(Part::bytes).sum::<usize>();
        let is_far = shared == Ways::PARTITIONS.shared_behind() && bytes > NEAR_BYTES;
        if (is_far || bytes > self.bytes_max) && shared <= SHARED_MAX {
            let ways = Ways { shared, bits: bits_for(bytes, WAY_BYTES.min(self.bytes_max / 2)) };
            let dealt = self.deal_out(parts, ways)?;
            return dealt.into_iter().try_for_each(|parts| self.join(parts, ways.shared_behind()));
        }
        let mut room = mem::take(&mut self.place.room);
        let joined = self.join_near(&self.spill.parts(&parts, &mut room)?, shared, bytes);
        self.place.room = room;
        // Those that were made here come back.
        let are_dealt = shared > Ways::PARTITIONS.shared_behind();
        self.place.blocks.extend(parts.into_iter().filter(|_| are_dealt).filter_map(Part::into_block));
        joined
    }

    /// Lines by the next bits of their ids.
    fn deal_out(&mut self, parts: Vec<Part>, ways: Ways) -> io::Result<Vec<Vec<Part>>> {
        let blocks = mem::take(&mut self.place.blocks);
        let mut buckets = Buckets::new(ways, self.bytes_max, true, self.spill).with_blocks(blocks);
        for part in parts {
            // A piece may be larger than what fits.
            buckets.push_all(self.spill.part(&part, &mut self.place.room)?)?;
        }
        let (parts, free) = buckets.into_parts();
        self.place.blocks = free;
        Ok(parts)
    }

    /// Lines that lie in memory.
    fn join_near(&mut self, parts: &[&[u8]], shared: u32, bytes: usize) -> io::Result<()> {
        let groups = &mut self.place.groups;
        groups.clear(shared, bytes);
        parts.iter().for_each(|part| groups.add_all(part));
        let in_order = groups.in_order();
        for some in in_order.chunks(TOUCHED) {
            self.place.groups.touch(some, parts);
            for number in some {
                let came = self.place.groups.grouped(*number, parts);
                while let Some(row) = self.peek()?.filter(|row| row.id < came.id()) {
                    self.only_known(&row)?;
                }
                let before = self.peek()?.filter(|row| row.id == came.id());
                self.came(&came, before.as_ref())?;
            }
        }
        Ok(())
    }

    fn came(&mut self, came: &Grouped<'_>, before: Option<&CurrentRow>) -> io::Result<()> {
        self.counts.urls += 1;
        let incoming = Incoming { id: came.id(), at_s: came.at_s(), hits: came.hits(), tag: came.tag() };
        self.counts.hits_before += before.map_or(0, |row| u64::from(row.hits));
        let known = before.and_then(|_| self.rows.text());
        match incoming.fate(before, self.rules) {
            Fate::Sent { next, hits, tag } => {
                let fit = u32::try_from(hits).unwrap_or(u32::MAX);
                self.counts.sent += 1;
                self.counts.hits_sent += u64::from(fit);
                self.counts.hits_capped += hits - u64::from(fit);
                self.sink.sent(&SentNow {
                    came,
                    hits: fit,
                    tag,
                    next: &next,
                    row: self.row,
                    before,
                    known,
                })?;
            }
            Fate::Kept { next, capped } => {
                self.counts.hits_waiting += u64::from(next.hits);
                self.counts.hits_capped += capped;
                self.sink.kept(&next, Some(came), known)?;
            }
        }
        self.counts.kept += 1;
        self.row += 1;
        if before.is_some() {
            self.rows.advance();
        }
        Ok(())
    }

    fn only_known(&mut self, row: &CurrentRow) -> io::Result<()> {
        let hits = u64::from(row.hits);
        self.counts.hits_before += hits;
        if stays(row, self.horizon_s, self.rules) {
            self.counts.hits_waiting += hits;
            self.counts.kept += 1;
            self.row += 1;
            self.sink.kept(row, None, self.rows.text())?;
        } else {
            self.counts.left += 1;
            self.counts.expired += u64::from(hits > 0);
            self.counts.hits_expired += hits;
        }
        self.rows.advance();
        Ok(())
    }
}

/// How many bits so many bytes are dealt out by, for so many in each way.
fn bits_for(bytes: usize, way_bytes: usize) -> u32 {
    bytes.div_ceil(way_bytes).next_power_of_two().ilog2().clamp(1, 8)
}
