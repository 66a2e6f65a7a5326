use super::family::{ALL, CRAWL, FETCH, Family, Kind, NONE, QUEUE, STORE, Value, counter, gauge, histogram};
use super::machine_families::MACHINE_ROOM;
use super::master_families::MASTERS;
use crate::engine::{Counter, Group, State};
use crate::url_server::WaitsFor;

/// What hosts wait for in a cluster only.
const CLUSTER_STATES: [&str; 2] = [WaitsFor::Ticket.name(), WaitsFor::Right.name()];

/// Every family, by what it is about.
pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    CRAWLING.iter().chain(MASTERS).chain(MACHINE_ROOM)
}

/// Those of nodes that crawl, and of their store.
const CRAWLING: &[Family] = &[
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
        |readings, beside, out| {
            let is_of_it = |state: &str| beside.is_among_nodes || !CLUSTER_STATES.contains(&state);
            let states = readings.all.named(Group::HostStates).filter(|(state, _)| is_of_it(state));
            states.for_each(|(state, hosts)| out.labelled(state, hosts));
        },
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
    counter(
        "nephila_feed_polls_total",
        &["outcome"],
        QUEUE,
        "Polls of feeds that ended: with a listing, unchanged (304), with the same listing as before, elsewhere, or failed.",
        |readings, _, out| out.group(&readings.all, Group::Polls),
    ),
    counter(
        "nephila_feed_entries_total",
        &["verdict"],
        QUEUE,
        "Entries of feeds that were looked at: new stories, known by URL, guid or title, or skipped.",
        |readings, _, out| out.group(&readings.all, Group::FeedEntries),
    ),
    counter(
        "nephila_feed_gaps_total",
        NONE,
        QUEUE,
        "Listings with news that share no entry with the one before: stories have probably come and gone between them.",
        |readings, _, out| out.one(readings.all.get(Counter::FeedGaps)),
    ),
    gauge("nephila_feeds", &["state"], QUEUE, "Feeds in the book, by their state.", |readings, _, out| {
        out.group(&readings.all, Group::Feeds)
    }),
    gauge(
        "nephila_feeds_lying",
        NONE,
        QUEUE,
        "Feeds whose server said that nothing had changed when something had.",
        |readings, _, out| out.one(readings.all.get(Counter::FeedLies)),
    ),
    counter(
        "nephila_story_texts_total",
        &["outcome"],
        QUEUE,
        "Stories whose page was looked through for its text: made, or failed for a reason that their text says.",
        |readings, _, out| out.group(&readings.all, Group::Texts),
    ),
    counter(
        "nephila_extraction_refused_total",
        NONE,
        QUEUE,
        "Looks at stories or at the store that failed, each of which is repeated.",
        |readings, _, out| out.one(readings.all.get(Counter::ExtractionRefused)),
    ),
    gauge(
        "nephila_extractors_left",
        NONE,
        QUEUE,
        "Threads that did not come back from a page within their deadline, and still run.",
        |readings, _, out| out.one(readings.all.get(Counter::ExtractorsLeft)),
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
    counter(
        "nephila_content_documents_total",
        &["follower"],
        CRAWL,
        "Documents that were copied to a follower, since it began.",
        |readings, _, out| out.group(&readings.all, Group::ContentCopied),
    ),
    counter(
        "nephila_content_refused_total",
        &["follower"],
        CRAWL,
        "Documents that the other side refused for their own sake, since it began.",
        |readings, _, out| out.group(&readings.all, Group::ContentRefused),
    ),
    gauge(
        "nephila_content_segments_waiting",
        &["follower"],
        CRAWL,
        "Sealed segments that a follower has not copied yet.",
        |readings, _, out| out.group(&readings.all, Group::ContentWaiting),
    ),
    counter(
        "nephila_content_segments_gone_total",
        &["follower"],
        CRAWL,
        "Segments that went before a follower had copied them, since it began.",
        |readings, _, out| out.group(&readings.all, Group::ContentGone),
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
    families().map(entry).collect()
}
