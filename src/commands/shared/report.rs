//! The summaries of the processes that serve, as a table for people and as JSON for scripts.

use super::output::sized;
use super::times::with_age;
use crate::base::{SortedMap, counted, plural, rfc3339, shown};
use crate::engine::{Ended, SpiderSummary, StoreSummary, Summary, UrlSummary, WaitingHost, WaitingHosts};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What was fetched, and what it took.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Fetches {
    /// Those that could not be had among them.
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
}

/// The one object that `crawl --json` ends with. `bench` reads it back from its child.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct CrawlReport {
    #[serde(flatten)]
    pub fetches: Fetches,
    pending: u64,
    /// Of the pending ones, those that wait for a retry or to be looked at again, and when the next is due.
    waiting: u64,
    next_due: Option<String>,
    #[serde(flatten)]
    waiting_hosts: WaitingHosts,
    known: u64,
    /// Of the known ones, those that the rules of this run leave out.
    excluded: u64,
    /// Of the known ones, those that were when it began.
    known_before: u64,
    /// Pages that were stored by a process that was killed, and are not fetched again.
    taken_up: u64,
    results: SortedMap<String, u64>,
    pub fetch_ms: FetchTimes,
    robots: u64,
    #[serde(skip)]
    robots_failed: u64,
    shard_restarts: u64,
    pub syscalls_per_page: f64,
    /// It was ended before everything that was due was fetched.
    stopped: bool,
    ended: Ended,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct FetchTimes {
    pub p50: f64,
    pub p99: f64,
    max: f64,
}

/// The one object that `spider --json` ends with. Its pages are orders that left a record.
#[derive(Serialize)]
pub(crate) struct SpiderReport {
    #[serde(flatten)]
    fetches: Fetches,
    results: SortedMap<String, u64>,
    fetch_ms: FetchTimes,
    /// DONE words that no URL server was there to hear.
    untold: u64,
    /// Links closed over a line that could not be read.
    bad_lines: u64,
    shard_restarts: u64,
    syscalls_per_page: f64,
}

/// The one object that `storeserver --json` ends with.
#[derive(Serialize)]
pub(crate) struct StoreReport {
    connections: u64,
    records: u64,
    /// On the wire, headers included.
    bytes: u64,
    stored_bytes: u64,
    /// Connections that ended inside a record, or sent what is none.
    bad_connections: u64,
    seconds: f64,
    cpu_us_per_record: f64,
}

/// The one object that `urlserver --json` ends with.
#[derive(Serialize)]
pub(crate) struct UrlReport {
    known: u64,
    /// URLs that were answered for.
    done: u64,
    pending: u64,
    /// Left out by the rules of this run.
    excluded: u64,
    /// Lines that went to spiders, and those of them that went again.
    sent: u64,
    resent: u64,
    /// Words on transactions that were not open.
    late: u64,
    /// Links closed over a line that could not be read.
    bad_lines: u64,
    seconds: f64,
    cpu_us_per_url: f64,
    driver: &'static str,
    results: SortedMap<&'static str, u64>,
    #[serde(flatten)]
    waiting_hosts: WaitingHosts,
    stopped: bool,
}

/// The two summaries that count fetches have these by the same names.
macro_rules! fetches {
    ($summary:expr) => {
        Fetches {
            pages: $summary.pages,
            success: $summary.success,
            errors: $summary.pages - $summary.success,
            bytes: $summary.bytes,
            stored_bytes: $summary.stored_bytes,
            seconds: $summary.seconds,
            pages_per_second: $summary.pages as f64 / $summary.seconds.max(1e-9),
            cpu_us_per_page: per($summary.cpu_us, $summary.pages),
            driver: $summary.driver.to_string(),
            cores: $summary.cores.clone(),
        }
    };
}

