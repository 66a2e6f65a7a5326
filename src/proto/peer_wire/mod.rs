//! What nodes of a cluster say to each other over a stream: words, each in a frame.
//!
//! ```text
//!   PeerWord ── write ──► bytes, however cut ──► FrameBuffer ──► Frame ── word ──► PeerWord
//! ```
//!
//! | word                            | says                                          | is answered by               |
//! |---------------------------------|-----------------------------------------------|------------------------------|
//! | `HELLO`                         | who this is, of which cluster and by which rules | `HELLO` or `REFUSED`      |
//! | `TABLE_ASK`                     | the epoch of the table that is known here     | `TABLE`                      |
//! | `PREPARE`, `ACCEPT`             | a ballot for a register, to a disk of a voter | `PROMISE`, `ACCEPTED`, `LATER`, `NO_VOTE` |
//! | `URLS`                          | a batch of URLs that are the receiver's       | `COUNTED` or `NOT_MINE`      |
//! | `WANT`                          | addresses that are to be asked, by asks       | `GRANT` or `WAIT`, for each  |
//! | `BACK`                          | addresses that are given back                 | –                            |
//! | `BEAT`                          | the last beat of a node that is known         | –                            |
//! | `STATUS_ASK`                    | how far a node is, in a round                 | `STATUS`, which also comes unasked |
//! | `MOVE`                          | documents of partitions that the receiver is to get, with what became of them, and lines about their hosts | `MOVED`, with the sums of all that came |
//! | `COPY`                          | all that the sender knows, and what changes of it, for who would take it over | `COPIED`     |
//! | `PAGES_ASK`                     | which stores the sender has                   | `PAGES_HELD`, with what there is of them |
//! | `PAGES`                         | bytes of a segment                            | `PAGES_HELD`, when they are durable |
//! | `PAGES_GONE`, `PAGES_UPTO`      | segments that the sender has no more; that all pages are told | –            |
//! | `VERIFY_ASK`                    | the receiver is to compare what it has with its copy | `VERIFIED`, some times on the way and at the end |
//! | `SUM_ASK`                       | the copy of a segment of the sender, or of what it knows, up to a place | `SUM`, with the digest of it |
//!
//! `COUNTED` stands for its batch and all before it. Numbers are little-endian and of fixed size, texts and values have
//! their length before them; only the items of a batch are coded more tightly. A word is whole and right or it is an
//! error, and an error is for good: the link is closed.

mod ballot;
mod beat;
mod fields;
mod frame;
mod frame_buffer;
mod frame_error;
mod hello;
mod move_batch;
mod pages;
mod peer_word;
mod register;
mod status;
#[cfg(test)]
mod tests;
mod ticket;
mod ticket_key;
mod url_batch;
mod url_item;
mod verify;

pub use ballot::Ballot;
pub use beat::Beat;
pub use frame::{FRAME_HEADER_BYTES, Frame, FrameKind};
pub use frame_buffer::FrameBuffer;
pub use frame_error::FrameError;
pub use hello::Hello;
pub use move_batch::{MoveBatch, MoveBuilder, MoveItem, Moved, print_of};
pub use pages::{CopiedStore, StoreName};
pub use peer_word::PeerWord;
pub use register::Register;
pub use status::{NodeState, STATUS_BYTES, Status};
pub use ticket::{Back, Grant, Wait, Want};
pub use ticket_key::TicketKey;
pub use url_batch::{PushError, UrlBatch, UrlBatchBuilder, UrlItems};
pub use url_item::{Found, UrlItem, UrlNews};
pub use verify::{ShortKind, Shortfall, Sum, SumOf, Verified};
