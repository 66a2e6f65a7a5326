use super::super::ServerId;
use crate::base::named_enum;

/// A node that URLs are dealt to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    pub id: ServerId,
    /// How much it takes, compared with the others.
    pub capacity: f64,
    pub state: ServerState,
}

named_enum! {
    /// What a server may get.
    pub enum ServerState {
        /// New domains, too.
        Active = "active",
        /// Only what it has, until that is moved.
        Draining = "draining",
        /// The same; it is away, and its queue waits for it.
        Down = "down",
    }
}

impl Server {
    /// One of the usual size.
    pub fn new(id: u16) -> Server {
        Server { id: ServerId(id), capacity: 1.0, state: ServerState::Active }
    }
}