impl CrawlReport {
    pub fn new(summary: &Summary) -> CrawlReport {
        CrawlReport {
            fetches: fetches!(summary),
            pending: summary.pending,
            waiting: summary.waiting,
            next_due: summary.next_due_s.map(|due_s| rfc3339(u64::from(due_s) * 1_000)),
            waiting_hosts: summary.waiting_hosts.clone(),
            known: summary.known,
            excluded: summary.excluded,
            known_before: summary.known_before,
            taken_up: summary.taken_up,
            results: owned(&summary.results),
            fetch_ms: FetchTimes::new(&summary.fetch_us),
            robots: summary.robots,
            robots_failed: summary.robots_failed,
            shard_restarts: summary.restarts,
            syscalls_per_page: per(summary.syscalls, summary.pages),
            stopped: summary.ended.is_early(),
            ended: summary.ended,
        }
    }

    /// Fetches that had this result.
    pub fn count(&self, result: &str) -> u64 {
        self.results.get(result).copied().unwrap_or(0)
    }

    /// What this run did, and what its directory holds.
    pub fn table(&self, data: &Path) -> String {
        let Self { known, pending, excluded, .. } = self;
        let out = if *excluded > 0 { format!(", {excluded} excluded") } else { String::new() };
        let new = known - self.known_before.min(*known);
        let new = if new == 0 || new == *known { String::new() } else { format!(" ({new} of them new)") };
        let all = table(&[("URLs", format!("{known} known{new}, {pending} pending{out}"))]);
        format!("this run\n{}all of {}\n{all}", self.this_run(), data.display())
    }

    /// What this run did, without what is zero.
    pub fn this_run(&self) -> String {
        let fetches = &self.fetches;
        let pages = fetches.pages;
        table(&[
            ("pages", fetches.pages_row(&self.results)),
            ("pages/s", some(pages, &|| format!("{:.0}", fetches.pages_per_second))),
            ("CPU µs/page", some(pages, &|| format!("{:.1}", fetches.cpu_us_per_page))),
            ("received", some(fetches.bytes, &|| sized(fetches.bytes))),
            ("stored", some(fetches.bytes, &|| stored(fetches.bytes, fetches.stored_bytes))),
            ("fetch", some(pages, &|| self.fetch_ms.row())),
            ("results", results(&self.results)),
            ("robots.txt", some(self.robots, &|| self.robots_row())),
            ("restarts", some(self.shard_restarts, &|| format!("{} of shards", self.shard_restarts))),
            ("seconds", format!("{:.2}", fetches.seconds)),
            ("driver", fetches.driver_row(self.syscalls_per_page)),
        ])
    }

    fn robots_row(&self) -> String {
        let failed = self.robots_failed.min(self.robots);
        let fetched = format!("{} fetched", self.robots - failed);
        if failed > 0 { format!("{fetched}, {failed} failed") } else { fetched }
    }

    /// Whether nothing could be had because no address of what was due may be connected to.
    fn is_kept_out(&self) -> bool {
        let blocked = self.count("blocked_address");
        self.fetches.pages == 0 && self.ended == Ended::Done && blocked > 0
    }

    /// Why a crawl that had nothing is none that has nothing to do: its rules leave out every URL that it knows.
    pub fn all_excluded(&self, data: &Path) -> Option<String> {
        let is_all = self.excluded > 0 && self.excluded == self.known;
        (is_all && self.fetches.pages == 0 && self.ended == Ended::Done).then(|| {
            let (all, verb) = (counted(self.known, "URL"), if self.known == 1 { "is" } else { "are" });
            let data = data.display();
            format!("nothing could be had: {all} {verb} known, and all excluded (nephila index stat --data {data} says why)")
        })
    }

