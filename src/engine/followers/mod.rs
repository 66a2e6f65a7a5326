//! The content store elsewhere: followers of sealed segments, which copy every document into PostgreSQL or S3.
//!
//! ```text
//!   segments, sealed ──► Walk: the next batch ──► Target: PostgreSQL, S3 ── confirmed ──► Cursor, replaced whole
//!                          ▲ 1,000 records or 16 MiB         │ away: the same batch again, later
//!                          └──────── a kill repeats what was not noted as confirmed, and skips nothing
//! ```
//!
//! At least once: a batch is noted when the other side has it for good, and repeating one does nothing: rows have the key
//! (doc_id, fetched_at), objects are named by what is in them. Nothing waits for a follower but the end of a crawl, for a
//! while; what is wrong with the other side is told, and never ends a crawl. `nephila store follow` does the same at rest.
//!
//! The cursor has a line for every sealed segment: which are copied, and what each file was like then. Shards seal their
//! segments in any order, maintenance packs several into the number of the last, and retention cuts or drops them: a file
//! that is not what it was is followed anew, and one that goes before it was copied is counted and told.
//!
//! | file          | holds                                                                     |
//! |---------------|---------------------------------------------------------------------------|
//! | `cursor`      | how far a follower is, as a file                                          |
//! | `walk`        | from one batch to the next over a store that changes                      |
//! | `batch`       | records of one segment with their documents                               |
//! | `target`      | what followers ask of the other side                                      |
//! | `postgres`    | the table `content`                                                       |
//! | `schema`      | the shape of it                                                           |
//! | `s3`          | WARC files in a bucket                                                    |
//! | `http`        | one PUT over TCP or TLS                                                   |
//! | `follower`    | one step, and the actor that makes one after the other                    |
//! | `setup`       | which followers the settings ask for; their threads; all of it at rest    |

mod batch;
mod cursor;
mod follower;
mod http;
mod postgres;
mod s3;
mod schema;
mod setup;
mod target;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use setup::{ContentThreads, Copied, FollowersSetup};
