//! The farm: a made-up web on loopback, for tests and benchmarks.
//!
//! ```text
//!   seed, shares            target                       bytes
//!   ┌──────────┐   ┌───────────────────────┐   ┌──────────────────────────┐
//!   │ SiteSpec │ → │ Site                  │ → │ Farm                     │ → 127.16.0.0:port  h0.farm.test
//!   └──────────┘   │ corpus, tree of pages │   │ a thread and a listener  │ → 127.16.0.1:port  h1.farm.test
//!                  │ kind, document, answer│   │ per core, epoll          │ → …
//!                  └───────────────────────┘   └──────────────────────────┘
//!                    pure: no I/O, no clock      the one place with sockets
//! ```
//!
//! A host is an address. Host `i` is called `h{i}.farm.test` and lives at 127.16.0.0 + `i`; the server finds
//! it from the local address of an accepted connection and pays no attention to `Host:`.
//!
//! A page is drawn. Whatever a page of a host is (a document, a redirect, an error, something broken) and
//! every byte of it follows from the seed, the host and the page, so a test computes what the crawler ought
//! to have stored without asking the server.
//!
//! The life of a request: [`Farm`] binds the listeners and starts the workers; a worker accepts and
//! turns readiness into calls of its `Conn`, which reads, cuts the head out (`request`), asks
//! [`Site::answer`] for the bytes and writes them, all within one call unless the site holds the answer back
//! or the peer's window is full.
//!
//! | file          | noun |
//! |---------------|------|
//! | `site_spec.rs` | what to make up: sizes and shares, checked; host names and addresses |
//! | `scenario.rs` | webs by name |
//! | `rng.rs`      | the seeded generator every draw comes from |
//! | `corpus.rs`   | a mebibyte of text that documents are cut from |
//! | `spread.rs`   | lengths and latencies that are drawn around a median |
//! | `site.rs`     | pages: tree, kinds, documents |
//! | `traps.rs`    | what traps crawlers: URLs without an end |
//! | `framing.rs`  | documents on the wire: lengths, chunks, gzip |
//! | `answer.rs`   | response bytes of a target, broken ones included |
//! | `misbehaviour.rs` | hosts that are slow or broken |
//! | `newsroom.rs` | feeds that post stories by the clock |
//! | `reflog.rs`   | a log of who asked for which pages |
//! | `request.rs`  | request heads |
//! | `conn.rs`     | one connection |
//! | `worker.rs`   | one thread: accept, readiness, timers |
//! | `listener.rs` | listening sockets |
//! | `names.rs`    | questions for the farm's names, and their answers |
//! | `name_server.rs` | the thread that answers them |
//! | `tls.rs`      | the farm's certificate, and TLS below requests where it is asked for |
//! | `farm_stats.rs` | counters |
//! | `farm.rs`     | the farm: threads, figures, seeds |
//! | `tests`       | the whole of it over sockets, plain and with TLS |

mod answer;
mod conn;
mod corpus;
#[allow(clippy::module_inception)]
mod farm;
mod farm_stats;
mod framing;
mod listener;
mod misbehaviour;
mod name_server;
mod names;
mod newsroom;
mod reflog;
mod request;
mod rng;
mod scenario;
mod site;
mod site_spec;
mod spread;
mod tls;
mod traps;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use answer::{Answer, Then};
pub use answer::{Asked, Resource};
pub(crate) use farm::FarmError;
pub use farm::{Farm, FarmOptions};
pub use framing::Packer;
pub use misbehaviour::Misbehaviour;
pub use names::{DNS_ANSWER_BYTES_MAX, FarmNames};
pub(crate) use newsroom::imf_date;
pub use newsroom::{FeedForm, FeedHabit, FeedQuestion, NewsSpec, Posted, STORIES_BEFORE, STORIES_LISTED};
pub use reflog::{ReflogMade, ReflogSpec, write_lines};
pub use scenario::Scenario;
pub use site::{Breakage, PageKind, Site};
pub(crate) use site_spec::host_name;
pub use site_spec::{SiteSpec, host_addr};
pub use traps::Trap;
