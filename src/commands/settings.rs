//! Flags that several commands share, as typed, and what becomes of them: defaults, then the file, then the flags.

use super::machine::{cores, memory_bytes};
use super::shared::{Failure, say};
use crate::base::shown;
use crate::config::{
    Bytes, Config, Contact, DriverChoice, MEMORY_BYTES_MIN, Millis, Rate, flag_help, flag_value,
};
use crate::handler::ScopeKind;
use crate::limits::NAME_SERVERS_MAX;
use crate::proto::sitemap::Sitemaps;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Flags that win over settings of the file.
pub trait Overlay {
    fn lay_over(&self, config: &mut Config);
}

/// The group of `--help` that the flag of a setting stands in.
fn heading(setting: &str) -> &'static str {
    match setting {
        "sitemaps" | "recrawl" => WHAT_TO_CRAWL,
        "user_agent" | "contact" | "req_host_concurrent" | "req_host_per_sec" => "Politeness",
        "timeout_req" | "timeout_update" | "max_doc_size" | "fetches_max" => LIMITS,
        "data" => "Storage",
        "memory" => MACHINE,
        _ => NETWORK,
    }
}

pub const WHAT_TO_CRAWL: &str = "What to crawl";
pub const LIMITS: &str = "Limits";
pub const NETWORK: &str = "Network";
pub const MACHINE: &str = "Machine";

/// Defines flags for settings, by section and name; their help and what they take is written where the setting is.
macro_rules! setting_flags {
    (
        $(#[$about:meta])*
        $Flags:ident {
            $($section:ident.$name:ident: $type:ty,)+
        }
        $(switches { $($switch_section:ident.$switch:ident,)+ })?
    ) => {
        $(#[$about])*
        #[derive(Args)]
        pub struct $Flags {
            $(
                #[arg(
                    long,
                    help_heading = heading(stringify!($name)),
                    value_name = flag_value(stringify!($section), stringify!($name)),
                    help = flag_help(stringify!($section), stringify!($name))
                )]
                $name: Option<$type>,
            )+
            $($(
                #[arg(
                    long,
                    help_heading = heading(stringify!($switch)),
                    help = flag_help(stringify!($switch_section), stringify!($switch))
                )]
                $switch: bool,
            )+)?
        }

        impl Overlay for $Flags {
            fn lay_over(&self, config: &mut Config) {
                $(if let Some(value) = &self.$name {
                    config.$section.$name = value.clone().into();
                })+
                $($(config.$switch_section.$switch |= self.$switch;)+)?
            }
        }
    };
}

setting_flags! {
    /// Of every process that fetches.
    FetchFlags {
        spider.user_agent: String,
        spider.contact: Contact,
        spider.timeout_req: Millis,
        spider.timeout_update: Millis,
        spider.max_doc_size: Bytes,
        spider.fetches_max: usize,
        spider.ca_file: PathBuf,
    }
    switches {
        spider.cookies,
        spider.insecure_tls,
    }
}

setting_flags! {
    /// Of every process that has queues.
    QueueFlags {
        url_server.req_host_concurrent: u8,
        url_server.req_host_per_sec: Rate,
        spider.fallback_delay: Millis,
        doc_index.memory: Bytes,
    }
}

setting_flags! {
    /// Of every process that has a data directory.
    DataFlags {
        store.data: PathBuf,
    }
}

setting_flags! {
    /// Of a process that follows links.
    LinkFlags {
        doc_index.sitemaps: Sitemaps,
    }
    switches {
        doc_index.recrawl,
    }
}

setting_flags! {
    /// Of a process that stores what others have fetched.
    StoreFlags {
        spider.max_doc_size: Bytes,
    }
}

/// What every process that fetches or resolves is told.
#[derive(Args)]
pub struct SharedArgs {
    /// A file of settings in TOML (see nephila help settings)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The cores to use, one shard on each, like 0-3,6 [default: all]
    #[arg(long, value_name = "LIST", help_heading = MACHINE)]
    cores: Option<String>,
    /// The kernel interface for the network: io_uring, or epoll where it is switched off
    #[arg(long, value_enum, default_value = "auto", help_heading = MACHINE)]
    driver: DriverChoice,
    #[command(flatten)]
    fetch: FetchFlags,
    /// Allow a network that is not public, like 127.0.0.0/8 (repeatable)
    #[arg(long, value_name = "CIDR", help_heading = NETWORK)]
    allow_net: Vec<IpNet>,
    /// Names and addresses that need no name server, in the format of /etc/hosts [default: /etc/hosts]
    #[arg(long, value_name = "FILE", help_heading = NETWORK)]
    hosts_file: Option<PathBuf>,
    /// A name server, on port 53 unless a port is given (repeatable) [default: those of /etc/resolv.conf]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = parse_name_server, help_heading = NETWORK)]
    dns: Vec<SocketAddr>,
}

/// Enums that flags take by their names.
macro_rules! value_enums {
    ($($Enum:ty)+) => {
        $(impl ValueEnum for $Enum {
            fn value_variants<'a>() -> &'a [$Enum] {
                <$Enum>::ALL
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(PossibleValue::new(self.name()))
            }
        })+
    };
}
value_enums!(DriverChoice ScopeKind Sitemaps);

