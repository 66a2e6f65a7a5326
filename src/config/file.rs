use super::admin::AdminSettings;
use super::auth::AuthEntry;
use super::cluster::ClusterSettings;
use super::config::{Config, Fault, key};
use super::content::ContentSettings;
use super::crawl::CrawlSettings;
use super::doc_index::DocIndexSettings;
use super::feeds::FeedsSettings;
use super::hints::{line_at, nearest};
use super::master::{MasterSettings, Server, ServerEntry};
use super::recrawl::RecrawlEntry;
use super::reference::{SECTIONS, flagged_section, section_with};
use super::section::Section;
use super::spider::SpiderSettings;
use super::store::StoreSettings;
use super::url_server::UrlServerSettings;
use crate::base::{SortedMap, SortedSet, shown};
use crate::proto::auth::Sites;
use crate::proto::url::RecrawlRules;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, ValueDeserializer};

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {cause} (name another file with --config)")]
    Unreadable { path: PathBuf, cause: io::Error },
    /// A line for each mistake.
    #[error("{}", told(.0))]
    Wrong(Vec<String>),
}

/// Mistakes that are told at once; the rest is counted.
const MISTAKES_TOLD: usize = 50;

fn told(mistakes: &[String]) -> String {
    let mut lines = mistakes.iter().take(MISTAKES_TOLD).cloned().collect::<Vec<_>>();
    if mistakes.len() > MISTAKES_TOLD {
        lines.push(format!("and {} more mistakes", mistakes.len() - MISTAKES_TOLD));
    }
    lines.join("\n")
}

/// More than the longest lists of the longest rules.
const FILE_BYTES_MAX: u64 = 256 << 20;

impl Config {
    /// The settings of a TOML file; what it does not set has its default.
    #[cfg(test)]
    pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let reading = Reading::parse(text, path);
        reading.verdict(Vec::new(), |_| false)?;
        Ok(reading.config)
    }
}

/// What a settings file says: its good settings, and everything that is wrong with it.
#[derive(Debug)]
pub struct Reading {
    /// What the file does not set, or sets wrongly, has its default.
    pub config: Config,
    pub path: PathBuf,
    /// The line of every setting that the file has, by `section.name`.
    lines: SortedMap<String, usize>,
    mistakes: Vec<Mistake>,
    holds_password: bool,
}

/// Something that is wrong with a file, and how to mend it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    /// `None` for what no line of the file says.
    pub line: Option<usize>,
    /// As far as it is known; empty in what is not TOML.
    pub key: String,
    pub cause: String,
}

impl Mistake {
    /// As it is told: `file:line:key: cause`.
    pub fn told(&self, path: &Path) -> String {
        let Mistake { line: Some(line), key, cause } = self else { return self.cause.clone() };
        let key = if key.is_empty() { String::new() } else { format!("{key}:") };
        format!("{}:{line}:{key} {cause}", shown(&path.display().to_string(), 200))
    }
}

impl Reading {
    pub fn of(path: &Path) -> Result<Reading, ConfigError> {
        Ok(Reading::parse(&text_of(path)?, path))
    }

    #[cfg(test)]
    pub(super) fn of_text(text: &str, path: &Path) -> Reading {
        Reading::parse(text, path)
    }

    fn parse(text: &str, path: &Path) -> Reading {
        Reading::with_table::<()>(text, path, None).0
    }

    /// Besides the sections that all files have, the file may have a table of its own.
    pub(super) fn with_table<T: DeserializeOwned>(
        text: &str,
        path: &Path,
        own: Option<&str>,
    ) -> (Reading, Option<T>) {
        let mut file = File { text, lines: SortedMap::new(), mistakes: Vec::new(), holds_password: false };
        let (config, own) = file.read(own);
        let File { lines, mut mistakes, holds_password, .. } = file;
        mistakes.sort_by_key(|mistake| mistake.line);
        (Reading { config, path: path.to_path_buf(), lines, mistakes, holds_password }, own)
    }

    /// Whether the file has a setting, `section.name`.
    pub fn has(&self, setting: &str) -> bool {
        self.lines.contains_key(setting)
    }

