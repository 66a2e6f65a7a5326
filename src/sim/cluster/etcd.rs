use super::plan::EtcdPlan;
use crate::base::{Now, Rng};
use crate::driver::SimClock;
use crate::engine::{Decided, Health, NodeError, OutsideCouncil};
use crate::peer::beat::Wish;
use crate::peer::register::{Change, Outcome, Register, Value};
use crate::rings::Doorbell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An etcd in virtual time, whose keys all nodes have in common. Requests are lost, land long after their asker gave up, or land
/// and their answers are lost; and at times it is not there at all.
#[derive(Clone)]
pub struct SimEtcd(Arc<Mutex<Keys>>);

struct Keys {
    plan: EtcdPlan,
    rng: Rng,
    registers: BTreeMap<Register, Value>,
    /// Requests on their way: when each lands, and its number.
    landing: BTreeMap<(Now, u64), Wish>,
    /// Answers on their way, by the number of the request.
    answers: BTreeMap<u64, Answer>,
    asked: u64,
    ports: u64,
    unanswered: u64,
}

struct Answer {
    port: u64,
    at: Now,
    register: Register,
    /// Nothing until the request lands.
    outcome: Option<Outcome>,
    is_lost: bool,
}

/// The way of one process to it.
struct Port {
    etcd: SimEtcd,
    number: u64,
    endpoints: Vec<String>,
    /// Of the process: what happens to its requests goes by true time.
    clock: SimClock,
}

/// Who has no answer by then gives up.
const CALL_US: u64 = 2_000_000;

impl SimEtcd {
    pub fn new(plan: EtcdPlan, seed: u64) -> SimEtcd {
        SimEtcd(Arc::new(Mutex::new(Keys {
            plan,
            rng: Rng::new(seed ^ 0x0e7c_d000),
            registers: BTreeMap::new(),
            landing: BTreeMap::new(),
            answers: BTreeMap::new(),
            asked: 0,
            ports: 0,
            unanswered: 0,
        })))
    }

    /// For a process that begins.
    pub fn port(&self, clock: SimClock) -> Box<dyn OutsideCouncil> {
        let mut keys = self.keys();
        keys.ports += 1;
        let endpoints = vec!["10.0.2.1:2379".to_string()];
        Box::new(Port { etcd: self.clone(), number: keys.ports, endpoints, clock })
    }

    /// Questions that had no answer.
    pub fn unanswered(&self) -> u64 {
        self.keys().unanswered
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    fn ask(&mut self, port: u64, wish: Wish, now: Now) {
        self.asked += 1;
        let number = self.asked;
        let is_swap = matches!(wish.change, Change::Swap { .. });
        let unknown = if is_swap { Outcome::Unknown } else { Outcome::NotDone };
        let register = wish.register;
        let slow_us = self.plan.slow_us;
        let mut delay = |most: u64| 1 + self.rng.below(most);
        let (way, back) = (now.plus_us(delay(slow_us)), delay(slow_us));
        let late = now.plus_us(CALL_US + delay(60_000_000));
        let is_calm = now >= self.plan.until;
        let outage = self.plan.outages.iter().find(|outage| (outage.from..outage.until).contains(&now));
        let lot = if is_calm { 1_000 } else { self.rng.below(1_000) };
        let lost = (now.plus_us(CALL_US), Some(unknown), true);
        let (at, outcome, is_lost) = match outage {
            Some(outage) if !outage.hangs => (way, Some(Outcome::NotDone), true),
            Some(_) => lost,
            None if lot < self.plan.lost => lost,
            None if lot < 2 * self.plan.lost => {
                self.landing.insert((way, number), wish);
                lost
            }
            None if lot < 3 * self.plan.lost => {
                self.landing.insert((late, number), wish);
                lost
            }
            None => {
                self.landing.insert((way, number), wish);
                (way.plus_us(back), None, false)
            }
        };
        self.unanswered += u64::from(is_lost);
        self.answers.insert(number, Answer { port, at, register, outcome, is_lost });
    }

    /// One after the other, as they arrive.
    fn land(&mut self, now: Now) {
        while let Some(first) = self.landing.first_entry().filter(|entry| entry.key().0 <= now) {
            let (_, number) = *first.key();
            let wish = first.remove();
            let held = self.registers.entry(wish.register).or_default();
            let outcome = match wish.change {
                Change::Read => Outcome::Read(held.clone()),
                Change::Swap { expect, .. } if *held != expect && self.plan.lies => Outcome::Swapped,
                Change::Swap { expect, .. } if *held != expect => Outcome::Differs(held.clone()),
                Change::Swap { new, .. } => {
                    *held = new;
                    Outcome::Swapped
                }
            };
            if let Some(answer) = self.answers.get_mut(&number) {
                answer.outcome.get_or_insert(outcome);
            }
        }
    }

    fn of(&self, port: u64) -> impl Iterator<Item = (&u64, &Answer)> {
        self.answers.iter().filter(move |(_, answer)| answer.port == port)
    }
}

impl OutsideCouncil for Port {
    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    fn begin(&mut self, _: Arc<Doorbell>, _: &Arc<Health>) -> Result<(), NodeError> {
        Ok(())
    }

    fn ask(&mut self, wish: Wish, now: Now) {
        let mut keys = self.etcd.keys();
        let is_asked = keys.of(self.number).any(|(_, answer)| answer.register == wish.register);
        assert!(!is_asked, "{:?} has one question at a time", wish.register);
        keys.ask(self.number, wish, self.clock.when(now));
    }

    fn take(&mut self, now: Now) -> Option<Decided> {
        let now = self.clock.when(now);
        let mut keys = self.etcd.keys();
        keys.land(now);
        let (number, _) = keys.of(self.number).find(|(_, answer)| answer.at <= now)?;
        let number = *number;
        let Answer { register, outcome, is_lost, .. } = keys.answers.remove(&number)?;
        let outcome = outcome.expect("it landed before it was answered");
        Some(Decided { register, outcome, fault: is_lost.then(|| "no answer".to_string()) })
    }

    fn has_answers(&self) -> bool {
        false
    }

    fn next_due(&self) -> Option<Now> {
        let next = self.etcd.keys().of(self.number).map(|(_, answer)| answer.at).min();
        // A tick of the clock may be longer than one of time.
        next.map(|at| self.clock.shows(at).plus_us(1))
    }
}

/// The process is gone; what it sent is on its way.
impl Drop for Port {
    fn drop(&mut self) {
        let number = self.number;
        self.etcd.keys().answers.retain(|_, answer| answer.port != number);
    }
}
