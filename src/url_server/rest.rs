use super::host_table::Host;
use super::server::UrlServer;
use super::view::WaitsFor;
use crate::base::Now;
use std::cmp::Reverse;

/// Nothing is with a spider and nothing may go out: what a server waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Nothing goes out before, unless something new comes in; never of itself if no host has a time.
    pub until: Now,
    /// The hosts with the most URLs, if the rest is long enough to be spoken of.
    pub hosts: Vec<RestingHost>,
    /// Hosts beyond those.
    pub more: usize,
}

/// A host that may not be asked for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestingHost {
    pub origin: Box<str>,
    /// URLs of it here.
    pub urls: usize,
    pub waits_for: WaitsFor,
    /// `None` if it waits for another host.
    pub until: Option<Now>,
}

/// Hosts that are named.
const HOSTS_MAX: usize = 10;

impl Rest {
    /// Of several servers together.
    pub fn join(rests: Vec<Rest>) -> Rest {
        let until = rests.iter().map(|rest| rest.until).min().unwrap_or(Now::NEVER);
        let more = rests.iter().map(|rest| rest.more).sum();
        Rest::of(until, rests.into_iter().flat_map(|rest| rest.hosts).collect(), more)
    }

    fn of(until: Now, mut hosts: Vec<RestingHost>, more: usize) -> Rest {
        hosts.sort_unstable_by(|a, b| (Reverse(a.urls), &a.origin).cmp(&(Reverse(b.urls), &b.origin)));
        let more = more + hosts.len().saturating_sub(HOSTS_MAX);
        hosts.truncate(HOSTS_MAX);
        Rest { until, hosts, more }
    }
}

impl UrlServer {
    /// Whether nothing may be sent for a while, and for which hosts that is if it lasts longer than `spoken_of_us`. A host
    /// that waits for nothing but the ticket of its address, or for the right of its node, may be asked at any moment: that is
    /// no rest. It walks all hosts, and is meant to be asked now and then when nothing else is to do.
    pub fn rest(&self, spoken_of_us: u64, now: Now) -> Option<Rest> {
        if self.open() > 0 || !self.refused.is_empty() || self.leftover.is_moving() {
            return None;
        }
        let waiting = || self.hosts.named().filter(|(_, host)| !host.is_empty());
        let due = |host: &Host| {
            let wants = host.wants_to_send(&self.config.host, now);
            wants.then(|| host.pace.due().max(self.hosts.address(host.address()).pace.due()))
        };
        let hosts_due = waiting().filter_map(|(_, host)| due(host));
        let until = hosts_due.chain(self.readiness.row_due_at()).min().unwrap_or(Now::NEVER);
        if until <= now {
            return None;
        }
        if until.since_us(now) <= spoken_of_us {
            return Some(Rest { until, hosts: Vec::new(), more: 0 });
        }
        let resting = waiting().map(|(origin, host)| RestingHost {
            origin: origin.into(),
            urls: host.pages() + self.leftover.len_of(origin),
            waits_for: self.waits_for(host, now).0.unwrap_or(WaitsFor::Address),
            until: due(host),
        });
        Some(Rest::of(until, resting.collect(), self.leftover.hosts_without_row()))
    }
}