    /// The settings that it has, by `section.name`.
    pub(super) fn settings(&self) -> impl Iterator<Item = &str> {
        self.lines.keys().map(String::as_str).filter(|&key| key != AuthEntry::NAME)
    }

    /// How many settings it has.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Whether a password stands in it.
    pub fn holds_password(&self) -> bool {
        self.holds_password
    }

    /// Notes a mistake that only a reader of the whole file can see.
    pub(super) fn mistaken(&mut self, setting: &str, cause: &str) {
        let line = self.lines.get(setting).copied().unwrap_or(1);
        self.mistakes.push(Mistake { line: Some(line), key: setting.to_string(), cause: cause.to_string() });
    }

    /// The line of a setting, if the file has it.
    pub fn line_of(&self, setting: &str) -> Option<usize> {
        self.lines.get(setting).copied()
    }

    pub fn is_good(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// An error with every mistake of the file, and every fault of what came of it.
    pub fn verdict(&self, faults: Vec<Fault>, elsewhere: impl Fn(&str) -> bool) -> Result<(), ConfigError> {
        let mistakes = self.mistakes_with(faults, elsewhere);
        match mistakes.is_empty() {
            true => Ok(()),
            false => {
                Err(ConfigError::Wrong(mistakes.iter().map(|mistake| mistake.told(&self.path)).collect()))
            }
        }
    }

    /// Every mistake of the file, and every fault of what came of it, in the order of the lines. A fault of what was said
    /// `elsewhere`, over the file, names no line of it.
    pub fn mistakes_with(&self, faults: Vec<Fault>, elsewhere: impl Fn(&str) -> bool) -> Vec<Mistake> {
        let copy = |Mistake { line, key, cause }: &Mistake| Mistake {
            line: *line,
            key: key.clone(),
            cause: cause.clone(),
        };
        let mut all: Vec<Mistake> = self.mistakes.iter().map(copy).collect();
        // Of an entry that is wrong, the whole list is.
        let keys = |key: &'_ str| [key.to_string(), key.split('[').next().unwrap_or(key).to_string()];
        let mistaken: SortedSet<String> =
            self.mistakes.iter().flat_map(|mistake| keys(&mistake.key)).collect();
        for fault in faults {
            // What stands on a mistake is told when that is mended.
            if fault.keys.iter().any(|key| mistaken.contains(key)) {
                continue;
            }
            let is_ours = !fault.keys.iter().any(|key| elsewhere(key));
            let found = fault.keys.iter().find_map(|key| Some((key, self.line_of(key)?)));
            all.push(match found.filter(|_| is_ours) {
                Some((key, line)) => Mistake { line: Some(line), key: key.clone(), cause: fault.cause },
                None => Mistake {
                    line: None,
                    key: fault.keys.into_iter().next().unwrap_or_default(),
                    cause: fault.cause,
                },
            });
        }
        all.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        all
    }
}

pub(super) fn text_of(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |cause| ConfigError::Unreadable { path: path.to_path_buf(), cause };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(io::Error::other("it is larger than 256 MiB")));
    }
    String::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is not text in UTF-8")))
}

/// A settings file while it is read.
struct File<'a> {
    text: &'a str,
    lines: SortedMap<String, usize>,
    mistakes: Vec<Mistake>,
    holds_password: bool,
}

type Spot<'a> = Spanned<DeValue<'a>>;
type Entry<'a> = (Spanned<Cow<'a, str>>, Spot<'a>);

/// The entries of the sections, by name.
type Sections<'a> = SortedMap<&'static str, Vec<Entry<'a>>>;

