//! Flags that several commands share, as typed.

use super::Failure;
use super::machine::{cores, memory_bytes};
use crate::config::{Config, DriverChoice, parse_cores, parse_name_server};
use crate::limits::NAME_SERVERS_MAX;
use crate::proto::url::{RecrawlRules, UrlRules};
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// What every process that fetches or resolves is told.
#[derive(Args, Default)]
pub struct SharedArgs {
    /// A file of settings in TOML (see nephila help settings)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The cores to use, one shard on each, like 0-3,6 [default: all]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// The kernel interface for the network: io_uring, or epoll where it is switched off
    #[arg(long, value_enum, default_value = "auto")]
    pub driver: DriverArg,
    /// The User-Agent; its first word is our name in robots.txt
    #[arg(long, value_name = "S")]
    pub user_agent: Option<String>,
    /// Milliseconds that a fetch may take [default: 60000]
    #[arg(long, value_name = "MS")]
    pub timeout_req: Option<u64>,
    /// Milliseconds between two WORKING messages about an open fetch [default: 20000]
    #[arg(long, value_name = "MS")]
    pub timeout_update: Option<u64>,
    /// Longer documents are cut at this size [default: 16777216]
    #[arg(long, value_name = "BYTES")]
    pub max_doc_size: Option<u64>,
    /// Fetches open at once per shard [default: 16384]
    #[arg(long, value_name = "N")]
    pub fetches_max: Option<usize>,
    /// Keep cookies until the crawl ends, each for the scheme, host and port that set it
    #[arg(long)]
    pub cookies: bool,
    /// Trust these certificates (PEM) besides those of the web
    #[arg(long, value_name = "PEM")]
    pub ca_file: Option<PathBuf>,
    /// Accept bad certificates, and flag the documents
    #[arg(long)]
    pub insecure_tls: bool,
    /// Allow a network that is not public, like 127.0.0.0/8 (repeatable)
    #[arg(long, value_name = "CIDR")]
    pub allow_net: Vec<IpNet>,
    /// Names and addresses that need no name server, in the format of /etc/hosts [default: /etc/hosts]
    #[arg(long, value_name = "FILE")]
    pub hosts_file: Option<PathBuf>,
    /// A name server, on port 53 unless a port is given (repeatable) [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub dns: Vec<String>,
}

/// How nice to be, where it is not left to the configuration.
#[derive(Args, Default)]
pub struct NicenessArgs {
    /// Requests open at once per host [default: 1]
    #[arg(long, value_name = "N")]
    pub req_host_concurrent: Option<u8>,
    /// Requests per second and host, also below 1; 0 = no limit [default: 1]
    #[arg(long, value_name = "F")]
    pub req_host_per_sec: Option<f64>,
}

/// How much memory the doc index may take.
#[derive(Args, Default)]
pub struct MemoryArgs {
    /// Memory for the doc index [default: a quarter of the machine's]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
}

impl MemoryArgs {
    pub fn lay_over(&self, config: &mut Config) {
        let memory = &mut config.doc_index.memory_bytes;
        *memory = self.memory.or(*memory).or_else(|| Some(memory_bytes()? / 4));
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub enum DriverArg {
    #[default]
    Auto,
    Uring,
    Epoll,
}

/// A flag that was given wins over the setting.
pub fn lay<T: Clone>(setting: &mut T, flag: &Option<T>) {
    if let Some(value) = flag {
        *setting = value.clone();
    }
}

/// Checks the relations between settings, and that the rules over URLs compile, so that no later step can fail on them.
pub fn check(config: &Config) -> Result<(), Failure> {
    config.check().map_err(Failure::usage)?;
    UrlRules::of(&config.doc_index).map_err(Failure::usage)?;
    RecrawlRules::of(&config.doc_index.recrawl_rules).map_err(Failure::usage)?;
    Ok(())
}

/// Reads an address where others may dial in.
pub fn listen_address(text: &str) -> Result<SocketAddr, Failure> {
    let mut found = text
        .to_socket_addrs()
        .map_err(|e| Failure::Usage(format!("--listen {text}: {e} (like 0.0.0.0:7171)")))?;
    found.next().ok_or_else(|| Failure::Usage(format!("--listen {text}: the name has no address")))
}

impl SharedArgs {
    /// Defaults, then the file, then these flags; not checked yet, as the command has flags of its own.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::default();
        if let Some(path) = &self.config {
            config.read_file(path).map_err(Failure::usage)?;
        }
        if let Some(notice) = config.auth.notice() {
            eprintln!("{notice}");
        }
        lay(&mut config.spider.user_agent, &self.user_agent);
        lay(&mut config.spider.timeout_req_ms, &self.timeout_req);
        lay(&mut config.spider.timeout_update_ms, &self.timeout_update);
        lay(&mut config.spider.max_doc_size, &self.max_doc_size);
        lay(&mut config.spider.fetches_max, &self.fetches_max);
        config.spider.cookies |= self.cookies;
        if self.ca_file.is_some() {
            config.spider.ca_file = self.ca_file.clone();
        }
        config.spider.insecure_tls |= self.insecure_tls;
        config.allow_net = self.allow_net.clone();
        config.hosts_file = self.hosts_file.clone();
        config.dns = self.name_servers()?;
        config.driver = match self.driver {
            DriverArg::Auto => DriverChoice::Auto,
            DriverArg::Uring => DriverChoice::Uring,
            DriverArg::Epoll => DriverChoice::Epoll,
        };
        config.cores = match &self.cores {
            Some(list) => parse_cores(list).map_err(|e| Failure::Usage(format!("--cores: {e}")))?,
            None => cores(),
        };
        Ok(config)
    }

    fn name_servers(&self) -> Result<Vec<SocketAddr>, Failure> {
        if self.dns.len() > NAME_SERVERS_MAX {
            return Err(Failure::Usage(format!("--dns: at most {NAME_SERVERS_MAX} name servers")));
        }
        let parse =
            |text: &String| parse_name_server(text).map_err(|e| Failure::Usage(format!("--dns: {e}")));
        self.dns.iter().map(parse).collect()
    }
}

impl NicenessArgs {
    pub fn lay_over(&self, config: &mut Config) {
        lay(&mut config.url_server.req_host_concurrent, &self.req_host_concurrent);
        lay(&mut config.url_server.req_host_per_sec, &self.req_host_per_sec);
    }
}
