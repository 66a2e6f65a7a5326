use super::auth::AuthEntry;
use super::config::Config;
use super::doc_index::DocIndexSettings;
use super::hints::{line_at, nearest};
use super::recrawl::RecrawlEntry;
use super::reference::{SECTIONS, section_with};
use super::section::Section;
use super::spider::SpiderSettings;
use super::store::StoreSettings;
use super::url_server::UrlServerSettings;
use crate::base::shown;
use crate::proto::auth::Sites;
use crate::proto::url::RecrawlRules;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {cause} (name another file with --config)")]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("{path}: line {line}: {cause}")]
    Wrong { path: PathBuf, line: usize, cause: String },
    #[error("{0}")]
    Invalid(String),
}

impl Config {
    /// The settings of a TOML file; what it does not set has its default.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError::Unreadable { path: path.to_path_buf(), cause })?;
        Config::parse(&text, path)
    }

    /// `path` is the file that the text is of, for what is said about it.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let file = File { path, text };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            file.wrong(at, error.message().lines().next().unwrap_or_default().to_string())
        })?;
        let mut config = Config::default();
        for (key, value) in table.into_inner() {
            match key.get_ref().as_ref() {
                UrlServerSettings::NAME => config.url_server = file.section("", value)?,
                SpiderSettings::NAME => config.spider = file.section("", value)?,
                StoreSettings::NAME => config.store = file.section("", value)?,
                DocIndexSettings::NAME => config.doc_index = file.section("", value)?,
                AuthEntry::NAME => config.auth = file.auth(value)?,
                RecrawlEntry::NAME => config.recrawl = file.recrawl(value)?,
                name => {
                    let hint = match section_with(name) {
                        Some(header) => format!(" (it belongs below {header})"),
                        None => nearest(name, &SECTIONS.map(|section| section.name.to_string())),
                    };
                    return Err(
                        file.wrong(key.span().start, format!("unknown setting {}{hint}", shown(name, 200)))
                    );
                }
            }
        }
        Ok(config)
    }
}

/// A settings file, for what is said about it.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

type Spot<'a> = Spanned<DeValue<'a>>;

impl File<'_> {
    fn wrong(&self, at: usize, cause: String) -> ConfigError {
        ConfigError::Wrong { path: self.path.to_path_buf(), line: line_at(self.text, at), cause }
    }

    /// The settings of a section, or of the entry of a list that `entry` names.
    fn section<S: Section>(&self, entry: &str, value: Spot) -> Result<S, ConfigError> {
        let section = if entry.is_empty() { S::NAME } else { "" };
        let full =
            |name: &str| if section.is_empty() { name.to_string() } else { format!("{section}.{name}") };
        let DeValue::Table(table) = value.get_ref() else {
            let place = if entry.is_empty() { format!("{section} ") } else { entry.to_string() };
            let cause = format!("{place}must be a section (begin it with {})", S::HEADER);
            return Err(self.wrong(value.span().start, cause));
        };
        let is_known = |name: &str| S::SETTINGS.iter().any(|setting| setting.name == name);
        if let Some(key) = table.keys().find(|key| !is_known(key.get_ref())) {
            let name = full(key.get_ref());
            let known: Vec<String> = S::SETTINGS.iter().map(|setting| full(setting.name)).collect();
            let (name, hint) = (shown(&name, 200), nearest(&name, &known));
            return Err(self.wrong(key.span().start, format!("{entry}unknown setting {name}{hint}")));
        }
        let settings = S::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let guilty = table.iter().find(|(_, value)| value.span().contains(&at));
            let name = full(guilty.map_or("", |(key, _)| key.get_ref()));
            let is_list = guilty.is_some_and(|(_, value)| value.get_ref().is_array());
            self.wrong(at, format!("{entry}{name}{}", cause_of(error.message(), is_list)))
        })?;
        match settings.out_of_bounds() {
            None => Ok(settings),
            Some((name, cause)) => {
                let key = table.keys().find(|key| key.get_ref() == name);
                let at = key.map_or(0, |key| key.span().start);
                Err(self.wrong(at, format!("{entry}{} {cause}", full(name))))
            }
        }
    }

    /// The entries of a list, each made into what it stands for, and where in the text they begin.
    fn entries<S: Section, T>(
        &self,
        list: Spot,
        make: fn(S) -> Result<T, String>,
    ) -> Result<(Vec<T>, Vec<usize>), ConfigError> {
        let (at, name) = (list.span().start, S::NAME);
        let DeValue::Array(entries) = list.into_inner() else {
            let hint = section_with(name).map_or(String::new(), |header| {
                format!(" (the setting of this name belongs below {header})")
            });
            return Err(
                self.wrong(at, format!("{name} must be a list: each entry begins with {}{hint}", S::HEADER))
            );
        };
        let (mut made, mut places) = (Vec::new(), Vec::new());
        for entry in entries {
            let at = entry.span().start;
            let place = place::<S>(made.len());
            made.push(
                make(self.section(&place, entry)?)
                    .map_err(|cause| self.wrong(at, format!("{place}{cause}")))?,
            );
            places.push(at);
        }
        Ok((made, places))
    }

    fn auth(&self, list: Spot) -> Result<Sites, ConfigError> {
        let (sites, places) = self.entries(list, AuthEntry::site)?;
        Sites::new(sites)
            .map_err(|(at, cause)| self.wrong(places[at], format!("{}{cause}", place::<AuthEntry>(at))))
    }

    fn recrawl(&self, list: Spot) -> Result<RecrawlRules, ConfigError> {
        let (rules, places) = self.entries(list, RecrawlEntry::rule)?;
        RecrawlRules::try_from(rules).map_err(|error| {
            let (at, place) = (error.number - 1, place::<RecrawlEntry>(error.number - 1));
            self.wrong(places[at], format!("{place}match \"{}\": {}", error.rule, error.cause))
        })
    }
}

