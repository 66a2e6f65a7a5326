use super::names::Addresses;
use crate::base::Now;
use crate::driver::Driver;
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::groups::Group;
use crate::resolver::{Action, Asked, Failure, Resolver, ResolverConfig};
use crate::rings::{Doorbell, Receiver, Sender};
use std::sync::Arc;

/// A host, and its addresses, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub name: Box<str>,
    pub answer: Result<Addresses, Failure>,
    /// It was known from before: no server was asked.
    pub is_remembered: bool,
}

/// The resolver over a driver: questions off a ring, answers onto another.
pub struct ResolverActor<D: Driver> {
    driver: D,
    resolver: Resolver,
    questions: Receiver<Box<str>>,
    answers: Sender<Answered>,
    /// A question for which the resolver had no room yet.
    waiting: Option<Box<str>>,
    /// Rung when there are answers.
    asker: Arc<Doorbell>,
    actions: Vec<Action>,
    counters: Arc<Counters>,
    is_ending: bool,
}

impl<D: Driver> ResolverActor<D> {
    pub(super) fn new(
        driver: D,
        config: ResolverConfig,
        seed: u64,
        (questions, answers): (Receiver<Box<str>>, Sender<Answered>),
        asker: Arc<Doorbell>,
        counters: Arc<Counters>,
    ) -> ResolverActor<D> {
        let config = ResolverConfig { sockets_max: config.sockets_max.min(driver.conns_max()), ..config };
        let resolver = Resolver::new(config, driver.now(), seed);
        ResolverActor {
            driver,
            resolver,
            questions,
            answers,
            waiting: None,
            asker,
            actions: Vec::new(),
            counters,
            is_ending: false,
        }
    }

    fn run_actions(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Answer { name, answer } => self.say(Answered { name, answer, is_remembered: false }),
            }
        }
        // Nothing above makes the resolver act again, so the list comes back empty.
        self.actions = actions;
    }

    fn publish(&self) {
        let (stats, counters) = (self.resolver.stats(), &self.counters);
        counters.set_all(Group::Lookups, &stats.lookups);
        counters.set_all(Group::NameCache, &stats.cache);
        counters.set_all(Group::LookupTimes, &stats.times.figures());
        counters.set(Counter::LookupsOpen, self.resolver.open() as u64);
        counters.set(Counter::NamesCached, self.resolver.cached() as u64);
    }

    fn say(&self, answered: Answered) {
        let said = self.answers.push(answered);
        assert!(said.is_ok(), "the asker has no more questions open than its ring holds answers");
    }
}

impl<D: Driver> Actor for ResolverActor<D> {
    fn turn(&mut self, now: Now) -> Turned {
        // The event may borrow a buffer of the driver, so it is dealt with before the driver is used again.
        while let Some((conn, event)) = self.driver.next() {
            self.resolver.step(conn, event, now, &mut self.actions);
            self.run_actions();
        }
        self.resolver.tick(now, &mut self.actions);
        self.run_actions();
        while let Some(name) = self.waiting.take().or_else(|| self.questions.pop()) {
            match self.resolver.ask(&name, now, &mut self.actions) {
                Asked::Known(answer) => self.say(Answered { name, answer, is_remembered: true }),
                Asked::Pending => self.run_actions(),
                Asked::Full => {
                    self.waiting = Some(name);
                    break;
                }
            }
        }
        self.publish();
        self.asker.ring_if_asleep();
        Turned::finished_if(self.is_ending)
    }

    fn next_due(&self) -> Option<Now> {
        self.resolver.next_due()
    }

    /// With a question waiting for room no other is taken, and what makes room is a completion or a timer.
    fn has_messages(&self) -> bool {
        self.waiting.is_none() && !self.questions.is_empty()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}

impl<D: Driver> Networked for ResolverActor<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    fn expects(&self) -> usize {
        self.resolver.open()
    }
}
