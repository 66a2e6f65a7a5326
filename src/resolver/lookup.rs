use super::servers::AskedCounts;
use crate::base::{Key, Now, canonical};
use crate::limits::ADDRESSES_PER_NAME_MAX;
use crate::proto::dns::{HostName, RecordKind};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The addresses of a name, the two kinds by turns, at least one; or why there are none.
pub type Answer = Result<Arc<[IpAddr]>, Failure>;

/// Why a name has no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No server could know it: an empty or overlong label.
    BadName,
    NoSuchName,
    /// The name is there, but has no address.
    NoAddress,
    /// Servers answered, but not the question.
    ServersFailed,
    TimedOut,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::BadName => "not a name that can be asked for",
            Failure::NoSuchName => "no such name",
            Failure::NoAddress => "the name has no address",
            Failure::ServersFailed => "the name servers could not say",
            Failure::TimedOut => "no name server answered in time",
        })
    }
}

/// A name that is being asked for.
pub(super) struct Lookup {
    pub name: Box<str>,
    pub host: HostName,
    pub a: Half,
    pub aaaa: Half,
    /// Counted among those asked for within the last moment.
    pub fresh: bool,
    /// IPv4 addresses are in, and IPv6 ones may take until then.
    pub settle_by: Now,
    /// Whatever happens, the name is answered by then.
    pub deadline: Now,
    /// When its timer fires; `NEVER` if there is none.
    pub armed: Now,
}

/// One of the two questions about a name.
pub(super) enum Half {
    Open(Asking),
    In(Finding),
}

/// A question that has no answer yet.
pub(super) struct Asking {
    pub asked: AskedCounts,
    /// Sockets on which an answer may come, oldest first.
    pub tries: Vec<Key>,
    /// The try whose time-out runs.
    pub latest: Option<Key>,
    /// When the next server is asked.
    pub retry_at: Now,
    /// Off once a server did not understand it.
    pub edns: bool,
    /// Some server answered, though not the question.
    pub faulted: bool,
}

/// The result of one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Addresses { addresses: Vec<IpAddr>, ttl_s: u32 },
    NoAddress { ttl_s: Option<u32> },
    NoSuchName { ttl_s: Option<u32> },
    Failed(Failure),
}

impl Asking {
    pub(super) fn new(now: Now) -> Asking {
        Asking {
            asked: AskedCounts::default(),
            tries: Vec::new(),
            latest: None,
            retry_at: now,
            edns: true,
            faulted: false,
        }
    }

    pub(super) fn failure(&self) -> Failure {
        if self.faulted { Failure::ServersFailed } else { Failure::TimedOut }
    }
}

impl Half {
    pub(super) fn finding(&self) -> Option<&Finding> {
        match self {
            Half::Open(_) => None,
            Half::In(finding) => Some(finding),
        }
    }

    pub(super) fn asking(&mut self) -> Option<&mut Asking> {
        match self {
            Half::Open(asking) => Some(asking),
            Half::In(_) => None,
        }
    }

    fn retry_at(&self) -> Now {
        match self {
            Half::Open(asking) => asking.retry_at,
            Half::In(_) => Now::NEVER,
        }
    }
}

impl Lookup {
    pub(super) fn half(&mut self, kind: RecordKind) -> &mut Half {
        match kind {
            RecordKind::A => &mut self.a,
            RecordKind::Aaaa => &mut self.aaaa,
        }
    }

    pub(super) fn due(&self) -> Now {
        self.settle_by.min(self.deadline).min(self.a.retry_at()).min(self.aaaa.retry_at())
    }

    /// The answer and how many seconds it holds, as soon as it can be given.
    pub(super) fn verdict(&self, ipv6_first: bool, now: Now) -> Option<(Answer, u32)> {
        verdict(self.a.finding(), self.aaaa.finding(), self.settle_by <= now, ipv6_first)
    }
}

/// Times are brought into bounds: a record that lives for no time at all would be asked for again with every page,
/// and one that lives for years would be kept after it is out of date.
const ADDRESSES_S: (u32, u32) = (1, 24 * 3_600);
const NO_S: (u32, u32) = (1, 3_600);
/// Failures, and a "no" that does not say for how long, are remembered just long enough not to be asked for again
/// with every page of a site.
const FAILED_S: u32 = 5;

