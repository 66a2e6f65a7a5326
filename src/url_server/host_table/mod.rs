//! The table of hosts: one row for each, its waiting URLs, its window of open requests, and the addresses that hosts
//! share. The fields of a row are visible in this folder only; the rest of the role uses the methods of [`Hosts`].
//!
//! | file                       | holds                                                                     |
//! |----------------------------|---------------------------------------------------------------------------|
//! | `hosts`                    | the table as a whole: rows, queues, addresses, memory                     |
//! | `host`, `robots_state`     | one row of 80 bytes, and what is known of its robots rules                |
//! | `host_index`, `host_names` | which row a host has, which rows are idle, and the names end to end       |
//! | `url_arena`                | the waiting URLs of all hosts in one arena                                |
//! | `window`, `in_flight`      | requests that are with a spider, per host and all together                |
//! | `address_table`            | addresses, and the hosts that take turns at one                           |
//! | `fallback`                 | the addresses of a host that has several, tried one after the other       |
//! | `host_memory`, `journal`   | what outlives a row and, as lines of a journal, the process               |

mod address_table;
mod fallback;
mod host;
mod host_index;
mod host_memory;
mod host_names;
mod hosts;
mod in_flight;
mod journal;
mod robots_state;
mod url_arena;
mod window;

pub(super) use host::{HAS_REMOTE_ROBOTS, Host, NO_SPIDER, RESTING, WaitsIn};
pub use host_memory::HostMemory;
pub(super) use hosts::Hosts;
pub(super) use in_flight::InFlight;
pub(super) use journal::Journal;
pub use journal::{Clock, compacted};
pub(super) use robots_state::{NextHop, RobotsState};
pub(super) use window::{Active, Work};
