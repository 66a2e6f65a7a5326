use super::hosts_file::HostsFile;
use super::resolver_actor::{Answered, ResolverActor};
use crate::base::{canonical, random_u64};
use crate::driver::Driver;
use crate::engine::runtime::counters::Counters;
use crate::engine::runtime::driver_thread::DriverThread;
use crate::engine::runtime::health::Health;
use crate::limits::NAMES_ASKED_MAX;
use crate::resolver::{Failure, ResolverConfig};
use crate::rings::{Doorbell, Fill, Receiver, Sender, ring};
use rapidhash::fast::RapidHashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The addresses of a name: at least one, in the order to try them.
pub type Addresses = Arc<[IpAddr]>;

/// Resolves names: addresses in URLs, localhost, the hosts file, then name servers on a thread of its own.
pub struct Names {
    hosts: HostsFile,
    servers: Option<NamesThread>,
}

/// What is known of a name at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    Known(Addresses),
    /// The answer will come from `Names::answer`, once, however often the name is asked for until then.
    Asked,
    /// Too many questions are open: ask again later.
    Later,
    Failed(Failure),
}

/// The thread that turns a [`ResolverActor`]; it ends with this value.
struct NamesThread {
    questions: Sender<Box<str>>,
    answers: Receiver<Answered>,
    /// Names without an answer yet.
    open: RapidHashSet<Box<str>>,
    /// Whom it asks, for a user to read.
    addrs: Box<str>,
    thread: DriverThread,
    counters: Arc<Counters>,
}

impl Names {
    /// Without name servers: only addresses, localhost and the hosts file.
    pub fn table(hosts: HostsFile) -> Names {
        Names { hosts, servers: None }
    }

    /// `make_driver` is called on the thread that will use it; `asker` is rung when an answer has come.
    pub fn with_servers<D: Driver + 'static>(
        hosts: HostsFile,
        config: ResolverConfig,
        make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
        asker: Arc<Doorbell>,
        health: &Health,
    ) -> io::Result<Names> {
        Ok(Names { hosts, servers: Some(NamesThread::start(config, make_driver, asker, health)?) })
    }

    pub fn lookup(&mut self, host: &str) -> Lookup {
        if let Ok(ip) = host.parse() {
            return Lookup::Known(Arc::new([canonical(ip)]));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        // It never leaves the machine, whatever a file or a server says (RFC 6761, 6.3).
        if name == "localhost" || name.ends_with(".localhost") {
            return Lookup::Known(Arc::new([IpAddr::V4(Ipv4Addr::LOCALHOST)]));
        }
        if let Some(addresses) = self.hosts.get(name) {
            return Lookup::Known(addresses);
        }
        match &mut self.servers {
            None => Lookup::Failed(Failure::NoSuchName),
            Some(servers) => servers.ask(host),
        }
    }

    /// The next answer to a question that was `Asked`.
    pub fn answer(&mut self) -> Option<Answered> {
        self.servers.as_mut()?.answer()
    }

    /// Whether a question has no answer yet.
    pub fn is_asking(&self) -> bool {
        self.servers.as_ref().is_some_and(|servers| !servers.open.is_empty())
    }

    /// What the thread behind them publishes, and how full the way to it is; `None` if names come from a table.
    pub(crate) fn published(&self) -> Option<(Arc<Counters>, Fill)> {
        self.servers.as_ref().map(|servers| (servers.counters.clone(), servers.questions.fill()))
    }

    /// The name servers, for a user to read; `None` if names come from a table.
    pub fn servers(&self) -> Option<&str> {
        self.servers.as_ref().map(|servers| &*servers.addrs)
    }

    /// Whether `answer` would give one.
    pub fn has_answers(&self) -> bool {
        self.servers.as_ref().is_some_and(NamesThread::has_answers)
    }
}

