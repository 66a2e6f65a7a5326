//! The manners of a service: what is told to the service manager that has started this process, if one has (sd_notify).
//!
//! ```text
//!   starting ── EXTEND_TIMEOUT_USEC… ──► READY ── STATUS…, WATCHDOG… ──► STOPPING ── EXTEND_TIMEOUT_USEC…, WATCHDOG… ──► exit
//! ```
//!
//! Time is asked for only while the process moves: it computes, or reads and writes its disk. The watchdog is fed only if
//! every thread has turned, and at the end, when threads go one after the other, while it moves.

use super::progress_line::Recent;
use crate::base::shown;
use crate::engine::{Outlook, Running, Vigil, sentence};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use sd_notify::NotifyState;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process as its service manager sees it; it does nothing if there is none.
#[derive(Default)]
pub(crate) struct Service(Option<Told>);

/// What the manager was told, and when.
struct Told {
    started: Instant,
    recent: Recent,
    sampled_at: Option<Instant>,
    status: String,
    status_at: Instant,
    watchdog: Option<Watchdog>,
    /// While it starts or stops.
    extension: Option<Extension>,
    is_stopping: bool,
}

/// How the node's threads are watched.
struct Watchdog {
    vigil: Vigil,
    /// The manager waits so long for a sign of life.
    limit: Duration,
    fed_at: Instant,
    ask_at: Instant,
    is_late_said: bool,
}

/// Where the manager listens.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const STATUS_EVERY: Duration = Duration::from_secs(3);
const STATUS_CHARS_MAX: usize = 400;

impl Service {
    /// The process starts: whoever has started it is told, and asked for time as long as that takes.
    pub fn starting() -> Service {
        if std::env::var_os(NOTIFY_SOCKET).is_none() {
            return Service::default();
        }
        tell(&[NotifyState::Status("Starting: opening the data directory.")]);
        let now = Instant::now();
        let limit = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero());
        Service(Some(Told {
            started: now,
            recent: Recent::default(),
            sampled_at: None,
            status: String::new(),
            status_at: now,
            watchdog: limit.map(|limit| Watchdog::new(limit, now)),
            extension: Extension::begin(false),
            is_stopping: false,
        }))
    }

    pub fn has_manager(&self) -> bool {
        self.0.is_some()
    }

    /// Every thread of the node runs.
    pub fn ready<N: Running>(&mut self, node: &N) {
        let Some(told) = &mut self.0 else { return };
        told.extension = None;
        told.status = told.sentence(node);
        tell(&[NotifyState::Ready, NotifyState::Status(&told.status)]);
        let now = Instant::now();
        told.status_at = now;
        told.watchdog = told.watchdog.take().map(|watchdog| Watchdog::new(watchdog.limit, now));
    }

    /// To be called all the time while the node runs. What comes back is to be said.
    pub fn tick<N: Running>(&mut self, node: &N) -> Option<String> {
        let told = self.0.as_mut()?;
        let now = Instant::now();
        if node.stop_switch().is_stopped() {
            told.stopping();
        }
        if told.sampled_at.is_none_or(|at| now - at >= SAMPLE_EVERY) {
            told.sampled_at = Some(now);
            let status = told.sentence(node);
            if now - told.status_at >= STATUS_EVERY && status != told.status {
                tell(&[NotifyState::Status(&status)]);
                (told.status, told.status_at) = (status, now);
            }
        }
        told.watchdog.as_mut()?.ask(node, now)
    }

    /// The node has finished: what follows writes and sums up.
    pub fn ending(&mut self) {
        if let Some(told) = &mut self.0 {
            told.stopping();
            tell(&[NotifyState::Status("Stopping: writing everything to disk.")]);
        }
    }
}

impl Told {
    fn stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            tell(&[NotifyState::Stopping]);
            self.extension = Extension::begin(self.watchdog.is_some());
        }
    }

    /// How the node goes, for a reader of `systemctl status`.
    fn sentence<N: Running>(&mut self, node: &N) -> String {
        let now = node.counted();
        self.recent.push(self.started.elapsed(), now.clone());
        let waiting_for = node.waiting().map(|(_, what)| what);
        let outlook = Outlook {
            noun: N::ROLE.counts().0,
            per_second: self.recent.pages_per_second(),
            seconds_left: self.recent.seconds_left(),
            waiting_for: waiting_for.as_deref(),
            is_stopping: node.stop_switch().is_stopped(),
        };
        shown(&sentence(&now, &outlook), STATUS_CHARS_MAX)
    }
}

