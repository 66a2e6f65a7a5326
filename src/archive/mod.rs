//! Archives in and out of the store.
//!
//! ```text
//!   store ──► Selection ──► Capture ── WARC records ──► WarcFiles ──► FileOutput    export warc
//!              newest?     response, revisit,            gzip by  ├──► CountOutput  export cdxj: offsets only
//!              Originals   resource, request             record   └──► ZipOutput    export wacz
//!                                                           └──► Index ──► sorted lines
//!
//!   WARC files of any maker ──► WarcSource ──► Index                                export cdxj --warc
//!                                         └──► WarcDecoder ──► store                import warc
//! ```
//!
//! | file               | holds                                                                     |
//! |--------------------|---------------------------------------------------------------------------|
//! | `export`           | the scan of a store, and its result                                       |
//! | `selection`        | which records go out                                                      |
//! | `originals`        | the records that have the documents of references                         |
//! | `capture`          | a stored record as WARC records                                           |
//! | `http_head`        | a response head as it stands in an archive                                |
//! | `warc_files`       | records to files: names, sizes, compression                               |
//! | `memory`           | records as a WARC file in memory                                          |
//! | `output`           | where the bytes of files go: to disk, nowhere, into a ZIP                 |
//! | `index`            | CDXJ lines, gathered and sorted                                           |
//! | `wacz`             | a WARC, its index and its pages in one ZIP                                |
//! | `warc_source`      | a WARC file, its members and the way past its damage                      |
//! | `warc_decoder`     | a WARC record as a record of the store                                    |
//! | `stored_originals` | the documents that revisits of an import refer to                         |
//! | `import`           | files into a store                                                        |
//!
//! An export of the same data has the same bytes: ids follow from the records, and dates are theirs.

mod capture;
mod export;
mod http_head;
mod import;
mod index;
mod memory;
mod originals;
mod output;
mod selection;
mod stored_originals;
#[cfg(test)]
mod tests;
mod wacz;
mod warc_decoder;
mod warc_files;
mod warc_source;

pub use export::{ArchiveError, Export, Exported};
pub use import::{Import, Imported};
pub use index::{index_export, index_files};
pub use memory::warc_of;
pub use wacz::export_wacz;
pub use warc_source::Fault;