impl NamesThread {
    fn start<D: Driver + 'static>(
        config: ResolverConfig,
        make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
        asker: Arc<Doorbell>,
        health: &Health,
    ) -> io::Result<NamesThread> {
        let addrs: Vec<String> = config.servers.iter().map(ToString::to_string).collect();
        let addrs = addrs.join(", ").into();
        let (questions, asked) = ring(NAMES_ASKED_MAX);
        let (answer, answers) = ring(NAMES_ASKED_MAX);
        // Ids and spellings of questions must not be foreseen.
        let counters = Arc::<Counters>::default();
        let published = counters.clone();
        let make_actor = move |driver, _| {
            let rings = (asked, answer);
            Ok((ResolverActor::new(driver, config, random_u64(), rings, asker, published), ()))
        };
        let failed = "names are no longer resolved";
        let (thread, ()) = DriverThread::start("names", make_driver, make_actor, failed, health)?;
        Ok(NamesThread { questions, answers, open: RapidHashSet::default(), addrs, thread, counters })
    }

    fn ask(&mut self, host: &str) -> Lookup {
        if self.open.contains(host) {
            return Lookup::Asked;
        }
        // A thread that ended of itself knows no name.
        if self.thread.is_dead() {
            return Lookup::Failed(Failure::ServersFailed);
        }
        if self.open.len() >= NAMES_ASKED_MAX || self.questions.push(host.into()).is_err() {
            return Lookup::Later;
        }
        self.open.insert(host.into());
        self.thread.ring();
        Lookup::Asked
    }

    fn answer(&mut self) -> Option<Answered> {
        // Looked at first: a thread that is dead has said all it will say.
        let dead = self.thread.is_dead();
        let answer = match self.answers.pop() {
            None if dead => {
                let name = self.open.iter().next()?.clone();
                Answered { name, answer: Err(Failure::ServersFailed), is_remembered: false }
            }
            answer => answer?,
        };
        self.open.remove(&answer.name);
        Some(answer)
    }

    fn has_answers(&self) -> bool {
        !self.answers.is_empty() || (self.thread.is_dead() && !self.open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::EpollDriver;
    use crate::engine::ResolvConf;
    use crate::proto::dns::made_up::{Heard, MadeUp};
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    #[test]
    fn what_needs_no_server_is_known_at_once() {
        let mut names = Names::table(HostsFile::parse("192.0.2.1 a.test localhost\n::1 a.test\n"));
        let known = |ips: &[&str]| Lookup::Known(ips.iter().map(|ip| ip.parse().unwrap()).collect());
        assert_eq!(names.lookup("10.0.0.1"), known(&["10.0.0.1"]));
        assert_eq!(names.lookup("::1"), known(&["::1"]));
        assert_eq!(names.lookup("::ffff:a00:1"), known(&["10.0.0.1"]), "one address, one budget");
        assert_eq!(names.lookup("a.test"), known(&["192.0.2.1", "::1"]));
        assert_eq!(names.lookup("a.test."), known(&["192.0.2.1", "::1"]));
        for name in ["localhost", "localhost.", "x.localhost"] {
            assert_eq!(names.lookup(name), known(&["127.0.0.1"]), "{name}");
        }
        assert_eq!(names.lookup("nowhere.test"), Lookup::Failed(Failure::NoSuchName));
        assert_eq!(names.lookup("notlocalhost"), Lookup::Failed(Failure::NoSuchName));
        assert!(!names.has_answers() && names.answer().is_none());
    }

    fn names(server: &UdpSocket, asker: Arc<Doorbell>) -> Names {
        let conf = ResolvConf::parse("").with_servers(&[server.local_addr().unwrap()]);
        let make_driver = || EpollDriver::new(16, Instant::now());
        Names::with_servers(
            HostsFile::default(),
            conf.resolver_config(),
            make_driver,
            asker,
            &Health::default(),
        )
        .unwrap()
    }

    fn deaf() -> Arc<Doorbell> {
        Arc::new(Doorbell::new(|| ()))
    }

    /// The next answer; waits for it, at most five seconds.
    fn answer(names: &mut Names) -> Answered {
        let until = Instant::now() + Duration::from_secs(5);
        while !names.has_answers() {
            assert!(Instant::now() < until, "no answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        names.answer().unwrap()
    }

    #[test]
    fn more_names_than_sockets_are_all_answered_once() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut names = names(&server, deaf());
        let serve = std::thread::spawn(move || {
            let mut buffer = [0; 600];
            // A and AAAA of every name, and nothing twice.
            for _ in 0..2 * 300 {
                let (n, from) = server.recv_from(&mut buffer).unwrap();
                let heard = Heard::read(&buffer[..n]);
                let bytes = match heard.name.starts_with("no") {
                    true => heard.answer(&MadeUp { soa: Some((9, 9)), ..MadeUp::default() }),
                    false => heard.addresses(&["192.0.2.7"], 60),
                };
                server.send_to(&bytes, from).unwrap();
            }
        });
        for n in 0..300 {
            let name = format!("{}{n}.test", if n % 3 == 0 { "no" } else { "yes" });
            assert_eq!(names.lookup(&name), Lookup::Asked);
            assert_eq!(names.lookup(&name), Lookup::Asked, "the same question");
        }
        for _ in 0..300 {
            let Answered { name, answer, is_remembered } = answer(&mut names);
            assert_eq!((answer.is_ok(), is_remembered), (name.starts_with("yes"), false), "{name}");
        }
        serve.join().unwrap();
        assert_eq!(names.lookup("yes1.test"), Lookup::Asked);
        assert!(answer(&mut names).is_remembered, "nobody was asked");
        std::thread::sleep(Duration::from_millis(20));
        assert!(names.answer().is_none());
    }

    #[test]
    fn the_thread_ends_with_its_questions_open() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut names = names(&server, deaf());
        assert_eq!(names.lookup("silent.test"), Lookup::Asked);
        std::thread::sleep(Duration::from_millis(50));
        let from = Instant::now();
        drop(names);
        assert!(from.elapsed() < Duration::from_secs(1), "it was woken");
    }

    #[test]
    fn when_the_thread_is_dead_names_are_unknown() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut names = names(&server, deaf());
        assert_eq!(names.lookup("silent.test"), Lookup::Asked);
        names.servers.as_mut().unwrap().thread.tell_to_end();
        let Answered { name, answer, .. } = answer(&mut names);
        assert_eq!((&*name, answer), ("silent.test", Err(Failure::ServersFailed)));
        assert_eq!(names.lookup("another.test"), Lookup::Failed(Failure::ServersFailed));
        assert!(names.answer().is_none());
    }
}
