use crate::engine::inspect::domains::{Domains, is_of};
use crate::engine::inspect::entries::DomainMove;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::collections::BTreeMap;

/// Domains that are with other servers, and their hosts that shards were told to close.
#[derive(Default)]
pub(crate) struct AwayHosts {
    domains: Domains,
    /// Origins that were closed in this process, and the shard of each.
    closed: BTreeMap<Box<str>, usize>,
    closings: Vec<Closing>,
}

/// Somebody waits until nothing of a domain is on the wire.
struct Closing {
    id: u64,
    /// Hosts that have not said so.
    waits: RapidHashSet<Box<str>>,
    lines: String,
}

impl AwayHosts {
    pub fn new(domains: Domains) -> AwayHosts {
        AwayHosts { domains, ..AwayHosts::default() }
    }

    pub fn holds(&self, url: &CrawlUrl) -> bool {
        self.domains.holds(url)
    }

    /// Shards were told to close these hosts; `id` is to be answered when all have.
    pub fn close(&mut self, id: u64, placed: Vec<(Box<str>, usize)>) {
        let waits = placed.iter().map(|(origin, _)| origin.clone()).collect();
        self.closed.extend(placed);
        self.closings.push(Closing { id, waits, lines: String::new() });
    }

    /// A shard has closed a host. Who waited for it as the last, and all that was told.
    pub fn closed(&mut self, origin: &str, lines: &str) -> Option<(u64, String)> {
        let at = self.closings.iter().position(|closing| closing.waits.contains(origin))?;
        let closing = &mut self.closings[at];
        closing.waits.remove(origin);
        closing.lines.push_str(lines);
        closing.waits.is_empty().then(|| {
            let Closing { id, lines, .. } = self.closings.swap_remove(at);
            (id, lines)
        })
    }

    /// What a shard that takes the place of another must be told to close.
    pub fn closed_at(&self, shard: usize) -> Vec<Box<str>> {
        let at = self.closed.iter().filter(|(_, at)| **at == shard);
        at.map(|(origin, _)| origin.clone()).collect()
    }

    /// A host may be asked again. False if it was not closed.
    pub fn open(&mut self, origin: &str) -> bool {
        self.closings.retain(|closing| !closing.waits.contains(origin));
        self.closed.remove(origin).is_some()
    }

    /// Domains were closed and opened; the hosts that are to be taken up again, and their shards.
    pub fn take(&mut self, moves: &[DomainMove]) -> Vec<(Box<str>, usize)> {
        let mut opened = Vec::new();
        for moved in moves {
            match moved {
                DomainMove::Closed { domain, .. } => self.domains.insert(domain),
                DomainMove::Opened { domain, .. } => {
                    self.domains.remove(domain);
                    let hosts = self.closed.iter().filter(|(origin, _)| is_of(origin, domain));
                    let hosts: Vec<_> = hosts.map(|(origin, shard)| (origin.clone(), *shard)).collect();
                    for (origin, _) in &hosts {
                        self.closed.remove(origin);
                    }
                    self.closings.retain(|closing| !closing.waits.iter().any(|waits| is_of(waits, domain)));
                    opened.extend(hosts);
                }
            }
        }
        opened
    }
}

/// Lines of the journal of hosts by whom they are about: all of one go together.
pub(crate) fn by_owner(lines: &str) -> BTreeMap<Box<str>, String> {
    let mut owners = BTreeMap::<Box<str>, String>::new();
    for line in lines.lines() {
        if let Some(owner) = line.split(' ').nth(1) {
            let lines = owners.entry(owner.into()).or_default();
            lines.push_str(line);
            lines.push('\n');
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_is_answered_when_the_last_host_is_closed() {
        let mut away = AwayHosts::default();
        away.close(7, vec![("http://a.ru".into(), 0), ("http://b.a.ru".into(), 1)]);
        assert_eq!(away.closed("http://c.ru", "x"), None);
        assert_eq!(away.closed("http://a.ru", "one\n"), None);
        assert_eq!(
            (away.closed_at(0), away.closed_at(1)),
            (vec!["http://a.ru".into()], vec!["http://b.a.ru".into()])
        );
        assert_eq!(away.closed("http://b.a.ru", "two\n"), Some((7, "one\ntwo\n".to_string())));
        assert_eq!(away.closed("http://b.a.ru", "again"), None, "of a shard that took another's place");
        let moves = [
            DomainMove::Closed { domain: "a.ru".into(), fence: 1 },
            DomainMove::Opened { domain: "a.ru".into(), fence: 2 },
        ];
        assert_eq!(away.take(&moves).len(), 2);
        assert!(away.closed_at(0).is_empty() && away.domains.is_empty());
    }

    #[test]
    fn lines_of_one_host_stay_together() {
        let lines = "pace http://a due=1\nrobots http://b known\nrobots http://a known\nrubbish\n";
        let owners = by_owner(lines);
        assert_eq!(&owners["http://a"], "pace http://a due=1\nrobots http://a known\n");
        assert_eq!((owners.len(), &*owners["http://b"]), (2, "robots http://b known\n"));
    }
}
