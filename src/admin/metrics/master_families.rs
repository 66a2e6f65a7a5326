use super::family::{CRAWL, Family, MASTER, NONE, counter, gauge};
use crate::engine::{Counter, Group};

/// Those of a master, and of nodes that take from one.
pub(super) const MASTERS: &[Family] = &[
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
];
