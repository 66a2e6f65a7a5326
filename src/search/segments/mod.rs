//! Segments: stories, their words and where these stand, each in one file that never changes.
//!
//! ```text
//!   magic │ what is shown of stories │ data of words │ dictionary │ its index │ index of what is shown
//!         │ lengths │ times │ stories by their numbers │ footer
//! ```
//!
//! Stories have numbers of their own in a segment, in the order in which they came. Data of words lies in the order of the
//! dictionary, whose keys begin with their field. A story that was replaced stays, and a file beside the segment says that it
//! is gone, until segments are merged.
//!
//! | file         | holds                                                        |
//! |--------------|--------------------------------------------------------------|
//! | `output`     | a file on its way, with its checksum                         |
//! | `footer`     | where everything is                                          |
//! | `dictionary` | words, and where their data is                               |
//! | `shown`      | what is shown of a story                                     |
//! | `writer`     | a segment on its way                                         |
//! | `segment`    | a segment as readers have it                                 |
//! | `gone`       | stories of a segment that were replaced                      |
//! | `merge`      | several segments as one, in steps                            |

mod dictionary;
mod footer;
mod gone;
mod merge;
mod output;
mod segment;
mod shown;
mod writer;

pub(super) use dictionary::Found;
pub(super) use footer::Lengths;
pub(super) use gone::Gone;
pub(super) use merge::Merge;
pub(super) use segment::Segment;
pub(super) use shown::{Shown, ShownBlocks};
pub(super) use writer::{Columns, NO_TIME, SegmentWriter, TIMES, WordWriter};
