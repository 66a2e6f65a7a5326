//! The extractor: the text of an article out of its page, and the texts that are kept.
//!
//! ```text
//!   page ──► shape ──► text: trafilatura or dom_smoothie ──► title, author, text
//!            bounded   (the one file that knows them)           │
//!       └──► page_date: JSON-LD, meta, <time> ──► date, with where it is from ──► StoryText ──► Texts ──► TextsView
//!                                       whatlang on the first 1,000 characters ──┘            DATA/stories/texts
//! ```
//!
//! [`Extractor::extract`] is a plain function over a page, and bounded in what it takes: a page that is too large,
//! nested too deep or made of too many elements is refused before a parser sees it. What bounds cannot keep out, a parser
//! that panics or does not come back, is held by threads of `engine::extraction`.
//!
//! | file         | holds                                                                           |
//! |--------------|---------------------------------------------------------------------------------|
//! | `extractor`  | from a page to what is kept of it                                               |
//! | `text`       | the parsers that find the text; without the cargo feature `extract`, `no_text`  |
//! | `page_date`  | when a page says that it was published, and where it says so                    |
//! | `language`   | two-letter names of languages                                                   |
//! | `story_text` | a text as a record: to bytes and back                                           |
//! | `log`        | records one after the other, whatever has happened to the file                  |
//! | `places`     | where the text of a story lies                                                  |
//! | `texts`      | the one writer                                                                  |
//! | `texts_view` | everybody else                                                                  |

mod extractor;
mod language;
mod log;
mod page_date;
mod places;
mod story_text;
#[cfg(test)]
mod tests;
#[cfg_attr(not(feature = "extract"), path = "no_text.rs")]
mod text;
mod texts;
mod texts_view;

pub use extractor::{ExtractDepth, Extracted, Extractor, Hints, RULES};
pub use page_date::DateFrom;
pub use story_text::StoryText;
pub use texts::Texts;
pub use texts_view::TextsView;
