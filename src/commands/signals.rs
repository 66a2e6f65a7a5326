//! Ctrl-C and SIGTERM: the first ends a process in good order, the second at once. And what a server says of itself
//! meanwhile.

use super::Failure;
use crate::engine::{Notice, SpiderNode, StoreNode, UrlNode};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;

pub struct Signals {
    fd: SignalFd,
    interrupted: bool,
}

/// What the control thread is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
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
        signals.thread_block().map_err(Failure::cannot_run)?;
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map_err(Failure::cannot_run)?;
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

/// A process that serves others until it is told to stop.
pub trait Serving {
    fn is_finished(&self) -> bool;
    fn stop(&self);
    /// What it waits for, if it is more than the network.
    fn waiting_for(&self) -> Option<String>;
    /// Things a user should know that happened since this was last asked.
    fn notices(&self) -> Vec<Notice>;
}

/// What is said when a signal comes.
pub struct Farewell {
    pub stopping: &'static str,
    pub at_once: &'static str,
}

/// Passes on signals until a server has finished, and says what it waits for.
pub fn watch(node: &impl Serving, mut signals: Signals, farewell: &Farewell) {
    let mut waiting_for = None;
    while !node.is_finished() {
        match signals.wait() {
            Interrupt::None => {}
            Interrupt::Stop => {
                eprintln!("stopping: {}; once more stops at once", farewell.stopping);
                node.stop();
            }
            Interrupt::AtOnce => {
                eprintln!("stopped at once{}", farewell.at_once);
                std::process::exit(3);
            }
        }
        node.notices().iter().for_each(|notice| eprintln!("{notice}"));
        let waits = node.waiting_for();
        if waits != waiting_for {
            if let Some(text) = &waits {
                eprintln!("{text}");
            }
            waiting_for = waits;
        }
    }
    node.notices().iter().for_each(|notice| eprintln!("{notice}"));
}

/// Every node has these by the same names.
macro_rules! serving {
    ($($node:ty),*) => {
        $(impl Serving for $node {
            fn is_finished(&self) -> bool {
                <$node>::is_finished(self)
            }

            fn stop(&self) {
                <$node>::stop(self);
            }

            fn waiting_for(&self) -> Option<String> {
                <$node>::waiting_for(self)
            }

            fn notices(&self) -> Vec<Notice> {
                <$node>::notices(self)
            }
        })*
    };
}

serving!(SpiderNode, StoreNode, UrlNode);
