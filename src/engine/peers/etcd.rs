//! The registers as keys of an etcd, on a thread of their own: it waits for answers, and nobody waits for it.
//!
//! ```text
//!   desk ── Wish ──► bounded channel ──► thread: swaps first, one call after the other ──► endpoint, the next if it fails
//!   desk ◄── bell, Decided ◄── ring ◄──────┘  none answers: all that wait are told so at once
//! ```

use super::etcd_line::EtcdLine;
use super::outside::{Decided, OutsideCouncil};
use crate::base::Now;
use crate::engine::runtime::actor::spawn;
use crate::engine::runtime::health::{Health, NodeError};
use crate::limits::OUTSIDE_ASKS_MAX;
use crate::peer::beat::Wish;
use crate::peer::register::{Change, Outcome};
use crate::rings::{Doorbell, Receiver, Sender, ring};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;

/// A council in an etcd. Its thread ends with it, at the latest when the call is over that it waits for.
pub struct EtcdCouncil {
    endpoints: Vec<String>,
    /// Of its keys.
    prefix: String,
    asks: Option<mpsc::SyncSender<Wish>>,
    answers: Option<Receiver<Decided>>,
    /// Questions that the thread did not take, and their answers.
    refused: VecDeque<Decided>,
}

impl EtcdCouncil {
    /// Endpoints are hosts with ports; the keys of a cluster have its id in them.
    pub fn new(endpoints: Vec<String>, cluster: [u8; 16]) -> EtcdCouncil {
        let prefix = format!("/nephila/{:032x}/", u128::from_be_bytes(cluster));
        EtcdCouncil { endpoints, prefix, asks: None, answers: None, refused: VecDeque::new() }
    }
}

impl OutsideCouncil for EtcdCouncil {
    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    fn begin(&mut self, bell: Arc<Doorbell>, health: &Arc<Health>) -> Result<(), NodeError> {
        let (asks, asked) = mpsc::sync_channel(OUTSIDE_ASKS_MAX);
        let (answers, answered) = ring(OUTSIDE_ASKS_MAX);
        let line = EtcdLine::new(&self.endpoints, self.prefix.clone());
        let health = health.clone();
        spawn("etcd", move || {
            if catch_unwind(AssertUnwindSafe(|| serve(line, &asked, &answers, &bell))).is_err() {
                health.fatal(NodeError::Died("etcd"));
            }
        })?;
        (self.asks, self.answers) = (Some(asks), Some(answered));
        Ok(())
    }

    fn ask(&mut self, wish: Wish, _: Now) {
        let register = wish.register;
        let sent = self.asks.as_ref().is_some_and(|asks| asks.try_send(wish).is_ok());
        if !sent {
            let fault = Some("too many questions wait".to_string());
            self.refused.push_back(Decided { register, outcome: Outcome::NotDone, fault });
        }
    }

    fn take(&mut self, _: Now) -> Option<Decided> {
        self.refused.pop_front().or_else(|| self.answers.as_ref()?.pop())
    }

    fn has_answers(&self) -> bool {
        !self.refused.is_empty() || self.answers.as_ref().is_some_and(|answers| !answers.is_empty())
    }

    fn next_due(&self) -> Option<Now> {
        None
    }
}

/// Answers one question after the other, until nobody asks any more.
fn serve(mut line: EtcdLine, asks: &mpsc::Receiver<Wish>, answers: &Sender<Decided>, bell: &Doorbell) {
    let mut waiting: VecDeque<Wish> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match asks.recv() {
                Ok(wish) => waiting.push_back(wish),
                Err(mpsc::RecvError) => return,
            }
        }
        waiting.extend(asks.try_iter().take(OUTSIDE_ASKS_MAX));
        // Rights hang on swaps; of who reads nothing does.
        let is_swap = |wish: &Wish| matches!(wish.change, Change::Swap { .. });
        let at = waiting.iter().position(is_swap).unwrap_or(0);
        let Some(wish) = waiting.remove(at) else { continue };
        let decided = line.change(&wish);
        let away = decided.fault.clone().filter(|_| line.is_away());
        // There is room: each question had its place in the channel.
        let _ = answers.push(decided);
        if away.is_some() {
            for Wish { register, .. } in waiting.drain(..) {
                let _ = answers.push(Decided { register, outcome: Outcome::NotDone, fault: away.clone() });
            }
        }
        bell.ring_if_asleep();
    }
}
