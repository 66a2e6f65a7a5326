//! Settings: defaults, then a TOML file, then what the data directory was told before, then flags, each winning over the
//! one before.
//!
//! ```text
//!   c.toml ──► File ──► [section] ──► Config ◄── Kept ◄── flags of commands ──► check ──► engine derives each role's own
//!              lines,   typed, with    rules over URLs and sites
//!              names    its defaults   are compiled as they are read
//! ```
//!
//! A setting is written once, in the file of its section: name, type, default, bounds, a sentence on what it does, what its flag
//! takes if it has one, and whether a crawl that runs can take a change of it. From there come the field, the reader, the check of its bounds, its line in
//! [`reference`], its `--help`, and its place in what a data directory keeps, unless it is told `once`. A new setting is a line there, its flag a line in `commands::settings`, and then its use.
//!
//! | file         | holds                                                                          |
//! |--------------|--------------------------------------------------------------------------------|
//! | `config`     | everything a node is told, and the relations between settings                  |
//! | `crawl`, `url_server`, `spider`, `store`, `doc_index`, `feeds`, `content`, `master`, `cluster`, `admin` | a section each |
//! | `auth`, `recrawl` | an entry of a list each                                                   |
//! | `database`   | where a database is, and how to get to it                                      |
//! | `section`    | how a section is written down                                                  |
//! | `units`      | times, sizes and rates                                                         |
//! | `file`       | a settings file, and what is said about its mistakes                           |
//! | `kept`       | what a data directory was told, and how it comes between file and flags        |
//! | `change`     | settings read again by a process that runs: what it takes, what needs a restart |
//! | `listing`    | every setting with its value and who said so                                   |
//! | `reference`  | every setting as a table, and as the help of a flag                            |
//! | `template`   | every setting as a comment of a file to begin with                             |
//!
//! Enums belong to the roles and protocols that act on them; this folder reads them by their names.

mod admin;
mod auth;
mod change;
mod cluster;
#[expect(clippy::module_inception)]
mod config;
mod content;
mod crawl;
mod database;
mod doc_index;
mod feeds;
mod file;
mod hints;
mod kept;
mod listing;
mod master;
mod recrawl;
mod reference;
mod section;
mod spider;
mod store;
mod template;
mod units;
mod url_server;

pub use admin::AdminSettings;
pub(crate) use change::{Change, Changed};
pub use cluster::{CLUSTER_RULES, ClusterSettings, CouncilPlace, PeerAddress, Takeover, cluster_rules};
pub use config::Config;
pub(crate) use config::{DriverChoice, Fault, Role};
pub use content::ContentSettings;
pub(crate) use content::{S3Access, S3Url};
pub(crate) use crawl::NameServer;
pub use crawl::{MasterAddress, Net};
pub use database::DatabaseAccess;
pub(crate) use doc_index::{DocIndexSettings, MEMORY_BYTES_MIN};
pub use feeds::FeedsSettings;
pub(crate) use file::{ConfigError, Mistake, Reading};
pub(crate) use kept::{FormerSettings, Kept, Layered};
pub(crate) use listing::{Listed, picked};
pub use master::{MasterSettings, SERVER_ID_MAX, Server};
pub(crate) use reference::{flag_help, flag_value, reference};
pub(crate) use spider::{Contact, SpiderSettings};
pub(crate) use store::StoreSettings;
pub(crate) use template::template;
pub use units::Rate;
pub(crate) use units::{Bytes, Millis, Seconds, millis, size, size_in};