impl<'a> File<'a> {
    fn wrong(&mut self, at: usize, key: impl Into<String>, cause: impl Into<String>) {
        let line = Some(line_at(self.text, at));
        let mistake = Mistake { line, key: shown(&key.into(), 200), cause: cause.into() };
        // Entries of a list on one line may all be wrong in the same way.
        if self.mistakes.last() != Some(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    fn read<T: DeserializeOwned>(&mut self, own: Option<&str>) -> (Config, Option<T>) {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            let cause = error.message().lines().next().unwrap_or_default();
            self.wrong(
                at,
                name_in_line(self.text, at),
                format!("{cause} (the file is TOML: see nephila help settings)"),
            );
        }
        let (broken, syntax) = (self.broken_lines(), self.mistakes.len());
        let mut config = Config::default();
        let (mut sections, mut own_table) = (Sections::new(), None);
        for (key, value) in table.into_inner() {
            match key.get_ref().as_ref() {
                CrawlSettings::NAME => self.collect::<CrawlSettings>(value, &mut sections),
                UrlServerSettings::NAME => self.collect::<UrlServerSettings>(value, &mut sections),
                SpiderSettings::NAME => self.collect::<SpiderSettings>(value, &mut sections),
                StoreSettings::NAME => self.collect::<StoreSettings>(value, &mut sections),
                DocIndexSettings::NAME => self.collect::<DocIndexSettings>(value, &mut sections),
                FeedsSettings::NAME => self.collect::<FeedsSettings>(value, &mut sections),
                ContentSettings::NAME => self.collect::<ContentSettings>(value, &mut sections),
                MasterSettings::NAME => self.collect::<MasterSettings>(value, &mut sections),
                AdminSettings::NAME => self.collect::<AdminSettings>(value, &mut sections),
                ClusterSettings::NAME => self.collect::<ClusterSettings>(value, &mut sections),
                AuthEntry::NAME => config.auth = self.auth(&key, value),
                RecrawlEntry::NAME => config.recrawl = self.recrawl(&key, value),
                ServerEntry::NAME => config.servers = self.servers(&key, value),
                name if Some(name) == own => own_table = self.own_table(name, value),
                name => {
                    let hint = match section_with(name) {
                        Some(header) => format!(" (it belongs below {header})"),
                        None => nearest(name, &SECTIONS.each_ref().map(|section| section.name)),
                    };
                    self.wrong(key.span().start, name, format!("unknown setting{hint}"));
                }
            }
        }
        self.give_back(&mut sections);
        config.crawl = self.section(&mut sections);
        config.url_server = self.section(&mut sections);
        config.spider = self.section(&mut sections);
        config.store = self.section(&mut sections);
        config.doc_index = self.section(&mut sections);
        config.feeds = self.section(&mut sections);
        config.content = self.section(&mut sections);
        config.master = self.section(&mut sections);
        config.admin = self.section(&mut sections);
        config.cluster = self.section(&mut sections);
        let databases = [&config.master.database, &config.content.postgres];
        self.holds_password |= databases.into_iter().flatten().any(|url| url.holds_password());
        let mut seen = 0;
        self.mistakes.retain(|mistake| {
            seen += 1;
            seen <= syntax || !mistake.line.is_some_and(|line| broken.contains(&line))
        });
        (config, own_table)
    }

    /// Lines that are not TOML, and those that stand below a header that is not: what is made of them is nothing that
    /// anybody wrote.
    fn broken_lines(&self) -> SortedSet<usize> {
        let mut broken: SortedSet<usize> = self.mistakes.iter().filter_map(|mistake| mistake.line).collect();
        let mut below = false;
        for (number, line) in self.text.lines().enumerate() {
            let (number, is_header) = (number + 1, line.trim_start().starts_with('['));
            below = if is_header { broken.contains(&number) } else { below };
            if below {
                broken.insert(number);
            }
        }
        broken
    }

    /// The entries of a table, which must be one.
    fn entries_of(&mut self, name: &str, header: &str, value: Spot<'a>) -> Vec<Entry<'a>> {
        let at = value.span().start;
        match value.into_inner() {
            DeValue::Table(table) => table.into_iter().collect(),
            _ => {
                self.wrong(at, name, format!("must be a section (begin it with {header})"));
                Vec::new()
            }
        }
    }

    fn collect<S: Section>(&mut self, value: Spot<'a>, sections: &mut Sections<'a>) {
        let entries = self.entries_of(S::NAME, S::HEADER, value);
        sections.entry(S::NAME).or_default().extend(entries);
    }

    /// What `[crawl]` may say for other sections goes there, unless it is there already.
    fn give_back(&mut self, sections: &mut Sections<'a>) {
        let Some(entries) = sections.remove(CrawlSettings::NAME) else { return };
        for (key, value) in entries {
            let name = key.get_ref();
            let is_own = CrawlSettings::SETTINGS.iter().any(|setting| setting.name == name);
            let home = flagged_section(name).filter(|_| !is_own).unwrap_or(CrawlSettings::NAME);
            let others = sections.entry(home).or_default();
            match others.iter().find(|(other, _)| other.get_ref() == name) {
                Some((other, _)) => {
                    let line = line_at(self.text, other.span().start);
                    let cause = format!("is said in line {line}, too (keep one)");
                    self.wrong(key.span().start, format!("{}.{name}", CrawlSettings::NAME), cause);
                }
                None => others.push((key, value)),
            }
        }
    }

    fn section<S: Section>(&mut self, sections: &mut Sections<'a>) -> S {
        let entries = sections.remove(S::NAME).unwrap_or_default();
        for (key, _) in &entries {
            let line = line_at(self.text, key.span().start);
            self.lines.insert(self::key::<S>(key.get_ref()), line);
        }
        self.settings(S::NAME, entries).0
    }

    /// The settings of a section, or of the entry of a list; whether all of them were good.
    fn settings<S: Section>(&mut self, place: &str, entries: Vec<Entry<'a>>) -> (S, bool) {
        let (mut settings, mut is_good) = (S::default(), true);
        for (key, value) in entries {
            let (name, at) = (key.get_ref().to_string(), key.span().start);
            match self.setting::<S>(key, value) {
                Ok(one) => settings.adopt(&name, &one),
                Err(faults) => {
                    for (place_of_value, cause) in faults {
                        self.wrong(place_of_value.unwrap_or(at), format!("{place}.{name}"), cause);
                    }
                    is_good = false;
                }
            }
        }
        (settings, is_good)
    }

    /// A section with one setting, or what is wrong with it and where: of a list, every entry that is wrong.
    fn setting<S: Section>(
        &self,
        key: Spanned<Cow<'a, str>>,
        value: Spot<'a>,
    ) -> Result<S, Vec<(Option<usize>, String)>> {
        let is_known = S::SETTINGS.iter().any(|setting| setting.name == key.get_ref());
        let entries = match value.get_ref() {
            DeValue::Array(entries) if entries.len() > 1 && is_known => entries.iter().cloned().collect(),
            _ => Vec::new(),
        };
        let whole = match self.one_setting(key.clone(), value) {
            Ok(section) => return Ok(section),
            Err(fault) => fault,
        };
        let mut faults = Vec::new();
        for (number, entry) in entries.into_iter().enumerate() {
            let span = entry.span();
            let list = Spanned::new(span.clone(), DeValue::Array(DeArray::from_iter([entry])));
            if let Err((at, cause)) = self.one_setting::<S>(key.clone(), list) {
                // A rule is named by its place among all.
                let cause = match cause.strip_prefix("rule 1, ") {
                    Some(rest) => format!("rule {}, {rest}", number + 1),
                    None => cause,
                };
                faults.push((at.filter(|&at| at > 0).or(Some(span.start)), cause));
            }
        }
        Err(if faults.is_empty() { vec![whole] } else { faults })
    }

    /// The same of a list as a whole.
    fn one_setting<S: Section>(
        &self,
        key: Spanned<Cow<'a, str>>,
        value: Spot<'a>,
    ) -> Result<S, (Option<usize>, String)> {
        let name = key.get_ref();
        if !S::SETTINGS.iter().any(|setting| setting.name == name) {
            let known: Vec<&str> = S::SETTINGS.iter().map(|setting| setting.name).collect();
            let hint = match section_with(name).filter(|_| !S::HEADER.starts_with("[[")) {
                Some(header) => format!(" (it belongs below {header})"),
                None => nearest(name, &known),
            };
            return Err((None, format!("unknown setting{hint}")));
        }
        let (span, is_list) = (value.span(), value.get_ref().is_array());
        let table = DeTable::from_iter([(key, value)]);
        let one = S::deserialize(ValueDeserializer::from(Spanned::new(span, DeValue::Table(table))))
            .map_err(|error| (error.span().map(|span| span.start), cause_of(error.message(), is_list)))?;
        match one.out_of_bounds().pop() {
            Some((_, cause)) => Err((None, cause)),
            None => Ok(one),
        }
    }

    /// The entries of a list that are good, each made into what it stands for, and where in the text they begin; `None`
    /// if one is not.
    fn entries<S: Section, T>(
        &mut self,
        list: Spot<'a>,
        make: fn(S) -> Result<T, String>,
    ) -> Option<(Vec<T>, Vec<usize>)> {
        let (at, name) = (list.span().start, S::NAME);
        let DeValue::Array(entries) = list.into_inner() else {
            let hint = section_with(name).map_or(String::new(), |header| {
                format!(" (the setting of this name belongs below {header})")
            });
            self.wrong(at, name, format!("must be a list: each entry begins with {}{hint}", S::HEADER));
            return None;
        };
        let (mut made, mut places, mut is_good) = (Vec::new(), Vec::new(), true);
        for (number, entry) in entries.into_iter().enumerate() {
            let (at, place) = (entry.span().start, place::<S>(number));
            if !entry.get_ref().is_table() {
                self.wrong(at, place, format!("must be a section (begin it with {})", S::HEADER));
                is_good = false;
                continue;
            }
            let entries = self.entries_of(&place, S::HEADER, entry);
            let (settings, whole) = self.settings(&place, entries);
            is_good &= whole;
            match make(settings) {
                Ok(one) => {
                    made.push(one);
                    places.push(at);
                }
                // What is wrong with it has been said.
                Err(_) if !whole => {}
                Err(cause) => {
                    self.wrong(at, place, cause);
                    is_good = false;
                }
            }
        }
        is_good.then_some((made, places))
    }

    fn auth(&mut self, key: &Spanned<Cow<'a, str>>, list: Spot<'a>) -> Sites {
        self.lines.insert(AuthEntry::NAME.to_string(), line_at(self.text, key.span().start));
        let has_password =
            |entry: &Spot<'_>| entry.get_ref().as_table().is_some_and(|entry| entry.contains_key("password"));
        self.holds_password |= list.get_ref().as_array().is_some_and(|list| list.iter().any(has_password));
        let Some((mut sites, mut places)) = self.entries(list, AuthEntry::site) else {
            return Sites::default();
        };
        let mut numbers: Vec<usize> = (0..sites.len()).collect();
        while let Err((at, cause)) = Sites::new(sites.clone()) {
            self.wrong(places[at], place::<AuthEntry>(numbers[at]), cause);
            // Without it, the next that is wrong.
            sites.remove(at);
            places.remove(at);
            numbers.remove(at);
        }
        Sites::new(sites).unwrap_or_default()
    }

    fn recrawl(&mut self, key: &Spanned<Cow<'a, str>>, list: Spot<'a>) -> RecrawlRules {
        self.lines.insert(RecrawlEntry::NAME.to_string(), line_at(self.text, key.span().start));
        let Some((rules, places)) = self.entries(list, RecrawlEntry::rule) else {
            return RecrawlRules::default();
        };
        for (at, rule) in rules.iter().enumerate() {
            if let Err(error) = RecrawlRules::try_from(vec![rule.clone()]) {
                let place = place::<RecrawlEntry>(at);
                self.wrong(
                    places[at],
                    format!("{place}.match"),
                    format!("\"{}\": {}", error.rule, error.cause),
                );
            }
        }
        RecrawlRules::try_from(rules).unwrap_or_default()
    }

    fn servers(&mut self, key: &Spanned<Cow<'a, str>>, list: Spot<'a>) -> Vec<Server> {
        self.lines.insert(ServerEntry::NAME.to_string(), line_at(self.text, key.span().start));
        let (servers, places) = self.entries(list, ServerEntry::server).unwrap_or_default();
        for (at, server) in servers.iter().enumerate() {
            if let Some(first) = servers[..at].iter().position(|other| other.id == server.id) {
                let cause =
                    format!("server {} is entry {} already (give each its own id)", server.id, first + 1);
                self.wrong(places[at], place::<ServerEntry>(at), cause);
            }
        }
        servers
    }

    fn own_table<T: DeserializeOwned>(&mut self, name: &str, value: Spot<'a>) -> Option<T> {
        let at = value.span().start;
        let table = T::deserialize(ValueDeserializer::from(value));
        table.map_err(|error| self.wrong(at, name, error.message())).ok()
    }
}

/// How an entry of a list is named, from 0.
fn place<S: Section>(at: usize) -> String {
    format!("{}[{}]", S::NAME, at + 1)
}

/// The name that a line sets, as far as it looks like one.
fn name_in_line(text: &str, at: usize) -> &str {
    let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let line = text[text[..at].rfind('\n').map_or(0, |end| end + 1)..].lines().next().unwrap_or_default();
    let name = line.split_once('=').map_or("", |(name, _)| name.trim());
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.chars().all(is_name) { name } else { "" }
}

/// What a value must be, by what serde expected. The value itself is not repeated: it may be a password.
fn cause_of(message: &str, is_list: bool) -> String {
    const TEXTS: &str = "a list of texts in quotes, like [\"a\", \"b\"]";
    let typed = message.strip_prefix("invalid ").and_then(|said| said.rsplit_once(", expected "));
    let Some((found, expected)) = typed else {
        return match message {
            "invalid socket address syntax" => {
                "must be an address and port like \"0.0.0.0:7170\"".to_string()
            }
            _ => message.to_string(),
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
    format!("must be {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rate;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let reading = Reading::parse(text, Path::new("c.toml"));
        reading.verdict(reading.config.faults(), |_| false)?;
        Ok(reading.config)
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let said = read(
            "[spider]\ntimeout_req = \"soon\"\nuser_agnet = \"x\"\nmax_doc_size = \n\n[crawl]\nseeds = [\"example.org\"]\n\
             contact = \"here\"\nqueue_len = 3\n[[auth]]\nsite = 1\nuser = 2\n[doc_index]\nrecrawl_min = \"100d\"\n\
             retries_max = 300\nrecrawl_max = 99999999999\n[moon]\nx = 1\n",
        )
        .unwrap_err()
        .to_string();
        let lines: Vec<&str> = said.lines().collect();
        let expected = [
            "c.toml:2:spider.timeout_req: must be a time like ",
            "c.toml:3:spider.user_agnet: unknown setting (did you mean user_agent?)",
            "c.toml:4:max_doc_size: ",
            "c.toml:7:crawl.seeds: must be a URL, not \"example.org\" (not a URL: relative URL without a base; did you mean https://example.org/?)",
            "c.toml:8:spider.contact: must be an http or https URL",
            "c.toml:9:crawl.queue_len: unknown setting (it belongs below [url_server])",
            "c.toml:11:auth[1].site: must be a text in quotes",
            "c.toml:12:auth[1].user: must be a text in quotes",
            "c.toml:15:doc_index.retries_max: must be a whole number of at most 255",
            "c.toml:16:doc_index.recrawl_max: can be at most 3650d",
            "c.toml:17:moon: unknown setting (known are crawl, url_server, ",
        ];
        assert_eq!(lines.len(), expected.len(), "{said}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}\n{expected}");
        }
        let many = (0..99).map(|n| format!("x{n} = 1\n")).collect::<String>();
        let said = read(&many).unwrap_err().to_string();
        assert_eq!((said.lines().count(), said.lines().last()), (51, Some("and 49 more mistakes")));
    }

    /// What a flag of `crawl` can say, `[crawl]` can, wherever else it may stand.
    #[test]
    fn a_crawl_is_one_section() {
        let config = read(
            "[crawl]\nseeds = [\"http://a.test\"]\ndepth = 2\nuser_agent = \"bot/1\"\ncontact = \"me@a.test\"\nreq_host_per_sec = 2\n\
             data = \"/d\"\nmax_seconds = \"1h\"\nmemory = \"1GiB\"\nrecrawl = true\n[spider]\ncookies = true\n",
        )
        .unwrap();
        assert_eq!((config.crawl.depth, config.spider.agent().as_str()), (Some(2), "bot/1 (+me@a.test)"));
        assert_eq!(
            (config.url_server.req_host_per_sec, config.store.data.as_path()),
            (Rate(2.0), Path::new("/d"))
        );
        assert!(config.doc_index.recrawl && config.spider.cookies);
        let said = read("[spider]\ncontact = \"me@a.test\"\n[crawl]\ncontact = \"me@a.test\"\n")
            .unwrap_err()
            .to_string();
        assert_eq!(said, "c.toml:4:crawl.contact: is said in line 2, too (keep one)");
    }

    #[test]
    fn every_key_can_be_set() {
        for section in SECTIONS {
            for setting in section.settings {
                let tried = [
                    "64000000",
                    "\"x\"",
                    "9",
                    "\"5min\"",
                    "5000",
                    "1",
                    "true",
                    "\"push\"",
                    "\"127.0.0.1:1\"",
                    "\"me@a.test\"",
                    "\"any\"",
                    "\"newest\"",
                    "\"all\"",
                    "[\"a\"]",
                    "[\"http://a.test/\"]",
                    "[\"127.0.0.1\"]",
                    "[\"127.0.0.1:1\"]",
                    "\"uring\"",
                    "\"rendezvous\"",
                    "\"rate\"",
                    "\"note\"",
                    "\"fast\"",
                    "\"host\"",
                    "\"down\"",
                    "\"postgres://a@b/c\"",
                    "\"https://a/b\"",
                    "\"etcd://a:2379\"",
                    "\"plain\"",
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
                "c.toml:2:url_server.que_len: unknown setting (did you mean queue_len?)",
            ),
            ("\n[spyder]\n", "c.toml:2:spyder: unknown setting (did you mean spider?)"),
            ("spider = 1", "c.toml:1:spider: must be a section (begin it with [spider])"),
            (
                "[spider]\n\ntimeout_req = \"x\"",
                "c.toml:3:spider.timeout_req: must be a time like 250ms, 30s, 5min, 1h or 2d, or a whole number of milliseconds",
            ),
            ("[spider]\ntimeout_req = 0", "c.toml:2:spider.timeout_req: must be at least 1ms"),
            ("[spider]\nca_file = 3", "c.toml:2:spider.ca_file: must be a text in quotes"),
            ("[spider]\ncookies = 3", "c.toml:2:spider.cookies: must be true or false"),
            (
                "[url_server]\nspider_protocol = \"draw\"",
                "c.toml:2:url_server.spider_protocol: must be \"pull\" or \"push\"",
            ),
            ("[url_server]\nreq_host_per_sec = []", "c.toml:2:url_server.req_host_per_sec: must be a number"),
            (
                "[url_server]\nreq_host_per_sec = -1",
                "c.toml:2:url_server.req_host_per_sec: must be at least 0",
            ),
            ("[url_server]\nreq_ip_per_sec = nan", "c.toml:2:url_server.req_ip_per_sec: must be at least 0"),
            (
                "[url_server]\nlisten = \"here\"",
                "c.toml:2:url_server.listen: must be an address and port like \"0.0.0.0:7170\"",
            ),
            (
                "[doc_index]\ndeny = [\"(, expected u8\"]",
                "c.toml:2:doc_index.deny: rule 1, \"(, expected u8\": unclosed group",
            ),
            (
                "[url_server]\nspider_port = 70000",
                "c.toml:2:url_server.spider_port: must be a whole number of at most 65535",
            ),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
        assert!(said("[spider]\ntimeout_update = 40000").contains("timeout_spider_status"));
        assert!(said("[store]\nsegment_bytes = 4096").contains("too small"));
        assert!(said("[store]\nsegment_bytes = 5000000000").contains("at most"));
        assert!(said("[store]\nbytes_max = 100000000").contains("four segments for every core"));
        assert!(said("[store]\ndedup = \"some\"").contains("dedup: must be \"off\", \"url\" or \"any\""));
        assert!(said("[store]\ndedup = 1").contains("store.dedup: must be a text in quotes"));
        assert!(said("\nx = [").starts_with("c.toml:2:"));
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
