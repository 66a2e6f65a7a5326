//! The stories that have a word: who they are, how often each has it, and at which places.
//!
//! ```text
//!   a word's data:  [ heads: 20 bytes for each whole block ][ blocks of 128 stories ][ the last few ][ places ]
//!   a head:         last story · end of the block · end of its places · the best that is in it
//!   a block:        bits of a story · bits of a count · 128 gaps between stories, packed · 128 counts less one, packed
//!   the last few:   gap, and whether the count is one · count
//!   places:         of each story, the gaps between them
//! ```
//!
//! What a head says of the best is enough to tell that nothing in a block can be among the best found so far, in which case
//! the block is not read. Numbers outside of blocks have seven bits a byte.
//!
//! | file      | holds                                              |
//! |-----------|----------------------------------------------------|
//! | `bits`    | 128 numbers in as many bits as the largest needs   |
//! | `impacts` | the best of a block, whatever it will be ranked by |
//! | `writer`  | postings of one word, story by story               |
//! | `extent`  | bytes of a file, read as they are needed           |
//! | `cursor`  | a place in the postings of one word                |
//! | `places`  | where a word stands in the stories that have it    |

mod bits;
mod cursor;
mod extent;
mod impacts;
mod places;
mod writer;

pub(super) use cursor::{Cursor, NONE};
pub(super) use extent::{Extent, damaged};
pub(super) use places::{Places, skip_numbers};
pub(super) use writer::{PostingsWriter, each_posting};
