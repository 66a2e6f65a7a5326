use super::super::epoch::{Joined, RowSet};
use super::super::map::{NewDomain, Placing, Server};
use super::super::queue::{Batch, BlockKind, Queue};
use super::super::{DatabaseError, EpochCounts, FilteredRow, MapRow, PartnerDomain, ServerId};
use super::deal::Holding;
use super::epoch_begun::Epoch;
use super::files::about;
use super::master::Master;
use super::state::{Begin, Commit, Held, Record};
use super::told::Told;
use crate::base::SortedMap;
use std::io;

/// What an epoch came to.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    pub epoch: u64,
    pub now_s: u32,
    pub counts: EpochCounts,
    /// Domains that were placed.
    pub domains_new: u64,
    /// Rows of them, as they stand.
    pub placed: Vec<MapRow>,
    pub dealt: SortedMap<ServerId, Dealt>,
    pub held: Option<Held>,
    /// Why new domains could not be placed, and since when.
    pub unplaced: Option<(DatabaseError, u32)>,
    pub told: Vec<Told>,
}

/// What a server got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dealt {
    pub urls: u64,
    /// Those that wait for its queue to have room, or for a domain that moves.
    pub held: u64,
}

/// Rows that are placed are told up to this number.
const PLACED_TOLD_MAX: usize = 10_000;

impl Master {
    /// Does steps (5) to (7), and makes all of the epoch durable at once. What goes wrong is taken back: the epoch is begun
    /// again then.
    pub fn commit(
        &mut self,
        epoch: Epoch,
        joined: Joined,
        table: Option<&mut dyn PartnerDomain>,
    ) -> io::Result<Committed> {
        self.usable()?;
        let begin = self.state.begun.clone().ok_or_else(|| io::Error::other("no epoch has begun"))?;
        assert_eq!(begin.epoch, epoch.number, "the epoch that has begun is the one to be committed");
        let numbers = self.map.numbers();
        let mut committed = Committed { epoch: epoch.number, now_s: epoch.now_s, ..Committed::default() };
        let staged = self.stage_epoch(&begin, epoch, joined, table, &mut committed);
        let sent = match staged.and_then(|(commit, sent)| {
            self.append(Record::Commit(Box::new(commit)))?;
            Ok(sent)
        }) {
            Ok(sent) => sent,
            Err(e) => {
                self.take_back(numbers);
                if self.broken.is_some() {
                    return Err(e);
                }
                let _ = std::fs::remove_file(self.files.current(begin.epoch));
                let _ = std::fs::remove_file(self.files.held().join(begin.epoch.to_string()));
                return Err(e);
            }
        };
        self.map.sent(begin.now, &sent);
        self.publish();
        committed.told.extend(self.tidy(false));
        Ok(committed)
    }

    /// Writes everything but the journal's word. Says what was sent to each domain by its number, too.
    fn stage_epoch(
        &mut self,
        begin: &Begin,
        epoch: Epoch,
        mut joined: Joined,
        table: Option<&mut dyn PartnerDomain>,
        committed: &mut Committed,
    ) -> io::Result<(Commit, Vec<(u32, u32)>)> {
        let rules = epoch.rules;
        self.place(begin, &joined, table, committed)?;
        let (held, places, sent, latest) = self.deal(begin, &joined, committed)?;
        committed.counts = counts(joined.counts(), held, &places, committed);
        committed.held = held;
        if committed.counts.files_cut > 0 {
            committed.told.push(Told::FilesCut { files: committed.counts.files_cut });
        }
        epoch.rejects.finish().map_err(about(&self.files.rejects()))?;
        self.domains.append_sent(begin.now, &sent).map_err(about(&self.files.folder))?;
        let queues = self.seal_queues()?;
        let domains = self.domains.seal().map_err(about(&self.files.folder))?;
        joined.unsend(places);
        let current = self.files.current(begin.epoch);
        joined.write_current(&current).map_err(about(&current))?;
        let commit = Commit {
            epoch: begin.epoch,
            counts: committed.counts,
            queues,
            domains,
            held,
            latest,
            unplaced_since: committed.unplaced.as_ref().map(|(_, since_s)| *since_s),
            rules,
        };
        Ok((commit, sent))
    }

    /// Gives every new domain a server, unless the table cannot be asked: then all of them stay without.
    fn place(
        &mut self,
        begin: &Begin,
        joined: &Joined,
        table: Option<&mut dyn PartnerDomain>,
        committed: &mut Committed,
    ) -> io::Result<()> {
        let first = self.map.numbers();
        let mut urls: Vec<u32> = Vec::new();
        let map = &mut self.map;
        joined.for_each_sent(|row| {
            if map.find(row.domain).is_none() {
                let index = (map.number(row.domain, page_of(&row), begin.now) - first) as usize;
                if urls.len() <= index {
                    urls.resize(index + 1, 0);
                }
                urls[index] += 1;
            }
            Ok(())
        })?;
        if urls.is_empty() {
            return Ok(());
        }
        let servers = self.servers();
        let pending = |server: ServerId| begin.loads.get(&server.0).copied().unwrap_or(0);
        let mut placing = Placing::new(&servers, self.rules.assign, self.map.loads(), pending, begin.now);
        let new: Vec<NewDomain<'_>> = (first..)
            .zip(&urls)
            .map(|(index, urls)| NewDomain { domain: self.map.domain(index), urls: *urls })
            .collect();
        let placed = if self.no_new.is_none() { placing.place(&new) } else { None };
        let Some(placed) = placed else {
            self.map.forget_from(first);
            let why = self.no_new.as_deref().unwrap_or("no server takes new domains");
            let cause = DatabaseError::Away(why.to_string());
            committed.unplaced = Some((cause, self.unplaced_since_s_by(begin.now)));
            return Ok(());
        };
        let mut rows: Vec<MapRow> =
            (first..).zip(placed).map(|(index, server)| self.map.proposal(index, server)).collect();
        if let Some(table) = table {
            match settled(table, &rows) {
                Ok(settled) => rows = settled.into_iter().map(resting).collect(),
                Err(e) => {
                    self.map.forget_from(first);
                    committed.unplaced = Some((e, self.unplaced_since_s_by(begin.now)));
                    return Ok(());
                }
            }
        }
        rows.iter().for_each(|row| {
            self.map.set(row);
        });
        self.domains.append_rows(rows.iter()).map_err(about(&self.files.folder))?;
        committed.domains_new = rows.len() as u64;
        rows.truncate(PLACED_TOLD_MAX);
        committed.placed = rows;
        Ok(())
    }

