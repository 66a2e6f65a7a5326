//! The audit: reads a crawl log and proves its promises, or shows the lines that break one.
//!
//! ```text
//!   lines of crawl.log ──► LogReader ──► rows by host, by send time ──► Timeline ──► tallies, violations
//!   of one or more         torn?      rows by address                 one of each   Report
//!   processes              which run?
//! ```
//!
//! What is checked, with arithmetic of its own and not the url server's:
//!
//! | promise                                                                                 | of            |
//! |-----------------------------------------------------------------------------------------|---------------|
//! | the gap since the last request is at least 1/rate and `delay_factor` × the latest response time (up to 30 s; neither at a rate of 0) | host, address |
//! | it is at least the Crawl-delay (up to 300 s)                                            | host          |
//! | after 429 or 503 nothing is asked for Retry-After (up to 24 h), nor for twice the gap before it, at least 1 s, counted from the end of that answer | host |
//! | no more are open at once than allowed                                                   | host, address |
//! | a feed is asked for when it is due, and not before                                      | line          |
//! | a page is asked for after robots.txt of its origin was known, at most a day after, and not after it was unreachable | host |
//!
//! A host is an origin: scheme, name and port. The rules are those of the run that wrote the line. What is known
//! when a request is decided upon counts, so an answer that comes while its connection is being made (`wait=` in
//! the line) does not bind it. Recovery from a 429 is not checked, only the pause right after it.
//!
//! Logs of several nodes are judged together: a host by all of them, so that a domain that moved from one to another was
//! asked by one at a time, with every pause kept across the move; an address by each node, as each has its own budget.
//!
//! A log may be in parts. If one is missing, a page that may have been asked for by what it says of robots.txt is counted,
//! and not judged by it; everything else that is missing could only make a request look better.
//!
//! Memory: [`ROW_BYTES`] for each request and each host's name once; while one host or address is judged, 36 more
//! for each of its requests.

mod log_reader;
mod report;
mod row;
#[cfg(test)]
mod tests;
mod timeline;

pub use log_reader::{LogReader, Overrides};
pub use report::{Gap, Kind, Place, Report, Subject, Tally, Violation};
