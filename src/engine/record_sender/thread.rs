use super::lane::Lane;
use super::record_sender::RecordSender;
use super::sink::{SenderPort, SenderShare};
use crate::base::Now;
use crate::engine::links::{Links, LinksConfig, LinksThread};
use crate::engine::threads::{NodeError, SLEEP_MAX, Trouble, joined, rest, spawn, thread_bell};
use crate::limits::RECORD_RING_WORDS;
use crate::rings::{Doorbell, ThreadBell, ring};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread that sends the records of a process.
pub(in crate::engine) struct StoreThread {
    end: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: JoinHandle<()>,
    links: LinksThread,
}

impl StoreThread {
    /// Dials the store server, once for every shard. `owner` is rung when records are done with.
    pub fn start(
        address: &str,
        shards: usize,
        owner: Arc<Doorbell>,
        stop: Arc<AtomicBool>,
        trouble: Arc<Trouble>,
        started: Instant,
    ) -> Result<(StoreThread, Vec<SenderPort>), NodeError> {
        let (thread, bell) = thread_bell();
        let dial = vec![address.to_string(); shards];
        // One that is gone may be told of after its successor was dialed.
        let config = LinksConfig { listen: None, dial, links_max: 2 * shards };
        let (port, links, _) = Links::start(config, bell.clone()).map_err(NodeError::Thread)?;
        let (lanes, ports) = lanes(shards, &bell);
        let sender = RecordSender::new(address, port, lanes, owner.clone(), stop, trouble.notices.clone());
        let end = Arc::new(AtomicBool::new(false));
        let thread = spawn("record-sender", {
            let (bell, end) = (bell.clone(), end.clone());
            move || {
                if let Err(error) = run(sender, started, &thread, &bell, &end) {
                    trouble.fatal(error);
                    owner.ring_if_asleep();
                }
            }
        })?;
        Ok((StoreThread { end, bell, thread, links }, ports))
    }

    /// No shard is left: sends what is still to be sent, and ends.
    pub fn end(self) {
        self.end.store(true, Ordering::Release);
        self.bell.ring_if_asleep();
        joined(self.thread);
        self.links.end();
    }
}

/// The two ends of the way from every shard to the record sender, whose bell that is.
pub(super) fn lanes(shards: usize, bell: &Arc<Doorbell>) -> (Vec<Lane>, Vec<SenderPort>) {
    let lane = |_| {
        let (records, records_in) = ring(RECORD_RING_WORDS);
        let share = Arc::new(SenderShare::default());
        (Lane::new(records_in, share.clone()), SenderPort { share, records, bell: bell.clone() })
    };
    (0..shards).map(lane).unzip()
}

fn run(
    mut sender: RecordSender,
    started: Instant,
    thread: &ThreadBell,
    bell: &Doorbell,
    end: &AtomicBool,
) -> Result<(), NodeError> {
    thread.belongs_to_me();
    while !end.load(Ordering::Acquire) {
        let now = Now::from_us(started.elapsed().as_micros() as u64);
        sender.turn(now)?;
        let due = sender.next_due().map_or(SLEEP_MAX, |at| Duration::from_micros(at.since_us(now) + 1_000));
        rest(thread, bell, due.min(SLEEP_MAX), 0, || sender.has_words());
    }
    Ok(())
}
