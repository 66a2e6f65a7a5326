//! The ground floor: time, keys, timers, hashes and the address guard.
//!
//! Nothing here knows of crawling, and nothing here reads a clock: a [`Now`] is handed down from the engine,
//! which gets it from a driver, which may be the real one or the simulated one.
//!
//! | file         | holds                                                               |
//! |--------------|---------------------------------------------------------------------|
//! | `now`        | monotonic and wall time as plain numbers                            |
//! | `civil`      | days as dates, and back                                             |
//! | `durations`  | how long things took, by buckets                                    |
//! | `front_code` | texts by what differs from the one before                           |
//! | `json`       | JSON in which only text is text                                     |
//! | `key`        | a slab index with a generation, and how it packs into a token       |
//! | `le`         | little-endian numbers at a place in bytes                           |
//! | `listed`     | lines of lists that people write: comments and marks of editors     |
//! | `net`        | what a role asks of the network, and the events it gets             |
//! | `named`      | enums whose variants have names that people write                   |
//! | `slots`      | a bounded slab whose keys go stale when a slot is reused            |
//! | `wheel`      | a hierarchical timer wheel, one millisecond a tick                  |
//! | `guard`      | addresses and ports we never connect to                             |
//! | `random`     | a number from the system that cannot be foreseen                    |
//! | `rng`        | a small seeded generator for the simulation and the driver seeds    |
//! | `sorted`     | maps and sets of few, in order                                      |
//! | `text`       | what came from the network, made safe for a terminal; edit distance |
//! | `varint`     | numbers in seven bits a byte                                        |
//! | `workers`    | who does work that can be shared                                    |

mod civil;
mod durations;
pub(crate) mod front_code;
mod guard;
mod json;
mod key;
mod le;
mod listed;
mod named;
mod net;
mod now;
mod random;
mod rng;
mod slots;
mod sorted;
mod text;
pub(crate) mod varint;
mod wheel;
mod workers;

pub(crate) use civil::Civil;
pub(crate) use durations::Durations;
pub(crate) use guard::{AddressGuard, canonical};
pub(crate) use json::write_json;
pub use key::Key;
pub(crate) use le::{u16_at, u32_at, u64_at};
pub(crate) use listed::{bytes_without_mark, listed, without_mark};
pub(crate) use named::named_enum;
pub(crate) use named::variant_by_name;
pub(crate) use net::{Accepted, NetAsk, NetError, Socket};
pub use net::{NetEvent, Transport};
pub use now::Now;
pub(crate) use now::{CLOCK_SET_S, Wall, rfc3339};
pub(crate) use random::random_u64;
pub use rng::Rng;
pub(crate) use slots::Slots;
pub(crate) use sorted::{SortedMap, SortedSet};
pub use text::shown;
pub(crate) use text::{counted, edits, grouped, plural, push_decimal, span};
pub(crate) use wheel::{RowWheel, TimerWheel};
pub use workers::{OneWorker, Workers};

/// Hash of a URL or a host name, for tables in memory. Never written to disk.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}
