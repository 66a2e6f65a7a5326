use super::rounds::median;
use super::sampler::ProcessSample;
use crate::base::{Now, Wall};
use crate::commands::shared::{Failure, print};
use crate::proto::job::{Candidate, Job, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::{
    Acquired, Lent, LoanWord, Niceness, OrderKind, Report, Robotstxt, UrlServer, UrlServerConfig,
};
use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

/// Fill the URL server's queues and print what one decision costs, and what a waiting host does
///
/// A decision is an acquire and its release, in virtual time. A million come due in every second, whatever the
/// number of hosts, in no order that a cache could know: with a million hosts each is asked once a second.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench queues --hosts 1000000 --urls 10000000\n\nThe same is measured with 1,000 hosts first, in the same run; the figure to look at is the ratio of the two."
)]
pub(super) struct QueuesArgs {
    /// Hosts that wait
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    hosts: u32,
    /// URLs that wait, over all hosts
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    urls: u64,
    /// Hosts that share an address
    #[arg(long, value_name = "N", default_value_t = 1)]
    hosts_per_ip: u32,
    /// Decisions to measure
    #[arg(long, value_name = "N", default_value_t = 3_000_000)]
    decisions: u64,
    /// Measure it once more as a node of a cluster does it, which has to have a right and the address's ticket
    #[arg(long)]
    cluster: bool,
    #[arg(long)]
    json: bool,
}

/// What one table of hosts came to.
#[derive(Serialize)]
struct QueuesReport {
    hosts: u32,
    urls: u64,
    hosts_per_ip: u32,
    decisions: u64,
    /// Of one acquire and release, the clock's own cost taken off.
    median_ns: f64,
    p99_ns: f64,
    /// Of the whole loop, timers too, over its decisions.
    mean_ns: f64,
    bytes_per_waiting_host: f64,
    bytes_per_url: f64,
    resident_mib: f64,
}

#[derive(Serialize)]
struct BenchQueuesReport {
    small: QueuesReport,
    large: QueuesReport,
    /// Median cost of a decision with many hosts over that with few.
    ratio: f64,
    /// With a right and tickets, and its median cost over that of many hosts without.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<(QueuesReport, f64)>,
}

const HOSTS_SMALL: u32 = 1_000;

impl QueuesArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.hosts == 0 || self.hosts_per_ip == 0 || self.urls < u64::from(self.hosts) {
            return Err(Failure::Usage(
                "give at least one host, and a URL for each (--hosts, --urls)".into(),
            ));
        }
        let per_host = self.urls / u64::from(self.hosts);
        let measure = |hosts, is_lent| measure((hosts, self.hosts_per_ip), per_host, self.decisions, is_lent);
        let small = measure(HOSTS_SMALL.min(self.hosts), false)?;
        let large = measure(self.hosts, false)?;
        let lent = self.cluster.then(|| measure(self.hosts, true)).transpose()?;
        let cluster = lent.map(|lent| {
            let ratio = lent.median_ns / large.median_ns;
            (lent, ratio)
        });
        let report = BenchQueuesReport { ratio: large.median_ns / small.median_ns, small, large, cluster };
        print(&if self.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.text() })
    }
}

impl BenchQueuesReport {
    fn text(&self) -> String {
        let mut text = String::from(
            "     hosts        urls  median ns  p99 ns    mean ns (timers too)  bytes/waiting host  bytes/url\n",
        );
        let lent = self.cluster.as_ref().map(|(lent, _)| lent);
        for row in [&self.small, &self.large].into_iter().chain(lent) {
            let QueuesReport {
                hosts,
                urls,
                median_ns,
                p99_ns,
                mean_ns,
                bytes_per_waiting_host,
                bytes_per_url,
                ..
            } = row;
            text += &format!(
                "{hosts:>10} {urls:>11} {median_ns:>10.0} {p99_ns:>7.0} {mean_ns:>26.0} {bytes_per_waiting_host:>19.0} {bytes_per_url:>10.0}\n"
            );
        }
        let (few, times) = (self.small.hosts, self.large.hosts / self.small.hosts);
        text += &format!("\nacquire + release, {times} times over {few}: {:.2} x\n", self.ratio);
        if let Some((_, ratio)) = &self.cluster {
            text += &format!("with a right and tickets (the last row) over without: {ratio:.2} x\n");
        }
        text
    }
}

const OK: Report = Report { result: ResultCode::Ok, status: 200, took_us: 0, retry_after_s: None };

fn job(hosts: u32, hosts_per_ip: u32, number: u64) -> Job {
    // Hosts come in an order that has nothing to do with where they are in memory.
    let host = (number.wrapping_mul(0x9e37_79b1) % u64::from(hosts)) as u32;
    let url = format!("http://www.host-{host:07}.example/page/{number:08}.html");
    let ip = IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + host / hosts_per_ip));
    let url = CrawlUrl::from_normal(&url).expect("a URL in normal form");
    Job::at(ip, Candidate { provenance: Provenance::link(1), ..Candidate::seed(number as u32, url) })
}

/// Lends whatever is wanted, for ever.
fn lend_all(server: &mut UrlServer, now: Now) {
    let mut words = server.take_loan_words();
    while !words.is_empty() {
        for word in words {
            if let LoanWord::Want { key, want } = word {
                let lent = Lent { key: &key, want, due: now, until: Now::NEVER, part: None, line: "" };
                server.lend(&lent, now);
            }
        }
        words = server.take_loan_words();
    }
}

