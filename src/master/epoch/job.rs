use super::current_log::CurrentLog;
use super::id_key::IdKey;
use crate::base::{Workers, named_enum};
use crate::master::InputFile;
use std::io::Write;
use std::path::Path;

/// What an epoch is made of.
pub struct JoinJob<'a> {
    /// In their order: of two lines with one time, the later counts.
    pub inputs: &'a [InputFile],
    /// Lines that could not be sent before. They come first, and their hits have been counted.
    pub held: Option<&'a Path>,
    /// The time of the epoch, in seconds since 1970.
    pub now_s: u32,
    /// How far logs have come: what was sent is forgotten by this time, which is at most `now_s`. Logs that are behind the
    /// clock are joined with rows that are as old as they are.
    pub horizon_s: u32,
    pub current: Option<&'a CurrentLog>,
    pub rules: JoinRules,
    pub key: &'a IdKey,
    pub canon: &'a dyn UrlCanon,
    pub workers: &'a dyn Workers,
    /// A directory for what memory has no room for. Nothing is left there.
    pub work: &'a Path,
    /// One line each: file, line, reason, hits, and how it begins.
    pub rejects: &'a mut (dyn Write + Send),
}

/// What an epoch goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRules {
    /// A URL is not sent again within this time, unless its tag changes.
    pub resend_after_s: u32,
    /// Lines may come so much later than their time says, and our clock may be ahead so much: what was sent is known for as
    /// much longer.
    pub late_s: u32,
    /// A time that is further ahead than this counts as now.
    pub ahead_s: u32,
    /// How long hits wait for the next sending.
    pub keep_repeats_s: u32,
    pub by: DomainBy,
    pub memory_bytes: usize,
}

/// How far ahead of its master a sender's clock may be.
pub const AHEAD_S: u32 = 60;

impl Default for JoinRules {
    fn default() -> JoinRules {
        JoinRules {
            resend_after_s: 3_600,
            late_s: 0,
            ahead_s: AHEAD_S,
            keep_repeats_s: 36_000,
            by: DomainBy::Registrable,
            memory_bytes: 1 << 30,
        }
    }
}

named_enum! {
    /// What URLs are dealt by.
    #[derive(Default)]
    pub enum DomainBy {
        /// The part of the host that somebody registered, by the list of public suffixes; the host where there is none.
        #[default]
        Registrable = "domain",
        Host = "host",
    }
}

/// Which URLs are one: what an id is made of.
pub trait UrlCanon: Sync {
    /// Whether every URL stands for itself.
    fn is_identity(&self) -> bool;

    /// The form of a URL that is in normal form. Nothing is copied unless something changes.
    fn apply<'a>(&self, url: &'a str, scratch: &'a mut String) -> &'a str;
}

/// Every URL stands for itself.
pub struct AsWritten;

impl UrlCanon for AsWritten {
    fn is_identity(&self) -> bool {
        true
    }

    fn apply<'a>(&self, url: &'a str, _: &'a mut String) -> &'a str {
        url
    }
}
