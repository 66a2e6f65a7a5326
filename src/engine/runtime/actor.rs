//! One shape for everything that a thread of the product turns, and the one loop that turns it.
//!
//! ```text
//!   loop:  end? ──► Actor::end, once
//!          turn(now) ──► Busy      a glance at the driver, then again
//!                        Idle      asleep until a message, a completion or next_due
//!                        Stuck     a pause, then again: the disk has no room
//!                        Finished  the thread is over
//! ```
//!
//! An actor with a driver sleeps in it ([`InDriver`]); one without parks its thread ([`Parked`]). The simulation turns the
//! same actors without threads.

use super::health::{Health, NodeError};
use super::pulse::{Pulse, Pulses};
use crate::base::Now;
use crate::driver::Driver;
use crate::rings::{Doorbell, ThreadBell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A plain value that takes the time and does what is to be done.
pub trait Actor {
    /// Does what can be done without waiting.
    fn turn(&mut self, now: Now) -> Turned;

    /// When it must turn again even if nothing comes.
    fn next_due(&self) -> Option<Now> {
        None
    }

    /// Whether something has come that a turn would take.
    fn has_messages(&self) -> bool;

    /// Nothing more will come: once what is there is worked off, the actor is finished.
    fn end(&mut self, _now: Now) {}
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// There is more to do at once.
    Busy,
    /// Nothing to do before a message, a completion or the actor's next timer. `messages` is how many were taken since the
    /// last idle turn.
    Idle { messages: u64 },
    /// The disk refuses what is to be written; the next turn tries again.
    Stuck,
    /// Everything is done.
    Finished,
}

impl Turned {
    pub const IDLE: Turned = Turned::Idle { messages: 0 };

    pub fn busy_if(busy: bool) -> Turned {
        if busy { Turned::Busy } else { Turned::IDLE }
    }

    pub fn finished_if(finished: bool) -> Turned {
        if finished { Turned::Finished } else { Turned::IDLE }
    }
}

/// An actor over a driver of its own.
pub trait Networked: Actor {
    type Net: Driver;

    fn driver(&mut self) -> &mut Self::Net;

    /// Completions that are likely soon.
    fn expects(&self) -> usize {
        0
    }
}

/// How the thread of an actor tells the time and sleeps.
pub trait Sleeper<A> {
    fn now(&self, actor: &mut A) -> Now;

    /// Hands on what was asked, without sleeping.
    fn glance(&self, actor: &mut A) -> io::Result<()>;

    /// Sleeps until there is something to do; not at all if `over` says so.
    fn sleep(&self, actor: &mut A, messages: u64, over: &dyn Fn() -> bool) -> io::Result<()>;
}

/// Sleeps in the actor's own driver.
pub struct InDriver(pub Arc<Doorbell>);

impl<A: Networked> Sleeper<A> for InDriver {
    fn now(&self, actor: &mut A) -> Now {
        actor.driver().now()
    }

    fn glance(&self, actor: &mut A) -> io::Result<()> {
        actor.driver().wait(Some(Now::ZERO), 0)
    }

    fn sleep(&self, actor: &mut A, _: u64, over: &dyn Fn() -> bool) -> io::Result<()> {
        self.0.falling_asleep();
        let until = if actor.has_messages() || over() { Some(Now::ZERO) } else { actor.next_due() };
        let expects = actor.expects();
        let waited = actor.driver().wait(until, expects);
        self.0.awake();
        waited
    }
}

/// The bell of an actor without a driver.
#[derive(Clone)]
pub struct ActorBell {
    pub(crate) thread: Arc<ThreadBell>,
    pub door: Arc<Doorbell>,
}

impl Default for ActorBell {
    fn default() -> ActorBell {
        let thread = Arc::new(ThreadBell::default());
        let door = Doorbell::new({
            let thread = thread.clone();
            move || thread.ring()
        });
        ActorBell { thread, door: Arc::new(door) }
    }
}

/// Parks the thread.
pub struct Parked {
    bell: ActorBell,
    started: Instant,
}

/// A thread looks around this often even if no bell rings.
pub const SLEEP_MAX: Duration = Duration::from_millis(100);
/// An idle turn with this many messages was a busy one; the queues of the shards hold more than comes in during a nap.
const BUSY_MESSAGES: u64 = 8;
const NAP: Duration = Duration::from_millis(8);

impl<A: Actor> Sleeper<A> for Parked {
    fn now(&self, _: &mut A) -> Now {
        now_since(self.started)
    }

    fn glance(&self, _: &mut A) -> io::Result<()> {
        Ok(())
    }

    /// After a busy turn it sleeps only for a moment, and deaf: a shard that hands up a few messages at a time would
    /// otherwise wake this thread for each few of them, and a nap lets them gather.
    fn sleep(&self, actor: &mut A, messages: u64, over: &dyn Fn() -> bool) -> io::Result<()> {
        if messages >= BUSY_MESSAGES {
            std::thread::sleep(NAP);
            return Ok(());
        }
        self.bell.door.falling_asleep();
        if !actor.has_messages() && !over() {
            let now = now_since(self.started);
            let due = actor.next_due().map_or(SLEEP_MAX, |due| Duration::from_micros(due.since_us(now)));
            self.bell.thread.sleep(due.min(SLEEP_MAX));
        }
        self.bell.door.awake();
        Ok(())
    }
}

/// Turns an actor until it is finished, or has nothing to do and `gives_up` says that the process cannot go on.
pub(crate) fn run<A: Actor>(
    actor: &mut A,
    sleeper: &impl Sleeper<A>,
    pulse: &Pulse,
    end: &AtomicBool,
    gives_up: impl Fn() -> bool,
) -> io::Result<()> {
    let mut is_told = false;
    let mut turning = pulse.begin();
    loop {
        turning.beat();
        let now = sleeper.now(actor);
        if !is_told && end.load(Ordering::Acquire) {
            is_told = true;
            actor.end(now);
        }
        match actor.turn(now) {
            Turned::Finished => return Ok(()),
            Turned::Busy => sleeper.glance(actor)?,
            Turned::Stuck => std::thread::sleep(SLEEP_MAX),
            Turned::Idle { .. } if gives_up() => return Ok(()),
            Turned::Idle { messages } => {
                sleeper.sleep(actor, messages, &|| gives_up() || !is_told && end.load(Ordering::Acquire))?;
            }
        }
    }
}

/// An actor and its bell, before it has a thread.
pub struct Seated<A> {
    pub actor: A,
    pub bell: ActorBell,
}

/// A thread that parks, and the actor that it turns.
pub(crate) struct ActorThread<A> {
    thread: JoinHandle<A>,
    end: Arc<AtomicBool>,
    bell: ActorBell,
}

impl<A: Actor + Send + 'static> ActorThread<A> {
    pub fn start(
        name: &'static str,
        seated: Seated<A>,
        started: Instant,
        health: &Arc<Health>,
    ) -> Result<ActorThread<A>, NodeError> {
        let pulse = health.pulses.thread(name, seated.bell.door.clone());
        ActorThread::with_pulse(name, seated, pulse, started, health)
    }

    /// A thread whose turns may take as long as they like: nothing waits for them.
    pub fn start_unwatched(
        name: &'static str,
        seated: Seated<A>,
        started: Instant,
        health: &Arc<Health>,
    ) -> Result<ActorThread<A>, NodeError> {
        let pulse = Pulses::default().thread(name, seated.bell.door.clone());
        ActorThread::with_pulse(name, seated, pulse, started, health)
    }

    fn with_pulse(
        name: &'static str,
        seated: Seated<A>,
        pulse: Arc<Pulse>,
        started: Instant,
        health: &Arc<Health>,
    ) -> Result<ActorThread<A>, NodeError> {
        let Seated { mut actor, bell } = seated;
        let end = Arc::new(AtomicBool::new(false));
        let thread = spawn(name, {
            let (bell, end, health) = (bell.clone(), end.clone(), health.clone());
            move || {
                bell.thread.belongs_to_me();
                let sleeper = Parked { bell, started };
                // A mistake of ours ends the process with a line, and leaves no other thread waiting for an answer.
                let turned =
                    catch_unwind(AssertUnwindSafe(|| run(&mut actor, &sleeper, &pulse, &end, || false)));
                match turned {
                    Ok(Ok(())) => {}
                    Ok(Err(cause)) => health.fatal(NodeError::Thread(cause)),
                    Err(_) => health.fatal(NodeError::Died(name)),
                }
                actor
            }
        })?;
        Ok(ActorThread { thread, end, bell })
    }

    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the actor is finished of itself.
    pub fn join(self) -> A {
        joined(self.thread)
    }

    /// Lets the actor work off what it has, and waits for that.
    pub fn end(self) -> A {
        self.tell_end();
        joined(self.thread)
    }

    /// Tells the actor that nothing more will come, and waits for nothing.
    pub fn tell_end(&self) {
        self.end.store(true, Ordering::Release);
        self.bell.door.ring_if_asleep();
    }
}

pub(crate) fn now_since(started: Instant) -> Now {
    Now::from_us(started.elapsed().as_micros() as u64)
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NodeError> {
    std::thread::Builder::new().name(name.to_string()).spawn(body).map_err(NodeError::Thread)
}

/// Waits for a thread. A panic there is a mistake of ours and goes on here.
pub(crate) fn joined<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
