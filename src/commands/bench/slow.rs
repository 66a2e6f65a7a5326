use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use super::stage::Stage;
use crate::commands::shared::{Failure, LogParts};
use crate::config::size;
use crate::farm::host_name;
use crate::proto::crawl_log::{LogLine, Path as LinePath, RunRules};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use clap::Args;
use serde::Serialize;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Crawl good hosts alone and with thousands of slow and broken ones among them, and compare pages/s of the good ones
///
/// Each crawl runs for the same time, and its log tells how many pages of good hosts it had by then, and in the second
/// half: when a crawl starts, thousands of hosts are asked for the first time at once, and that is work like any other.
/// Once with a rate for every host, as on the web, and once without, where all that a slow host costs is CPU that a
/// good one would have used.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench slow --slow-hosts 5000 --rounds 3\n\nOne ninth each of the slow hosts never answers, sends a byte a second, resets, closes, sends headers without an\nend, is malformed, refuses connections, answers 503, and breaks off; half of them from robots.txt on."
)]
pub(super) struct SlowArgs {
    /// Good hosts
    #[arg(long, value_name = "N", default_value_t = 500)]
    hosts: u32,
    /// Slow and broken hosts
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    slow_hosts: u32,
    /// Pages of a good host: more than the time is enough for
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    page_bytes: u32,
    /// Requests per second and host of the crawls with a rate
    #[arg(long, value_name = "F", default_value_t = 4.0)]
    req_host_per_sec: f64,
    /// Seconds of one crawl
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Pairs of crawls, with and without slow hosts in turns; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// The crawl's driver
    #[arg(long, value_name = "NAME", default_value = "auto")]
    driver: String,
    /// Where the crawls store; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct SlowReport {
    hosts: u32,
    slow_hosts: u32,
    seconds: u64,
    rounds: usize,
    driver: String,
    set_ups: Vec<SetUpReport>,
}

/// Crawls under one rule of niceness.
#[derive(Serialize)]
struct SetUpReport {
    /// 0 = no limit.
    req_host_per_sec: f64,
    /// Medians over the rounds.
    alone: Good,
    mixed: Good,
    /// Pages/s of the good hosts, mixed over alone.
    ratio: Ratio,
    ratio_second_half: Ratio,
    every_round: Vec<(Good, Good)>,
}

/// Over the rounds.
#[derive(Serialize, Clone, Copy)]
struct Ratio {
    median: f64,
    least: f64,
    most: f64,
}

/// What a crawl did for the good hosts.
#[derive(Serialize, Clone, Copy)]
struct Good {
    pages_per_second: f64,
    /// In the second half of its time.
    pages_per_second_half: f64,
    /// All CPU of the crawl, that for slow hosts too, over pages of good hosts.
    cpu_us_per_page: f64,
    /// Slow hosts of which a request had ended, well or not, by the end of the time.
    slow_hosts_ended: usize,
}

impl SlowArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.hosts == 0 || self.seconds == 0 {
            return Err(Failure::Usage("give at least one host and one second (--hosts, --seconds)".into()));
        }
        let stage = Stage::passing(self.data.as_deref())?;
        let figures = [
            ("--hosts", self.hosts),
            ("--slow-hosts", self.slow_hosts),
            ("--pages", self.pages),
            ("--page-bytes", self.page_bytes),
        ];
        let farm = stage.farm(&figures, &[])?;
        let good_seeds = stage.dir.join("good.seeds");
        let seeds = (0..self.hosts).map(|host| format!("http://{}:{}/\n", host_name(host), farm.port));
        std::fs::write(&good_seeds, seeds.collect::<String>())?;
        let (mut driver, mut set_ups) = (String::new(), Vec::new());
        let rounds = self.rounds.max(1);
        for rate in [self.req_host_per_sec, 0.0] {
            let mut every_round = Vec::new();
            for round in 0..rounds {
                every_round.push(in_turns(round, |side| {
                    let good;
                    (good, driver) =
                        self.crawl(&stage, &farm, [&good_seeds, &farm.seeds_file][side], rate)?;
                    Ok(good)
                })?);
            }
            set_ups.push(SetUpReport::new(rate, every_round));
        }
        let SlowArgs { hosts, slow_hosts, seconds, .. } = self;
        let report = SlowReport { hosts, slow_hosts, seconds, rounds, driver, set_ups };
        self.record.tell(&report, SlowReport::text)
    }

    /// What a crawl of some seconds on one core did for the good hosts, and its driver.
    fn crawl(
        &self,
        stage: &Stage,
        farm: &FarmProcess,
        seeds: &Path,
        rate: f64,
    ) -> Result<(Good, String), Failure> {
        let crawl = CrawlProcess::new(stage, farm, seeds, rate, &self.driver)?;
        let mut crawl = crawl.for_seconds(self.seconds);
        let crawled = crawl.run()?.fetches;
        let mut log = Vec::new();
        let parts = LogParts::of(&crawl.data)?;
        for piece in parts.pieces() {
            parts.read(&piece)?.1.read_to_end(&mut log)?;
        }
        let counted = Counted::of(&log, self.hosts, self.seconds);
        if counted.good_pages == 0 {
            return Err(Failure::CannotRun("the crawl brought no page of a good host".to_string()));
        }
        let (pages, seconds) = (counted.good_pages as f64, self.seconds as f64);
        let good = Good {
            pages_per_second: pages / seconds,
            pages_per_second_half: counted.good_pages_half as f64 / (seconds / 2.0),
            cpu_us_per_page: crawled.cpu_us_per_page * crawled.pages as f64 / pages,
            slow_hosts_ended: counted.slow_hosts.len(),
        };
        Ok((good, crawled.driver))
    }
}

