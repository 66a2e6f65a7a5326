//! Cookies for the length of a crawl: a small jar for each origin (RFC 6265bis, cut down to a crawler).
//!
//! ```text
//!   Set-Cookie ──► SetCookie ──► may this origin ──► CookieJar ──► write ──► Cookie
//!                  name, value,  set it?             by origin,    path, expiry;
//!                  attributes    prefix, Secure,     bounded       longest path first,
//!                                Domain                            then oldest
//! ```
//!
//! What a browser does and we do not:
//!
//! - A cookie goes back to the scheme, host and port that set it, and nowhere else. `Domain` can only get a cookie
//!   refused, never sent to more hosts. A crawler meets thousands of hosts that do not trust each other, follows
//!   redirects between them, and has no list that tells it which neighbours are one site; crawlers that shared
//!   cookies or credentials beyond the origin have leaked them (Scrapy's CVE-2024-3574 is one).
//! - Nothing is kept beyond the crawl: `Expires` and `Max-Age` only shorten a cookie's life.
//! - A cookie without a name is refused. `HttpOnly`, `SameSite` and `Partitioned` mean nothing without scripts and
//!   frames.
//!
//! Everything is bounded: hosts, cookies of a host, bytes of a cookie, of the jar and of one request. A host beyond
//! that drives out the one that was unused longest.

mod cookie_date;
mod jar;
#[cfg(test)]
mod model;
mod set_cookie;

pub use jar::CookieJar;
