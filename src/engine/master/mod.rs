//! The master as a process: what it needs of the outside world.
//!
//! `database` is the table `partner_domain` in PostgreSQL, that two masters share.

mod database;

pub use database::{DatabaseUrl, Postgres, Stranger};
