use super::super::epoch::DomainBy;
use super::super::partner_domain::{MapRow, ServerId};
use crate::proto::reflog::Stamp;
use std::io;

/// What moves need of the master that they are part of.
pub trait MoveDesk {
    /// The row that this master goes by.
    fn row(&self, domain: &str) -> Option<MapRow>;

    /// Tells every row whose domain is fenced.
    fn fenced(&self, told: &mut dyn FnMut(MapRow));

    /// Tells domains of a server that are not fenced, at most so many.
    fn domains_of(&self, server: ServerId, max: usize) -> Vec<Box<str>>;

    /// Whether a server is configured.
    fn knows(&self, server: ServerId) -> bool;

    /// What domains are.
    fn by(&self) -> DomainBy;

    /// Seconds since 1970.
    fn now_s(&self) -> u32;

    /// Whether it gives its domains away.
    fn drains(&self, server: ServerId) -> bool;

    /// The server that a domain of a server that is drained goes to.
    fn place(&mut self, domain: &str, not: &dyn Fn(ServerId) -> bool) -> Option<ServerId>;

    /// The time up to which the node of a server has everything that this master was given.
    fn mark(&self, server: ServerId) -> Stamp;

    /// Tells the lines of a domain in the queue of a server, from a time on; without one, those that the node has not said
    /// to have.
    fn lines_of(
        &self,
        server: ServerId,
        domain: &str,
        since: Option<Stamp>,
        told: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()>;

    /// Adds entries to queues and sets rows: all of it durable, or none.
    fn commit(&mut self, commit: &MoveCommit) -> io::Result<()>;
}

/// What goes together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MoveCommit {
    pub entries: Vec<QueueEntry>,
    pub rows: Vec<MapRow>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub server: ServerId,
    /// Without its end.
    pub line: Vec<u8>,
}

impl MoveCommit {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.rows.is_empty()
    }
}