    fn unplaced_since_s_by(&self, now_s: u32) -> u32 {
        self.state.unplaced_since.map_or(now_s, |since_s| since_s.min(now_s))
    }

    /// Puts every row into the queue of its domain's server, or holds it.
    #[allow(clippy::type_complexity)]
    fn deal(
        &mut self,
        begin: &Begin,
        joined: &Joined,
        committed: &mut Committed,
    ) -> io::Result<(Option<Held>, RowSet, Vec<(u32, u32)>, u32)> {
        let batch = Batch {
            epoch: begin.epoch,
            now_s: begin.now,
            before_s: self.state.latest_by(begin.now),
            kind: BlockKind::Epoch,
        };
        let mut seats = seats(&self.servers(), &mut self.queues, begin, self.rules.queue_bytes_max);
        seats.values_mut().for_each(|seat| seat.queue.begin(batch));
        let (held_folder, queues) = (self.files.held(), self.files.folder.join("queue"));
        let mut holding = Holding::new(&held_folder, begin.epoch);
        let mut sent = vec![0u32; self.map.numbers() as usize];
        let mut latest = self.state.latest_by(begin.now);
        let mut nowhere: SortedMap<ServerId, u64> = SortedMap::new();
        let (map, mut line) = (&self.map, Vec::new());
        joined.for_each_sent(|row| {
            let Some(at) = map.find(row.domain) else { return holding.add(&row) };
            let Some(seat) = seats.get_mut(&at.server.0) else {
                *nowhere.entry(at.server).or_default() += 1;
                return holding.add(&row);
            };
            if at.is_fenced || seat.queue.staged_bytes() > seat.room {
                seat.dealt.held += 1;
                return holding.add(&row);
            }
            line.clear();
            row.record.write(&mut line);
            seat.queue.append(&line[..line.len() - 1], row.record.at).map_err(about(&queues))?;
            seat.dealt.urls += 1;
            sent[at.index as usize] += 1;
            latest = latest.max(row.record.at.s());
            Ok(())
        })?;
        committed.dealt = seats.iter().map(|(server, seat)| (ServerId(*server), seat.dealt)).collect();
        drop(seats);
        committed.told.extend(nowhere.into_iter().map(|(server, urls)| Told::NoServer { server, urls }));
        let (held, places) = holding.finish().map_err(about(&held_folder))?;
        let sent = (0..).zip(sent).filter(|(_, urls)| *urls > 0).collect();
        Ok((held, places, sent, latest))
    }
}

/// A server while URLs are dealt.
struct Seat<'a> {
    queue: &'a mut Queue,
    /// Bytes that its queue may still take.
    room: u64,
    dealt: Dealt,
}

fn seats<'a>(
    servers: &[Server],
    queues: &'a mut SortedMap<u16, Queue>,
    begin: &Begin,
    queue_bytes_max: u64,
) -> SortedMap<u16, Seat<'a>> {
    let queued = |number: &u16| begin.queued.get(number).copied().unwrap_or(0);
    let configured =
        queues.iter_mut().filter(|(number, _)| servers.iter().any(|server| server.id.0 == **number));
    let seat = |(number, queue): (&u16, &'a mut Queue)| {
        let room = queue_bytes_max.saturating_sub(queued(number));
        (*number, Seat { queue, room, dealt: Dealt::default() })
    };
    configured.map(seat).collect()
}

/// What the table says of proposals, if it says it of all.
fn settled(table: &mut dyn PartnerDomain, rows: &[MapRow]) -> Result<Vec<MapRow>, DatabaseError> {
    let settled = table.settle(rows)?;
    let answers = settled.len() == rows.len()
        && settled.iter().zip(rows).all(|(settled, proposed)| settled.domain == proposed.domain);
    match answers {
        true => Ok(settled),
        false => Err(DatabaseError::Away("it answered for some domains only".to_string())),
    }
}

/// A domain that was moved before this master knew of it is held until its moves have been gone by.
fn resting(row: MapRow) -> MapRow {
    match row.fence == 0 && row.moving_to.is_none() {
        true => row,
        false => MapRow { moving_to: Some(row.server), fence: 0, ..row },
    }
}

fn page_of(row: &FilteredRow<'_>) -> u64 {
    let digit =
        |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0')));
    row.record.page.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, digit)
}

/// Counts as they are without what is held.
fn counts(counts: EpochCounts, held: Option<Held>, places: &RowSet, committed: &Committed) -> EpochCounts {
    let hits = held.map_or(0, |held| held.hits);
    debug_assert_eq!(
        committed.dealt.values().map(|dealt| dealt.urls).sum::<u64>() + places.count(),
        counts.sent
    );
    EpochCounts {
        sent: counts.sent - places.count(),
        held: places.count(),
        hits_sent: counts.hits_sent - hits,
        hits_held: hits,
        ..counts
    }
}