    /// Why it ended, and what to type to go on; `command` is what it was run by.
    pub fn end(&self, command: &str, data: &Path) -> String {
        let verb = if self.pending == 1 { "is" } else { "are" };
        let left = format!("{} {verb} left", counted(self.pending, "URL"));
        let ended = match self.ended {
            Ended::Done if self.is_kept_out() => {
                "what is left is at addresses that are not allowed".to_string()
            }
            Ended::Done => "nothing is left to fetch".to_string(),
            Ended::Linger => match &self.next_due {
                Some(due) => {
                    format!("what is left is not due yet; {left}, the next is due at {}", with_age(due))
                }
                None => format!("what is left waits longer than linger; {left}"),
            },
            Ended::MaxPages => format!("the limit --max-pages was reached; {left}"),
            Ended::MaxSeconds => format!("the limit --max-seconds was reached; {left}"),
            Ended::Signal => format!("stopped by a signal or nephila stop; {left}"),
        };
        let data = data.display();
        let go_on = match self.ended {
            Ended::Done if self.is_kept_out() => {
                format!("nephila {command} --data {data} --allow-net NET (a network, like 127.0.0.0/8)")
            }
            Ended::Done => {
                format!("nephila {command} --data {data} --again (asks whether anything has changed)")
            }
            Ended::Linger => format!("nephila {command} --data {data} --wait (stays until they are due)"),
            _ => format!("nephila {command} --data {data}"),
        };
        table(&[("ended", ended), ("go on", go_on)]) + &not_stayed_for(&self.waiting_hosts)
    }
}

impl SpiderReport {
    pub fn new(summary: &SpiderSummary) -> SpiderReport {
        SpiderReport {
            fetches: fetches!(summary),
            results: owned(&summary.results),
            fetch_ms: FetchTimes::new(&summary.fetch_us),
            untold: summary.untold,
            bad_lines: summary.bad_lines,
            shard_restarts: summary.restarts,
            syscalls_per_page: per(summary.syscalls, summary.pages),
        }
    }

    pub fn table(&self) -> String {
        let Self { fetches, untold, bad_lines, .. } = self;
        table(&[
            ("pages", fetches.pages_row(&self.results)),
            ("CPU µs/page", format!("{:.1}", fetches.cpu_us_per_page)),
            ("received", sized(fetches.bytes)),
            ("stored", stored(fetches.bytes, fetches.stored_bytes)),
            ("fetch", self.fetch_ms.row()),
            ("results", results(&self.results)),
            (
                "links",
                some(untold + bad_lines, &|| {
                    format!("{untold} DONE unheard, {bad_lines} closed over bad lines")
                }),
            ),
            ("seconds", format!("{:.2}", fetches.seconds)),
            ("driver", fetches.driver_row(self.syscalls_per_page)),
        ])
    }
}

impl StoreReport {
    pub fn new(summary: &StoreSummary) -> StoreReport {
        let StoreSummary { connections, records, bytes, stored_bytes, bad_connections, seconds, cpu_us } =
            *summary;
        let cpu_us_per_record = cpu_us as f64 / records.max(1) as f64;
        StoreReport { connections, records, bytes, stored_bytes, bad_connections, seconds, cpu_us_per_record }
    }

    pub fn table(&self) -> String {
        table(&[
            ("records", self.records.to_string()),
            ("connections", format!("{} ({} bad)", self.connections, self.bad_connections)),
            ("received", sized(self.bytes)),
            ("stored", stored(self.bytes, self.stored_bytes)),
            ("CPU µs/rec.", format!("{:.1}", self.cpu_us_per_record)),
            ("seconds", format!("{:.2}", self.seconds)),
        ])
    }
}

impl UrlReport {
    pub fn new(summary: UrlSummary) -> UrlReport {
        let UrlSummary { known, done, pending, excluded, sent, resent, late, bad_lines, seconds, .. } =
            summary;
        let UrlSummary { cpu_us, driver, results, waiting_hosts, stopped, .. } = summary;
        let cpu_us_per_url = cpu_us as f64 / done.max(1) as f64;
        UrlReport {
            known,
            done,
            pending,
            excluded,
            sent,
            resent,
            late,
            bad_lines,
            seconds,
            cpu_us_per_url,
            driver,
            results,
            waiting_hosts,
            stopped,
        }
    }

