//! What a doc index does, as a store of others is asked for it.

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A URL that was found on a page.
pub struct Found<'a> {
    pub url: &'a [u8],
    pub host: u64,
    pub depth: u16,
    /// The page it was found on.
    pub via: u64,
}

/// What a fetch came to.
pub struct Fetched {
    pub at_us: u64,
    pub result: u8,
    pub etag: [u8; 32],
}

pub trait Peer {
    /// Notes the URL as pending if it is not known. True if it was not.
    fn discover(&mut self, found: &Found<'_>) -> Result<bool, Failure>;

    /// Takes pending URLs, at most [`PER_HOST`] of a host in one go, and goes on behind that host next time.
    fn candidates(&mut self, want: usize, into: &mut Vec<Vec<u8>>) -> Result<(), Failure>;

    /// Notes what the fetch of a candidate came to.
    fn record(&mut self, url: &[u8], fetched: &Fetched) -> Result<(), Failure>;

    /// Everything so far is to outlive the process. Called once in [`PAGES_PER_PERSIST`] pages.
    fn persist(&mut self) -> Result<(), Failure>;
}

pub const PER_HOST: usize = 8;
pub const PAGES_PER_PERSIST: u64 = 1_000;

/// In the order of a URL's life.
pub const PENDING: u8 = 0;
pub const OPEN: u8 = 1;
pub const DONE: u8 = 2;
