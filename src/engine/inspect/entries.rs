use crate::engine::inspect::handed::Taken;

/// Entries of a master's queue, a line each, in their order.
pub struct Entries {
    pub text: Vec<u8>,
}

/// What became of them; they are on disk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entered {
    pub taken: Taken,
    /// The first of those that could not be read, and why.
    pub first_bad: Option<String>,
    /// Domains that were closed and opened, in that order.
    pub moves: Vec<DomainMove>,
    /// Lines of the journal of hosts that moved here.
    pub nice: String,
}

/// A domain goes to another server, or comes from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainMove {
    Closed { domain: Box<str>, fence: u32 },
    Opened { domain: Box<str>, fence: u32 },
}

/// What came of writing down what a closed domain brings along.
#[derive(Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// Something of it is still with a shard, or on its way from one.
    NotYet,
    /// So many URLs. A process without a directory has it here.
    Whole { urls: u64, kept: Option<Vec<u8>> },
    /// The disk refuses it, for now.
    Refused(String),
}