    pub fn table(&self) -> String {
        let Self { known, done, pending, sent, resent, late, bad_lines, .. } = self;
        table(&[
            ("urls", format!("{known} known, {done} done, {pending} pending")),
            ("lines", format!("{sent} sent, {resent} of them again")),
            ("results", results(&self.results)),
            (
                "links",
                some(late + bad_lines, &|| {
                    format!("{late} words came late, {bad_lines} closed over bad lines")
                }),
            ),
            ("CPU µs/URL", format!("{:.1}", self.cpu_us_per_url)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("driver", self.driver.to_string()),
        ]) + &not_stayed_for(&self.waiting_hosts)
    }
}

impl Fetches {
    /// A redirect has no document, and so no success, and is no error either.
    fn pages_row(&self, results: &SortedMap<String, u64>) -> String {
        let redirects = results.get("redirect").copied().unwrap_or(0).min(self.errors);
        let mut row = format!("{} ({} with success", self.pages, self.success);
        for (count, noun) in [(redirects, "redirect"), (self.errors - redirects, "error")] {
            row += &some(count, &|| format!(", {}", counted(count, noun)));
        }
        row + ")"
    }

    fn driver_row(&self, syscalls_per_page: f64) -> String {
        format!("{}, cores {:?}, {syscalls_per_page:.2} system calls/page", self.driver, self.cores)
    }
}

impl FetchTimes {
    fn new(fetch_us: &Histogram<u64>) -> FetchTimes {
        let ms = |us: u64| us as f64 / 1_000.0;
        let at = |quantile| ms(fetch_us.value_at_quantile(quantile));
        FetchTimes { p50: at(0.5), p99: at(0.99), max: ms(fetch_us.max()) }
    }

    fn row(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", self.p50, self.p99, self.max)
    }
}

/// A row, unless it is about nothing.
fn some(count: u64, row: &dyn Fn() -> String) -> String {
    if count > 0 { row() } else { String::new() }
}

/// Nothing a page if there was none.
fn per(value: u64, pages: u64) -> f64 {
    if pages == 0 { 0.0 } else { value as f64 / pages as f64 }
}

fn stored(bytes: u64, stored_bytes: u64) -> String {
    format!("{}, compression {:.2}:1", sized(stored_bytes), per(bytes, stored_bytes))
}

fn owned(results: &SortedMap<&'static str, u64>) -> SortedMap<String, u64> {
    results.iter().map(|(name, count)| ((*name).to_string(), *count)).collect()
}

fn results<N: std::fmt::Display>(results: &SortedMap<N, u64>) -> String {
    let results: Vec<String> = results.iter().map(|(name, count)| format!("{name} {count}")).collect();
    results.join(", ")
}

/// The hosts that were not stayed for, and how to.
fn not_stayed_for(hosts: &WaitingHosts) -> String {
    let WaitingHosts { waiting_hosts, waiting_hosts_more: more } = hosts;
    let mut text = String::new();
    if !waiting_hosts.is_empty() {
        text += "all that is left waits longer than linger (go on later, or stay with --wait):\n";
    }
    for WaitingHost { host, urls, reason, until } in waiting_hosts {
        let until = until.as_ref().map_or(String::new(), |until| format!(" until {}", with_age(until)));
        text += &format!(
            "  {}  {urls} {}{until}: {}\n",
            shown(host, 200),
            plural(*urls as u64, "URL"),
            reason.words()
        );
    }
    if *more > 0 {
        text += &format!("  and {more} more {}\n", plural(*more as u64, "host"));
    }
    text
}

fn table(rows: &[(&str, String)]) -> String {
    let told = rows.iter().filter(|(_, value)| !value.is_empty());
    told.map(|(name, value)| format!("  {name:<12} {value}\n")).collect()
}
