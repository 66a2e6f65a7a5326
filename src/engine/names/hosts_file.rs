use super::names::Addresses;
use crate::base::{canonical, without_mark};
use crate::limits::ADDRESSES_PER_NAME_MAX;
use rapidhash::fast::RapidHashMap;
use std::io;
use std::path::Path;

/// Names and addresses out of a file in the format of /etc/hosts.
#[derive(Clone, Debug, Default)]
pub struct HostsFile(RapidHashMap<Box<str>, Addresses>);

impl HostsFile {
    pub fn read(path: &Path) -> io::Result<HostsFile> {
        Ok(HostsFile::parse(&String::from_utf8_lossy(&std::fs::read(path)?)))
    }

    /// The machine's own; a machine without one has no names in it.
    pub fn of_system() -> HostsFile {
        HostsFile::read(Path::new("/etc/hosts")).unwrap_or_default()
    }

    /// All addresses of a name count, in the order of their lines: whoever wrote them had a reason. Lines that make
    /// no sense are passed over, as the system does.
    pub fn parse(text: &str) -> HostsFile {
        let mut hosts: RapidHashMap<Box<str>, Addresses> = RapidHashMap::default();
        for line in without_mark(text).lines() {
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(ip) = words.next().and_then(|word| word.parse().ok()).map(canonical) else {
                continue;
            };
            for name in words {
                let addresses = hosts.entry(name.to_ascii_lowercase().into()).or_default();
                // A name with several lines is rare, so making its list anew each time is no loss.
                if addresses.len() < ADDRESSES_PER_NAME_MAX && !addresses.contains(&ip) {
                    *addresses = addresses.iter().copied().chain([ip]).collect();
                }
            }
        }
        HostsFile(hosts)
    }

    pub fn get(&self, name: &str) -> Option<Addresses> {
        self.0.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn a_hosts_file_names_addresses() {
        let hosts = HostsFile::parse(
            "\u{feff}127.9.0.1 first.test # x\n# c\n127.1.0.1 A.test b.test # x\nbad line\n::1 v6.test a.test\n1.2.3.4 a.test\n::ffff:1.2.3.4 a.test\n",
        );
        let get = |name: &str| {
            hosts.get(name).map(|all| all.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(get("a.test").as_deref(), Some("127.1.0.1 ::1 1.2.3.4"), "all of them, as they came");
        assert_eq!(get("first.test").as_deref(), Some("127.9.0.1"), "behind the mark of an editor");
        assert_eq!(get("b.test").as_deref(), Some("127.1.0.1"));
        assert_eq!(get("v6.test").as_deref(), Some("::1"));
        assert_eq!(get("line"), None);
        let many: String = (0..99).map(|n| format!("10.0.0.{n} many.test\n")).collect();
        assert_eq!(HostsFile::parse(&many).get("many.test").unwrap().len(), ADDRESSES_PER_NAME_MAX);
    }
}
