use crate::base::{Now, fingerprint, random_u64, shown};
use crate::engine::crawl::robots_exchange::Asker;
use crate::engine::names::{Addresses, Answered, Lookup, NameFault, NameTrust, Names, ServerWord, Verdict};
use crate::proto::job::Candidate;
use crate::proto::url::CrawlUrl;
use crate::resolver::Failure;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// The names of one batch of candidates: a forward map from domain to addresses, and from it a map from address to
/// hosts. Both are cleared with every new question to the doc index; how long an address holds beyond that is the
/// resolver's to know.
pub(crate) struct Resolution {
    names: Names,
    trust: NameTrust,
    forward: RapidHashMap<Box<str>, NameState>,
    /// In the order in which they were dealt. Few hosts share an address: a set for each would be five times
    /// the memory, for a question that is asked once.
    by_ip: Vec<Sharer>,
    /// Of a name in doubt, a server said that it does not exist.
    was_said: bool,
    /// The test question that is open: a name that nobody remembers.
    test: Option<Box<str>>,
    /// Names fail by our own fault, and are asked for anew then.
    again_at: Option<Now>,
}

/// A host of this batch and its address. In order, hosts of one address and then of one name are neighbours.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Sharer {
    /// As bits of version 6.
    ip: u128,
    /// Fingerprint of its name.
    name: u64,
    /// Fingerprint of its origin, as the reject list has it.
    origin: u64,
}

enum NameState {
    Known(Addresses),
    Failed,
    /// What waits for the answer.
    Asked(Vec<Waiter>),
    /// It failed, and whose fault that is must show.
    InDoubt(Vec<Waiter>),
}

/// Who wants to know an address.
pub(crate) enum Waiter {
    Candidate(Candidate),
    /// Robots rules that are at `url`.
    RemoteRobots {
        asker: Asker,
        url: CrawlUrl,
    },
}

/// What became of names that were in doubt.
pub(crate) enum Judged {
    /// They failed by themselves.
    Theirs(Vec<Waiter>),
    /// It is our own fault that names fail, in words for a user. No URL may be judged by it.
    Ours(String),
    /// They are to be asked for anew.
    Again(Vec<Waiter>),
}

/// As long as no name server answers, a crawl that waits asks this often. Longer than a failure is remembered.
const AGAIN_US: u64 = 6_000_000;

/// What a look-up came to.
pub(crate) enum Resolved {
    /// At once; `None` for a name that has no address.
    Now(Waiter, Option<Addresses>),
    /// The answer will come.
    Asked,
    /// Too many questions are open.
    Later(Waiter),
}

impl Waiter {
    /// The name it waits for.
    pub fn name(&self) -> &str {
        match self {
            Waiter::Candidate(candidate) => candidate.url.host_bare(),
            Waiter::RemoteRobots { url, .. } => url.host_bare(),
        }
    }
}

impl Resolution {
    pub fn new(names: Names) -> Resolution {
        Resolution {
            names,
            trust: NameTrust::default(),
            forward: RapidHashMap::default(),
            by_ip: Vec::new(),
            was_said: false,
            test: None,
            again_at: None,
        }
    }

    #[cfg(test)]
    pub fn set_names(&mut self, names: Names) {
        self.names = names;
    }

    pub fn look_up(&mut self, name: &str, waiter: Waiter) -> Resolved {
        match self.forward.get_mut(name) {
            Some(NameState::Known(addresses)) => return Resolved::Now(waiter, Some(addresses.clone())),
            Some(NameState::Failed) => return Resolved::Now(waiter, None),
            Some(NameState::Asked(waiters) | NameState::InDoubt(waiters)) => {
                waiters.push(waiter);
                return Resolved::Asked;
            }
            None => {}
        }
        let (state, addresses) = match self.names.lookup(name) {
            Lookup::Known(addresses) => {
                self.trust.known();
                (NameState::Known(addresses.clone()), Some(addresses))
            }
            Lookup::Failed(failure) => {
                return match self.failed(name.into(), failure, false, vec![waiter]).pop() {
                    Some(waiter) => Resolved::Now(waiter, None),
                    None => Resolved::Asked,
                };
            }
            Lookup::Asked => {
                self.forward.insert(name.into(), NameState::Asked(vec![waiter]));
                return Resolved::Asked;
            }
            Lookup::Later => return Resolved::Later(waiter),
        };
        self.forward.insert(name.into(), state);
        Resolved::Now(waiter, addresses)
    }

