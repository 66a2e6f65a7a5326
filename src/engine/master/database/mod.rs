//! `partner_domain` in PostgreSQL, shared by two masters: the first writer of a domain wins, both read the winner.
//!
//! ```text
//!   master ── ask ──► Postgres ── one ask at a time ──► Session, on the thread `database` ──► PostgreSQL
//!          ◄── answer, or "away" after 2 s ──┘ ◄── answers, late ones too ──┘
//! ```
//!
//! The connection is not encrypted: PostgreSQL is to be on a socket, on loopback or in a network of one's own. A URL that
//! asks for TLS is refused.
//!
//! | table              | holds                                                                                 |
//! |--------------------|---------------------------------------------------------------------------------------|
//! | `partner_domain`   | domain (the key), server, page_id, since, by, fence, moving_to, changed               |
//! | `partner_handover` | what a domain that was closed at its old server brings along: domain, fence, lines    |
//!
//! Both are made when they are missing; a `partner_domain` of `domain` and `server` is completed. `changed` is the number
//! of the transaction that last wrote a row, put there by a trigger, so that rows that a person writes are seen too.
//! Transactions do not commit in the order of their numbers: each reading goes on from the oldest transaction that was
//! still open at the one before, so that no row is missed, however late it was committed.

mod errors;
mod postgres_table;
mod schema;
mod session;

pub use postgres_table::Postgres;
pub use session::Stranger;
