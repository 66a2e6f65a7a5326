//! Feeds: what a site says is new.
//!
//! ```text
//!   bytes ──► gzip? ──► charset ──► begins with ──► `<` xml ──┐
//!             by its    mark, header,               `{` json ─┴► FeedEntry, one by one ──► FeedFacts
//!             magic     declaration, what fits                   url, guid, title, dates    title, hints, hub, damage
//! ```
//!
//! RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, CDF, JSON Feed and news sitemaps, as strangers make them. Elements count by
//! what they are called, whatever their case, prefix or namespace; only those that matter are looked into, and of the
//! rest only the end is searched for, which is what makes it fast. Text is borrowed from the document where it can be.
//!
//! Nothing that is declared in a document is expanded, and nothing is as deep as the document says. An entry counts when
//! it is closed: however a feed is cut or broken, what came before is told, and no part of a URL is taken for one.
//!
//! | file        | holds                                                                  |
//! |-------------|------------------------------------------------------------------------|
//! | `read`      | what kind of document it is, out of its coding                         |
//! | `decode`    | its text, whatever charset it says and has                             |
//! | `lexer`     | tags and text of anything like XML                                     |
//! | `names`     | elements that matter, by name and namespace                            |
//! | `xml`       | the walk over a document; `entry` gathers one entry, `hints` the words on when to ask |
//! | `json`      | JSON Feed                                                              |
//! | `plain`     | HTML as plain text, `entities` its references                          |
//! | `links`     | links made absolute                                                    |
//! | `date`      | dates in every form of the wild                                        |
//! | `title`     | the form of a title in which two that mean the same are equal          |
//! | `discovery` | feeds that a page or a header names                                    |
//! | `opml`      | lists of feeds, in and out                                             |

pub mod date;
mod decode;
pub mod discovery;
mod entities;
mod entry;
mod facts;
mod hints;
mod json;
mod lexer;
mod links;
mod names;
pub mod opml;
mod plain;
mod read;
#[cfg(test)]
mod tests;
pub mod title;
mod xml;

pub use facts::{FeedEntry, FeedError, FeedFacts, FeedFormat, FeedHints, FeedLimits, FeedSource};
pub use plain::plain;
pub use read::read;
