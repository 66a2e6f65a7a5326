//! Archives in and out of the store.
//!
//! ```text
//!   store ──► Selection ──► Capture ── WARC records ──► WarcFiles ──► FileShelf     export warc
//!              newest?     response, revisit,            gzip by  ├──► CountShelf   export cdxj: offsets only
//!              Originals   resource, request             record   └──► ZipShelf     export wacz
//!                                                           └──► Index ──► sorted lines
//!
//!   WARC files of any maker ──► WarcSource ──► Index                                export cdxj --warc
//!                                         └──► Importer ──► store                   import warc
//! ```
//!
//! | file         | holds                                                                     |
//! |--------------|---------------------------------------------------------------------------|
//! | `export`     | the walk over a store, and what it came to                                |
//! | `selection`  | which records go out                                                      |
//! | `originals`  | the records that have the documents of references                         |
//! | `capture`    | a stored record as WARC records                                           |
//! | `http_head`  | a response head as it stands in an archive                                |
//! | `warc_files` | records to files: names, sizes, compression                               |
//! | `shelves`    | where the bytes of files go: to disk, nowhere, into a ZIP                 |
//! | `index`      | CDXJ lines, gathered and sorted                                           |
//! | `wacz`       | a WARC, its index and its pages in one ZIP                                |
//! | `source`     | a WARC file, its members and the way past its damage                      |
//! | `intake`     | a WARC record as a record of the store                                    |
//! | `import`     | files into a store                                                        |
//!
//! An export of the same data has the same bytes: ids follow from the records, and dates are theirs.

mod capture;
mod export;
mod http_head;
mod import;
mod index;
mod intake;
mod originals;
mod selection;
mod shelves;
mod source;
#[cfg(test)]
mod tests;
mod wacz;
mod warc_files;

pub use export::{ArchiveError, Export, Exported};
pub use import::{Import, Imported};
pub use index::{index_export, index_files};
pub use source::Fault;
pub use wacz::export_wacz;
