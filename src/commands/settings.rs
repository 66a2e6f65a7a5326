//! Flags that several commands share, as typed, and what becomes of them: defaults, then the file, then what the data
//! directory was told before, then the flags.

use super::machine::{cores, memory_bytes};
use super::shared::{Failure, LogArgs, tell_event};
use crate::base::shown;
use crate::config::{
    Bytes, Config, ConfigError, Contact, DriverChoice, Fault, Kept, Layered, MEMORY_BYTES_MIN, MasterAddress,
    Millis, Mistake, NameServer, Net, Rate, Reading, Role, Seconds, flag_help, flag_value,
};
use crate::engine::Event;
use crate::handler::ScopeKind;
use crate::proto::sitemap::Sitemaps;
use crate::store_server::Compress;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Flags that win over settings from everywhere else.
pub trait Overlay {
    /// Sets what the flags say, and notes the settings that they set as `section.name`.
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>);
}

/// The group of `--help` that the flag of a setting stands in.
fn heading(setting: &str) -> &'static str {
    match setting {
        "sitemaps" | "recrawl" | "scope" | "depth" | "again" | "head" => WHAT_TO_CRAWL,
        "user_agent" | "contact" | "req_host_concurrent" | "req_host_per_sec" => "Politeness",
        "timeout_req" | "timeout_update" | "max_doc_size" | "fetches_max" | "max_pages" | "max_seconds"
        | "wait" | "linger" => LIMITS,
        "data" | "log_bytes" | "compress" => STORAGE,
        "memory" | "cores" | "driver" => MACHINE,
        "server" => MASTER,
        _ => NETWORK,
    }
}

pub const WHAT_TO_CRAWL: &str = "What to crawl";
const LIMITS: &str = "Limits";
const NETWORK: &str = "Network";
pub const MACHINE: &str = "Machine";
const STORAGE: &str = "Storage";
const SETTINGS: &str = "Settings";
const MASTER: &str = "Master";

/// Defines flags for settings, by section and name; their help and what they take is written where the setting is. A
/// switch is on without a value, and may be given one, as `--cookies=false`; the flag of a list may be repeated.
macro_rules! setting_flags {
    (
        $(#[$about:meta])*
        $Flags:ident {
            $($section:ident.$name:ident: $type:ty,)+
        }
        $(switches { $($switch_section:ident.$switch:ident,)+ })?
        $(lists { $($list_section:ident.$list:ident: $entry:ty,)+ })?
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
                    num_args = 0..=1,
                    require_equals = true,
                    default_missing_value = "true",
                    value_name = "BOOL",
                    hide_possible_values = true,
                    help = flag_help(stringify!($switch_section), stringify!($switch))
                )]
                $switch: Option<bool>,
            )+)?
            $($(
                #[arg(
                    long,
                    help_heading = heading(stringify!($list)),
                    value_name = flag_value(stringify!($list_section), stringify!($list)),
                    help = flag_help(stringify!($list_section), stringify!($list))
                )]
                $list: Vec<$entry>,
            )+)?
        }

        impl Overlay for $Flags {
            fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
                $(if let Some(value) = &self.$name {
                    config.$section.$name = value.clone().into();
                    told.push(concat!(stringify!($section), ".", stringify!($name)).to_string());
                })+
                $($(if let Some(value) = self.$switch {
                    config.$switch_section.$switch = value;
                    told.push(concat!(stringify!($switch_section), ".", stringify!($switch)).to_string());
                })+)?
                $($(if !self.$list.is_empty() {
                    config.$list_section.$list.clone_from(&self.$list);
                    told.push(concat!(stringify!($list_section), ".", stringify!($list)).to_string());
                })+)?
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
    /// How far a crawl goes, and until when.
    ReachFlags {
        crawl.scope: ScopeKind,
        crawl.depth: u16,
        crawl.max_pages: u64,
        crawl.max_seconds: Seconds,
    }
    switches {
        crawl.wait,
        crawl.again,
        crawl.head,
    }
}

