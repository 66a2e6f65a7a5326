use crate::base::{named_enum, shown};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

named_enum! {
    /// What keeps URLs together on one node.
    #[derive(Default, Hash)]
    pub enum Spread {
        /// Their registered domain, private suffixes included: what somebody runs under `github.io` is a domain of its own.
        #[default]
        Domain = "domain",
        /// Their host, whatever the scheme and the port.
        Host = "host",
        /// Nothing: one site is spread over all nodes.
        Url = "url",
    }
}

/// A name that is no spread.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{0}\" is no spread: give domain, host or url")]
pub struct UnknownSpread(String);

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Spread {
    type Err = UnknownSpread;

    fn from_str(name: &str) -> Result<Spread, UnknownSpread> {
        let known = Spread::ALL.iter().copied().find(|spread| spread.name() == name);
        known.ok_or_else(|| UnknownSpread(shown(name, 40)))
    }
}
