use super::progress::Progress;
use super::signals::{Interrupt, Signals};
use super::{Failure, say};
use crate::engine::Running;
use std::net::SocketAddr;

/// What is said when a signal comes.
pub(crate) struct Farewell {
    pub stopping: &'static str,
    pub at_once: &'static str,
}

/// A node is about to be let go of, with so many pages.
#[derive(Clone, Copy)]
pub(crate) enum Leaving {
    /// The process ends as soon as this is heard.
    AtOnce { pages: u64 },
    /// It has finished, and sums up.
    InOrder { pages: u64 },
}

/// Shows progress, says what the node waits for and passes on signals until it has finished.
pub(crate) fn run_to_end<N: Running>(
    node: N,
    mut signals: Signals,
    farewell: &Farewell,
    mut leaving: impl FnMut(Leaving),
) -> Result<N::Summary, Failure> {
    let mut progress = Progress::new();
    let mut is_stopping = false;
    let pages = |node: &N| node.snapshot().map_or(0, |snapshot| snapshot.pages);
    let mut waiting_for = None;
    while !node.is_finished() {
        let interrupt = signals.wait();
        if interrupt == Interrupt::AtOnce || (interrupt == Interrupt::Stop && is_stopping) {
            progress.say(&format!("stopped at once{}", farewell.at_once));
            leaving(Leaving::AtOnce { pages: pages(&node) });
            std::process::exit(3);
        }
        if interrupt == Interrupt::Stop {
            progress.say(&format!("stopping: {}; a second signal stops at once", farewell.stopping));
            is_stopping = true;
            node.stop();
        }
        node.notices().iter().for_each(|notice| progress.say(&notice.text));
        let waits = node.waiting_for();
        if waits != waiting_for {
            waits.iter().for_each(|text| progress.say(text));
            waiting_for = waits;
        }
        progress.show(node.stop_switch().is_stopped(), || node.snapshot());
    }
    node.notices().iter().for_each(|notice| progress.say(&notice.text));
    progress.end();
    leaving(Leaving::InOrder { pages: pages(&node) });
    Ok(node.finish()?)
}

/// Says where a process listens, and whom it dials.
pub(crate) fn announce_links(process: &str, bound: Option<SocketAddr>, dials: &[String]) {
    bound.iter().for_each(|addr| say(format_args!("{process}: listening on {addr}")));
    dials.iter().for_each(|addr| say(format_args!("{process}: dialing {addr}")));
}
