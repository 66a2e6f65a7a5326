//! A node among others: links between the nodes of a cluster, TCP underneath, words on top; and what a node does with what its
//! peers say.
//!
//! ```text
//!   PeerDesk:  Council (table, rights) · UrlPost (URLs) · ShareKeeping (what is ours) · Rounds (how far all are)
//!      │ ▲
//!   Wires::send ── PeerWord ──► frames ──► TLS ──► LinkPort ──► links thread
//!   Wires::take ◄── Up · Word · Down · Refused ◄── frames ◄── TLS ◄── LinkEvent
//!
//!   a link:   HELLO ◄─► HELLO, each judged      the higher number: TABLE_ASK, "I accept you"
//!                                               the lower number:  TABLE_ASK, "and this is the link"
//! ```
//!
//! | file            | holds                                                                                |
//! |-----------------|--------------------------------------------------------------------------------------|
//! | `introduction`  | who a node is, and what keeps two of them apart                                      |
//! | `peer_event`    | what the owner hears, and what it is asked                                           |
//! | `wire`          | one link: its TLS, its frames, how far the two have come                             |
//! | `dialing`       | addresses that are dialed, and those that rest while there is a link anyway          |
//! | `refusals`      | who was refused and why, each told once                                              |
//! | `wires`         | all links, one between two nodes                                                     |
//! | `council_desk`  | the council as a node takes part in it: the table and the rights                     |
//! | `hearsay`       | later tables that peers say they have                                                |
//! | `right_telling` | what others and the operator know of a node's right                                  |
//! | `leaving`       | a node that is drained, on its way out of the table                                  |
//! | `outside`       | a council outside of the nodes, and how it does                                      |
//! | `etcd`          | such a council in an etcd, on a thread of its own                                    |
//! | `etcd_line`     | one call after the other to its endpoints                                            |
//! | `node_files`    | what a node keeps on its disk                                                        |
//! | `index_asks`    | questions to the index of this node                                                  |
//! | `url_post`      | URLs to their owners, out of the ledger, and from others into the index              |
//! | `share_keeping` | the share that the index goes by, and partitions that are given away                 |
//! | `handing_over`  | partitions with URLs on their way to other nodes                                     |
//! | `giving`        | documents of other nodes into the index, and lines about their hosts into the journal |
//! | `arriving`      | those of other nodes on their way here                                               |
//! | `copy_desk`     | what outlasts a node, this one and others                                            |
//! | `follower`      | who is to have a copy, how far that is, and when it is left alone                     |
//! | `copying`       | what this node knows, on its way to the disk of the next one on the ring             |
//! | `copies`        | what others know, on the disk of this one                                            |
//! | `pages_out`     | the pages of this node, on their way there                                           |
//! | `held_segments` | what a follower has of them, and how many bytes that are                             |
//! | `pages_in`      | the pages of others, on the disk of this one                                         |
//! | `vouching`      | what others want to know before they let something go: it is on a second disk         |
//! | `verify_desk`   | whether nodes have what was promised: asked and told                                 |
//! | `inquiry`       | all nodes of the cluster, asked by this one                                          |
//! | `verifying`     | what this node has, compared with the copy of it                                     |
//! | `summing`       | sums of files, on a thread of its own                                                |
//! | `known_sum`     | the sum of the batches of a copy                                                     |
//! | `page_folders`  | where those lie                                                                      |
//! | `page_keeping`  | those of nodes that are gone, until they are stores of this one                      |
//! | `taking_over`   | what a node knew that is taken over, into the index of this one                      |
//! | `journal_tail`  | the journal of hosts as it grows                                                     |
//! | `calendar`      | times of this node that are told to others                                           |
//! | `ticket_desk`   | tickets of addresses: those that this node wants, and those that it keeps            |
//! | `ticket_file`   | what was lent, for the process that comes after this one                             |
//! | `rounds`        | how far every node is, round by round                                                |
//! | `seen`          | how a cluster stands, as one of its nodes sees it                                    |
//! | `peer_desk`     | what a node knows of its cluster, and what it answers to its peers                   |
//! | `peer_actor`    | all of it as one thread turns it                                                     |
//! | `setup`         | what a node is told of its cluster, and what its disk knows of it                    |
//!
//! Two nodes dial each other, often at the same time, and keep one link. The node with the lower number decides which: it
//! speaks on the link that it keeps and closes the other. A node without a number decides nothing; between two of them the
//! one that was dialed does. So the two never differ, and a link that is closed for another has carried no word of an owner.

mod arriving;
mod calendar;
mod copies;
mod copy_desk;
mod copying;
mod council_desk;
mod dialing;
mod etcd;
mod etcd_line;
mod follower;
mod giving;
mod handing_over;
mod hearsay;
mod held_segments;
mod index_asks;
mod inquiry;
mod introduction;
mod journal_tail;
mod known_sum;
mod leaving;
mod node_files;
mod outside;
mod page_folders;
mod page_keeping;
mod pages_in;
mod pages_out;
mod peer_actor;
mod peer_desk;
mod peer_event;
mod refusals;
mod returned;
mod right_telling;
mod rounds;
mod seen;
mod setup;
mod share_keeping;
mod summing;
mod taking_over;
#[cfg(test)]
mod tests;
mod ticket_desk;
mod ticket_file;
mod url_post;
mod verify_desk;
mod verifying;
mod vouching;
mod wire;
mod wires;

pub use etcd::EtcdCouncil;
pub(crate) use introduction::Introduction;
pub use node_files::NodeFiles;
pub use outside::{Decided, OutsideCouncil};
pub(crate) use page_folders::stores_of_others;
pub use peer_actor::PeerActor;
pub(crate) use peer_event::{Peer, PeerEvent, PeerOwner};
pub(crate) use setup::ActorParts;
pub use setup::{ClusterTold, PeersSetup};
pub use ticket_file::Boot;
pub(crate) use wires::Wires;

use crate::proto::peer_wire::PeerWord;

/// The way to peers that a link stands to.
trait Sends {
    fn send(&mut self, node: u16, word: &PeerWord<'_>);

    fn is_linked(&self, node: u16) -> bool;

    /// Whether a peer is linked and takes more.
    fn has_room(&self, node: u16) -> bool;
}
