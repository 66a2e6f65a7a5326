//! The summary of a crawl or of a spider, as a table for people and as JSON for scripts.

use crate::base::rfc3339;
use crate::engine::{SpiderSummary, StoreSummary, Summary, UrlSummary};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// The one object that `crawl --json` ends with. `bench` reads it back from its child.
#[derive(Serialize, serde::Deserialize, Debug)]
pub struct CrawlReport {
    pub pages: u64,
    pub success: u64,
    pub errors: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    pub seconds: f64,
    pub pages_per_second: f64,
    pub cpu_us_per_page: f64,
    pub driver: String,
    pub cores: Vec<usize>,
    pub pending: u64,
    /// Of the pending ones, those that wait for a retry or to be looked at again, and when the next is due.
    #[serde(default)]
    pub waiting: u64,
    #[serde(default)]
    pub next_due: Option<String>,
    pub known: u64,
    /// Of the known ones, those that were when it began.
    #[serde(default)]
    pub known_before: u64,
    /// Pages that were stored by a process that was killed, and are not fetched again.
    #[serde(default)]
    pub taken_up: u64,
    pub results: BTreeMap<String, u64>,
    pub fetch_ms: FetchTimes,
    pub robots: u64,
    pub shard_restarts: u64,
    pub syscalls_per_page: f64,
    pub stopped: bool,
}

#[derive(Serialize, serde::Deserialize, Debug)]
pub struct FetchTimes {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The one object that `spider --json` ends with.
#[derive(Serialize, Debug)]
pub struct SpiderReport {
    /// Orders that left a record, those that could not be fetched among them.
    pub pages: u64,
    pub success: u64,
    pub errors: u64,
    pub bytes: u64,
    /// In segments; with a store server, on the wire to it.
    pub stored_bytes: u64,
    pub seconds: f64,
    pub pages_per_second: f64,
    pub cpu_us_per_page: f64,
    pub driver: String,
    pub cores: Vec<usize>,
    pub results: BTreeMap<String, u64>,
    pub fetch_ms: FetchTimes,
    /// DONE words that nobody was there to hear.
    pub untold: u64,
    /// Links closed over a line that could not be read.
    pub bad_lines: u64,
    pub shard_restarts: u64,
    pub syscalls_per_page: f64,
}

/// The one object that `storeserver --json` ends with.
#[derive(Serialize, Debug)]
pub struct StoreReport {
    pub connections: u64,
    pub records: u64,
    /// On the wire, headers included.
    pub bytes: u64,
    pub stored_bytes: u64,
    /// Connections that ended inside a record, or sent what is none.
    pub bad_connections: u64,
    pub seconds: f64,
    pub cpu_us_per_record: f64,
}

impl StoreReport {
    pub fn new(summary: &StoreSummary) -> StoreReport {
        StoreReport {
            connections: summary.connections,
            records: summary.records,
            bytes: summary.bytes,
            stored_bytes: summary.stored_bytes,
            bad_connections: summary.bad_connections,
            seconds: summary.seconds,
            cpu_us_per_record: summary.cpu_us as f64 / summary.records.max(1) as f64,
        }
    }

    pub fn table(&self) -> String {
        table(&[
            ("records", self.records.to_string()),
            ("connections", format!("{} ({} bad)", self.connections, self.bad_connections)),
            ("received", format!("{:.1} MB", self.bytes as f64 / 1e6)),
            ("stored", stored(self.bytes, self.stored_bytes)),
            ("CPU µs/rec.", format!("{:.1}", self.cpu_us_per_record)),
            ("seconds", format!("{:.2}", self.seconds)),
        ])
    }
}

/// What a URL server came to, in the shape that scripts rely upon.
#[derive(Serialize)]
pub struct UrlReport {
    pub known: u64,
    /// URLs that were answered for.
    pub done: u64,
    pub pending: u64,
    /// Lines that went to spiders, and those of them that went again.
    pub sent: u64,
    pub resent: u64,
    /// Words on transactions that were not open.
    pub late: u64,
    /// Links closed over a line that could not be read.
    pub bad_lines: u64,
    pub seconds: f64,
    pub cpu_us_per_url: f64,
    pub driver: String,
    pub results: BTreeMap<String, u64>,
    pub stopped: bool,
}

impl UrlReport {
    pub fn new(summary: &UrlSummary) -> UrlReport {
        UrlReport {
            known: summary.known,
            done: summary.done,
            pending: summary.pending,
            sent: summary.sent,
            resent: summary.resent,
            late: summary.late,
            bad_lines: summary.bad_lines,
            seconds: summary.seconds,
            cpu_us_per_url: summary.cpu_us as f64 / summary.done.max(1) as f64,
            driver: summary.driver.to_string(),
            results: summary.results.iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
            stopped: summary.stopped,
        }
    }

