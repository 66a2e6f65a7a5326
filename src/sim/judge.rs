use super::plan::Plan;
use super::web::{Witness, robots_of};
use crate::base::Now;
use crate::config::Config;
use std::collections::HashMap;
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the node to its promises.
pub struct Judge {
    gaps: Gaps,
    /// Of rules that were changed: what was begun by them may be on its way until then.
    former: Vec<(Gaps, Now)>,
    last_of_host: HashMap<u32, Now>,
    last_of_ip: HashMap<IpAddr, Now>,
    /// The connection that each URL is in flight on.
    flights: HashMap<(u32, String), u64>,
    /// What each connection was last asked for.
    asked_on: HashMap<u64, (u32, String)>,
    /// Hosts whose robots.txt was answered, by the time the answer went out.
    robots: HashMap<u32, Now>,
    pub requests: u64,
}

/// The pauses that a host and an address are to be given at the least.
#[derive(Clone, Copy)]
struct Gaps {
    host_us: u64,
    ip_us: u64,
}

impl Gaps {
    fn of(config: &Config) -> Gaps {
        let settings = &config.url_server;
        let gap = |per_sec: f64| {
            if per_sec > 0.0 { (1_000_000.0 / per_sec).ceil() as u64 } else { 0 }
        };
        Gaps {
            host_us: gap(settings.req_host_per_sec.0),
            ip_us: gap(settings.req_ip_per_sec.unwrap_or(settings.req_host_per_sec).0),
        }
    }
}

impl Judge {
    /// Other rules hold from now on; what was begun by those before has been sent by `settled`. The crawl log knows to the
    /// microsecond which of them held, and the audit goes by it.
    pub fn changed(&mut self, config: &Config, settled: Now) {
        self.former.push((std::mem::replace(&mut self.gaps, Gaps::of(config)), settled));
    }

    fn gaps(&mut self, now: Now) -> Gaps {
        self.former.retain(|(_, until)| *until > now);
        let all = self.former.iter().map(|(gaps, _)| gaps).chain([&self.gaps]);
        all.copied()
            .reduce(|a, b| Gaps { host_us: a.host_us.min(b.host_us), ip_us: a.ip_us.min(b.ip_us) })
            .unwrap_or(self.gaps)
    }

    pub fn new(plan: &Plan) -> Judge {
        Judge {
            gaps: Gaps::of(&plan.config),
            former: Vec::new(),
            last_of_host: HashMap::new(),
            last_of_ip: HashMap::new(),
            flights: HashMap::new(),
            asked_on: HashMap::new(),
            robots: HashMap::new(),
            requests: 0,
        }
    }
}

impl Witness for Judge {
    fn asked(&mut self, conn: u64, host: u32, ip: IpAddr, target: &str, now: Now) {
        self.requests += 1;
        let gaps = self.gaps(now);
        if let Some(last) = self.last_of_host.insert(host, now) {
            let gap = now.since_us(last);
            assert!(gap >= gaps.host_us, "host {host} asked {gap} µs after the last time, at {now:?}");
        }
        if let Some(last) = self.last_of_ip.insert(ip, now) {
            let gap = now.since_us(last);
            assert!(gap >= gaps.ip_us, "address {ip} asked {gap} µs after the last time, at {now:?}");
        }
        assert!(
            !target.starts_with("/private/"),
            "host {host} was asked for {target} against its robots.txt"
        );
        if let Some(other) = robots_of(target) {
            assert!(self.robots.contains_key(&other), "nobody was sent to {target} of host {host}");
        } else if target == "/robots.txt" {
            self.robots.insert(host, now);
        } else {
            assert!(
                self.robots.contains_key(&host),
                "host {host} was asked for {target} before its robots.txt"
            );
        }
        self.landed(conn);
        let url = (host, target.to_string());
        if let Some(other) = self.flights.insert(url.clone(), conn) {
            panic!("{target} of host {host} is in flight on connections {other} and {conn}");
        }
        self.asked_on.insert(conn, url);
    }

    /// Its last request is over, as it is when something else is asked for on it.
    fn landed(&mut self, conn: u64) {
        if let Some(url) = self.asked_on.remove(&conn) {
            self.flights.remove(&url);
        }
    }
}
