//! The summary of a crawl, as a table for people and as JSON for scripts.

use crate::engine::Summary;
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
    pub known: u64,
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

impl CrawlReport {
    pub fn new(summary: &Summary) -> CrawlReport {
        let per_page = |value: f64| {
            if summary.pages == 0 { 0.0 } else { value / summary.pages as f64 }
        };
        let ms = |us: u64| us as f64 / 1_000.0;
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
            known: summary.known,
            results: summary.results.iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
            fetch_ms: FetchTimes {
                p50: ms(summary.fetch_us.value_at_quantile(0.5)),
                p99: ms(summary.fetch_us.value_at_quantile(0.99)),
                max: ms(summary.fetch_us.max()),
            },
            robots: summary.robots,
            shard_restarts: summary.restarts,
            syscalls_per_page: per_page(summary.syscalls as f64),
            stopped: summary.stopped,
        }
    }

    pub fn table(&self) -> String {
        let ratio = if self.stored_bytes == 0 { 0.0 } else { self.bytes as f64 / self.stored_bytes as f64 };
        let results: Vec<String> =
            self.results.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let rows = [
            ("pages", format!("{} ({} with success, {} errors)", self.pages, self.success, self.errors)),
            ("pages/s", format!("{:.0}", self.pages_per_second)),
            ("CPU µs/page", format!("{:.1}", self.cpu_us_per_page)),
            ("received", format!("{:.1} MB", self.bytes as f64 / 1e6)),
            ("stored", format!("{:.1} MB, compression {ratio:.2}:1", self.stored_bytes as f64 / 1e6)),
            (
                "fetch",
                format!(
                    "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                    self.fetch_ms.p50, self.fetch_ms.p99, self.fetch_ms.max
                ),
            ),
            ("results", results.join(", ")),
            ("URLs", format!("{} known, {} pending", self.known, self.pending)),
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
        rows.iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect()
    }
}
