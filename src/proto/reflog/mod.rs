//! The reflog of a banner system: which URLs were asked for, when, and how often.
//!
//! ```text
//!   <batch_id> \t <priority> \t <timestamp> \t <page_id> \t <url> \t <hits> [\t <updatetag>]
//! ```

mod record;
mod stamp;

pub use record::ReflogRecord;
pub use stamp::Stamp;
