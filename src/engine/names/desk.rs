use super::names::Addresses;
use crate::base::Now;
use crate::driver::Driver;
use crate::resolver::{Action, Asked, Resolver, ResolverConfig};
use crate::rings::{Doorbell, Receiver, Sender};
use std::io;
use std::sync::Arc;

/// A host, and its addresses if it has any.
pub(super) type Answered = (Box<str>, Option<Addresses>);

/// The resolver over a driver: questions off a ring, answers onto another.
pub struct NamesDesk<D: Driver> {
    driver: D,
    resolver: Resolver,
    questions: Receiver<Box<str>>,
    answers: Sender<Answered>,
    /// A question for which the resolver had no room yet.
    waiting: Option<Box<str>>,
    /// Rung by whoever asks.
    bell: Arc<Doorbell>,
    /// Rung when there are answers.
    asker: Arc<Doorbell>,
    actions: Vec<Action>,
}

impl<D: Driver> NamesDesk<D> {
    pub(super) fn new(
        driver: D,
        config: ResolverConfig,
        seed: u64,
        (questions, answers): (Receiver<Box<str>>, Sender<Answered>),
        (bell, asker): (Arc<Doorbell>, Arc<Doorbell>),
    ) -> NamesDesk<D> {
        let config = ResolverConfig { sockets_max: config.sockets_max.min(driver.conns_max()), ..config };
        let resolver = Resolver::new(config, driver.now(), seed);
        NamesDesk { driver, resolver, questions, answers, waiting: None, bell, asker, actions: Vec::new() }
    }

    /// Does what can be done without waiting.
    pub(super) fn turn(&mut self) {
        let now = self.driver.now();
        // The event may borrow a buffer of the driver, so it is dealt with before the driver is used again.
        while let Some((conn, event)) = self.driver.next() {
            self.resolver.step(conn, event, now, &mut self.actions);
            self.run_actions();
        }
        self.resolver.tick(now, &mut self.actions);
        self.run_actions();
        while let Some(name) = self.waiting.take().or_else(|| self.questions.pop()) {
            match self.resolver.ask(&name, now, &mut self.actions) {
                Asked::Known(answer) => self.say(name, answer.ok()),
                Asked::Pending => self.run_actions(),
                Asked::Full => {
                    self.waiting = Some(name);
                    break;
                }
            }
        }
        self.asker.ring_if_asleep();
    }

    /// Sleeps until something completes, a timer is due or a question comes; not at all if `over` says so.
    pub(super) fn wait(&mut self, over: impl Fn() -> bool) -> io::Result<()> {
        self.bell.falling_asleep();
        // With a question waiting for room no other is taken, and what makes room is a completion or a timer.
        let has_words = self.waiting.is_none() && !self.questions.is_empty();
        let until = if has_words || over() { Some(Now::ZERO) } else { self.resolver.next_due() };
        let waited = self.driver.wait(until, self.resolver.open());
        self.bell.awake();
        waited
    }

    fn run_actions(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Answer { name, answer } => self.say(name, answer.ok()),
            }
        }
        // Nothing above makes the resolver act again, so the list comes back empty.
        self.actions = actions;
    }

    fn say(&self, name: Box<str>, addresses: Option<Addresses>) {
        let said = self.answers.push((name, addresses));
        assert!(said.is_ok(), "the asker has no more questions open than its ring holds answers");
    }
}