impl Watchdog {
    fn new(limit: Duration, now: Instant) -> Watchdog {
        let vigil = Vigil::default();
        Watchdog { vigil, limit, fed_at: now, ask_at: now, is_late_said: false }
    }

    /// Feeds it four times in its limit, if every thread has turned. Of threads that have not, long before they are killed
    /// for it, something is said.
    fn ask<N: Running>(&mut self, node: &N, now: Instant) -> Option<String> {
        if now < self.ask_at {
            return None;
        }
        let pulses = node.health().pulses();
        if self.vigil.have_all_turned(pulses) {
            tell(&[NotifyState::Watchdog]);
            (self.fed_at, self.ask_at, self.is_late_said) = (now, now + self.limit / 4, false);
            return None;
        }
        self.ask_at = now + (self.limit / 50).min(Duration::from_secs(1));
        let late = now - self.fed_at;
        if late < self.limit / 2 || std::mem::replace(&mut self.is_late_said, true) {
            return None;
        }
        let names = self.vigil.late_names(pulses).join(", ");
        let (late_s, left_s) = (late.as_secs_f64(), (self.limit.saturating_sub(late)).as_secs_f64());
        Some(format!(
            "watchdog: no turn of {names} for {late_s:.1} s; the service manager ends this process in {left_s:.1} s"
        ))
    }
}

/// A thread that asks for time while the process moves. It ends with this value.
struct Extension {
    /// Closed to end it.
    over: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What is asked for each time.
const EXTENSION: Duration = Duration::from_secs(60);
/// Whatever takes longer than this does not get any further.
const EXTENSIONS_MAX: u32 = 6 * 3_600;

impl Extension {
    /// `None` if there can be no thread: then the time that the manager gives is all there is.
    fn begin(feeds_watchdog: bool) -> Option<Extension> {
        tell(&[more_time()]);
        let (over, is_over) = sync_channel::<()>(0);
        let look = move || {
            let mut before = Moves::now();
            for _ in 0..EXTENSIONS_MAX {
                if is_over.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let now = Moves::now();
                if now.is_ahead_of(&before) {
                    tell(&[more_time()]);
                    if feeds_watchdog {
                        tell(&[NotifyState::Watchdog]);
                    }
                }
                before = now;
            }
        };
        let thread = std::thread::Builder::new().name("service".to_string()).spawn(look).ok()?;
        Some(Extension { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        self.over.take();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the process has used until now.
#[derive(Clone, Copy)]
struct Moves {
    at: Instant,
    cpu_us: u64,
    /// Read from and written to disks.
    blocks: u64,
}

impl Moves {
    fn now() -> Moves {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let cpu_us = |usage: &Usage| {
            (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64
        };
        let blocks = |usage: &Usage| (usage.block_reads() + usage.block_writes()) as u64;
        Moves {
            at: Instant::now(),
            cpu_us: usage.as_ref().map_or(0, cpu_us),
            blocks: usage.as_ref().map_or(0, blocks),
        }
    }

    /// Whether more was done since than to look around: threads that wait do that, too.
    fn is_ahead_of(&self, before: &Moves) -> bool {
        let wall_us = (self.at - before.at).as_micros() as u64;
        self.blocks > before.blocks || 100 * self.cpu_us.saturating_sub(before.cpu_us) >= wall_us
    }
}

fn more_time() -> NotifyState<'static> {
    NotifyState::ExtendTimeoutUsec(EXTENSION.as_micros() as u32)
}

/// A manager that cannot be told is no reason to stop.
fn tell(states: &[NotifyState<'_>]) {
    let Some(name) = std::env::var_os(NOTIFY_SOCKET) else { return };
    let manager = match name.as_bytes() {
        // A name in the network namespace, and no path.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    };
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    let _ = manager.and_then(|manager| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &manager));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_computes_or_writes_moves() {
        let before = Moves { at: Instant::now(), cpu_us: 5_000_000, blocks: 10 };
        let after = |cpu_us, blocks| Moves { at: before.at + LOOK_EVERY, cpu_us, blocks };
        assert!(after(6_000_000, 10).is_ahead_of(&before));
        assert!(after(5_010_000, 10).is_ahead_of(&before));
        assert!(!after(5_003_000, 10).is_ahead_of(&before), "looking around is no work");
        assert!(after(5_000_000, 18).is_ahead_of(&before), "it waits for its disk, and gets something");
        assert!(!after(5_000_000, 10).is_ahead_of(&before));
    }
}
