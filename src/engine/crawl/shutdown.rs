use crate::base::Now;
use crate::engine::crawl::scheduler::Scheduler;
use crate::limits::DRAIN_US;

/// How an end that hangs is noticed. A disk without room keeps the doc index and the crawl log from taking words; while
/// a crawl goes on, it waits for room, but whoever was told to stop must not.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// Nothing has moved since, though something waits.
    stuck_since: Option<Now>,
    /// What waits is let go, and so is what still comes.
    given_up: bool,
}

impl Shutdown {
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }
}

impl Scheduler {
    /// Called with every turn of a scheduler that ends. What nobody takes for as long as open fetches may take to end is
    /// let go: it is found and fetched again by the next process, as after a kill. Nothing is told after that, as a
    /// document must not be done whose links were let go.
    pub(crate) fn part(&mut self, busy: bool) {
        let waits = !self.to_index.is_empty()
            || !self.log.is_empty()
            || self.shards.iter().any(|side| !side.held.is_empty());
        if !waits {
            self.parting.stuck_since = None;
            return;
        }
        let now = self.now();
        let since = *self.parting.stuck_since.get_or_insert(now);
        if busy && !self.parting.given_up {
            self.parting.stuck_since = Some(now);
        } else if now.since_us(since) >= DRAIN_US || self.parting.given_up {
            if !std::mem::replace(&mut self.parting.given_up, true) {
                self.notice(
                    "stopped before all was written: what is missing is fetched again the next time"
                        .to_string(),
                );
            }
            self.to_index.clear();
            self.log.clear();
            self.shards.iter_mut().for_each(|side| side.held.clear());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Wall;
    use crate::config::Config;
    use crate::doc_index::{DocIndex, Outcome};
    use crate::engine::crawl::index_actor::{IndexActor, ProviderRules};
    use crate::engine::crawl::messages::{Done, FromShard, ToIndex};
    use crate::engine::crawl::scheduler::{SchedulerConfig, SchedulerLog, SchedulerState, ShardPort};
    use crate::engine::names::{HostsFile, Names};
    use crate::engine::runtime::counters::SchedulerStats;
    use crate::engine::runtime::log_writer::LogWriter;
    use crate::proto::record::ResultCode;
    use crate::rings::{Doorbell, ring};
    use crate::store_server::{Keeper, Medium, StoreRules};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// The index takes no words, its ring is full, and the shard has more to say than the end.
    #[test]
    fn an_index_that_takes_nothing_keeps_nobody_from_stopping() {
        let silent = || Arc::new(Doorbell::new(|| ()));
        let wall = Wall { unix_ms_at_zero: 0 };
        let (_scribe, port) = LogWriter::in_memory(&Config::default(), wall);
        let keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 1);
        let papers = ProviderRules::plain(Arc::new(|| (Now::ZERO, 1)));
        let (_desk, index) = IndexActor::new(DocIndex::default(), papers, silent(), silent());
        let (work, _work_out) = ring(64);
        let (done_in, done) = ring(64);
        let shard = ShardPort { work, done, bell: silent(), share: keeper.share(0) };
        let (stop, time) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clock = {
            let time = time.clone();
            Arc::new(move || Now::from_us(time.load(Ordering::Relaxed)))
        };
        let mut scheduler = Scheduler::new(
            SchedulerConfig::small(),
            vec![shard],
            index,
            Names::table(HostsFile::parse("")),
            SchedulerLog { port, wall, clock },
            stop.clone(),
            Arc::new(SchedulerStats::default()),
        );
        while scheduler.index.words.push(ToIndex::PutBack(1)).is_ok() {}
        scheduler.tell(ToIndex::PutBack(2));
        // Written, and not durable; a crawl that goes on waits for as long as it takes.
        let said = |sequence| {
            let outcome = Outcome::new(3, ResultCode::Ok, 1);
            FromShard::Done(Done { outcome, sequence, fetched: true, found: None })
        };
        assert!(done_in.push(said(Some(9))).is_ok() && done_in.push(FromShard::Drained).is_ok());
        let turn = |scheduler: &mut Scheduler, at_us| {
            time.store(at_us, Ordering::Relaxed);
            (0..5).map(|_| scheduler.turn()).any(|state| matches!(state, SchedulerState::Finished))
        };
        assert!(!turn(&mut scheduler, 0) && !turn(&mut scheduler, 100 * DRAIN_US));
        stop.store(true, Ordering::Relaxed);
        let stopped_us = 101 * DRAIN_US;
        assert!(!turn(&mut scheduler, stopped_us) && !turn(&mut scheduler, stopped_us + DRAIN_US - 1));
        assert!(turn(&mut scheduler, stopped_us + DRAIN_US));
        let notices = scheduler.notices();
        assert_eq!(notices.lock().unwrap().len(), 1, "told once");
        // There is room again, but what came after a gap is not told.
        assert!(scheduler.to_index.is_empty());
        scheduler.tell(ToIndex::PutBack(4));
        assert!(scheduler.to_index.is_empty());
    }
}
