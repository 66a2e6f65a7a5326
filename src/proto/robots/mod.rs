//! robots.txt (RFC 9309): what one host asks of one agent.
//!
//! ```text
//!   file bytes ──► lines ──► groups ──► patterns ──► Robots ──► allows(path?query)
//!                  parse     parse      pattern      rules      crawl_delay_ms, sitemaps
//!                  BOM, CR,  ours, else canonical    longest
//!                  LF, "#"   "*", else  %-escapes    first
//!                            nothing
//! ```
//!
//! The life of a file: the fetcher hands its bytes over once. Lines are read into groups; the groups that
//! name our product token are merged, or else those for `*`. Only the rules of that choice are kept: put in
//! canonical escapes, sorted longest first, and laid end to end in one arena. A question puts the path in
//! the same escapes and walks the rules; the first that matches is the verdict.
//!
//! `Clean-param` is no rule of access: [`clean_params`] reads it out of the same bytes for whoever asks.
//!
//! What the HTTP status of the fetch means (4xx: no rules, 5xx: everything disallowed) is for the caller;
//! so are the cap on Crawl-delay and the age of a cached file.

mod agent;
mod clean_param;
mod parse;
mod pattern;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use agent::product_token;
pub use clean_param::{CLEAN_PARAM_BYTES_MAX, CLEAN_PARAMS_MAX, CleanParam, clean_params};
pub use parse::{ROBOTS_BYTES_MAX, RULES_MAX, SITEMAP_BYTES_MAX, SITEMAPS_MAX};
pub use rules::Robots;
