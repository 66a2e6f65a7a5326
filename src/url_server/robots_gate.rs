use super::host_table::{HAS_REMOTE_ROBOTS, Hosts};
use super::order::RemoteRobots;
use crate::limits::ROBOTS_REDIRECTS_MAX;
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;

/// Nothing of a host is fetched before its robots rules are known: what the answers to robots.txt mean (RFC 9309), and
/// the requests for the rules of other hosts, which redirected here.
pub(super) struct RobotsGate {
    /// Our name in robots.txt.
    product_token: String,
    /// Requests for the robots rules of other hosts, by the host they redirected to.
    remote: RapidHashMap<u32, VecDeque<RemoteRobots>>,
}

/// What came of a request for robots.txt.
#[derive(Debug)]
pub enum Robotstxt<'a> {
    /// A status and, for 2xx, the document; for 3xx the target in normal form, if there is one.
    Answer { status: u16, body: &'a [u8], target: Option<&'a CrawlUrl> },
    /// No usable answer.
    Failed,
}

/// What an answer to robots.txt led to.
#[derive(Debug, PartialEq, Eq)]
pub enum RobotsStep {
    /// The answer came late and changed nothing.
    Late,
    /// The rules are known; these sitemaps were named beside them.
    Known { crawl_delay_ms: Option<u32>, sitemaps: Vec<Box<str>> },
    /// Everything is disallowed for now.
    Unreachable,
    /// The next hop is on the same host, and the URL server requests it.
    Hop,
    /// The next hop is on another host: the engine finds its address, has it requested, and reports the answer with
    /// [`UrlServer::robots_elsewhere`](super::UrlServer::robots_elsewhere).
    Elsewhere { url: CrawlUrl, hops: u8 },
}

/// What an answer says of a host's rules.
pub(super) enum Meaning {
    Rules(Robots),
    /// There are no rules: everything is allowed.
    AllowAll,
    /// The rules could not be learnt, which disallows everything for now.
    OutOfReach,
    /// They are at this URL.
    Redirect(CrawlUrl),
}

impl RobotsGate {
    pub fn new(product_token: String) -> RobotsGate {
        RobotsGate { product_token, remote: RapidHashMap::default() }
    }

    /// Reads an answer that came after this many hops.
    pub fn read(&self, answer: &Robotstxt<'_>, hops: u8) -> Meaning {
        match answer {
            // Nobody asked for a part, nor whether it has changed: what the file says is not known.
            Robotstxt::Answer { status: 206 | 304, .. } => Meaning::OutOfReach,
            Robotstxt::Answer { status: 200..=299, body, .. } => {
                Meaning::Rules(Robots::parse(body, &self.product_token))
            }
            Robotstxt::Answer { status: 300..=399, target: Some(target), .. }
                if hops < ROBOTS_REDIRECTS_MAX =>
            {
                Meaning::Redirect((*target).clone())
            }
            // 429 asks us to go away, which is not the same as having no rules.
            Robotstxt::Answer { status: 429, .. } => Meaning::OutOfReach,
            // A chain that is too long, or a redirect without a target, is as good as no file.
            Robotstxt::Answer { status: 300..=499, .. } => Meaning::AllowAll,
            Robotstxt::Answer { .. } | Robotstxt::Failed => Meaning::OutOfReach,
        }
    }

    /// Adds a request for the rules of another host, before the others if it was handed out already.
    pub fn push_remote(&mut self, hosts: &mut Hosts, slot: u32, request: RemoteRobots, again: bool) {
        let requests = self.remote.entry(slot).or_default();
        match again {
            true => requests.push_front(request),
            false => requests.push_back(request),
        }
        hosts[slot].set(HAS_REMOTE_ROBOTS, true);
    }

    /// The next request for the rules of another host that redirected to this one.
    pub fn pop_remote(&mut self, hosts: &mut Hosts, slot: u32) -> Option<RemoteRobots> {
        let requests = self.remote.get_mut(&slot);
        let request = requests.and_then(VecDeque::pop_front);
        if self.remote.get(&slot).is_none_or(VecDeque::is_empty) {
            self.remote.remove(&slot);
            hosts[slot].set(HAS_REMOTE_ROBOTS, false);
        }
        request
    }

    /// A host is marked while requests of others wait for it.
    pub fn invariants(&self, hosts: &Hosts) -> bool {
        let marked = hosts.iter().filter(|host| host.is(HAS_REMOTE_ROBOTS)).count();
        assert_eq!(marked, self.remote.len());
        self.remote.iter().all(|(slot, requests)| !requests.is_empty() && hosts[*slot].is(HAS_REMOTE_ROBOTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_means_what_rfc_9309_says() {
        let gate = RobotsGate::new("nephila".to_string());
        let target = CrawlUrl::parse("http://b/robots.txt").unwrap();
        let meaning = |status, target, hops| match gate
            .read(&Robotstxt::Answer { status, body: b"User-agent: *\nDisallow: /", target }, hops)
        {
            Meaning::Rules(rules) => format!("rules {}", rules.allows(b"/x")),
            Meaning::AllowAll => "all".to_string(),
            Meaning::OutOfReach => "none".to_string(),
            Meaning::Redirect(url) => url.as_str().to_string(),
        };
        assert_eq!(meaning(200, None, 0), "rules false");
        assert_eq!(meaning(301, Some(&target), ROBOTS_REDIRECTS_MAX - 1), "http://b/robots.txt");
        assert_eq!(meaning(301, Some(&target), ROBOTS_REDIRECTS_MAX), "all");
        assert_eq!([meaning(302, None, 0), meaning(404, None, 0)], ["all", "all"]);
        for status in [429, 503, 100, 206, 304] {
            assert_eq!(meaning(status, None, 0), "none", "{status}");
        }
        assert!(matches!(gate.read(&Robotstxt::Failed, 0), Meaning::OutOfReach));
    }
}
