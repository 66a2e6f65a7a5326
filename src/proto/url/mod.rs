//! URLs in one normal form.
//!
//! ```text
//!   text from a user ──── CrawlUrl::parse ────┐
//!                                             ├──► CrawlUrl   http://host[:port]/path[?query]
//!   link in a page ── LinkBase::resolve ──────┘              (no credentials, no fragment)
//! ```
//!
//! The normal form is that of the URL standard, with escapes as RFC 3986 would have them. Plain links, which are nearly all of them, are resolved by a
//! short path of ours; whatever is out of the ordinary goes to the `url` crate, which is also the oracle of the
//! tests. Settings may drop parameters from that form or sort them ([`Canon`]), and say by rules which URLs are meant
//! ([`UrlRules`]).

mod canon;
mod crawl_url;
mod escapes;
mod link_base;
mod normal;
mod public_suffixes;
mod rules;
mod surt;
mod url_view;

pub(crate) use canon::{Canon, QueryDrop};
pub use crawl_url::CrawlUrl;
pub(crate) use crawl_url::host_place;
pub use link_base::{LinkBase, LinkError};
pub(crate) use normal::is_normal;
pub(crate) use rules::{RecrawlRules, RuleList, RuleRef, UrlRules};
pub use url_view::UrlView;
pub(crate) use url_view::{Scheme, UrlError, registrable};
