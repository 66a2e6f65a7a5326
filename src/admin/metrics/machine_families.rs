use super::beside::Beside;
use super::family::{ALL, FETCH, Family, NONE, Value, counter, gauge};
use crate::engine::{Counter, Group};

/// Those of the machine that a process runs on.
pub(super) const MACHINE_ROOM: &[Family] = &[
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