    /// The next answer to a question that was asked, and those who waited for it; nobody if it is in doubt.
    pub fn answer(&mut self) -> Option<(Vec<Waiter>, Option<Addresses>)> {
        let Answered { name, answer, is_remembered } = self.names.answer()?;
        if self.test.as_ref() == Some(&name) {
            self.test = None;
            self.trust.tested(answer.map_or_else(ServerWord::of, |_| ServerWord::Told));
            return Some((Vec::new(), None));
        }
        let waiters = match self.forward.remove(&name) {
            Some(NameState::Asked(waiters)) => waiters,
            _ => Vec::new(),
        };
        Some(match answer {
            Ok(addresses) => {
                match is_remembered {
                    true => self.trust.known(),
                    false => self.trust.found(),
                }
                self.forward.insert(name, NameState::Known(addresses.clone()));
                (waiters, Some(addresses))
            }
            Err(failure) => (self.failed(name, failure, is_remembered, waiters), None),
        })
    }

    /// A name has failed. Those who waited for it are returned if that is its own fault.
    fn failed(
        &mut self,
        name: Box<str>,
        failure: Failure,
        is_remembered: bool,
        waiters: Vec<Waiter>,
    ) -> Vec<Waiter> {
        let had = |waiter: &Waiter| matches!(waiter, Waiter::Candidate(candidate) if candidate.host_had);
        let missed = waiters.iter().any(had);
        let word = ServerWord::of(failure);
        let fault = NameFault { name: fingerprint(name.as_bytes()), word, missed, is_remembered };
        // A table of names is all there is, and nobody asks for a name that cannot be one.
        let is_sure = self.names.servers().is_none() || failure == Failure::BadName;
        if is_sure || !self.trust.failed(fault) {
            self.forward.insert(name, NameState::Failed);
            return waiters;
        }
        self.was_said |= missed && word == ServerWord::Told;
        self.forward.insert(name, NameState::InDoubt(waiters));
        Vec::new()
    }

    /// What became of names in doubt, as soon as that is clear. With `wait` they are asked for anew after a while if it is our
    /// fault that they failed; otherwise nobody asks for a name after that.
    pub fn judged(&mut self, wait: bool, now: Now) -> Option<Judged> {
        if let Some(at) = self.again_at {
            return (at <= now).then(|| {
                self.again_at = None;
                self.trust.ask_anew();
                Judged::Again(self.take_doubts(false))
            });
        }
        match self.trust.verdict(!self.names.is_asking()) {
            Some(Verdict::Ours) => {
                self.again_at = Some(if wait { now.plus_us(AGAIN_US) } else { Now::NEVER });
                Some(Judged::Ours(self.complaint()))
            }
            Some(Verdict::Theirs) => Some(Judged::Theirs(self.take_doubts(true))),
            Some(Verdict::Test) => {
                self.ask_test();
                None
            }
            None => self.trust.has_cleared().then(|| Judged::Theirs(self.take_doubts(true))),
        }
    }

    /// Asks for a name that does not exist and that no server remembers: those that speak say so, and to say so must ask
    /// others in turn. The domain is one that every server can find, and of which it has few other questions.
    fn ask_test(&mut self) {
        if self.test.is_some() {
            return;
        }
        let name = format!("{:016x}.arpa", random_u64());
        match self.names.lookup(&name) {
            Lookup::Asked => self.test = Some(name.into()),
            Lookup::Failed(failure) => self.trust.tested(ServerWord::of(failure)),
            Lookup::Known(_) | Lookup::Later => {}
        }
    }

    /// Whether names are waited for that fail by our own fault.
    pub fn is_waiting(&self) -> bool {
        self.again_at.is_some()
    }