/// Where a crawl gets its URLs from, if a master deals them out.
#[derive(Args)]
pub struct MasterFlags {
    #[arg(
        long,
        value_name = flag_value("crawl", "master"),
        value_delimiter = ',',
        help_heading = MASTER,
        help = flag_help("crawl", "master")
    )]
    master: Vec<MasterAddress>,
    #[command(flatten)]
    server: ServerFlags,
}

setting_flags! {
    /// Who a node is to its master.
    ServerFlags {
        crawl.server: u16,
    }
}

impl Overlay for MasterFlags {
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
        if !self.master.is_empty() {
            config.crawl.master.clone_from(&self.master);
            told.push("crawl.master".to_string());
        }
        self.server.lay_over(config, told);
    }
}

setting_flags! {
    /// What a process runs on.
    RunFlags {
        crawl.cores: String,
        crawl.driver: DriverChoice,
    }
}

setting_flags! {
    /// Where a process may go, and how it finds the way.
    NetFlags {
        crawl.hosts_file: PathBuf,
    }
    lists {
        crawl.allow_net: Net,
        crawl.dns: NameServer,
    }
}

setting_flags! {
    /// Of every process that has queues.
    QueueFlags {
        url_server.req_host_concurrent: u8,
        url_server.req_host_per_sec: Rate,
        url_server.linger: Seconds,
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
    /// Of every process that writes a crawl log.
    LogFlags {
        store.log_bytes: Bytes,
    }
}

setting_flags! {
    /// Of every process that stores documents.
    BlockFlags {
        store.compress: Compress,
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

/// Where a process listens for those who ask it, besides the socket in its data directory.
#[derive(Args)]
pub struct AdminFlags {
    /// Listen on TCP as well, for scripts and monitors: ADDR is 127.0.0.1:7180 unless given; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        default_missing_value = ADMIN_ADDRESS,
        value_parser = admin_address,
        help_heading = NETWORK
    )]
    admin: Option<SocketAddr>,
}

const ADMIN_ADDRESS: &str = "127.0.0.1:7180";

fn admin_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("must be an address and a port, like {ADMIN_ADDRESS} (before a URL, write --admin={ADMIN_ADDRESS})")
    })
}

impl Overlay for AdminFlags {
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
        if let Some(addr) = self.admin {
            config.admin.listen = Some(addr);
            told.push("admin.listen".to_string());
        }
    }
}

/// What every process that fetches or resolves is told.
#[derive(Args)]
pub struct SharedArgs {
    /// A file of settings in TOML (see nephila help settings)
    #[arg(long, value_name = "FILE", help_heading = SETTINGS)]
    config: Option<PathBuf>,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    fetch: FetchFlags,
    #[command(flatten)]
    net: NetFlags,
    #[command(flatten)]
    crawl_log: LogFlags,
    #[command(flatten)]
    pub log: LogArgs,
}

/// What a command with a doc index is told about the settings that its data directory keeps.
#[derive(Args)]
pub struct KeptArgs {
    /// Forget what this data directory was told before, and keep what this command says
    #[arg(long, help_heading = SETTINGS)]
    fresh_settings: bool,
}

impl KeptArgs {
    pub fn before(&self) -> Before {
        if self.fresh_settings { Before::IsForgotten } else { Before::Holds }
    }
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
value_enums!(Compress DriverChoice ScopeKind Sitemaps);

/// Whether the settings that a data directory was told before hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Holds,
    /// What they were is said.
    IsForgotten,
    /// The command has nothing to do with them.
    IsNone,
}

/// What a settings file says, and what came of it.
pub struct Layers {
    pub file: Option<Reading>,
    pub layered: Layered,
}

/// Of a file and the directory that keeps settings, for a look at them.
pub fn read_layers(file: Option<&Path>, data: Option<&Path>, before: Before) -> Result<Layers, Failure> {
    let data = data.map(|data| DataFlags { data: Some(data.to_path_buf()) });
    let flags: Vec<&dyn Overlay> = data.iter().map(|data| data as &dyn Overlay).collect();
    all_layers(file, &flags, before)
}

