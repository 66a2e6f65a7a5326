use std::fmt;

/// The number of a node, as the map and the queues name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

impl ServerId {
    /// What a row names that can be no server. It is never configured, and the domain is held. (65,535 is no number of a
    /// server either: the map means "none" by it.)
    pub const STRANGER: ServerId = ServerId(u16::MAX - 1);
}

/// Who says that a domain is with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Rule,
    Person,
    Import,
}

/// A row of `partner_domain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRow {
    pub domain: Box<str>,
    pub server: ServerId,
    /// Where it moves to: the old server is asked to close it, and nothing of it is sent until it has.
    pub moving_to: Option<ServerId>,
    /// The page that the domain was first seen on.
    pub page: u64,
    /// When it came to this server, in seconds since 1970.
    pub since_s: u32,
    pub by: By,
    /// Raised with every move.
    pub fence: u32,
}

/// The table `partner_domain` that two masters share: PostgreSQL, or a stand-in in tests and simulation.
pub trait PartnerDomain {
    /// Rows that are new or have changed since it was last asked; all of them the first time.
    fn changes(&mut self) -> Result<Vec<MapRow>, DatabaseError>;

    /// Proposes rows for domains that are in none. The first writer wins: what stands for each is told, in the order of the
    /// proposals.
    fn settle(&mut self, proposals: &[MapRow]) -> Result<Vec<MapRow>, DatabaseError>;

    /// Changes a row if its fence is still `fence`. `false` if somebody else was first.
    fn change(&mut self, row: &MapRow, fence: u32) -> Result<bool, DatabaseError>;

    /// Keeps what a domain that is closed at its old server brings along, in lines, for the master of its new one.
    fn keep_handover(&mut self, domain: &str, fence: u32, lines: &[u8]) -> Result<(), DatabaseError>;

    fn handover(&mut self, domain: &str, fence: u32) -> Result<Option<Vec<u8>>, DatabaseError>;
}

/// Why the table cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseError {
    /// It does not answer; it is asked again later.
    Away(String),
    /// It has another shape than ours.
    Schema(String),
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseError::Away(cause) => write!(f, "the database does not answer: {cause}"),
            DatabaseError::Schema(cause) => write!(f, "partner_domain has another shape: {cause}"),
        }
    }
}

impl std::error::Error for DatabaseError {}