/// What a crawl log tells of its first seconds.
#[derive(Default)]
struct Counted {
    good_pages: u64,
    /// Those of the second half of the time.
    good_pages_half: u64,
    slow_hosts: HashSet<u32>,
}

impl Counted {
    fn of(log: &[u8], hosts: u32, seconds: u64) -> Counted {
        let mut counted = Counted::default();
        let (mut half_us, mut end_us) = (u64::MAX, u64::MAX);
        for line in log.split(|&byte| byte == b'\n') {
            if let Ok(Some(rules)) = RunRules::parse(line) {
                half_us = rules.started_us + seconds * 500_000;
                end_us = rules.started_us + seconds * 1_000_000;
            }
            let Ok(line) = LogLine::parse(line) else { continue };
            let Some(host) = host_of(line.url).filter(|_| line.made_us <= end_us) else { continue };
            match line.path {
                _ if host >= hosts => {
                    counted.slow_hosts.insert(host);
                }
                LinePath::Page { .. } if line.result == ResultCode::Ok => {
                    counted.good_pages += 1;
                    counted.good_pages_half += u64::from(line.made_us > half_us);
                }
                LinePath::Page { .. } | LinePath::Robots { .. } => {}
            }
        }
        counted
    }
}

/// The number in the name of a farm's host.
fn host_of(url: &str) -> Option<u32> {
    let url = CrawlUrl::from_normal(url).ok()?;
    url.host().strip_prefix('h')?.split('.').next()?.parse().ok()
}

impl SetUpReport {
    fn new(req_host_per_sec: f64, every_round: Vec<(Good, Good)>) -> SetUpReport {
        let ratio =
            |of: fn(&Good) -> f64| Ratio::of(every_round.iter().map(|(alone, mixed)| of(mixed) / of(alone)));
        SetUpReport {
            req_host_per_sec,
            alone: Good::median(every_round.iter().map(|(alone, _)| *alone)),
            mixed: Good::median(every_round.iter().map(|(_, mixed)| *mixed)),
            ratio: ratio(|good| good.pages_per_second),
            ratio_second_half: ratio(|good| good.pages_per_second_half),
            every_round,
        }
    }
}

impl Good {
    fn median(all: impl Iterator<Item = Good> + Clone) -> Good {
        let of = |figure: fn(Good) -> f64| median(all.clone().map(figure));
        Good {
            pages_per_second: of(|good| good.pages_per_second),
            pages_per_second_half: of(|good| good.pages_per_second_half),
            cpu_us_per_page: of(|good| good.cpu_us_per_page),
            slow_hosts_ended: all.clone().map(|good| good.slow_hosts_ended).min().unwrap_or(0),
        }
    }
}

impl Ratio {
    fn of(all: impl Iterator<Item = f64> + Clone) -> Ratio {
        Ratio {
            median: median(all.clone()),
            least: all.clone().fold(f64::MAX, f64::min),
            most: all.fold(0.0, f64::max),
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.least, self.most)
    }
}

impl SlowReport {
    fn text(&self) -> String {
        let Self { hosts, slow_hosts, seconds, rounds, driver, set_ups } = self;
        let mut text = format!(
            "{hosts} good hosts alone and with {slow_hosts} slow and broken ones among them, {seconds} s each, driver {driver}, {rounds} rounds\n\n"
        );
        text += "                            good pages/s   second half   CPU µs per good page\n";
        for SetUpReport { req_host_per_sec, alone, mixed, ratio, ratio_second_half, .. } in set_ups {
            let rule = rate_text(*req_host_per_sec);
            for (name, good) in [("alone", alone), ("mixed", mixed)] {
                let Good { pages_per_second, pages_per_second_half, cpu_us_per_page, .. } = good;
                text += &format!(
                    "  {rule:<14} {name:<9} {pages_per_second:>13.0} {pages_per_second_half:>13.0} {cpu_us_per_page:>22.1}\n"
                );
            }
            let ended = mixed.slow_hosts_ended;
            text += &format!(
                "  mixed/alone {ratio}, second half {ratio_second_half}; a request to {ended} of the slow hosts had ended\n\n"
            );
        }
        text
    }
}

/// A rate for every host, 0 = none, as a run is described.
pub(super) fn rate_text(req_host_per_sec: f64) -> String {
    match req_host_per_sec {
        0.0 => "no rate".to_string(),
        rate => format!("{rate}/s a host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_counted_by_hosts_and_time() {
        let line = |second: u32, url: &str, path: &str, result: &str| {
            let (status, timing) = if result == "ok" { ("200", "+100") } else { ("-4", "+100") };
            format!(
                "2026-11-15T05:10:{second:02}.000Z {status} 10 {url} {path} - - #000 20261115051000000000{timing} - 127.16.0.1:80,{result}\n"
            )
        };
        let log = "# nephila 0.1.0 run 2026-11-15T05:10:00.000Z req_host_per_sec=1 req_host_concurrent=1\n"
            .to_string()
            + &line(1, "http://h0.farm.test/", "-", "ok")
            + &line(2, "http://h1.farm.test/p/1.html", "L", "ok")
            + &line(3, "http://h2.farm.test/", "-", "ok")
            + &line(9, "http://h1.farm.test/p/2.html", "L", "ok");
        let counted = Counted::of(log.as_bytes(), 2, 5);
        assert_eq!(counted.good_pages, 2, "neither the slow host's nor the late one: {log}");
        assert_eq!(counted.good_pages_half, 0);
        assert_eq!(Counted::of(log.as_bytes(), 2, 3).good_pages_half, 1);
        assert_eq!(counted.slow_hosts.len(), 1);
    }
}
