use super::Failure;
use super::event_log::tell;
use super::service::Service;
use crate::engine::Event;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Ctrl-C, SIGTERM and a terminal that goes away: the first ends a process in good order, a second of the former two at
/// once. SIGUSR1 begins a new part of the crawl log. They are heard from the moment this is taken: what comes before a
/// node runs stops it as soon as it does.
///
/// SIGHUP says that the terminal goes away if there is one. To a process without, whose settings may be read again, it
/// says that they are to be.
pub(crate) struct Signals {
    heard: Arc<Heard>,
    told: u32,
    /// When this was taken: the process begins with it.
    pub since: Instant,
    /// Whom the node tells how it goes.
    pub service: Service,
}

/// What the control thread is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    None,
    /// Stop in good order.
    Stop,
    /// Stop at once.
    AtOnce,
    /// Begin a new part of the crawl log.
    RotateLog,
    /// Read the settings again.
    Reload(Sender),
}

/// Who sent a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    uid: u32,
    pid: u32,
}

impl Display for Sender {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "uid {} (pid {})", self.uid, self.pid)
    }
}

#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How often a stop was asked for, and when for the first time.
    asked: u32,
    first_at: Option<Instant>,
    /// Somebody waits for signals; until then nobody could stop anything.
    is_awaited: bool,
    /// Who asked for the settings to be read again. What was asked for more than once is done once.
    reload: Option<Sender>,
    /// A new part of the crawl log was asked for.
    rotates: bool,
}

/// Signals this soon after the first are the same request: `timeout` signals its child and then the group that it is in.
const TOGETHER: Duration = Duration::from_millis(200);
/// A signal is passed on this fast, and so is the rest of what a waiting thread looks after.
const WAIT: Duration = Duration::from_millis(20);

/// For a process that is to end with whoever started it, however that ends.
#[derive(clap::Args)]
pub(crate) struct WithParent {
    /// Stop when stdin is closed
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl WithParent {
    pub fn heed(&self, signals: &Signals) -> Result<(), Failure> {
        if self.until_stdin_closes { signals.until_stdin_closes() } else { Ok(()) }
    }
}

impl Signals {
    /// To be called before anything else, and so before any other thread starts: all of them leave these signals to the
    /// one that is started here.
    pub fn take() -> Result<Signals, Failure> {
        Signals::take_with(false)
    }

    /// The same for a process that can read its settings again, and that a service manager may have started: it is told
    /// from here on.
    pub fn of_service() -> Result<Signals, Failure> {
        let signals = Signals::take_with(!has_terminal())?;
        // Not before: this starts a thread, which would not leave signals to the other.
        Ok(Signals { service: Service::starting(), ..signals })
    }

    fn take_with(reloads: bool) -> Result<Signals, Failure> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGUSR1);
        // Under nohup it stays ignored.
        if !is_ignored(Signal::SIGHUP) {
            signals.add(Signal::SIGHUP);
        }
        signals.thread_block()?;
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let heard = Arc::<Heard>::default();
        let thread = heard.clone();
        thread::Builder::new().name("signals".to_string()).spawn(move || hear(&fd, &thread, reloads))?;
        Ok(Signals { heard, told: 0, since: Instant::now(), service: Service::default() })
    }

    /// Waits for a signal, for a moment at most.
    pub fn wait(&mut self) -> Interrupt {
        let mut state = self.heard.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_awaited = true;
        if state.asked <= self.told && state.reload.is_none() && !state.rotates {
            let waited = self.heard.changed.wait_timeout(state, WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.asked <= self.told {
            if std::mem::take(&mut state.rotates) {
                return Interrupt::RotateLog;
            }
            return state.reload.take().map_or(Interrupt::None, Interrupt::Reload);
        }
        self.told += 1;
        if self.told == 1 { Interrupt::Stop } else { Interrupt::AtOnce }
    }

    /// Stdin that closes says the same as a signal.
    pub fn until_stdin_closes(&self) -> Result<(), Failure> {
        let heard = self.heard.clone();
        thread::Builder::new().name("until".to_string()).spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            heard.ask(true);
        })?;
        Ok(())
    }

    /// Waits until a stop is asked for.
    pub fn wait_for_stop(mut self) -> Interrupt {
        loop {
            let interrupt = self.wait();
            if matches!(interrupt, Interrupt::Stop | Interrupt::AtOnce) {
                return interrupt;
            }
        }
    }
}

impl Heard {
    fn reload(&self, by: Sender) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).reload = Some(by);
        self.changed.notify_all();
    }

    fn rotate(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rotates = true;
        self.changed.notify_all();
    }

    fn ask(&self, first_only: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let since_first = state.first_at.get_or_insert_with(Instant::now).elapsed();
        if state.asked > 0 && (first_only || since_first < TOGETHER) {
            return;
        }
        state.asked += 1;
        match (state.is_awaited, state.asked) {
            (true, _) => self.changed.notify_all(),
            (false, 1) => tell(
                Event::Stopping,
                vec![("by", "signal".into())],
                "stopping as soon as it has started; a second signal stops at once",
            ),
            (false, _) => {
                tell(Event::StoppedAtOnce, Vec::new(), "stopped at once, before it had started");
                std::process::exit(3);
            }
        }
    }
}

fn hear(fd: &SignalFd, heard: &Heard, reloads: bool) {
    loop {
        let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::NONE);
        // What came together counts once. A terminal may be told to be gone more than once.
        let (mut came, mut hung_up) = (false, false);
        while let Ok(Some(signal)) = fd.read_signal() {
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGHUP) if reloads => {
                    heard.reload(Sender { uid: signal.ssi_uid, pid: signal.ssi_pid });
                }
                Ok(Signal::SIGHUP) => hung_up = true,
                Ok(Signal::SIGUSR1) => heard.rotate(),
                _ => came = true,
            }
        }
        if came || hung_up {
            heard.ask(!came);
        }
    }
}

/// Whether there is a terminal that could go away.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as u32 - 1) & 1 == 1
}