/// How an entry of a list is named, from 0.
fn place<S: Section>(at: usize) -> String {
    format!("{} entry {}: ", S::HEADER, at + 1)
}

/// What a value must be, by what serde expected. The value itself is not repeated: it may be a password.
fn cause_of(message: &str, is_list: bool) -> String {
    const TEXTS: &str = "a list of texts in quotes, like [\"a\", \"b\"]";
    let typed = message.strip_prefix("invalid ").and_then(|said| said.rsplit_once(", expected "));
    let Some((found, expected)) = typed else {
        return match message {
            "invalid socket address syntax" => {
                " must be an address and port like \"0.0.0.0:7170\"".to_string()
            }
            _ if message.starts_with("must be ") => format!(" {message}"),
            _ => format!(": {message}"),
        };
    };
    let is_entry = is_list && !found.ends_with("sequence");
    let expected = match expected {
        "u64" | "usize" => "a whole number",
        "u32" => "a whole number of at most 4294967295",
        "u16" => "a whole number of at most 65535",
        "u8" => "a whole number of at most 255",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" | "socket address" if !is_entry => "a text in quotes",
        "a string" | "a sequence" => TEXTS,
        other => other,
    };
    format!(" must be {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rate;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let config = Config::parse(text, Path::new("c.toml"))?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn every_key_can_be_set() {
        for section in SECTIONS {
            for setting in section.settings {
                let tried = [
                    "64000000",
                    "\"x\"",
                    "9",
                    "true",
                    "\"push\"",
                    "\"127.0.0.1:1\"",
                    "\"me@a.test\"",
                    "\"any\"",
                    "\"newest\"",
                    "\"all\"",
                    "[\"a\"]",
                ]
                .iter()
                .map(|value| format!("{} = {value}", setting.name))
                .any(|line| {
                    let text = format!("{}\n{line}", section.header);
                    let said = Config::parse(&text, Path::new("c")).map_err(|error| error.to_string());
                    // An entry has more settings than this one, without which it is none.
                    said.is_ok() || said.is_err_and(|said| said.contains("is missing"))
                });
                assert!(tried, "{}.{}", section.name, setting.name);
            }
        }
        let config = read("[url_server]\nreq_host_per_sec = 0.5\n[store]\ndata = \"/d\"").unwrap();
        assert_eq!(config.url_server.req_host_per_sec, Rate(0.5));
        assert_eq!(config.store.data, Path::new("/d"));
    }

    #[test]
    fn mistakes_are_named_with_their_mend() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        for (text, expected) in [
            (
                "[url_server]\nque_len = 3",
                "c.toml: line 2: unknown setting url_server.que_len (did you mean url_server.queue_len?)",
            ),
            ("\n[spyder]\n", "c.toml: line 2: unknown setting spyder (did you mean spider?)"),
            ("spider = 1", "c.toml: line 1: spider must be a section (begin it with [spider])"),
            ("[spider]\n\ntimeout_req = \"x\"", "c.toml: line 3: spider.timeout_req must be a whole number"),
            ("[spider]\ntimeout_req = 0", "c.toml: line 2: spider.timeout_req must be at least 1"),
            ("[spider]\nca_file = 3", "c.toml: line 2: spider.ca_file must be a text in quotes"),
            ("[spider]\ncookies = 3", "c.toml: line 2: spider.cookies must be true or false"),
            (
                "[url_server]\nspider_protocol = \"draw\"",
                "c.toml: line 2: url_server.spider_protocol must be \"pull\" or \"push\"",
            ),
            (
                "[url_server]\nreq_host_per_sec = []",
                "c.toml: line 2: url_server.req_host_per_sec must be a number",
            ),
            (
                "[url_server]\nreq_host_per_sec = -1",
                "c.toml: line 2: url_server.req_host_per_sec must be at least 0",
            ),
            (
                "[url_server]\nreq_ip_per_sec = nan",
                "c.toml: line 2: url_server.req_ip_per_sec must be at least 0",
            ),
            (
                "[url_server]\nlisten = \"here\"",
                "c.toml: line 2: url_server.listen must be an address and port like \"0.0.0.0:7170\"",
            ),
            (
                "[doc_index]\ndeny = [\"(, expected u8\"]",
                "c.toml: line 2: doc_index.deny: rule 1, \"(, expected u8\": unclosed group",
            ),
            (
                "[url_server]\nspider_port = 70000",
                "c.toml: line 2: url_server.spider_port must be a whole number of at most 65535",
            ),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
        assert!(said("[spider]\ntimeout_update = 40000").contains("timeout_spider_status"));
        assert!(said("[store]\nsegment_bytes = 4096").contains("too small"));
        assert!(said("[store]\nsegment_bytes = 5000000000").contains("at most"));
        assert!(said("[store]\nbytes_max = 100000000").contains("four segments for every core"));
        assert!(said("[store]\ndedup = \"some\"").contains("dedup must be \"off\", \"url\" or \"any\""));
        assert!(said("[store]\ndedup = 1").contains("store.dedup must be a text in quotes"));
        assert!(said("\nx = [").starts_with("c.toml: line 2: "));
    }

    /// What a flag said is checked like what a file says, without a line to point at.
    #[test]
    fn bounds_hold_after_the_flags() {
        let mut config = Config::default();
        config.url_server.req_host_per_sec = Rate(f64::INFINITY);
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "url_server.req_host_per_sec can be at most 1000000000");
    }
}
