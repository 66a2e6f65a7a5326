use super::beside::Beside;
use crate::engine::{Counter, Figures, Group, MasterStatus, Readings, Role, ServerStatus, State};

/// One family of figures: its name, type and labels stay as they are, for dashboards and alerts go by them.
pub(crate) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    /// One sentence, with the unit.
    pub help: &'static str,
    /// Processes that have it.
    pub roles: &'static [Role],
    pub(super) read: Read,
}

type Read = fn(&Readings, &Beside, &mut Samples);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The samples of one family: values of its labels, and a number.
#[derive(Default)]
pub(super) struct Samples(pub Vec<(Vec<String>, Value)>);

pub(super) enum Value {
    Whole(u64),
    Real(f64),
    /// Buckets by [`Durations::BOUNDS_US`](crate::base::Durations::BOUNDS_US), and their sum in microseconds.
    Durations {
        counts: Vec<u64>,
        sum_us: u64,
    },
}

impl Samples {
    fn one(&mut self, value: u64) {
        self.0.push((Vec::new(), Value::Whole(value)));
    }

    fn real(&mut self, value: f64) {
        self.0.push((Vec::new(), Value::Real(value)));
    }

    fn labelled(&mut self, label: &str, value: u64) {
        self.0.push((vec![label.to_string()], Value::Whole(value)));
    }

    fn group(&mut self, figures: &Figures, group: Group) {
        figures.named(group).for_each(|(label, value)| self.labelled(label, value));
    }

    fn named(&mut self, labels: &[&str], values: &[u64]) {
        labels.iter().zip(values).for_each(|(label, value)| self.labelled(label, *value));
    }

    fn shards(&mut self, readings: &Readings, counter: Counter) {
        for (number, shard) in readings.shards.iter().enumerate() {
            self.labelled(&number.to_string(), shard.get(counter));
        }
    }

    /// Those of a master.
    fn master(&mut self, readings: &Readings, read: impl FnOnce(&MasterStatus, &mut Samples)) {
        if let Some(status) = &readings.master {
            read(status, self);
        }
    }

    fn servers(&mut self, status: &MasterStatus, read: impl Fn(&ServerStatus) -> f64) {
        for server in &status.servers {
            self.0.push((vec![server.id.to_string()], Value::Real(read(server))));
        }
    }

    fn durations(&mut self, figures: &Figures, group: Group) {
        if let Some((&sum_us, counts)) = figures.all(group).split_last() {
            self.0.push((Vec::new(), Value::Durations { counts: counts.to_vec(), sum_us }));
        }
    }

    fn microseconds(&mut self, figures: &Figures, group: Group) {
        for (label, us) in figures.named(group) {
            self.0.push((vec![label.to_string()], Value::Real(us as f64 / 1e6)));
        }
    }
}

const ALL: &[Role] = &Role::ALL;
const FETCH: &[Role] = &[Role::Crawl, Role::UrlServer, Role::Spider];
const QUEUE: &[Role] = &[Role::Crawl, Role::UrlServer];
const CRAWL: &[Role] = &[Role::Crawl];
const STORE: &[Role] = &[Role::Crawl, Role::Spider, Role::StoreServer];
const MASTER: &[Role] = &[Role::Master];
const NONE: &[&str] = &[];

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    roles: &'static [Role],
    help: &'static str,
    read: Read,
) -> Family {
    Family { name, kind: Kind::Counter, labels, help, roles, read }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    roles: &'static [Role],
    help: &'static str,
    read: Read,
) -> Family {
    Family { name, kind: Kind::Gauge, labels, help, roles, read }
}

const fn histogram(name: &'static str, roles: &'static [Role], help: &'static str, read: Read) -> Family {
    Family { name, kind: Kind::Histogram, labels: NONE, help, roles, read }
}