fn verdict(
    a: Option<&Finding>,
    aaaa: Option<&Finding>,
    settled: bool,
    ipv6_first: bool,
) -> Option<(Answer, u32)> {
    use Finding::{Addresses, Failed, NoAddress, NoSuchName};
    let no = |failure, ttl_s: Option<u32>| {
        Some((Err(failure), ttl_s.map_or(FAILED_S, |ttl_s| ttl_s.clamp(NO_S.0, NO_S.1))))
    };
    match (a, aaaa) {
        (Some(Addresses { addresses: v4, ttl_s: a }), Some(Addresses { addresses: v6, ttl_s: aaaa })) => {
            let kinds = if ipv6_first { [v6, v4] } else { [v4, v6] };
            found(&by_turns(kinds), *a.min(aaaa))
        }
        // The result for the other kind does not matter to these.
        (Some(Addresses { addresses, ttl_s }), Some(_)) => found(addresses, *ttl_s),
        (Some(Addresses { addresses, ttl_s }), None) if settled => found(addresses, *ttl_s),
        (Some(Addresses { .. }), None) => None,
        (Some(NoSuchName { ttl_s }), _) | (_, Some(NoSuchName { ttl_s })) => no(Failure::NoSuchName, *ttl_s),
        (None, _) | (_, None) => None,
        (Some(NoAddress { .. }), Some(Addresses { addresses, ttl_s })) => found(addresses, *ttl_s),
        // Half an answer is good for now, and kept no longer than a failure.
        (Some(Failed(_)), Some(Addresses { addresses, ttl_s })) => found(addresses, (*ttl_s).min(FAILED_S)),
        (Some(NoAddress { ttl_s: a }), Some(NoAddress { ttl_s: aaaa })) => {
            no(Failure::NoAddress, *a.min(aaaa))
        }
        (Some(Failed(failure)), Some(_)) | (Some(_), Some(Failed(failure))) => {
            Some((Err(*failure), FAILED_S))
        }
    }
}

/// One of the first kind, one of the other, and so on: a kind that leads nowhere costs one try (RFC 8305, 4).
fn by_turns(kinds: [&Vec<IpAddr>; 2]) -> Vec<IpAddr> {
    let longest = kinds[0].len().max(kinds[1].len());
    (0..longest).flat_map(|n| kinds.map(|addresses| addresses.get(n).copied())).flatten().collect()
}

fn found(all: &[IpAddr], ttl_s: u32) -> Option<(Answer, u32)> {
    let mut distinct: Vec<IpAddr> = Vec::with_capacity(all.len().min(ADDRESSES_PER_NAME_MAX));
    for ip in all.iter().copied().map(canonical) {
        if distinct.len() < ADDRESSES_PER_NAME_MAX && !distinct.contains(&ip) {
            distinct.push(ip);
        }
    }
    Some((Ok(distinct.into()), ttl_s.clamp(ADDRESSES_S.0, ADDRESSES_S.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_out_of_two_findings() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let (v4, v6) = (ip("192.0.2.1"), ip("2001:db8::1"));
        let good = |ip, ttl_s| Finding::Addresses { addresses: vec![ip], ttl_s };
        let (a, aaaa) = (good(v4, 300), good(v6, 200));
        let none = |ttl_s| Finding::NoAddress { ttl_s };
        let no_name = Finding::NoSuchName { ttl_s: Some(90) };
        let failed = Finding::Failed(Failure::TimedOut);
        let yes = |ips: &[IpAddr], ttl_s| Some((Ok(Arc::from(ips)), ttl_s));
        let no = |failure, ttl_s| Some((Err(failure), ttl_s));
        for (a, aaaa, settled, expected) in [
            (None, None, false, None),
            (None, Some(&aaaa), true, None),
            (Some(&a), None, false, None),
            (Some(&a), None, true, yes(&[v4], 300)),
            (Some(&a), Some(&aaaa), false, yes(&[v4, v6], 200)),
            (Some(&a), Some(&failed), false, yes(&[v4], 300)),
            (Some(&a), Some(&none(Some(1))), false, yes(&[v4], 300)),
            (Some(&a), Some(&no_name), false, yes(&[v4], 300)),
            (Some(&no_name), None, false, no(Failure::NoSuchName, 90)),
            (None, Some(&no_name), false, no(Failure::NoSuchName, 90)),
            (Some(&none(Some(9))), None, false, None),
            (Some(&none(Some(9))), Some(&aaaa), false, yes(&[v6], 200)),
            (Some(&failed), Some(&aaaa), false, yes(&[v6], 5)),
            (Some(&none(Some(9))), Some(&none(Some(7))), false, no(Failure::NoAddress, 7)),
            (Some(&none(Some(9))), Some(&none(None)), false, no(Failure::NoAddress, 5)),
            (Some(&none(Some(0))), Some(&none(Some(0))), false, no(Failure::NoAddress, 1)),
            (Some(&none(Some(99_999))), Some(&none(Some(99_999))), false, no(Failure::NoAddress, 3_600)),
            (Some(&none(Some(9))), Some(&failed), false, no(Failure::TimedOut, 5)),
            (Some(&failed), Some(&none(Some(9))), false, no(Failure::TimedOut, 5)),
            (Some(&a), Some(&good(ip("::ffff:192.0.2.1"), 200)), false, yes(&[v4], 200)),
            (Some(&good(v4, 0)), None, true, yes(&[v4], 1)),
            (Some(&good(v4, u32::MAX)), None, true, yes(&[v4], 86_400)),
        ] {
            assert_eq!(verdict(a, aaaa, settled, false), expected, "{a:?} {aaaa:?} {settled}");
        }
        let (more, other) = (ip("192.0.2.2"), ip("192.0.2.3"));
        let three = Finding::Addresses { addresses: vec![v4, more, other], ttl_s: 300 };
        assert_eq!(verdict(Some(&three), Some(&aaaa), false, true), yes(&[v6, v4, more, other], 200));
        assert_eq!(verdict(Some(&three), Some(&aaaa), false, false), yes(&[v4, v6, more, other], 200));
        assert_eq!(verdict(Some(&a), None, true, true), yes(&[v4], 300));
    }
}
