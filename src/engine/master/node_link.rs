use crate::base::{Key, Now, SortedSet};
use crate::limits::MASTER_LINE_BYTES_MAX;
use crate::proto::lines::LineBuffer;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A connection of somebody who says that it is a node.
pub(super) struct NodeLink {
    pub key: Key,
    pub peer: SocketAddr,
    pub lines: LineBuffer,
    /// The servers that it speaks for; one, as a rule.
    pub servers: SortedSet<u16>,
    /// What it asked for and has not got, the first first.
    pub asks: VecDeque<Take>,
    /// Bytes that the kernel has not taken.
    pub unsent: usize,
    /// Below it entries were given on this link, or were the node's already.
    pub upto: Option<u64>,
    pub heard_at: Now,
    /// Bytes that were handed over since the last CLOSED.
    pub handed: usize,
    /// Why it is turned away has been told.
    pub is_told: bool,
}

/// A TAKE that is being answered.
pub(super) struct Take {
    pub server: u16,
    pub next: u64,
    pub left: u64,
    pub marked: bool,
    pub gave: bool,
    /// Then it is answered, whether something came or not.
    pub by: Now,
}

impl NodeLink {
    pub fn new(key: Key, peer: SocketAddr, now: Now) -> NodeLink {
        NodeLink {
            key,
            peer,
            lines: LineBuffer::of_lines(MASTER_LINE_BYTES_MAX),
            servers: SortedSet::new(),
            asks: VecDeque::new(),
            unsent: 0,
            upto: None,
            heard_at: now,
            handed: 0,
            is_told: false,
        }
    }
}
