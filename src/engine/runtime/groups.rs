//! Figures that come many at a time, one for each value of a label: the length of each group and the names of its values.

use crate::base::Durations;
use crate::proto::record::ResultCode;
use crate::url_server::WaitsFor;

macro_rules! groups {
    ($( $(#[$doc:meta])* $group:ident = $labels:expr; )*) => {
        /// A group of figures of one kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Group { $( $(#[$doc])* $group, )* }

        impl Group {
            pub const ALL: &[Group] = &[ $( Group::$group, )* ];

            /// What each of its figures is called.
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $( Group::$group => $labels, )* }
            }
        }
    };
}

groups! {
    /// Documents that were answered for, by what came of them, in the order of [`ResultCode::ALL`].
    Results = &RESULTS;
    /// Responses by their status: [`STATUSES`], then all others.
    Statuses = &STATUSES;
    /// Requests for robots.txt.
    Robots = &["known", "redirect", "unreachable"];
    FetchTimes = &DURATIONS;
    /// Connections by how a request came by one.
    Connections = &["new", "reused", "stale", "failed"];
    Handshakes = &["full", "resumed", "failed"];
    /// Hosts by what their next URL waits for.
    HostStates = &HOST_STATES;
    /// Pauses beyond the plain one, by what asked for them.
    BackOffs = &["penalty", "retry_after", "failures", "set_aside", "robots"];
    /// Requests whose pause was checked as they went out.
    Checked = &["host", "address"];
    Violations = &["host_gap", "address_gap"];
    /// The smallest margin of each, in microseconds, negative as two's complement.
    Margins = &["host", "address"];
    Leftovers = &["memory", "disk"];
    IndexUrls = &["pending", "handed_out", "waiting", "success", "error", "excluded"];
    Links = &["new", "known", "over_budget", "out_of_scope"];
    /// Polls of feeds that ended, by what they brought.
    Polls = &["listing", "not_modified", "redundant", "redirect", "failed"];
    /// Entries of feeds, by what was made of them.
    FeedEntries = &["new", "known_url", "known_guid", "known_title", "skipped"];
    Feeds = &["active", "paused", "gone"];
    /// Stories that were fetched, by whether they got a text.
    Texts = &["made", "failed"];
    IndexMemory = &["seen", "frontier", "other"];
    IndexDisk = &["ledger", "documents", "seen", "frontier"];
    /// Entries of a master's queue, by what the doc index made of them.
    FromMaster = &["new", "known", "moved_up", "due", "refused", "bad"];
    /// Reports for the parameters that a master learns.
    MasterReports = &["sent", "dropped"];
    Records = &["whole", "reference", "unchanged"];
    Segments = &["open", "sealed"];
    /// Documents that each follower has copied, and that the other side refused; its segments that wait, and that went
    /// before they were copied.
    ContentCopied = FOLLOWERS;
    ContentRefused = FOLLOWERS;
    ContentWaiting = FOLLOWERS;
    ContentGone = FOLLOWERS;
    CommitTimes = &DURATIONS;
    Lookups = &["ok", "no_such_name", "no_address", "servers_failed", "timed_out"];
    NameCache = &["hit", "miss"];
    LookupTimes = &DURATIONS;
    Stages = &["receive", "network", "parse", "compress", "record", "start"];
}

/// Where documents are copied to, beside the store.
pub(crate) const FOLLOWERS: &[&str] = &["postgres", "s3"];

/// Statuses that have a figure of their own.
pub(crate) const STATUSES: [&str; 65] = [
    "200", "201", "202", "203", "204", "205", "206", "207", "208", "226", "300", "301", "302", "303", "304",
    "305", "307", "308", "400", "401", "402", "403", "404", "405", "406", "407", "408", "409", "410", "411",
    "412", "413", "414", "415", "416", "417", "418", "421", "422", "423", "424", "425", "426", "428", "429",
    "431", "444", "451", "499", "500", "501", "502", "503", "504", "505", "508", "509", "511", "520", "521",
    "522", "523", "525", "999", "other",
];

/// The place of a status among [`STATUSES`].
pub(crate) fn status_at(status: u16) -> usize {
    STATUS_PLACES.get(usize::from(status)).map_or(STATUSES.len() - 1, |&at| usize::from(at))
}

/// The place of a result in its group.
pub(crate) fn result_at(result: ResultCode) -> usize {
    usize::from(RESULT_PLACES[result as usize])
}

const STATUS_PLACES: [u8; 1_000] = {
    let mut places = [STATUSES.len() as u8 - 1; 1_000];
    let mut at = 0;
    while at < STATUSES.len() - 1 {
        let digits = STATUSES[at].as_bytes();
        let status = (digits[0] - b'0') as usize * 100
            + (digits[1] - b'0') as usize * 10
            + (digits[2] - b'0') as usize;
        places[status] = at as u8;
        at += 1;
    }
    places
};

const RESULT_PLACES: [u8; 256] = {
    let mut places = [0; 256];
    let mut at = 0;
    while at < ResultCode::ALL.len() {
        places[ResultCode::ALL[at] as usize] = at as u8;
        at += 1;
    }
    places
};

const RESULTS: [&str; ResultCode::ALL.len()] = {
    let mut names = [""; ResultCode::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ResultCode::ALL[at].name();
        at += 1;
    }
    names
};

/// Ready, open, each of [`WaitsFor::ALL`], set aside, idle.
const HOST_STATES: [&str; WaitsFor::ALL.len() + 4] = {
    let mut names = ["set_aside"; WaitsFor::ALL.len() + 4];
    names[0] = "ready";
    names[1] = "open";
    let mut at = 0;
    while at < WaitsFor::ALL.len() {
        names[at + 2] = WaitsFor::ALL[at].name();
        at += 1;
    }
    names[names.len() - 1] = "idle";
    names
};

/// A histogram has buckets and a sum, and no names.
const DURATIONS: [&str; Durations::FIGURES] = [""; Durations::FIGURES];

impl Group {
    /// How many figures it has.
    pub const fn len(self) -> usize {
        self.labels().len()
    }

    /// Where its figures begin in a table that has all groups.
    pub(super) const fn first(self) -> usize {
        STARTS[self as usize]
    }
}

/// Figures of all groups.
pub(super) const GROUPED: usize = STARTS[Group::ALL.len()];

const STARTS: [usize; Group::ALL.len() + 1] = {
    let mut starts = [0; Group::ALL.len() + 1];
    let mut at = 0;
    while at < Group::ALL.len() {
        starts[at + 1] = starts[at] + Group::ALL[at].len();
        at += 1;
    }
    starts
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_and_result_has_its_place() {
        for status in 0..=u16::MAX {
            let name = STATUSES[status_at(status)];
            assert!(name == "other" || name == status.to_string(), "{status} is counted as {name}");
        }
        assert_eq!((STATUSES[status_at(404)], STATUSES[status_at(402)]), ("404", "402"));
        for &result in ResultCode::ALL {
            assert_eq!(Group::Results.labels()[result_at(result)], result.name());
        }
        assert_eq!(Group::HostStates.labels()[2..4], ["rate", "response_time"]);
        assert_eq!(Group::HostStates.labels()[14..], ["set_aside", "idle"]);
    }
}