/// Defaults, then the file, then the flags, checked.
pub fn load(file: Option<&Path>, core_list: Option<&str>, flags: &[&dyn Overlay]) -> Result<Config, Failure> {
    let mut config = file.map_or_else(|| Ok(Config::default()), Config::read).map_err(Failure::usage)?;
    config.cores = match core_list {
        Some(list) => parse_cores(list).map_err(|e| Failure::Usage(format!("--cores {e}")))?,
        None => cores(),
    };
    flags.iter().for_each(|flags| flags.lay_over(&mut config));
    config.check().map_err(Failure::usage)?;
    Ok(config)
}

/// Reads an address where others may dial in.
pub fn listen_address(text: &str) -> Result<SocketAddr, Failure> {
    let mut found = text
        .to_socket_addrs()
        .map_err(|e| Failure::Usage(format!("--listen {text}: {e} (like 0.0.0.0:7171)")))?;
    found.next().ok_or_else(|| Failure::Usage(format!("--listen {text}: the name has no address")))
}

impl SharedArgs {
    /// What these flags say, and those that the command has besides.
    pub fn config(&self, flags: &[&dyn Overlay]) -> Result<Config, Failure> {
        if self.dns.len() > NAME_SERVERS_MAX {
            return Err(Failure::Usage(format!("--dns: at most {NAME_SERVERS_MAX} name servers")));
        }
        let flags = [&[&self.fetch as &dyn Overlay], flags].concat();
        let mut config = load(self.config.as_deref(), self.cores.as_deref(), &flags)?;
        if let Some(notice) = config.auth.notice() {
            say(notice);
        }
        let quarter = || memory_bytes().map(|bytes| Bytes((bytes / 4).max(MEMORY_BYTES_MIN)));
        config.doc_index.memory = config.doc_index.memory.or_else(quarter);
        Ok(Config {
            allow_net: self.allow_net.clone(),
            hosts_file: self.hosts_file.clone(),
            dns: self.dns.clone(),
            driver: self.driver,
            ..config
        })
    }
}

/// A name server as typed: an address, with a port or on port 53.
fn parse_name_server(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let server = match (text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
        (Ok(addr), _) => Some(addr),
        (_, Ok(ip)) => Some(SocketAddr::new(ip, 53)),
        _ => None,
    };
    server.filter(|addr| addr.port() != 0).ok_or_else(|| {
        format!("{} is not ADDR[:PORT], like 9.9.9.9, 127.0.0.1:5353 or [::1]:53", shown(text, 100))
    })
}

/// `0-3,6` as a list of cores, each of which this process may run on.
pub fn parse_cores(text: &str) -> Result<Vec<usize>, String> {
    cores_among(text, &cores()).map_err(|cause| format!("{}: {cause}", shown(text, 60)))
}

fn cores_among(text: &str, there: &[usize]) -> Result<Vec<usize>, String> {
    let mut chosen = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |s: &str| {
            s.trim().parse::<usize>().map_err(|_| {
                format!("{:?} is not a core or a range like 0-3; {}", shown(part, 60), may_use(there))
            })
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("\"{from}-{to}\" runs backwards: write {to}-{from}; {}", may_use(there)));
        }
        for core in from..=to {
            // The first that is not there ends it, however far the range goes.
            if !there.contains(&core) {
                return Err(format!("core {core} is not there: {}", may_use(there)));
            }
            if chosen.contains(&core) {
                return Err(format!("core {core} is named twice; {}", may_use(there)));
            }
            chosen.push(core);
        }
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// Names the cores that there are, as `--cores` takes them.
fn may_use(there: &[usize]) -> String {
    let runs = there.chunk_by(|core, next| core + 1 == *next);
    let words = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => format!("{}", run[0]),
    });
    format!("this process may use {}", words.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use crate::config::reference;
    use clap::CommandFactory;
    use std::collections::{BTreeMap, BTreeSet};

    /// A flag that the reference names is there, and its help says what the reference does.
    #[test]
    fn every_flag_of_the_reference_is_one() {
        let mut documented = BTreeMap::new();
        let text = reference();
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let Some(flag) = cells[2].trim_matches('`').strip_prefix("--") else { continue };
            documented.insert(flag.split(' ').next().unwrap(), cells[3].trim_end_matches(". |"));
        }
        assert!(documented.len() > 10, "{documented:?}");
        let mut missing: BTreeSet<&str> = documented.keys().copied().collect();
        for name in ["crawl", "spider", "urlserver", "storeserver"] {
            for argument in Cli::command().find_subcommand(name).unwrap().get_arguments() {
                let Some(about) = documented.get(argument.get_long().unwrap_or_default()) else { continue };
                let help = argument.get_help().unwrap().to_string();
                assert!(help.starts_with(about), "{name} {argument}: {help}");
                missing.remove(argument.get_long().unwrap());
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn cores_are_lists_and_ranges() {
        let there = [0, 1, 2, 3, 6, 8];
        let chosen = |text: &str| cores_among(text, &there);
        assert_eq!(chosen("0-3,6"), Ok(vec![0, 1, 2, 3, 6]));
        assert_eq!(chosen("6,1"), Ok(vec![1, 6]));
        assert!(chosen("3-1").unwrap_err().contains("write 1-3"));
        assert!(chosen("a").is_err() && chosen("").is_err() && chosen("0-").is_err());
        assert_eq!(chosen("0-18446744073709551615"), chosen("0-99"));
        assert_eq!(chosen("0-99"), Err("core 4 is not there: this process may use 0-3,6,8".to_string()));
        assert!(chosen("0-2,2-3").unwrap_err().starts_with("core 2 is named twice"));
    }
}