/// Hosts that come due a million times in every second, all together.
fn rules(hosts: u32, hosts_per_ip: u32) -> UrlServerConfig {
    UrlServerConfig {
        queue_count: hosts as usize,
        queue_len: 256,
        host: Niceness::from_rate(1e6 / f64::from(hosts), 1, 0.0),
        // Hosts of an address take turns, each at its own rate.
        ip: Niceness::from_rate(f64::from(hosts_per_ip) * 1.5e6 / f64::from(hosts), u8::MAX, 0.0),
        spider_silence_us: 60_000_000,
        product_token: "nephila".to_string(),
        leftover_urls: usize::MAX,
        host_failures_max: 12,
        wall: Wall { unix_ms_at_zero: 0 },
        seed: 1,
    }
}

/// Queues of hosts whose rules are known, each with so many URLs.
pub(super) struct FilledQueues {
    server: UrlServer,
    now: Now,
}

impl FilledQueues {
    pub fn new(hosts: u32, per_host: u64) -> FilledQueues {
        let (mut server, mut now) = (UrlServer::new(rules(hosts, 1), Now::ZERO), Now::ZERO);
        for number in 0..u64::from(hosts) * per_host {
            now = Now::from_us(number);
            server.admit(job(hosts, 1, number), now);
            serve(&mut server, now);
            server.take_journal();
        }
        FilledQueues { server, now }
    }

    /// So many decisions, or a few more: acquired, released, and the URL put in again.
    pub fn decide(&mut self, times: u64) {
        let mut done = 0;
        while done < times {
            let Some(due) = self.server.next_due() else { return };
            self.now = self.now.max(due);
            done += serve(&mut self.server, self.now).pages;
        }
    }
}

fn measure(
    (hosts, hosts_per_ip): (u32, u32),
    per_host: u64,
    decisions: u64,
    is_lent: bool,
) -> Result<QueuesReport, Failure> {
    let resident_before = resident_bytes()?;
    let mut server = UrlServer::new(rules(hosts, hosts_per_ip), Now::ZERO);
    if is_lent {
        server = server.with_loans();
        server.set_right(Now::NEVER, Now::ZERO);
    }
    let mut now = Now::ZERO;
    // One URL for each host, and its robots rules, spread over a second as they would be in a crawl.
    let mut robots = 0;
    for number in 0..u64::from(hosts) {
        now = Now::from_us(number);
        server.admit(job(hosts, hosts_per_ip, number), now);
        lend_all(&mut server, now);
        robots += serve(&mut server, now).robots;
        // What must outlive the process goes to a journal; here there is none.
        server.take_journal();
    }
    while robots < u64::from(hosts) {
        now = now.max(server.next_due().unwrap_or(now));
        robots += serve(&mut server, now).robots;
        lend_all(&mut server, now);
    }
    let resident_hosts = resident_bytes()?;
    for number in u64::from(hosts)..u64::from(hosts) * per_host {
        server.admit(job(hosts, hosts_per_ip, number), now);
    }
    let resident_all = resident_bytes()?;
    let more_urls = u64::from(hosts) * (per_host - 1);
    let bytes_per_url = (resident_all - resident_hosts) / (more_urls.max(1) as f64);
    let bytes_per_host = (resident_hosts - resident_before) / f64::from(hosts) - bytes_per_url;

    let clock_ns = clock_cost_ns();
    let mut pair_ns = Histogram::<u64>::new(3)?;
    let (mut done, mut all_ns) = (0, 0);
    let mut again = Vec::new();
    while done < decisions {
        let turn = Instant::now();
        let Some(due) = server.next_due() else { break };
        now = now.max(due);
        server.tick(now);
        loop {
            let begun = Instant::now();
            let Acquired::Fetch(order) = server.acquire(now) else { break };
            server.sent(order.trans, now);
            let job = server.release(order.trans, &OK, now);
            let _ = pair_ns.record((begun.elapsed().as_nanos() as u64).max(1));
            done += 1;
            again.extend(job);
        }
        all_ns += turn.elapsed().as_nanos() as u64;
        // Filling up again is not what is measured.
        for job in again.drain(..) {
            server.admit(job, now);
        }
        lend_all(&mut server, now);
    }
    Ok(QueuesReport {
        hosts,
        urls: u64::from(hosts) * per_host,
        hosts_per_ip,
        decisions: done,
        median_ns: pair_ns.value_at_quantile(0.5) as f64 - clock_ns,
        p99_ns: pair_ns.value_at_quantile(0.99) as f64 - clock_ns,
        mean_ns: all_ns as f64 / done.max(1) as f64 - clock_ns,
        bytes_per_waiting_host: bytes_per_host,
        bytes_per_url,
        resident_mib: resident_all / 1_048_576.0,
    })
}

/// Served at once.
struct Served {
    robots: u64,
    pages: u64,
}

/// Serves what may be asked for now, and puts pages in again. No host has a robots.txt.
fn serve(server: &mut UrlServer, now: Now) -> Served {
    let mut robots = 0;
    let mut again = Vec::new();
    server.tick(now);
    while let Acquired::Fetch(order) = server.acquire(now) {
        server.sent(order.trans, now);
        if order.kind == OrderKind::Page {
            again.extend(server.release(order.trans, &OK, now));
            continue;
        }
        let answer = Robotstxt::Answer { status: 404, body: b"", target: None };
        server.robots(order.trans, &answer, &Report { status: 404, ..OK }, now);
        robots += 1;
    }
    let pages = again.len() as u64;
    for job in again {
        server.admit(job, now);
    }
    Served { robots, pages }
}

/// What reading the clock twice costs, the median of many tries.
fn clock_cost_ns() -> f64 {
    median((0..10_001).map(|_| Instant::now().elapsed().as_nanos() as f64))
}

fn resident_bytes() -> Result<f64, Failure> {
    let sample = ProcessSample::of(std::process::id());
    sample
        .map(|sample| sample.rss_bytes as f64)
        .ok_or_else(|| Failure::cannot_run("/proc tells nothing of memory"))
}
