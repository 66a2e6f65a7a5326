//! Names to addresses, for the scheduler.
//!
//! ```text
//!   scheduler ── lookup(host) ──► address in the URL · localhost · hosts file ──► Known
//!                                     │ none of these
//!                                     ▼ questions ring                       names thread
//!                                 ResolverActor: Resolver over a Driver of its own ──► name servers
//!                                     │ answers ring, scheduler's doorbell
//!   scheduler ◄─ answer() ────────────┘
//! ```
//!
//! All addresses of a name are handed up: those of a hosts file in its order, those of name servers by turns of IPv6
//! and IPv4, IPv6 first on a machine that has a way there (RFC 8305, 4). The scheduler keeps those that the address
//! guard allows, and the addresses, not the name, go down to the shard: what was checked is what is connected to.
//!
//! A name that fails is judged only when it is clear that those who resolve names do not ([`NameTrust`]).
//!
//! No question is lost and no ring runs over: [`Names`] has no more questions open than the answers ring holds.

mod hosts_file;
#[expect(clippy::module_inception, reason = "the folder's one public face, in the file of its name")]
mod names;
mod resolv_conf;
mod resolver_actor;
mod route;
#[cfg(test)]
pub(crate) mod scripted;
mod trust;

pub use hosts_file::HostsFile;
pub use names::{Addresses, Lookup, Names};
pub use resolv_conf::ResolvConf;
pub use resolver_actor::Answered;
pub(crate) use trust::{NameFault, NameTrust, ServerWord, Verdict};