/// Every mistake of a file that is to be given to one of the commands.
pub fn checked(file: &Reading, role: Role) -> Vec<Mistake> {
    let mut config = file.config.clone();
    let mut faults = faults_of(&mut config);
    faults.extend(missing_files(&config, |key| file.has(key)));
    let settings = &config.url_server;
    if role == Role::UrlServer && settings.listen.is_none() && settings.spider_host.is_none() {
        let keys = vec!["url_server.listen".to_string(), "url_server.spider_host".to_string()];
        faults.push(Fault { keys, cause: NO_WAY_TO_A_SPIDER.to_string() });
    }
    if role == Role::Master {
        faults.extend(master_faults(&config));
    }
    file.mistakes_with(faults, |_| false)
}

/// What a master cannot do without.
pub fn master_faults(config: &Config) -> Vec<Fault> {
    let fault = |key: &str, cause: &str| Fault { keys: vec![key.to_string()], cause: cause.to_string() };
    let mut faults = Vec::new();
    if config.servers.is_empty() {
        faults
            .push(fault("server", "no server to deal URLs to: write a [[server]] with its id for each node"));
    }
    if config.master.listen.is_none() {
        faults.push(fault("master.listen", "no node could dial in: set listen under [master]"));
    }
    let environment = std::env::var(DATABASE_PASSWORD).ok();
    if let Err(cause) = config.master.database_access(environment) {
        faults.push(fault("master.database_password_file", &cause));
    }
    faults
}

/// Of the environment: what proves to the database of a master who it is.
pub const DATABASE_PASSWORD: &str = "NEPHILA_DATABASE_PASSWORD";

pub const NO_WAY_TO_A_SPIDER: &str =
    "no way to a spider: set listen or spider_host under [url_server] in a file for --config";

/// Everything that is wrong with settings on this machine. The cores are chosen on the way.
fn faults_of(config: &mut Config) -> Vec<Fault> {
    let list = config.crawl.cores.as_deref().map_or_else(|| Ok(cores()), parse_cores);
    config.cores = list.clone().unwrap_or_else(|_| cores());
    let mut faults = config.faults();
    faults.extend(
        list.err()
            .map(|cause| Fault { keys: vec!["crawl.cores".to_string()], cause: format!("--cores {cause}") }),
    );
    faults
}

/// Files that settings name and that cannot be read. Those of flags are told of by whoever reads them.
fn missing_files(config: &Config, is_in_file: impl Fn(&str) -> bool) -> Vec<Fault> {
    let (crawl, spider, content) = (&config.crawl, &config.spider, &config.content);
    let named = [
        ("crawl.seeds_file", &crawl.seeds_file, "name a file of URLs, one a line"),
        ("crawl.feeds_file", &crawl.feeds_file, "name a list of feeds, one URL a line, CSV or OPML"),
        ("crawl.hosts_file", &crawl.hosts_file, "name a file in the format of /etc/hosts"),
        ("spider.ca_file", &spider.ca_file, "name a file of certificates in PEM"),
        ("content.postgres_password_file", &content.postgres_password_file, "its first line is the password"),
        (
            "content.s3_credentials_file",
            &content.s3_credentials_file,
            "it has aws_access_key_id and aws_secret_access_key",
        ),
    ];
    let mut faults = Vec::new();
    for (key, path, mend) in named.into_iter().filter(|(key, ..)| is_in_file(key)) {
        let Some(path) = path else { continue };
        let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        });
        if let Err(cause) = opened {
            let path = shown(&path.display().to_string(), 200);
            faults.push(Fault {
                keys: vec![key.to_string()],
                cause: format!("cannot read {path}: {cause} ({mend})"),
            });
        }
    }
    faults
}

/// Every layer, one over the other, and checked. Every mistake is told at once.
pub fn layered(file: Option<&Path>, flags: &[&dyn Overlay], before: Before) -> Result<Layered, Failure> {
    all_layers(file, flags, before).map(|layers| layers.layered)
}