    /// The names in doubt. In order, and not in that of a hash map, so that a simulation can be replayed.
    fn doubts(&self) -> Vec<Box<str>> {
        let in_doubt = self.forward.iter().filter(|(_, state)| matches!(state, NameState::InDoubt(_)));
        let mut names: Vec<Box<str>> = in_doubt.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Takes those who wait for names in doubt. The names have failed, or may be asked for anew.
    fn take_doubts(&mut self, have_failed: bool) -> Vec<Waiter> {
        self.was_said = false;
        let mut taken = Vec::new();
        for name in self.doubts() {
            if let Some(NameState::InDoubt(waiters)) = self.forward.remove(&name) {
                taken.extend(waiters);
            }
            if have_failed {
                self.forward.insert(name, NameState::Failed);
            }
        }
        taken
    }

    fn complaint(&self) -> String {
        let (names, servers) = (self.doubts(), self.names.servers().unwrap_or_default());
        let example = shown(names.first().map_or("", |name| name), 200);
        let others = match names.len() {
            0 | 1 => String::new(),
            count => format!(" and {} other names", count - 1),
        };
        match self.was_said {
            true => format!(
                "{example}{others} cannot be found any more, though they had pages before (asked {servers}): give the \
                 --hosts-file of the last run, or its --dns"
            ),
            false => format!(
                "no name server could say where to find {example}{others} (asked {servers}): choose one with --dns, \
                 or name a --hosts-file"
            ),
        }
    }

    /// Whether `answer` would give one.
    pub fn has_answers(&self) -> bool {
        self.names.has_answers()
    }

    /// Starts a new batch. The hosts of crowded addresses in the last one are to be left out of it.
    pub fn begin(&mut self, hosts_per_ip_max: usize) -> Vec<u64> {
        self.forward.retain(|_, state| matches!(state, NameState::Asked(_) | NameState::InDoubt(_)));
        self.by_ip.sort_unstable();
        self.by_ip.dedup();
        let names = |sharers: &[Sharer]| sharers.chunk_by(|a, b| a.name == b.name).count();
        let addresses = self.by_ip.chunk_by(|a, b| a.ip == b.ip);
        let crowded = addresses.filter(|sharers| names(sharers) > hosts_per_ip_max);
        let out = crowded.flatten().map(|sharer| sharer.origin).collect();
        self.by_ip.clear();
        out
    }

    /// Notes that a host of this batch lives at an address.
    pub fn shares(&mut self, ip: IpAddr, url: &CrawlUrl) {
        let ip = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let (name, origin) = (fingerprint(url.host().as_bytes()), fingerprint(url.origin().as_bytes()));
        self.by_ip.push(Sharer { ip: ip.to_bits(), name, origin });
    }

    /// Candidates that wait for an address.
    pub fn waiting(&self) -> usize {
        let waiting = |resolution: &NameState| match resolution {
            NameState::Asked(waiters) | NameState::InDoubt(waiters) => waiters.len(),
            NameState::Known(_) | NameState::Failed => 0,
        };
        self.forward.values().map(waiting).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::names::HostsFile;
    use crate::engine::names::scripted::scripted;
    use std::time::{Duration, Instant};

    fn ask(batch: &mut Resolution, name: &str) {
        let url = CrawlUrl::parse(&format!("http://{name}/")).unwrap();
        assert!(matches!(batch.look_up(name, Waiter::Candidate(Candidate::seed(1, url))), Resolved::Asked));
    }

    /// The next answer; waits for it.
    fn answer(batch: &mut Resolution) -> Option<Addresses> {
        let until = Instant::now() + Duration::from_secs(30);
        while !batch.has_answers() {
            assert!(Instant::now() < until, "no answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        batch.answer().unwrap().1
    }

    /// What the resolver remembers tells nothing of servers: they may be gone since.
    #[test]
    fn a_remembered_name_clears_no_doubt() {
        let names =
            scripted(|heard| heard.name.starts_with("good").then(|| heard.addresses(&["1.1.1.1"], 600)));
        let mut batch = Resolution::new(names);
        ask(&mut batch, "good.test");
        assert!(answer(&mut batch).is_some());
        batch.begin(4);
        ask(&mut batch, "mute.test");
        assert!(answer(&mut batch).is_none());
        ask(&mut batch, "mute2.test");
        ask(&mut batch, "good.test");
        assert!(answer(&mut batch).is_some());
        assert!(batch.judged(false, Now::ZERO).is_none(), "a question is open");
        // Nor does the server say anything at all any more.
        assert!(answer(&mut batch).is_none());
        let mut judged = batch.judged(false, Now::ZERO);
        if judged.is_none() {
            answer(&mut batch);
            judged = batch.judged(false, Now::ZERO);
        }
        assert!(matches!(judged, Some(Judged::Ours(_))));
    }

    #[test]
    fn a_crowded_address_sits_out_one_question() {
        let mut batch = Resolution::new(Names::table(HostsFile::parse("")));
        let url = |host: u32| CrawlUrl::parse(&format!("http://h{host}.test/x")).unwrap();
        let (crowded, other): (IpAddr, IpAddr) = ("1.1.1.1".parse().unwrap(), "2.2.2.2".parse().unwrap());
        for host in 0..5 {
            batch.shares(crowded, &url(host));
            batch.shares(crowded, &url(host));
        }
        batch.shares(other, &url(9));
        let mut out = batch.begin(4);
        out.sort_unstable();
        let mut expected: Vec<u64> = (0..5).map(|host| fingerprint(url(host).origin().as_bytes())).collect();
        expected.sort_unstable();
        assert_eq!(out, expected);
        assert!(batch.begin(4).is_empty(), "only the next one");
        for host in 0..4 {
            batch.shares(crowded, &url(host));
        }
        assert!(batch.begin(4).is_empty(), "four are no crowd");
    }
}
