use super::progress::Progress;
use super::signals::{Interrupt, Signals};
use super::{Failure, say};
use crate::engine::{
    Node, NodeError, Notice, Snapshot, SpiderNode, SpiderSummary, StoreNode, StoreSummary, Summary, UrlNode,
    UrlSummary,
};
use std::net::SocketAddr;

/// A node of any kind, while it runs.
pub(crate) trait Running: Sized {
    type Summary;

    fn is_finished(&self) -> bool;
    fn stop(&self);
    /// What it waits for, if it is more than the network.
    fn waiting_for(&self) -> Option<String>;
    /// Things a user should know that happened since this was last asked.
    fn notices(&self) -> Vec<Notice>;
    /// How far it is, where that is shown.
    fn snapshot(&self) -> Option<Snapshot>;
    fn finish(self) -> Result<Self::Summary, NodeError>;
}

/// What is said when a signal comes.
pub(crate) struct Farewell {
    pub stopping: &'static str,
    pub at_once: &'static str,
}

/// Shows progress, says what the node waits for and passes on signals until it has finished.
pub(crate) fn run_to_end<N: Running>(
    node: N,
    mut signals: Signals,
    farewell: &Farewell,
) -> Result<N::Summary, Failure> {
    let mut progress = Progress::new();
    let mut is_stopping = false;
    let mut waiting_for = None;
    while !node.is_finished() {
        let interrupt = signals.wait();
        if interrupt == Interrupt::AtOnce || (interrupt == Interrupt::Stop && is_stopping) {
            progress.say(&format!("stopped at once{}", farewell.at_once));
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
        progress.show(|| node.snapshot());
    }
    node.notices().iter().for_each(|notice| progress.say(&notice.text));
    progress.end();
    Ok(node.finish()?)
}

/// Says where a process listens, and whom it dials.
pub(crate) fn announce_links(process: &str, bound: Option<SocketAddr>, dials: &[String]) {
    bound.iter().for_each(|addr| say(&format!("{process}: listening on {addr}")));
    dials.iter().for_each(|addr| say(&format!("{process}: dialing {addr}")));
}

/// Every node has these by the same names.
macro_rules! running {
    ($node:ty, $summary:ty, $snapshot:expr) => {
        impl Running for $node {
            type Summary = $summary;

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

            fn snapshot(&self) -> Option<Snapshot> {
                ($snapshot)(self)
            }

            fn finish(self) -> Result<$summary, NodeError> {
                <$node>::finish(self)
            }
        }
    };
}

running!(Node, Summary, |node: &Node| Some(node.snapshot()));
running!(SpiderNode, SpiderSummary, |_| None);
running!(StoreNode, StoreSummary, |_| None);
running!(UrlNode, UrlSummary, |_| None);
