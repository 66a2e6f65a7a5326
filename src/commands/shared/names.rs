use super::Failure;
use super::product_driver::{ChosenDriver, ProductDriver};
use crate::base::AddressGuard;
use crate::config::Config;
use crate::engine::{Health, HostsFile, Names, ResolvConf};
use crate::proto::url::CrawlUrl;
use crate::resolver::ResolverConfig;
use crate::rings::Doorbell;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Where names come from: the hosts file, and name servers.
pub(crate) struct NameSource {
    hosts: HostsFile,
    resolver: ResolverConfig,
}

impl NameSource {
    pub fn of(config: &Config, driver: &ChosenDriver) -> Result<NameSource, Failure> {
        let hosts = match &config.crawl.hosts_file {
            Some(path) => HostsFile::read(path).map_err(|e| {
                Failure::Usage(format!(
                    "cannot read {}: {e} (name another file with --hosts-file)",
                    path.display()
                ))
            })?,
            None => HostsFile::of_system(),
        };
        let resolver = ResolvConf::of_system().with_servers(&config.crawl.name_servers()).resolver_config();
        Ok(NameSource {
            hosts,
            resolver: ResolverConfig { sockets_max: driver.name_sockets_max(), ..resolver },
        })
    }

    /// Whether a URL leads to a network that is not public: its host is such an address, or the hosts file names nothing
    /// else for it.
    pub fn is_private(&self, url: &CrawlUrl) -> bool {
        let private = |ip: IpAddr| AddressGuard::default().check(ip, 80).is_err();
        match url.host().parse() {
            Ok(ip) => private(ip),
            Err(_) => self.hosts.get(url.host()).is_some_and(|all| all.iter().all(|&ip| private(ip))),
        }
    }

    /// Starts to ask for names; `asker` is rung when an answer has come.
    pub fn open<D: ProductDriver>(
        self,
        asker: Arc<Doorbell>,
        health: &Health,
        started: Instant,
    ) -> io::Result<Names> {
        let sockets_max = self.resolver.sockets_max;
        Names::with_servers(self.hosts, self.resolver, move || D::open(sockets_max, started), asker, health)
    }
}
