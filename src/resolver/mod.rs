//! The resolver: names in, addresses out, over UDP and TCP to the name servers we were given.
//!
//! ```text
//!   ask(name) ──► cache ──► Known                      Pending: one Answer comes for the name, however often it
//!                   │                                  is asked meanwhile
//!                   ▼
//!   Lookup    A ────┬──► try: server 1, UDP ──► time-out ──► try: server 2 … (the first may still answer)
//!            AAAA ──┘       │ truncated, unreadable, strangely spelled
//!                           └──► the same server over TCP
//!                   │ both are in, or A is in and AAAA had 50 ms more, or there is no such name
//!                   ▼
//!                Answer ──► cache, for as long as its records live
//! ```
//!
//! - Every try has a socket, an id and a spelling of its own. The kernel draws the port and lets only the server
//!   in; what does not repeat id and question is passed over and the wait goes on, and a socket at which too much
//!   of it arrives is given up for TCP.
//! - A try that timed out goes on listening while the next one is out: a late answer is an answer.
//! - A server that keeps silent or refuses three times in a row is asked last for half a minute.
//! - "No such name" from either kind is final. Addresses of one kind are good without the other.
//!
//! The role is sans-IO, and everything in it has a bound: names open, sockets, cached answers, tries, and the time
//! until a name is answered.

mod cache;
mod lookup;
#[allow(clippy::module_inception)]
mod resolver;
mod servers;
#[cfg(test)]
mod tests;

pub use lookup::Failure;
pub use resolver::{Action, Asked, Resolver, ResolverConfig};
