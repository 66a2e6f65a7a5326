use super::section::settings;
use super::spider::WEEK_MS;
use super::units::{Bytes, Millis};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::store_server::{Compress, Dedup, History};
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    /// Where documents are stored, which of them, and for how long.
    "[store]" StoreSettings {
        /// The data directory: documents, URLs, log.
        data: PathBuf = PathBuf::from("./nephila-data"), flag "DIR", told once;
        /// Bytes of a segment; a document of max_doc_size must fit into it.
        segment_bytes: Bytes = Bytes(32 << 20), in 1 to SEGMENT_BYTES_MAX;
        /// Time between two commits: until then what was fetched may be fetched again after a crash.
        commit_ms: Millis = Millis(20), in 1 to WEEK_MS, live now;
        /// Which documents are not stored a second time: "off" none, "url" those of the same URL, "any" those of any URL.
        dedup: Dedup = Dedup::default();
        /// How documents are compressed: "plain" each by itself, "template" against an earlier page of its host where that pays.
        compress: Compress = Compress::default(), flag "HOW";
        /// Fetching waits while the disk has fewer bytes free; unset, 64 MiB or a twentieth of a small disk.
        free_bytes_min: Option<Bytes> = None, live now;
        /// The oldest segments go when all of them take more bytes; 0 = no limit.
        bytes_max: Bytes = Bytes(0);
        /// Which records stay: "all" of them, or the "newest" of each URL.
        history: History = History::default();
        /// A part of crawl.log is finished, and another begun, before it has more bytes; 0 = no limit.
        log_bytes: Bytes = Bytes(1 << 30), flag "BYTES";
        /// The oldest finished parts of crawl.log go when there are more, and can be audited no more; 0 = all stay.
        log_parts_max: u32 = 0;
        /// Where spiders may dial in to `nephila storeserver`, as by --listen.
        listen: Option<SocketAddr> = None, told once;
    }
}
