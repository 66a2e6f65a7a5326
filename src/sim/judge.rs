use super::plan::Plan;
use super::web::{Witness, robots_of};
use crate::base::Now;
use std::collections::HashMap;
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the node to its promises.
pub struct Judge {
    host_gap_us: u64,
    ip_gap_us: u64,
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

impl Judge {
    pub fn new(plan: &Plan) -> Judge {
        let settings = &plan.config.url_server;
        let gap = |per_sec: f64| {
            if per_sec > 0.0 { (1_000_000.0 / per_sec).ceil() as u64 } else { 0 }
        };
        Judge {
            host_gap_us: gap(settings.req_host_per_sec.0),
            ip_gap_us: gap(settings.req_ip_per_sec.unwrap_or(settings.req_host_per_sec).0),
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
        if let Some(last) = self.last_of_host.insert(host, now) {
            let gap = now.since_us(last);
            assert!(gap >= self.host_gap_us, "host {host} asked {gap} µs after the last time, at {now:?}");
        }
        if let Some(last) = self.last_of_ip.insert(ip, now) {
            let gap = now.since_us(last);
            assert!(gap >= self.ip_gap_us, "address {ip} asked {gap} µs after the last time, at {now:?}");
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
