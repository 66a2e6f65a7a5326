//! Every event that a process tells of, in one list: the log, its readers and the manual name no other.

/// Makes the enum of events, and what is known of each: name, level, fields, and a meaning in one line.
macro_rules! events {
    ($($Event:ident $name:literal $Level:ident [$($field:literal),*] $meaning:literal;)+) => {
        /// Something that happened and that an operator may want to know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event {
            $(#[doc = $meaning] $Event,)+
        }

        impl Event {
            pub const ALL: &'static [Event] = &[$(Event::$Event),+];

            /// One word for programs.
            pub fn name(self) -> &'static str {
                match self { $(Event::$Event => $name,)+ }
            }

            pub fn level(self) -> Level {
                match self { $(Event::$Event => Level::$Level,)+ }
            }

            /// The names of the fields that it may have.
            pub fn fields(self) -> &'static [&'static str] {
                match self { $(Event::$Event => &[$($field),*],)+ }
            }

            /// For the manual.
            pub fn meaning(self) -> &'static str {
                match self { $(Event::$Event => $meaning,)+ }
            }
        }
    };
}

/// How much an event matters, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warn, Level::Error];

    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

// The life of a process first, then what may happen in it, by part.
events! {
    SettingsHeld "settings_held" Info [] "settings that an earlier run on the data directory was told, and that hold or have changed";
    SettingsReloaded "settings_reloaded" Info ["by"] "SIGHUP: settings were read again; which were taken, and which need a restart";
    SettingsRefused "settings_refused" Error ["by", "cause"] "SIGHUP: settings that were read again have mistakes, or could not be kept; none was taken";
    SettingsPutBack "settings_put_back" Info [] "the settings of the run before stay, as this one could not start";
    PasswordsReadable "passwords_readable" Warn [] "a password goes over plain http, where others can read it";
    UrlSkipped "url_skipped" Warn ["path", "line", "url"] "a URL that was given is not crawled: its line is bad, or a rule denies it";
    MachineChecked "machine_checked" Info ["ok", "slower", "stops", "cannot_tell"] "how the settings of the machine stand to a crawl";
    FetchBounds "fetch_bounds" Debug ["fetches_max", "seeds", "path"] "how many fetches a shard may have open";
    DriverChosen "driver_chosen" Info ["driver", "why", "cores"] "the kernel interface that is used, and why";
    SegmentsRecovered "segments_recovered" Warn ["segments"] "a killed process left segments open; they were sealed at their last whole record";
    IndexOpened "index_opened" Info ["known", "pending", "waiting"] "what the doc index holds from before";
    IndexDamaged "index_damaged" Warn ["torn_bytes", "runs_rebuilt", "damaged_bytes"] "a part of the doc index was torn or damaged, and was mended as far as it goes";
    PendingBefore "pending_before" Info ["pending", "hosts", "path"] "URLs of an earlier crawl in the directory are fetched as well";
    NoContact "no_contact" Warn ["host"] "no contact is set, and sites outside are crawled";
    PagesTakenUp "pages_taken_up" Info ["pages", "ms"] "pages that were stored and not recorded when a process was killed";
    PagesLost "pages_lost" Warn ["cause"] "stored pages could not be taken up, and may be fetched again";
    FeedsMended "feeds_mended" Warn ["what"] "files of feeds or stories were torn by a crash, and what was lost is found again";
    FeedNamed "feed_named" Info ["url", "page"] "a page names a feed that is not polled (discover = \"note\" in [feeds])";
    StoreServerUsed "store_server_used" Info ["store_server"] "documents go to a store server";
    Listening "listening" Info ["process", "addr"] "peers may connect here";
    Dialing "dialing" Info ["process", "addr"] "a peer is dialed, until it answers";
    AdminListening "admin_listening" Info ["addr"] "the listener answers here over TCP";
    ControlThread "control_thread" Debug ["runtime"] "what the control thread runs on";
    NoControl "no_control" Warn ["cause"] "nobody can ask this process: its socket or its thread could not be made";
    Progress "progress" Info ["pages", "pending", "open", "errors", "bytes", "known"] "how far it is; in json and journal once a minute";
    Paused "paused" Info [] "no new requests go out until nephila resume";
    Resumed "resumed" Info [] "requests go out again";
    ReasonGiven "reason_given" Info ["state", "reason"] "why it was paused or resumed, as somebody said";
    Waiting "waiting" Warn ["part", "cause"] "a part of the process waits for its disk, for name servers, or for the network of this machine";
    WaitOver "wait_over" Info ["part"] "what was waited for is there again";
    Stopping "stopping" Info ["by"] "a stop was asked for, by a signal or by nephila stop; what is open may end";
    StoppedAtOnce "stopped_at_once" Warn [] "a second signal ended the process";
    StoppedEarly "stopped_early" Warn [] "it ended before all was written; what is missing is fetched again";
    CommitsSlow "commits_slow" Warn ["commits", "time_us"] "one in a hundred commits of a crawl took so long or longer, which is far longer than its disk did when nephila tune disk measured it";
    Ended "ended" Info ["pages", "seconds", "warnings", "errors"] "the process has ended in good order; in json and journal only";
    Failed "failed" Error ["status"] "the process ends with this exit status, and why";
    Panicked "panicked" Error ["thread"] "a mistake in the program; a shard is made anew, other threads end the process";
    NoSocket "no_socket" Warn ["shard"] "this machine has no port, descriptor or memory for another connection; URLs wait, and none is judged by it";
    ShardRestarted "shard_restarted" Error ["shard", "restarts"] "a shard died and was made anew; what it had open is fetched again";
    ThreadFailed "thread_failed" Error ["cause"] "a thread cannot wait for the network";
    ThreadsSilent "threads_silent" Error [] "threads do not turn any more, and the service manager is told nothing";

    HostSetAside "host_set_aside" Warn ["origin", "failures"] "a host did nothing but fail, and is not asked for a day";
    RobotsUnreachable "robots_unreachable" Warn ["origin", "cause"] "robots.txt of a host cannot be had, so nothing is asked of it";
    AddressRefused "address_refused" Warn ["origin", "cause"] "a host is left out: its address is not allowed";

    SyncFailed "sync_failed" Warn ["cause"] "a commit failed and is tried again";
    MaintenanceFailed "maintenance_failed" Warn ["cause"] "segments could not be indexed or removed; reading goes on without";

    ContentAway "content_away" Warn ["follower", "cause"] "the database or bucket that documents are copied to does not take them, and why; they wait in the store, and the crawl goes on";
    ContentBack "content_back" Info ["follower"] "it takes them again";
    ContentRefused "content_refused" Warn ["follower", "url", "cause"] "it refuses one document for its own sake, which is left out";
    ContentGone "content_gone" Warn ["follower", "segments"] "segments went, by bytes_max, history or nephila store, before they were copied";
    ContentTrouble "content_trouble" Warn ["follower", "cause"] "a segment cannot be read to be copied, or the cursor not be written";
    ContentBehind "content_behind" Warn ["follower", "segments"] "a crawl ended before all was copied; the next one goes on, or nephila store follow does";
    SearchFails "search_fails" Warn ["cause"] "stories are not indexed for search, and why; the crawl goes on without";
    SearchGoesOn "search_goes_on" Info [] "they are again";

    LogRotated "log_rotated" Info ["path", "part", "bytes"] "a part of crawl.log is finished, by its size or by SIGUSR1";
    LogPartsRemoved "log_parts_removed" Info ["parts"] "the oldest parts of crawl.log went, as log_parts_max asks";
    NoLog "no_log" Warn [] "SIGUSR1 came to a process that writes no crawl.log";

    LinkFails "link_fails" Warn ["peer", "cause"] "a peer that is dialed does not answer";
    LinkStands "link_stands" Info ["peer"] "it does again";
    LinksFull "links_full" Warn ["peer", "links"] "too many peers are connected, and others are turned away";
    MasterUsed "master_used" Info ["master", "server", "seq"] "the master that URLs are taken from, and where in its queue";
    MasterSilent "master_silent" Warn ["master", "cause"] "a master says nothing for timeout_master; another is asked, if one answers";
    MasterRefuses "master_refuses" Warn ["master", "cause"] "a master refuses this node, and says why; it is asked again, ever more rarely";
    MasterBadAnswer "master_bad_answer" Warn ["master", "cause"] "a master sent what makes no sense, and its link was closed";
    MasterBadEntry "master_bad_entry" Warn ["master", "cause"] "an entry of a queue cannot be read; said of the first, all are counted";
    DomainClosed "domain_closed" Info ["domain"] "a domain moves to another server; nothing more is asked of it";
    DomainReady "domain_ready" Debug ["domain"] "nothing of a domain that moves is on the wire, and what it brings along is written down";
    DomainHandedOver "domain_handed_over" Info ["domain"] "a master has what a domain that moved brings along";
    DomainOpened "domain_opened" Info ["domain"] "a domain came from another server";
    HandoverFails "handover_fails" Warn ["domain"] "what a domain brings along cannot be written or read; it is tried again";
    ClusterMade "cluster_made" Info ["path"] "a new cluster, and the key file by which other nodes join it";
    ClusterJoined "cluster_joined" Info ["node"] "this node is in the table of its cluster, under this number";
    ClusterLeft "cluster_left" Info [] "this node has handed over everything and has left its cluster: it can be stopped";
    TableChanged "table_changed" Info ["epoch", "nodes", "partitions"] "who owns what in the cluster has changed, and how much of it is this node's";
    PeerUp "peer_up" Info ["node", "addr"] "a link with another node of the cluster stands";
    PeerDown "peer_down" Warn ["node", "cause"] "a link with another node of the cluster is gone; it is made again";
    PeerRefused "peer_refused" Warn ["addr", "cause"] "two nodes cannot be in one cluster, and what differs between them";
    CopyTaken "copy_taken" Info ["node", "lines"] "what a node knew that was taken over is in the index of this one, from the copy on its disk";
    KeptRemoved "kept_removed" Info ["node", "segments"] "pages that this node kept of one that was gone are removed, as that one is back with them and has a copy";
    ClusterFiles "cluster_files" Warn ["cause"] "a file of the cluster cannot be written; it is tried again";
    RightLost "right_lost" Warn [] "the right of this node to ask hosts is over, as neither a majority of the voters nor an etcd renews it; it waits";
    RightHeld "right_held" Info [] "this node has the right to ask the hosts of its partitions, and renews it";
    CouncilAway "council_away" Warn ["cause"] "the etcd that keeps the table and the rights does not answer, and why; it is asked until it does";
    CouncilBack "council_back" Info [] "it does again";
    TakenOver "taken_over" Warn [] "other nodes took over what this node had, as they did not hear it; it begins anew";
    VoteLost "vote_lost" Error ["cause"] "the disk refused what this node promised as a voter; it has no vote until it is started again";
    SpiderJoined "spider_joined" Info ["peer"] "a spider has connected to the URL server";
    SpiderGone "spider_gone" Warn ["peer", "cause"] "a spider's connection ended; its work is sent again";
    BadLine "bad_line" Warn ["peer", "cause"] "a peer sent a line that cannot be understood, and was disconnected";
    StoreStands "store_stands" Info ["store_server", "connections"] "the connections to the store server stand";
    StoreDown "store_down" Warn ["store_server", "cause", "records"] "a connection to the store server broke; records are sent again";
    StoreSilent "store_silent" Warn ["store_server"] "the store server counts no records; DONE is said when they were sent";
    StoreCounts "store_counts" Info ["store_server"] "the store server counts records after all";
    StoreBadCount "store_bad_count" Warn ["store_server", "cause"] "the store server counted what was never sent";
    StoreRefusesRecord "store_refuses_record" Warn ["store_server", "bytes"] "connections to the store server end at one record again and again";
    StoreAwaited "store_awaited" Warn ["store_server", "records"] "a spider that stops waits for the store server to count";
    StoreFull "store_full" Warn ["peer", "connections"] "the store server has too many connections, and refuses others";
    StoreCannotAccept "store_cannot_accept" Error ["cause"] "the store server cannot accept connections";
    EpochCommitted "epoch_committed" Info ["epoch", "lines", "sent", "rejected"] "a master has taken files: what came of their lines is durable";
    MasterNotice "master_notice" Warn ["what"] "a file that was known, damaged or lost, or something else about the directory of a master: what says which";
    SpoolSkipped "spool_skipped" Warn ["path", "cause"] "something in the spool of a master is no file, and is left alone";
    IntakeRefused "intake_refused" Warn ["peer", "cause"] "lines that came over TCP could not be kept; their sender was told to send them again";
    NodeJoined "node_joined" Info ["server", "peer"] "a node takes from its queue";
    NodeGone "node_gone" Warn ["server", "peer", "cause"] "the link of a node ended; its queue waits for it";
    NodeRefused "node_refused" Warn ["peer", "cause"] "a peer of a master was turned away: it is no server, or asked for what there is not";
    QueueFails "queue_fails" Error ["server", "cause"] "the queue of a server cannot be read, or its position not be kept";
    DatabaseAway "database_away" Warn ["cause"] "the database of a master does not answer: known domains go on, new ones wait";
    DatabaseBack "database_back" Info [] "it does again";
    StoreBadConnection "store_bad_connection" Warn ["peer", "records", "cause"] "a stream of records was malformed or cut, and was closed";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The text of every source file but this one.
    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None => sources(&path, all),
                Some(rs) if rs == "rs" && !path.ends_with("runtime/events.rs") => {
                    *all += &std::fs::read_to_string(&path).unwrap();
                }
                Some(_) => {}
            }
        }
    }

    #[test]
    fn every_event_is_told_somewhere_and_has_a_name_of_its_own() {
        let mut all = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        for (number, &event) in Event::ALL.iter().enumerate() {
            let told = format!("Event::{event:?}");
            let is_told = all.match_indices(&told).any(|(at, _)| {
                !all[..at].ends_with(is_in_name) && !all[at + told.len()..].starts_with(is_in_name)
            });
            assert!(is_told, "{} is told nowhere", event.name());
            assert_eq!(event as usize, number);
            let mut others = Event::ALL.iter().filter(|other| other.name() == event.name());
            assert!(others.next().is_some() && others.next().is_none(), "{} is there twice", event.name());
            let mut names =
                event.fields().iter().chain(std::iter::once(&event.name())).copied().collect::<String>();
            names.retain(|c| !c.is_ascii_lowercase() && c != '_');
            assert_eq!(names, "", "{}", event.name());
        }
    }
}