    pub fn table(&self) -> String {
        table(&[
            ("urls", format!("{} known, {} done, {} pending", self.known, self.done, self.pending)),
            ("lines", format!("{} sent, {} of them again", self.sent, self.resent)),
            ("results", results(&self.results)),
            ("links", format!("{} words came late, {} closed over bad lines", self.late, self.bad_lines)),
            ("CPU µs/URL", format!("{:.1}", self.cpu_us_per_url)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("driver", self.driver.clone()),
        ])
    }
}

impl FetchTimes {
    fn new(fetch_us: &Histogram<u64>) -> FetchTimes {
        let ms = |us: u64| us as f64 / 1_000.0;
        FetchTimes {
            p50: ms(fetch_us.value_at_quantile(0.5)),
            p99: ms(fetch_us.value_at_quantile(0.99)),
            max: ms(fetch_us.max()),
        }
    }

    fn row(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", self.p50, self.p99, self.max)
    }
}

impl CrawlReport {
    pub fn new(summary: &Summary) -> CrawlReport {
        let per_page = |value: f64| {
            if summary.pages == 0 { 0.0 } else { value / summary.pages as f64 }
        };
        CrawlReport {
            pages: summary.pages,
            success: summary.success,
            errors: summary.errors,
            bytes: summary.bytes,
            stored_bytes: summary.stored_bytes,
            seconds: summary.seconds,
            pages_per_second: summary.pages as f64 / summary.seconds.max(1e-9),
            cpu_us_per_page: per_page(summary.cpu_us as f64),
            driver: summary.driver.to_string(),
            cores: summary.cores.clone(),
            pending: summary.pending,
            waiting: summary.waiting,
            next_due: summary.next_due_s.map(|due_s| rfc3339(u64::from(due_s) * 1_000)),
            known: summary.known,
            known_before: summary.known_before,
            taken_up: summary.taken_up,
            results: summary.results.iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
            fetch_ms: FetchTimes::new(&summary.fetch_us),
            robots: summary.robots,
            shard_restarts: summary.restarts,
            syscalls_per_page: per_page(summary.syscalls as f64),
            stopped: summary.stopped,
        }
    }

    fn urls(&self) -> String {
        let due = self.next_due.as_ref().map(|due| format!(" ({} wait, the next until {due})", self.waiting));
        format!("{} known, {} pending{}", self.known, self.pending, due.unwrap_or_default())
    }

    pub fn table(&self) -> String {
        let rows = [
            ("pages", format!("{} ({} with success, {} errors)", self.pages, self.success, self.errors)),
            ("pages/s", format!("{:.0}", self.pages_per_second)),
            ("CPU µs/page", format!("{:.1}", self.cpu_us_per_page)),
            ("received", format!("{:.1} MB", self.bytes as f64 / 1e6)),
            ("stored", stored(self.bytes, self.stored_bytes)),
            ("fetch", self.fetch_ms.row()),
            ("results", results(&self.results)),
            ("URLs", self.urls()),
            ("robots.txt", format!("{} fetched", self.robots)),
            ("seconds", format!("{:.2}", self.seconds)),
            (
                "driver",
                format!(
                    "{}, cores {:?}, {:.2} system calls/page",
                    self.driver, self.cores, self.syscalls_per_page
                ),
            ),
        ];
        table(&rows)
    }
}

impl SpiderReport {
    pub fn new(summary: &SpiderSummary) -> SpiderReport {
        let per_page = |value: u64| {
            if summary.pages == 0 { 0.0 } else { value as f64 / summary.pages as f64 }
        };
        SpiderReport {
            pages: summary.pages,
            success: summary.success,
            errors: summary.pages - summary.success,
            bytes: summary.bytes,
            stored_bytes: summary.stored_bytes,
            seconds: summary.seconds,
            pages_per_second: summary.pages as f64 / summary.seconds.max(1e-9),
            cpu_us_per_page: per_page(summary.cpu_us),
            driver: summary.driver.to_string(),
            cores: summary.cores.clone(),
            results: summary.results.iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
            fetch_ms: FetchTimes::new(&summary.fetch_us),
            untold: summary.untold,
            bad_lines: summary.bad_lines,
            shard_restarts: summary.restarts,
            syscalls_per_page: per_page(summary.syscalls),
        }
    }

    pub fn table(&self) -> String {
        table(&[
            ("pages", format!("{} ({} with success, {} errors)", self.pages, self.success, self.errors)),
            ("CPU µs/page", format!("{:.1}", self.cpu_us_per_page)),
            ("received", format!("{:.1} MB", self.bytes as f64 / 1e6)),
            ("stored", stored(self.bytes, self.stored_bytes)),
            ("fetch", self.fetch_ms.row()),
            ("results", results(&self.results)),
            ("links", format!("{} DONE unheard, {} closed over bad lines", self.untold, self.bad_lines)),
            ("seconds", format!("{:.2}", self.seconds)),
            (
                "driver",
                format!(
                    "{}, cores {:?}, {:.2} system calls/page",
                    self.driver, self.cores, self.syscalls_per_page
                ),
            ),
        ])
    }
}

fn stored(bytes: u64, stored_bytes: u64) -> String {
    let ratio = if stored_bytes == 0 { 0.0 } else { bytes as f64 / stored_bytes as f64 };
    format!("{:.1} MB, compression {ratio:.2}:1", stored_bytes as f64 / 1e6)
}

fn results(results: &BTreeMap<String, u64>) -> String {
    let results: Vec<String> = results.iter().map(|(name, count)| format!("{name} {count}")).collect();
    results.join(", ")
}

fn table(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect()
}
