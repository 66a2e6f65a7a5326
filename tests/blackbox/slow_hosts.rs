//! The promise: hosts that are slow or broken hold nobody up but themselves, and each leaves the result it deserves.

use crate::support::*;
use nephila::farm::{Misbehaviour, SiteSpec};
use nephila::proto::crawl_log::LogLine;
use std::collections::BTreeMap;
use std::path::Path;

const GOOD: u32 = 40;
const PAGES: u32 = 20;
/// Each misbehaviour as often with its robots.txt in order as without.
const TURNS: u32 = 17;
const SLOW: u32 = TURNS * 2 * Misbehaviour::ALL.len() as u32;

/// A drip is too slow after a while; whoever says nothing gets so long.
const SETTINGS: &str = "[spider]\ntimeout_first_byte = 8000\ntimeout_read = 8000\ntimeout_req = 20000\n";

/// When the last page of a good host was had and when the last line was written, in seconds from the first line.
fn ends(data: &Path) -> (f64, f64) {
    let log = std::fs::read(data.join("crawl.log")).unwrap();
    let lines: Vec<LogLine> =
        log.split(|&byte| byte == b'\n').filter_map(|line| LogLine::parse(line).ok()).collect();
    let host = |line: &LogLine| -> u32 {
        let name = line.url.strip_prefix("http://h").unwrap();
        name.split('.').next().unwrap().parse().unwrap()
    };
    let first = lines.iter().map(|line| line.made_us).min().unwrap();
    let last = |made: &mut dyn Iterator<Item = u64>| (made.max().unwrap() - first) as f64 / 1e6;
    let good = last(&mut lines.iter().filter(|line| host(line) < GOOD).map(|line| line.made_us));
    (good, last(&mut lines.iter().map(|line| line.made_us)))
}

#[test]
fn good_hosts_do_not_wait_for_slow_ones() {
    let farm = Farm::start(SiteSpec {
        hosts: GOOD,
        slow_hosts: SLOW,
        pages: PAGES,
        denied: 0,
        ..SiteSpec::default()
    });
    for driver in DRIVERS {
        let dir = TempDir::new();
        let data = dir.join("data");
        let settings = dir.write("c.toml", SETTINGS);
        let more = ["--driver", driver, "--config", settings.to_str().unwrap()].map(str::to_string);
        let (report, _) = crawl(&data, farm.flags().iter().chain(&more));
        assert_eq!(result_count(&report, "ok"), u64::from(GOOD * PAGES), "every good page: {report}");

        // The slowest of the slow ones take eight seconds at least.
        let (good, all) = ends(&data);
        assert!(all >= 8.0, "{all}");
        assert!(good < 0.75 * all, "{driver}: good pages were done after {good} of {all} s");

        let records = stored(&data);
        let mut results: BTreeMap<(u32, &str), u32> = BTreeMap::new();
        for number in 0..SLOW {
            let name = format!("//h{}.farm.test:", GOOD + number);
            let found = records.values().find(|record| record.url.contains(&name));
            let result = found.map_or("robots_denied", |record| &record.result);
            let kind = number % Misbehaviour::ALL.len() as u32;
            *results.entry((kind, result)).or_default() += 1;
        }
        let expected = Misbehaviour::ALL.into_iter().zip(0..).flat_map(|(misbehaviour, kind)| {
            let result = match misbehaviour {
                Misbehaviour::Silent => "read_timeout",
                Misbehaviour::Drip => "too_slow",
                Misbehaviour::Reset => "reset",
                Misbehaviour::Close => "empty",
                Misbehaviour::EndlessHead | Misbehaviour::Malformed => "malformed",
                // Nor is anybody there for its robots.txt.
                Misbehaviour::Refused => return vec![((kind, "robots_denied"), 2 * TURNS)],
                Misbehaviour::Unavailable => "http_error",
                Misbehaviour::HalfBody => "truncated",
            };
            vec![((kind, "robots_denied"), TURNS), ((kind, result), TURNS)]
        });
        assert_eq!(results, expected.collect(), "{driver}: {report}");
    }
}
