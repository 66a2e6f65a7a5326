//! What the threads of a master tell each other.

use crate::master::queue::QueueReader;

/// From the one who makes epochs to the one who speaks with nodes.
pub(crate) enum ToNodes {
    /// There may be more in the queues.
    Committed,
    /// The servers that may ask, each with its queue; others are refused. The other master must go by the same terms.
    Servers { readers: Vec<QueueReader>, terms: u64 },
    /// What a closed domain brings along is durable: its node may forget it.
    Fenced { server: u16, domain: String },
}

/// What a node said that is not about its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeReport {
    pub server: u16,
    /// What was handed over on one link belongs together, and counts when it was closed on it.
    pub link: u64,
    pub said: Said,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Lines of what a domain brings along, each as `URL …` or `NICE …` with its LF; more of them may follow.
    Handed {
        domain: String,
        lines: Vec<u8>,
    },
    Closed {
        domain: String,
    },
    /// Its link is no more: what it had begun to hand over comes again.
    Gone,
    Page {
        status: u16,
        digest: u64,
        canonical: Option<String>,
        url: String,
    },
    Clean {
        origin: String,
        rule: String,
    },
}
