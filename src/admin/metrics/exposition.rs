use super::beside::Beside;
use super::families::families;
use super::family::{Family, Kind, Samples, Value};
use crate::base::Durations;
use crate::engine::Readings;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Of Prometheus, version 0.0.4.
    Text,
    /// Version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// What the Accept header of a request asks for.
    pub fn asked_for(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Text }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The figures of a process as Prometheus reads them.
pub(crate) fn exposition(readings: &Readings, beside: &Beside, format: Format) -> String {
    let mut registry = Registry::default();
    let families = families().filter(|family| family.is_of(readings));
    let read = |family: &'static Family| {
        let mut samples = Samples::default();
        (family.read)(readings, beside, &mut samples);
        (family, samples)
    };
    registry.register_collector(Box::new(Scrape(families.map(read).collect())));
    let mut text = String::with_capacity(32 << 10);
    encode(&mut text, &registry).expect("text can be written to memory");
    match format {
        Format::OpenMetrics => text,
        Format::Text => as_text(&text),
    }
}

/// What one scrape found.
struct Scrape(Vec<(&'static Family, Samples)>);

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} families", self.0.len())
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (family, Samples(samples)) in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            // The encoder adds what a counter's name ends with.
            let name = family.name.strip_suffix("_total").unwrap_or(family.name);
            let mut metric = encoder.encode_descriptor(name, family.help, None, kind)?;
            for (values, value) in samples {
                let labels: Vec<(&str, &str)> =
                    family.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                match labels.is_empty() {
                    true => write_value(&mut metric, family.kind, value)?,
                    false => write_value(&mut metric.encode_family(&labels)?, family.kind, value)?,
                }
            }
        }
        Ok(())
    }
}

fn write_value(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => metric.encode_counter::<NoLabelSet, _, f64>(value, None),
        (Kind::Counter, Value::Real(value)) => metric.encode_counter::<NoLabelSet, _, f64>(value, None),
        (_, Value::Whole(value)) => metric.encode_gauge(value),
        (_, Value::Real(value)) => metric.encode_gauge(value),
        (_, Value::Durations { counts, sum_us }) => {
            let bounds = Durations::BOUNDS_US.iter().map(|&us| f64::from(us) / 1e6);
            let buckets: Vec<(f64, u64)> =
                bounds.chain([f64::INFINITY]).zip(counts.iter().copied()).collect();
            metric.encode_histogram::<NoLabelSet>(*sum_us as f64 / 1e6, counts.iter().sum(), &buckets, None)
        }
    }
}

