use crate::limits::CANDIDATES_PER_ASK;
use rapidhash::fast::RapidHashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Names and addresses out of a file in the format of /etc/hosts.
#[derive(Clone, Debug, Default)]
pub struct HostsFile(RapidHashMap<Box<str>, IpAddr>);

impl HostsFile {
    pub fn read(path: &Path) -> io::Result<HostsFile> {
        Ok(HostsFile::parse(&std::fs::read_to_string(path)?))
    }

    /// The first address of a name counts; lines that make no sense are passed over, as the system does.
    pub fn parse(text: &str) -> HostsFile {
        let mut hosts = RapidHashMap::default();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
                continue;
            };
            for name in words {
                hosts.entry(name.to_ascii_lowercase().into()).or_insert(ip);
            }
        }
        HostsFile(hosts)
    }

    pub fn get(&self, name: &str) -> Option<IpAddr> {
        self.0.get(name).copied()
    }
}

/// Resolves names: addresses in URLs, the hosts file, then the system's resolver on threads of its own.
pub struct Names {
    hosts: HostsFile,
    system: Option<System>,
}

struct System {
    questions: SyncSender<Box<str>>,
    answers: Receiver<(Box<str>, Option<IpAddr>)>,
}

/// What is known of a name at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Known(IpAddr),
    /// The answer will come from `Names::answers`.
    Asked,
    /// Too many questions are open: ask again later.
    Later,
    Unknown,
}

const RESOLVER_THREADS: usize = 8;

impl Names {
    /// Without the system's resolver: only addresses and the hosts file.
    pub fn table(hosts: HostsFile) -> Names {
        Names { hosts, system: None }
    }

    pub fn with_system(hosts: HostsFile, answered: impl Fn() + Send + Sync + 'static) -> io::Result<Names> {
        let (questions, asked) = sync_channel::<Box<str>>(CANDIDATES_PER_ASK);
        let (answer, answers) = sync_channel(CANDIDATES_PER_ASK * 2);
        let asked = Arc::new(Mutex::new(asked));
        let answered = Arc::new(answered);
        for index in 0..RESOLVER_THREADS {
            let (asked, answer, answered) = (asked.clone(), answer.clone(), answered.clone());
            std::thread::Builder::new().name(format!("names-{index}")).spawn(move || {
                loop {
                    let question = asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
                    let Ok(name) = question else { return };
                    let found = (&*name, 0).to_socket_addrs().ok().and_then(|addrs| {
                        let all: Vec<IpAddr> = addrs.map(|addr| addr.ip()).collect();
                        all.iter().find(|ip| ip.is_ipv4()).or(all.first()).copied()
                    });
                    if answer.send((name, found)).is_err() {
                        return;
                    }
                    answered();
                }
            })?;
        }
        Ok(Names { hosts, system: Some(System { questions, answers }) })
    }

    pub fn lookup(&self, host: &str) -> Lookup {
        if let Ok(ip) = host.parse() {
            return Lookup::Known(ip);
        }
        if let Some(ip) = self.hosts.get(host) {
            return Lookup::Known(ip);
        }
        match &self.system {
            None => Lookup::Unknown,
            Some(system) => match system.questions.try_send(host.into()) {
                Ok(()) => Lookup::Asked,
                Err(TrySendError::Full(_)) => Lookup::Later,
                Err(TrySendError::Disconnected(_)) => Lookup::Unknown,
            },
        }
    }

    /// The next answer to a question that was `Asked`.
    pub fn answer(&self) -> Option<(Box<str>, Option<IpAddr>)> {
        self.system.as_ref()?.answers.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_names_addresses() {
        let hosts =
            HostsFile::parse("# c\n127.1.0.1 A.test b.test # x\nbad line\n::1 v6.test\n1.2.3.4 a.test\n");
        assert_eq!(hosts.get("a.test"), Some("127.1.0.1".parse().unwrap()));
        assert_eq!(hosts.get("b.test"), Some("127.1.0.1".parse().unwrap()));
        assert_eq!(hosts.get("v6.test"), Some("::1".parse().unwrap()));
        assert_eq!(hosts.get("line"), None);
        let names = Names::table(hosts);
        assert_eq!(names.lookup("10.0.0.1"), Lookup::Known("10.0.0.1".parse().unwrap()));
        assert_eq!(names.lookup("nowhere.test"), Lookup::Unknown);
    }
}
