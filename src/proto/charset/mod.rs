//! Character encodings: the text of an HTML document, whatever it is written in.
//!
//! ```text
//!   byte order mark ──► HTTP header ──► <meta>, <?xml ?> in 1,024 bytes ──► what the bytes look like
//!          │                 │                     │                               │
//!          └─────────────────┴──── first that says ┴───────────────────────────────┘
//!                                       ▼
//!             UTF-8, or ASCII only: the document as it is, no copy
//!             anything else:        transcoded into a buffer that is used again
//! ```
//!
//! The order is the HTML standard's, and so is the set of encodings: no UTF-7, and a `<meta>` cannot ask for UTF-16.
//! Two things go beyond it, because a crawler that reads no links has nothing: UTF-16 without any label is known
//! by its first bytes, and a label of UTF-16 on bytes that are not is passed over.
//!
//! Links are resolved in UTF-8, but for their query, which a browser sends in the encoding of the page that the
//! link stands on: [`encode_query`].

mod label;
mod prescan;
mod query;
mod reader;
#[cfg(test)]
mod tests;

pub use encoding_rs::Encoding;
pub use query::encode_query;
pub use reader::CharsetReader;
