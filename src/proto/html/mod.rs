//! HTML as a crawler reads it: the links of a page, and what the page says about following them.
//!
//! ```text
//!   body bytes ──► `<` by memchr ──► tag name ──► attributes ──► value ──► Fact
//!                  scan              scan         tag            value     base, link,
//!                  comments and      18 names     of 7 tags      &-refs,   canonical,
//!                  raw text skipped  matter       only           trimmed   refresh, robots
//! ```
//!
//! This is the tokenizer of the HTML standard cut down to start tags: what it calls a tag, a comment or an
//! attribute value is one here, to the byte, and a test holds the two side by side. There is no tree. What
//! only the tree builder knows is simplified:
//!
//! - `noscript` is read as markup, as by a browser without scripting;
//! - script, style, title and their like hold raw text also inside svg and math, unless self-closed there
//!   (`<title/>`), which is how drawing programs write them;
//! - `frame` and `base` count wherever they stand, and a template's links count too;
//! - the body begins at its tag, and not at the first thing that could only stand in one;
//! - of named character references the five of XML are decoded, the rest are left as they are.
//!
//! One pass, no recursion, no look at a byte twice but for a bounded number of bytes: a comment, tag or raw
//! text that never closes ends the scan, as it ends the page in a browser.
//!
//! [`about`] and [`check_shape`] read the same tokens for whoever takes the text out of a page: what it says about
//! itself, and what a tree of it would cost.

mod about;
mod fact;
mod meta;
#[cfg(test)]
mod oracle;
mod raw_text;
mod scan;
mod shape;
mod tag;
mod value;
mod words;

pub(crate) use about::{About, about};
pub use fact::Fact;
pub(crate) use fact::RobotsMeta;
pub use meta::REFRESH_DELAY_S_MAX;
pub use scan::scan;
pub(crate) use scan::scan_as;
pub(crate) use shape::{Misshapen, ShapeLimits, check_shape};