/// OpenMetrics as version 0.0.4 has it: the name of a counter's family ends like those of its samples, and no line marks
/// the end.
fn as_text(open_metrics: &str) -> String {
    let is_counter = |name| families().any(|family| family.name.strip_suffix("_total") == Some(name));
    let mut text = String::with_capacity(open_metrics.len() + 1_024);
    for line in open_metrics.lines().filter(|line| *line != "# EOF") {
        let said: Vec<&str> = line.splitn(4, ' ').collect();
        match said[..] {
            ["#", word, name, rest] if is_counter(name) => {
                text.extend(["# ", word, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{SortedMap, SortedSet};
    use crate::engine::{Counter, Figures, Group, Role, State};

    /// Names, types and labels as dashboards and alerts know them.
    const KNOWN: &str = "
        nephila_build_info{version,revision} g · nephila_node_info{role,driver} g · nephila_node_state{state} g
        nephila_documents_total{result} c · nephila_responses_total{code} c · nephila_robots_fetches_total{outcome} c ·
        nephila_received_bytes_total c · nephila_wire_received_bytes_total c · nephila_fetch_duration_seconds h ·
        nephila_fetches_open{shard} g · nephila_fetches_limit{shard} g · nephila_connections_total{kind} c ·
        nephila_tls_handshakes_total{kind} c · nephila_body_memory_bytes g · nephila_body_memory_limit_bytes g
        nephila_hosts{state} g · nephila_host_backoffs_total{cause} c · nephila_politeness_requests_total{of} c ·
        nephila_politeness_violations_total{kind} c · nephila_politeness_margin_seconds{of} g
        nephila_queue_urls{shard} g · nephila_leftover_urls{where} g · nephila_host_slots{shard} g ·
        nephila_host_slots_limit{shard} g · nephila_index_urls{state} g · nephila_index_hosts g ·
        nephila_links_total{verdict} c · nephila_feed_polls_total{outcome} c · nephila_feed_entries_total{verdict} c ·
        nephila_feed_gaps_total c · nephila_feeds{state} g · nephila_feeds_lying g · nephila_story_texts_total{outcome} c ·
        nephila_extraction_refused_total c · nephila_extractors_left g ·
        nephila_index_memory_bytes{part} g · nephila_index_memory_limit_bytes g ·
        nephila_index_disk_bytes{part} g
        nephila_store_records_total{kind} c · nephila_store_written_bytes_total c · nephila_store_segments{state} g ·
        nephila_store_disk_bytes g · nephila_store_unstored_documents{shard} g ·
        nephila_store_commit_duration_seconds h · nephila_store_sync_errors_total c · nephila_disk_free_bytes g ·
        nephila_disk_free_limit_bytes g
        nephila_content_documents_total{follower} c · nephila_content_refused_total{follower} c ·
        nephila_content_segments_waiting{follower} g · nephila_content_segments_gone_total{follower} c
        nephila_dns_lookups_total{result} c · nephila_dns_cache_requests_total{result} c · nephila_dns_lookups_open g ·
        nephila_dns_cache_entries g · nephila_dns_lookup_duration_seconds h
        nephila_master_entries_total{made_of} c · nephila_master_changes_total c ·
        nephila_master_reports_total{fate} c · nephila_master_position g ·
        nephila_master_mark_timestamp_seconds g
        nephila_master_epoch g · nephila_master_epochs_total c · nephila_master_epoch_duration_seconds g ·
        nephila_master_files_total c · nephila_master_lines_total{verdict} c ·
        nephila_master_sent_urls_total c · nephila_master_hits_total{fate} c · nephila_master_waiting_hits g ·
        nephila_master_current_rows g · nephila_master_held_lines g · nephila_master_spool_files g ·
        nephila_master_lag_seconds g · nephila_master_intake_lines_total c ·
        nephila_master_intake_connections g · nephila_master_server_queue_entries{server} g ·
        nephila_master_server_queue_bytes{server} g · nephila_master_server_pending_urls{server} g ·
        nephila_master_server_load{server} g · nephila_master_server_linked{server} g ·
        nephila_master_neighbour_up{of} g
        nephila_thread_cpu_seconds_total{thread} c · nephila_stage_cpu_seconds_total{stage} c ·
        nephila_syscalls_total{shard} c · nephila_shard_restarts_total{shard} c · nephila_ring_words{ring} g ·
        nephila_ring_words_limit{ring} g · nephila_log_messages_total{level} c · nephila_settings_changes_total{source} c ·
        nephila_config_last_reload_successful g · nephila_config_last_reload_success_timestamp_seconds g ·
        nephila_tune_checks{status} g · nephila_admin_requests_total{handler,class} c · nephila_admin_connections g
        process_cpu_seconds_total c · process_resident_memory_bytes g · process_open_fds g · process_max_fds g ·
        process_start_time_seconds g";

    fn crawl(shards: usize) -> Readings {
        Readings {
            driver: "uring",
            has_store: true,
            shards: vec![Figures::default(); shards],
            ..Readings::default()
        }
    }

    fn text(readings: &Readings) -> String {
        exposition(readings, &Beside::default(), Format::Text)
    }

    /// Every sample by its name and labels.
    fn samples(text: &str) -> SortedMap<String, f64> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, value)| (name.to_string(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn names_types_and_labels_are_those_that_others_know() {
        let spelt = |family: &Family| {
            let kind = match family.kind {
                Kind::Counter => "c",
                Kind::Gauge => "g",
                Kind::Histogram => "h",
            };
            let labels = family.labels.join(",");
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            format!("{}{braces} {kind}", family.name)
        };
        let words: Vec<&str> = KNOWN.split_whitespace().filter(|word| *word != "·").collect();
        let known: Vec<String> = words.chunks(2).map(|pair| pair.join(" ")).collect();
        assert_eq!(families().map(spelt).collect::<Vec<_>>(), known);
        for family in families() {
            assert_eq!(family.kind == Kind::Counter, family.name.ends_with("_total"), "{}", family.name);
            assert!(
                family.help.ends_with('.') && family.help.len() < 120,
                "{}: {}",
                family.name,
                family.help
            );
            let hostile = ["host", "url", "ip", "path", "agent", "address"];
            assert!(!family.labels.iter().any(|label| hostile.contains(label)), "{}", family.name);
        }
    }

    #[test]
    fn every_value_of_a_label_is_there_from_the_start() {
        let samples = samples(&text(&crawl(2)));
        for name in [
            "nephila_documents_total{result=\"shard_died\"}",
            "nephila_responses_total{code=\"404\"}",
            "nephila_responses_total{code=\"other\"}",
            "nephila_hosts{state=\"set_aside\"}",
            "nephila_fetches_open{shard=\"1\"}",
            "nephila_fetch_duration_seconds_bucket{le=\"+Inf\"}",
            "nephila_fetch_duration_seconds_count",
            "nephila_node_state{state=\"paused\"}",
            "nephila_politeness_margin_seconds{of=\"address\"}",
        ] {
            assert_eq!(samples.get(name), Some(&0.0), "{name}");
        }
        assert_eq!(samples["nephila_node_state{state=\"starting\"}"], 1.0);
        assert_eq!(samples["nephila_node_info{role=\"crawl\",driver=\"uring\"}"], 1.0);
    }

    #[test]
    fn there_are_never_more_series_than_this() {
        let mut readings = crawl(8);
        readings.threads = (0..20).map(|at| (format!("thread-{at}"), 1.0)).collect();
        let requests = (0..40).map(|_| ("handler", "2xx", 1)).collect();
        let beside = Beside { admin_requests: requests, ..Beside::default() };
        let series = exposition(&readings, &beside, Format::Text)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert!(series <= 350 + 14 * 8, "{series} series");
    }

    #[test]
    fn figures_come_out_where_they_belong() {
        let mut readings = Readings { state: State::Running, body_memory: 9, ..crawl(2) };
        readings.all.all_mut(Group::Results)[0] = 5;
        readings.all.all_mut(Group::Stages)[1] = 2_500_000;
        readings.all.set(Counter::Bytes, 1 << 60);
        let mut durations = Durations::default();
        [900, 1_100, 90_000_000].into_iter().for_each(|us| durations.note(us));
        readings.all.all_mut(Group::FetchTimes).copy_from_slice(&durations.figures());
        for (at, margin_us) in [(0, 300_i64), (1, -250_000)] {
            readings.shards[at].all_mut(Group::Checked)[0] = 1;
            readings.shards[at].all_mut(Group::Margins)[0] = margin_us.cast_unsigned();
        }
        // Nothing was to be waited for.
        readings.shards[0].all_mut(Group::Checked)[1] = 1;
        readings.shards[0].all_mut(Group::Margins)[1] = i64::MAX.cast_unsigned();
        readings.shards[1].set(Counter::Open, 61);
        let samples = samples(&text(&readings));
        assert_eq!(samples["nephila_documents_total{result=\"ok\"}"], 5.0);
        assert_eq!(samples["nephila_stage_cpu_seconds_total{stage=\"network\"}"], 2.5);
        assert_eq!(samples["nephila_received_bytes_total"], (1_u64 << 60) as f64);
        assert_eq!(samples["nephila_fetch_duration_seconds_bucket{le=\"0.001\"}"], 1.0);
        assert_eq!(samples["nephila_fetch_duration_seconds_bucket{le=\"0.0025\"}"], 2.0, "buckets add up");
        assert_eq!(samples["nephila_fetch_duration_seconds_bucket{le=\"60.0\"}"], 2.0);
        assert_eq!(samples["nephila_fetch_duration_seconds_bucket{le=\"+Inf\"}"], 3.0);
        assert_eq!(samples["nephila_fetch_duration_seconds_sum"], 90.002);
        assert_eq!(
            samples["nephila_politeness_margin_seconds{of=\"host\"}"], -0.25,
            "the smallest of all shards"
        );
        assert_eq!(samples["nephila_politeness_margin_seconds{of=\"address\"}"], 0.0, "there is none");
        assert_eq!(samples["nephila_fetches_open{shard=\"1\"}"], 61.0);
        assert_eq!(samples["nephila_body_memory_bytes"], 9.0);
    }

    #[test]
    fn a_process_has_what_its_role_has() {
        let names = |readings: &Readings| -> SortedSet<String> {
            let text = text(readings);
            let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
            types.map(|line| line.split(' ').next().unwrap().to_string()).collect()
        };
        let of = |role, has_store| names(&Readings { role, has_store, ..crawl(1) });
        let of_crawl = families().filter(|family| family.roles.contains(&Role::Crawl));
        assert_eq!(of(Role::Crawl, true).len(), of_crawl.count());
        let url_server = of(Role::UrlServer, false);
        assert!(url_server.contains("nephila_index_urls") && !url_server.contains("nephila_store_segments"));
        let spider = of(Role::Spider, false);
        assert!(
            spider.contains("nephila_documents_total")
                && !spider.contains("nephila_store_written_bytes_total")
        );
        assert!(of(Role::Spider, true).contains("nephila_store_written_bytes_total"));
        let store = of(Role::StoreServer, true);
        assert!(store.contains("nephila_store_segments") && !store.contains("nephila_documents_total"));
        assert!(store.contains("process_open_fds"));
        let master = of(Role::Master, false);
        assert!(master.contains("nephila_master_epoch") && !master.contains("nephila_documents_total"));
    }

    #[test]
    fn both_formats_say_the_same() {
        let readings = crawl(2);
        let (plain, open) = (text(&readings), exposition(&readings, &Beside::default(), Format::OpenMetrics));
        assert!(
            plain.contains(
                "# TYPE nephila_documents_total counter\nnephila_documents_total{result=\"ok\"} 0\n"
            )
        );
        assert!(
            open.contains("# TYPE nephila_documents counter\nnephila_documents_total{result=\"ok\"} 0\n")
        );
        assert!(open.ends_with("# EOF\n") && !plain.contains("EOF"));
        assert_eq!(samples(&plain), samples(&open));
        assert_eq!(Format::asked_for("text/plain"), Format::Text);
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,*/*";
        assert_eq!(Format::asked_for(prometheus), Format::OpenMetrics);
    }
}