fn all_layers(file: Option<&Path>, flags: &[&dyn Overlay], before: Before) -> Result<Layers, Failure> {
    let file = file.map(Reading::of).transpose().map_err(Failure::usage)?;
    let lay_over = |config: &mut Config| {
        let mut told = Vec::new();
        flags.iter().for_each(|flags| flags.lay_over(config, &mut told));
        told
    };
    let mut layered = Layered::new(file.as_ref(), None, lay_over);
    if before == Before::Holds && file.as_ref().is_none_or(Reading::is_good) {
        let kept = Kept::read(&layered.config.store.data).map_err(Failure::usage)?;
        layered = Layered::new(file.as_ref(), kept.as_ref(), lay_over);
    }
    if before == Before::IsForgotten
        && let Ok(Some(kept)) = Kept::read(&layered.config.store.data)
    {
        layered.said = kept.forgotten_for(&layered.config);
    }
    let mut faults = faults_of(&mut layered.config);
    let Layered { by_flags, taken, .. } = &layered;
    let is_of_file = |key: &str| {
        file.as_ref().is_some_and(|file| file.has(key)) && !by_flags.contains(key) && !taken.contains(key)
    };
    faults.extend(missing_files(&layered.config, is_of_file));
    for fault in &mut faults {
        if fault.keys.iter().any(|key| taken.contains(key)) {
            fault.cause += " (an earlier run here was told so: give it anew, or --fresh-settings)";
        }
    }
    match (&file, faults.is_empty()) {
        (Some(file), _) => {
            let elsewhere = |key: &str| by_flags.contains(key) || taken.contains(key);
            file.verdict(faults, elsewhere).map_err(Failure::usage)?
        }
        (None, true) => {}
        (None, false) => {
            let causes = faults.into_iter().map(|fault| fault.cause).collect();
            return Err(Failure::usage(ConfigError::Wrong(causes)));
        }
    }
    Ok(Layers { file, layered })
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
        let layered = self.layered(flags, Before::IsNone)?;
        say_settings(&layered);
        Ok(layered.config)
    }

    /// The same over what the data directory was told before.
    pub fn layered(&self, flags: &[&dyn Overlay], before: Before) -> Result<Layered, Failure> {
        let flags = [&[&self.run as &dyn Overlay, &self.fetch, &self.net, &self.crawl_log], flags].concat();
        let mut layered = layered(self.config.as_deref(), &flags, before)?;
        let config = &mut layered.config;
        let quarter = || memory_bytes().map(|bytes| Bytes((bytes / 4).max(MEMORY_BYTES_MIN)));
        config.doc_index.memory = config.doc_index.memory.or_else(quarter);
        Ok(layered)
    }
}

/// Says what holds or has changed of what the data directory was told before.
pub fn say_settings(layered: &Layered) {
    if !layered.said.is_empty() {
        tell_event(Event::SettingsHeld, Vec::new(), layered.said.join("\n"));
    }
    if let Some(text) = layered.config.auth.notice() {
        tell_event(Event::PasswordsReadable, Vec::new(), text);
    }
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
    use crate::base::{SortedMap, SortedSet};
    use crate::commands::Cli;
    use crate::config::reference;
    use clap::CommandFactory;

    /// A flag that the reference names is there, and its help says what the reference does.
    #[test]
    fn every_flag_of_the_reference_is_one() {
        let mut documented = SortedMap::new();
        let text = reference();
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let Some(flag) = cells[2].trim_matches('`').strip_prefix("--") else { continue };
            documented.insert(flag.split(' ').next().unwrap(), cells[4].trim_end_matches(". |"));
        }
        assert!(documented.len() > 10, "{documented:?}");
        let mut missing: SortedSet<&str> = documented.keys().copied().collect();
        for name in ["crawl", "spider", "urlserver", "storeserver"] {
            for argument in Cli::command().find_subcommand(name).unwrap().get_arguments() {
                let Some(about) = documented.get(argument.get_long().unwrap_or_default()) else { continue };
                let help = argument.get_help().unwrap().to_string();
                // A URL server waits for something else.
                let is_own = (name, argument.get_id().as_str()) == ("urlserver", "wait");
                let about = about.split("; unset, ").next().unwrap();
                assert!(is_own || help.starts_with(about), "{name} {}: {help}", argument.get_id());
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
