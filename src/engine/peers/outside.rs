//! A council outside of the nodes: what a desk needs of one, and what it knows of how it does.

use crate::base::Now;
use crate::engine::inspect::cluster_view::CouncilView;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::peer::beat::Wish;
use crate::peer::register::{Outcome, Register};
use crate::rings::Doorbell;
use std::sync::Arc;

/// A store with a compare-and-swap that keeps the registers. There is one question to each register at a time, and each has one
/// answer within some seconds: if nothing came, that nothing is known.
pub trait OutsideCouncil: Send {
    fn kind(&self) -> &'static str;

    fn endpoints(&self) -> &[String];

    /// Begins to work; the bell wakes who asks when an answer is there.
    fn begin(&mut self, bell: Arc<Doorbell>, health: &Arc<Health>) -> Result<(), NodeError>;

    fn ask(&mut self, wish: Wish, now: Now);

    fn take(&mut self, now: Now) -> Option<Decided>;

    fn has_answers(&self) -> bool;

    /// When there may be an answer for which no bell rings.
    fn next_due(&self) -> Option<Now>;
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub register: Register,
    pub outcome: Outcome,
    /// Why there was no answer, in one line.
    pub fault: Option<String>,
}

/// The council as a desk asks it.
pub(super) struct Outside {
    council: Box<dyn OutsideCouncil>,
    answered_at: Option<Now>,
    /// Since when it does not answer, and why.
    failing: Option<(Now, String)>,
    /// The operator knows that it does not answer.
    is_told: bool,
}

/// One endpoint of many may be away for a moment: it is no news until none has answered for so long.
const AWAY_US: u64 = 3_000_000;

impl Outside {
    pub fn begin(
        mut council: Box<dyn OutsideCouncil>,
        bell: Arc<Doorbell>,
        health: &Arc<Health>,
    ) -> Result<Outside, NodeError> {
        council.begin(bell, health)?;
        Ok(Outside { council, answered_at: None, failing: None, is_told: false })
    }

    pub fn ask(&mut self, wish: Wish, now: Now) {
        self.council.ask(wish, now);
    }

    /// The next answer.
    pub fn take(&mut self, now: Now) -> Option<(Register, Outcome)> {
        let Decided { register, outcome, fault } = self.council.take(now)?;
        match fault {
            None => (self.answered_at, self.failing) = (Some(now), None),
            Some(fault) => {
                let since = self.failing.take().map_or(now, |(since, _)| since);
                self.failing = Some((since, fault));
            }
        }
        Some((register, outcome))
    }

    /// Tells that it does not answer, or does so again, each once.
    pub fn tell(&mut self, now: Now, health: &Health) {
        let (kind, away) = (self.council.kind(), self.away(now));
        if away.is_some() == self.is_told {
            return;
        }
        match away {
            Some(fault) => {
                let text = format!("{kind} does not answer: {fault}; it is asked until it does");
                health.tell(Event::CouncilAway, vec![("cause", fault.into())], text);
            }
            None => health.tell(Event::CouncilBack, Vec::new(), format!("{kind} answers again")),
        }
        self.is_told = !self.is_told;
    }

    /// Why it does not answer, if it is so.
    fn away(&self, now: Now) -> Option<String> {
        let (since, fault) = self.failing.as_ref()?;
        let is_away = self.answered_at.is_none() || now >= since.plus_us(AWAY_US);
        is_away.then(|| fault.clone())
    }

    pub fn has_answers(&self) -> bool {
        self.council.has_answers()
    }

    pub fn next_due(&self) -> Option<Now> {
        let told = self.failing.as_ref().filter(|_| !self.is_told).map(|(since, _)| since.plus_us(AWAY_US));
        self.council.next_due().into_iter().chain(told).min()
    }

    pub fn view(&self, now: Now) -> CouncilView {
        CouncilView {
            kind: self.council.kind().to_string(),
            endpoints: self.council.endpoints().to_vec(),
            answered_ms: self.answered_at.map(|at| now.since_us(at) / 1_000),
            fault: self.away(now).unwrap_or_default(),
        }
    }
}
