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
}
