use super::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;

/// Ctrl-C and SIGTERM: the first ends a process in good order, the second at once.
pub(crate) struct Signals {
    fd: SignalFd,
    interrupted: bool,
}

/// What the control thread is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    None,
    /// Stop in good order.
    Stop,
    /// Stop at once.
    AtOnce,
}

impl Signals {
    /// To be called before any thread starts, so that all of them leave these signals to this one.
    pub fn take() -> Result<Signals, Failure> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { fd, interrupted: false })
    }

    /// Waits for a signal, for a moment at most.
    pub fn wait(&mut self) -> Interrupt {
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(20u8));
        let mut came = false;
        while let Ok(Some(_)) = self.fd.read_signal() {
            came = true;
        }
        match came {
            false => Interrupt::None,
            true if std::mem::replace(&mut self.interrupted, true) => Interrupt::AtOnce,
            true => Interrupt::Stop,
        }
    }
}