/// Every family, by what it is about.
pub(crate) const FAMILIES: &[Family] = &[
    // Identity
    gauge(
        "nephila_build_info",
        &["version", "revision"],
        ALL,
        "Always 1; the labels say which build this is.",
        |_, _, out| {
            let revision = option_env!("NEPHILA_REVISION").unwrap_or("unknown");
            out.0.push((vec![env!("CARGO_PKG_VERSION").to_string(), revision.to_string()], Value::Whole(1)));
        },
    ),
    gauge(
        "nephila_node_info",
        &["role", "driver"],
        ALL,
        "Always 1; the labels say what the process is for and how it speaks to the kernel.",
        |readings, _, out| {
            let labels = vec![readings.role.name().to_string(), readings.driver.to_string()];
            out.0.push((labels, Value::Whole(1)));
        },
    ),
    gauge(
        "nephila_node_state",
        &["state"],
        ALL,
        "1 for the state that the process is in, 0 for the others.",
        |readings, _, out| {
            State::ALL
                .iter()
                .for_each(|state| out.labelled(state.name(), u64::from(*state == readings.state)));
        },
    ),
    // Fetching
    counter(
        "nephila_documents_total",
        &["result"],
        FETCH,
        "Documents that were answered for, by what came of them.",
        |readings, _, out| out.group(&readings.all, Group::Results),
    ),
    counter(
        "nephila_responses_total",
        &["code"],
        FETCH,
        "Responses by HTTP status, those to robots.txt among them; rare codes count as other.",
        |readings, _, out| out.group(&readings.all, Group::Statuses),
    ),
    counter(
        "nephila_robots_fetches_total",
        &["outcome"],
        FETCH,
        "Requests for robots.txt, by what they led to: rules, another place to ask, or nothing.",
        |readings, _, out| out.group(&readings.all, Group::Robots),
    ),
    counter(
        "nephila_received_bytes_total",
        NONE,
        FETCH,
        "Bytes of responses to documents, heads included, after content codings were undone.",
        |readings, _, out| out.one(readings.all.get(Counter::Bytes)),
    ),
    counter(
        "nephila_wire_received_bytes_total",
        NONE,
        FETCH,
        "Bytes that the network brought to the spiders, as they came, those of TLS included.",
        |readings, _, out| out.one(readings.all.get(Counter::WireBytes)),
    ),
    histogram(
        "nephila_fetch_duration_seconds",
        FETCH,
        "Seconds that a fetch of a document took, from its start to its last byte.",
        |readings, _, out| out.durations(&readings.all, Group::FetchTimes),
    ),
    gauge("nephila_fetches_open", &["shard"], FETCH, "Fetches that are open.", |readings, _, out| {
        out.shards(readings, Counter::Open);
    }),
    gauge(
        "nephila_fetches_limit",
        &["shard"],
        FETCH,
        "Fetches that may be open at once.",
        |readings, _, out| {
            out.shards(readings, Counter::OpenMax);
        },
    ),
    counter(
        "nephila_connections_total",
        &["kind"],
        FETCH,
        "Connections: made anew, kept from before and used again, kept and found dead, or not to be had.",
        |readings, _, out| out.group(&readings.all, Group::Connections),
    ),
    counter(
        "nephila_tls_handshakes_total",
        &["kind"],
        FETCH,
        "TLS handshakes: full, resumed from an earlier session, or failed.",
        |readings, _, out| out.group(&readings.all, Group::Handshakes),
    ),
    gauge(
        "nephila_body_memory_bytes",
        NONE,
        FETCH,
        "Bytes of memory that documents in flight take.",
        |readings, _, out| out.one(readings.body_memory),
    ),
    gauge(
        "nephila_body_memory_limit_bytes",
        NONE,
        FETCH,
        "Bytes of memory that documents in flight may take before no fetch is started.",
        |readings, _, out| out.one(readings.body_memory_max),
    ),
    // Politeness
    gauge(
        "nephila_hosts",
        &["state"],
        QUEUE,
        "Hosts with a row, by what keeps their next URL: ready for nothing, open if all they have is on the wire.",
        |readings, _, out| out.group(&readings.all, Group::HostStates),
    ),
    counter(
        "nephila_host_backoffs_total",
        &["cause"],
        QUEUE,
        "Answers, or their absence, after which a host is left alone for longer than its rate asks.",
        |readings, _, out| out.group(&readings.all, Group::BackOffs),
    ),
    counter(
        "nephila_politeness_requests_total",
        &["of"],
        QUEUE,
        "Requests whose pause was checked as they went out, against their host and against its address.",
        |readings, _, out| out.group(&readings.all, Group::Checked),
    ),
    counter(
        "nephila_politeness_violations_total",
        &["kind"],
        QUEUE,
        "Requests that went out before the pause of their host or address was over; must stay 0.",
        |readings, _, out| out.group(&readings.all, Group::Violations),
    ),
    gauge(
        "nephila_politeness_margin_seconds",
        &["of"],
        QUEUE,
        "The smallest number of seconds by which a request came after the end of its pause; 0 before the first.",
        |readings, _, out| {
            for (at, label) in Group::Margins.labels().iter().enumerate() {
                let margins = readings.shards.iter().filter(|shard| shard.all(Group::Checked)[at] > 0);
                let margins = margins.filter_map(|shard| shard.signed(Group::Margins).nth(at));
                // Without a pause there is no margin.
                let smallest = margins.filter(|&margin_us| margin_us < i64::MAX).min();
                out.0.push((vec![(*label).to_string()], Value::Real(smallest.unwrap_or(0) as f64 / 1e6)));
            }
        },
    ),
    // Queues and index
    gauge("nephila_queue_urls", &["shard"], QUEUE, "URLs in the queues of hosts.", |readings, _, out| {
        out.shards(readings, Counter::QueueUrls);
    }),
    gauge(
        "nephila_leftover_urls",
        &["where"],
        QUEUE,
        "URLs handed out that no queue had room for, in memory and on disk.",
        |readings, _, out| out.group(&readings.all, Group::Leftovers),
    ),
    gauge("nephila_host_slots", &["shard"], QUEUE, "Rows of hosts in use.", |readings, _, out| {
        out.shards(readings, Counter::HostSlots);
    }),
    gauge(
        "nephila_host_slots_limit",
        &["shard"],
        QUEUE,
        "Rows of hosts that there may be.",
        |readings, _, out| out.shards(readings, Counter::HostSlotsMax),
    ),
    gauge(
        "nephila_index_urls",
        &["state"],
        QUEUE,
        "URLs that the doc index knows, by what became of them.",
        |readings, _, out| out.group(&readings.all, Group::IndexUrls),
    ),
    gauge("nephila_index_hosts", NONE, QUEUE, "Hosts that the doc index knows.", |readings, _, out| {
        out.one(readings.all.get(Counter::IndexHosts));
    }),
    counter(
        "nephila_links_total",
        &["verdict"],
        QUEUE,
        "Links found on pages and in sitemaps, by what was made of them; repeats within a moment are left out.",
        |readings, _, out| out.group(&readings.all, Group::Links),
    ),
    gauge(
        "nephila_index_memory_bytes",
        &["part"],
        QUEUE,
        "Bytes of memory that the doc index takes.",
        |readings, _, out| out.group(&readings.all, Group::IndexMemory),
    ),
    gauge(
        "nephila_index_memory_limit_bytes",
        NONE,
        QUEUE,
        "Bytes of memory that the doc index may take before it goes to disk.",
        |readings, _, out| out.one(readings.all.get(Counter::IndexMemoryMax)),
    ),
    gauge(
        "nephila_index_disk_bytes",
        &["part"],
        QUEUE,
        "Bytes on disk that the doc index takes.",
        |readings, _, out| out.group(&readings.all, Group::IndexDisk),
    ),
    // Store
    counter(
        "nephila_store_records_total",
        &["kind"],
        STORE,
        "Records written: with their document, as a reference to one that is stored, or of a page that has not changed.",
        |readings, _, out| out.group(&readings.all, Group::Records),
    ),
    counter(
        "nephila_store_written_bytes_total",
        NONE,
        STORE,
        "Bytes that records take in segments, compressed.",
        |readings, _, out| out.one(readings.all.get(Counter::StoredBytes)),
    ),
    gauge(
        "nephila_store_segments",
        &["state"],
        STORE,
        "Segments that are written to or ready for it, and sealed ones.",
        |readings, _, out| out.group(&readings.all, Group::Segments),
    ),
    gauge(
        "nephila_store_disk_bytes",
        NONE,
        STORE,
        "Bytes on disk that sealed segments take.",
        |readings, _, out| {
            out.one(readings.all.get(Counter::StoreDisk));
        },
    ),
    gauge(
        "nephila_store_unstored_documents",
        &["shard"],
        STORE,
        "Documents that are fetched and wait for room in a segment.",
        |readings, _, out| out.shards(readings, Counter::Unstored),
    ),
    histogram(
        "nephila_store_commit_duration_seconds",
        STORE,
        "Seconds that a commit took to make records durable.",
        |readings, _, out| out.durations(&readings.all, Group::CommitTimes),
    ),
    counter(
        "nephila_store_sync_errors_total",
        NONE,
        STORE,
        "Commits that the disk refused; what they held is written again elsewhere.",
        |readings, _, out| out.one(readings.all.get(Counter::SyncErrors)),
    ),
    gauge(
        "nephila_disk_free_bytes",
        NONE,
        STORE,
        "Bytes that are free where segments are written.",
        |readings, _, out| out.one(readings.disk_free),
    ),
    gauge(
        "nephila_disk_free_limit_bytes",
        NONE,
        STORE,
        "Bytes that stay free: below them no segment is made, and fetching waits.",
        |readings, _, out| out.one(readings.disk_free_min),
    ),
    // Names
    counter(
        "nephila_dns_lookups_total",
        &["result"],
        QUEUE,
        "Names that servers were asked for, by the answer.",
        |readings, _, out| out.group(&readings.all, Group::Lookups),
    ),
    counter(
        "nephila_dns_cache_requests_total",
        &["result"],
        QUEUE,
        "Questions to the cache of names.",
        |readings, _, out| out.group(&readings.all, Group::NameCache),
    ),
    gauge("nephila_dns_lookups_open", NONE, QUEUE, "Names that are being looked up.", |readings, _, out| {
        out.one(readings.all.get(Counter::LookupsOpen));
    }),
    gauge("nephila_dns_cache_entries", NONE, QUEUE, "Names in the cache.", |readings, _, out| {
        out.one(readings.all.get(Counter::NamesCached));
    }),
    histogram(
        "nephila_dns_lookup_duration_seconds",
        QUEUE,
        "Seconds that it took to look up a name.",
        |readings, _, out| out.durations(&readings.all, Group::LookupTimes),
    ),
    // From a master
    counter(
        "nephila_master_entries_total",
        &["made_of"],
        CRAWL,
        "Entries of this node's queue that were taken from a master, by what the doc index made of them.",
        |readings, _, out| out.group(&readings.all, Group::FromMaster),
    ),
    counter(
        "nephila_master_changes_total",
        NONE,
        CRAWL,
        "Changes from one master to another.",
        |readings, _, out| out.one(readings.all.get(Counter::MasterChanges)),
    ),
    counter(
        "nephila_master_reports_total",
        &["fate"],
        CRAWL,
        "Lines about pages with a query, and Clean-param lines, for the parameters that masters learn.",
        |readings, _, out| out.group(&readings.all, Group::MasterReports),
    ),
    gauge(
        "nephila_master_position",
        NONE,
        CRAWL,
        "The next entry of the queue of the master that is used; all before it are on disk.",
        |readings, _, out| out.one(readings.all.get(Counter::MasterSeq)),
    ),
    gauge(
        "nephila_master_mark_timestamp_seconds",
        NONE,
        CRAWL,
        "The reflog time up to which all that the master was given is on disk, in seconds since 1970; 0 if none is known.",
        |readings, _, out| out.one(readings.all.get(Counter::MasterMark)),
    ),
    // A master
    gauge("nephila_master_epoch", NONE, MASTER, "The last epoch that was committed.", |readings, _, out| {
        out.master(readings, |status, out| out.one(status.epoch));
    }),
    counter(
        "nephila_master_epochs_total",
        NONE,
        MASTER,
        "Epochs that were committed.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.epochs));
        },
    ),
    gauge(
        "nephila_master_epoch_duration_seconds",
        NONE,
        MASTER,
        "Seconds that the last epoch took.",
        |readings, _, out| {
            out.master(readings, |status, out| out.real(status.epoch_ms as f64 / 1e3));
        },
    ),
    counter(
        "nephila_master_files_total",
        NONE,
        MASTER,
        "Files that were taken from the spool.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.files));
        },
    ),
    counter(
        "nephila_master_lines_total",
        &["verdict"],
        MASTER,
        "Lines of reflogs, by whether they could be read.",
        |readings, _, out| {
            out.master(readings, |status, out| {
                out.labelled("taken", status.lines.saturating_sub(status.rejected));
                out.labelled("rejected", status.rejected);
            });
        },
    ),
    counter(
        "nephila_master_sent_urls_total",
        NONE,
        MASTER,
        "URLs that were put into the queues of servers.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.sent));
        },
    ),
    counter(
        "nephila_master_hits_total",
        &["fate"],
        MASTER,
        "Hits of reflogs: those that came, those sent, and those that expired while they waited.",
        |readings, _, out| {
            out.master(readings, |status, out| {
                out.named(
                    &["in", "sent", "expired"],
                    &[status.hits_in, status.hits_sent, status.expired_hits],
                );
            });
        },
    ),
    gauge(
        "nephila_master_waiting_hits",
        NONE,
        MASTER,
        "Hits that wait for the next sending of their URLs.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.hits_waiting));
        },
    ),
    gauge("nephila_master_current_rows", NONE, MASTER, "Rows of current_log.", |readings, _, out| {
        out.master(readings, |status, out| out.one(status.rows));
    }),
    gauge(
        "nephila_master_held_lines",
        NONE,
        MASTER,
        "Lines that could not be sent, and come again with the next epoch.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.held));
        },
    ),
    gauge(
        "nephila_master_spool_files",
        NONE,
        MASTER,
        "Files of the spool that wait or are being taken.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.files_waiting));
        },
    ),
    gauge(
        "nephila_master_lag_seconds",
        NONE,
        MASTER,
        "Seconds that the oldest file of the spool has waited.",
        |readings, _, out| {
            out.master(readings, |status, out| out.real(status.lag_s));
        },
    ),
    counter(
        "nephila_master_intake_lines_total",
        NONE,
        MASTER,
        "Lines that came over TCP and are in the spool.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.intake_lines));
        },
    ),
    gauge(
        "nephila_master_intake_connections",
        NONE,
        MASTER,
        "Connections that send lines.",
        |readings, _, out| {
            out.master(readings, |status, out| out.one(status.intake_links));
        },
    ),
    gauge(
        "nephila_master_server_queue_entries",
        &["server"],
        MASTER,
        "Entries that a node does not have yet.",
        |readings, _, out| {
            out.master(readings, |status, out| out.servers(status, |server| server.queue as f64));
        },
    ),
    gauge(
        "nephila_master_server_queue_bytes",
        &["server"],
        MASTER,
        "Bytes on disk of entries that a node does not have yet.",
        |readings, _, out| {
            out.master(readings, |status, out| out.servers(status, |server| server.queue_bytes as f64));
        },
    ),
    gauge(
        "nephila_master_server_pending_urls",
        &["server"],
        MASTER,
        "URLs that wait with a node, as it said last.",
        |readings, _, out| {
            out.master(readings, |status, out| {
                out.servers(status, |server| server.pending.unwrap_or(0) as f64)
            });
        },
    ),
    gauge(
        "nephila_master_server_load",
        &["server"],
        MASTER,
        "URLs an hour that a server is sent, half a day ago counting half.",
        |readings, _, out| {
            out.master(readings, |status, out| out.servers(status, |server| server.load));
        },
    ),
    gauge(
        "nephila_master_server_linked",
        &["server"],
        MASTER,
        "1 if a node takes from the queue of a server.",
        |readings, _, out| {
            out.master(readings, |status, out| {
                out.servers(status, |server| f64::from(u8::from(server.node.is_some())))
            });
        },
    ),
    gauge(
        "nephila_master_neighbour_up",
        &["of"],
        MASTER,
        "1 if the other master, and the database, answer.",
        |readings, _, out| {
            out.master(readings, |status, out| {
                for (label, neighbour) in [("peer", &status.peer), ("database", &status.database)] {
                    if let Some(neighbour) = neighbour {
                        out.labelled(label, u64::from(neighbour.is_there));
                    }
                }
            });
        },
    ),
    // Machine room
    counter(
        "nephila_thread_cpu_seconds_total",
        &["thread"],
        ALL,
        "Seconds of processor time, by thread.",
        |readings, _, out| {
            for (thread, seconds) in &readings.threads {
                out.0.push((vec![thread.clone()], Value::Real(*seconds)));
            }
        },
    ),
    counter(
        "nephila_stage_cpu_seconds_total",
        &["stage"],
        FETCH,
        "Seconds of processor time of shards by stage, measured in one turn of sixteen and multiplied.",
        |readings, _, out| out.microseconds(&readings.all, Group::Stages),
    ),
    counter("nephila_syscalls_total", &["shard"], FETCH, "System calls of shards.", |readings, _, out| {
        out.shards(readings, Counter::Syscalls);
    }),
    counter(
        "nephila_shard_restarts_total",
        &["shard"],
        FETCH,
        "Shards that died and were made anew.",
        |readings, _, out| out.shards(readings, Counter::Restarts),
    ),
    gauge(
        "nephila_ring_words",
        &["ring"],
        FETCH,
        "Messages that wait in rings between threads.",
        |readings, _, out| readings.rings.iter().for_each(|ring| out.labelled(ring.name, ring.words)),
    ),
    gauge(
        "nephila_ring_words_limit",
        &["ring"],
        FETCH,
        "Messages that there is room for in rings between threads.",
        |readings, _, out| readings.rings.iter().for_each(|ring| out.labelled(ring.name, ring.words_max)),
    ),
    counter(
        "nephila_log_messages_total",
        &["level"],
        ALL,
        "Messages of the event log, whether they were written or held back.",
        |_, beside, out| out.named(&Beside::LEVELS, &beside.log_messages),
    ),
    counter(
        "nephila_settings_changes_total",
        &["source"],
        ALL,
        "Settings that were changed while the process ran.",
        |_, beside, out| out.named(&Beside::SOURCES, &beside.settings_changes),
    ),
    gauge(
        "nephila_config_last_reload_successful",
        NONE,
        ALL,
        "1 if the settings could be taken when they were last read, 0 if there was a mistake in them.",
        |_, beside, out| out.one(u64::from(beside.reload_succeeded)),
    ),
    gauge(
        "nephila_config_last_reload_success_timestamp_seconds",
        NONE,
        ALL,
        "When settings were last taken, in seconds since 1970.",
        |readings, beside, out| {
            out.real(beside.reloaded_seconds.unwrap_or(readings.process.start_seconds));
        },
    ),
    gauge(
        "nephila_tune_checks",
        &["status"],
        ALL,
        "Settings of the machine by what nephila tune check says of them.",
        |_, beside, out| out.named(&Beside::CHECKS, &beside.tune_checks),
    ),
    counter(
        "nephila_admin_requests_total",
        &["handler", "class"],
        ALL,
        "Requests to the listener of this process.",
        |_, beside, out| {
            for (handler, class, count) in &beside.admin_requests {
                out.0.push((vec![(*handler).to_string(), (*class).to_string()], Value::Whole(*count)));
            }
        },
    ),
    gauge(
        "nephila_admin_connections",
        NONE,
        ALL,
        "Connections to the listener of this process.",
        |_, beside, out| {
            out.one(beside.admin_connections);
        },
    ),
    counter(
        "process_cpu_seconds_total",
        NONE,
        ALL,
        "Seconds of user and system time of the process.",
        |readings, _, out| out.real(readings.process.cpu_seconds),
    ),
    gauge(
        "process_resident_memory_bytes",
        NONE,
        ALL,
        "Bytes of memory that the process takes, mapped segments among them.",
        |readings, _, out| out.one(readings.process.resident_bytes),
    ),
    gauge("process_open_fds", NONE, ALL, "File descriptors that are open.", |readings, _, out| {
        out.one(readings.process.open_fds);
    }),
    gauge("process_max_fds", NONE, ALL, "File descriptors that may be open.", |readings, _, out| {
        out.one(readings.process.max_fds);
    }),
    gauge(
        "process_start_time_seconds",
        NONE,
        ALL,
        "When the process began, in seconds since 1970.",
        |readings, _, out| out.real(readings.process.start_seconds),
    ),
];

/// Every family with its type, labels and sentence, for people.
pub(crate) fn all_families() -> String {
    let entry = |family: &Family| {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels = family.labels.join(", ");
        let braces = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        format!("- `{}{braces}`, {kind}.\n  {}\n", family.name, family.help)
    };
    FAMILIES.iter().map(entry).collect()
}

impl Family {
    /// Whether a process that reads so has it.
    pub(super) fn is_of(&self, readings: &Readings) -> bool {
        let keeps_records = readings.has_store || self.roles != STORE;
        self.roles.contains(&readings.role) && keeps_records
    }
}
