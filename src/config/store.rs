use std::path::PathBuf;

/// `[store]`
#[derive(Clone, Debug)]
pub struct StoreSettings {
    pub data: PathBuf,
    pub segment_bytes: u64,
    pub commit_ms: u64,
    pub dedup: Dedup,
    /// Fetching waits while the disk has less free than this. Without a figure: 64 MiB, or a twentieth of a small disk.
    pub free_bytes_min: Option<u64>,
    /// The oldest segments go when all of them take more than this.
    pub bytes_max: Option<u64>,
    pub history: History,
}

/// Which documents are not stored a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dedup {
    /// Every document is stored.
    Off,
    /// Those that are stored for the same URL.
    #[default]
    Url,
    /// Those that are stored for any URL.
    Any,
}

/// Which records stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// All of them.
    #[default]
    All,
    /// The newest of each URL: segments with much else in them are packed anew.
    Newest,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings {
            data: PathBuf::from("./nephila-data"),
            segment_bytes: 32 << 20,
            commit_ms: 20,
            dedup: Dedup::default(),
            free_bytes_min: None,
            bytes_max: None,
            history: History::default(),
        }
    }
}

impl Dedup {
    pub const NAMES: &str = "\"off\", \"url\" or \"any\"";

    pub fn from_name(name: &str) -> Option<Dedup> {
        match name {
            "off" => Some(Dedup::Off),
            "url" => Some(Dedup::Url),
            "any" => Some(Dedup::Any),
            _ => None,
        }
    }
}

impl History {
    pub const NAMES: &str = "\"all\" or \"newest\"";

    pub fn from_name(name: &str) -> Option<History> {
        match name {
            "all" => Some(History::All),
            "newest" => Some(History::Newest),
            _ => None,
        }
    }
}
