use super::config::Config;
use super::file::{ConfigError, Reading, text_of};
use super::reference::is_kept;
use crate::base::{SortedMap, SortedSet, shown};
use crate::proto::auth::{AuthPlace, MissingAuth};
use crate::storage::replace;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// What a data directory was told, for whoever goes on with it: `settings.toml`, with nothing in it that is secret.
///
/// What a flag said holds until another flag, or nobody, says otherwise. What a file said holds while no file is given
/// that says otherwise; the file itself, given again, speaks for itself, so that a line that was changed or removed
/// there is changed or removed here.
#[derive(Debug, Default)]
pub struct Kept {
    config: Config,
    /// Every setting that is kept, `section.name`, and who said it.
    from: SortedMap<String, Source>,
    /// Where there were credentials for, in whichever run.
    credentials: SortedSet<AuthPlace>,
}

/// Settings that others have taken the place of.
pub struct FormerSettings {
    path: PathBuf,
    text: Vec<u8>,
}

impl FormerSettings {
    /// As if the others had never been.
    pub fn put_back(&self) -> io::Result<()> {
        replace(&self.path, &self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Flag,
    File(PathBuf),
}

const FILE: &str = "settings.toml";
const TABLE: &str = "kept";
const VERSION: u32 = 1;
const FLAG: &str = "flag";
/// What is shown of a value.
const VALUE_CHARS_MAX: usize = 200;
/// Places without their credentials that are named; the rest is counted.
const PLACES_NAMED: usize = 3;

/// `[kept]`, beside the sections that every settings file may have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    version: u32,
    #[serde(default)]
    credentials: SortedSet<String>,
    /// `flag`, or the file that a setting was read from.
    #[serde(default)]
    from: SortedMap<String, String>,
}

/// Settings, what their data directory is to keep of them, and what is to be said about it.
pub struct Layered {
    pub config: Config,
    pub kept: Kept,
    /// Settings that flags said, and those that hold because the directory was told before.
    pub by_flags: SortedSet<String>,
    pub taken: SortedSet<String>,
    /// What was taken over and what has changed, a line each; empty if there is nothing to say.
    pub said: Vec<String>,
}

impl Kept {
    /// `None` for a directory that keeps nothing.
    pub fn read(directory: &Path) -> Result<Option<Kept>, ConfigError> {
        let path = directory.join(FILE);
        match text_of(&path) {
            Ok(text) => Kept::parse(&text, &path).map(Some),
            Err(ConfigError::Unreadable { cause, .. })
                if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(ConfigError::Unreadable { path, cause }) => {
                let mend = match cause.kind() {
                    io::ErrorKind::PermissionDenied => "start it as the user that the directory belongs to",
                    _ => MEND,
                };
                let path = shown(&path.display().to_string(), VALUE_CHARS_MAX);
                Err(ConfigError::Wrong(vec![format!("{path}: {cause} ({mend})")]))
            }
            Err(other) => Err(other),
        }
    }

    /// What is kept; the rest is as by default.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn parse(text: &str, path: &Path) -> Result<Kept, ConfigError> {
        let (mut reading, table) = Reading::with_table::<Table>(text, path, Some(TABLE));
        match &table {
            Some(table) if table.version > VERSION => {
                reading.mistaken(TABLE, "a later version of nephila has written it");
            }
            None if reading.is_good() => reading.mistaken(TABLE, "is missing"),
            _ => {}
        }
        if reading.config.auth.iter().next().is_some() {
            reading.mistaken("auth", "credentials are never kept here");
        }
        let strangers: Vec<String> =
            reading.settings().filter(|setting| !is_kept(setting)).map(str::to_string).collect();
        strangers
            .iter()
            .for_each(|setting| reading.mistaken(setting, "is not kept from one run to the next"));
        if let Err(ConfigError::Wrong(mistakes)) = reading.verdict(reading.config.faults(), |_| false) {
            let more = match mistakes.len() {
                1 => String::new(),
                count => format!(", and {} more mistakes", count - 1),
            };
            return Err(ConfigError::Wrong(vec![format!("{}{more} ({MEND})", mistakes[0])]));
        }
        let table = table.unwrap_or(Table {
            version: VERSION,
            credentials: SortedSet::new(),
            from: SortedMap::new(),
        });
        let credentials = table.credentials.iter().filter_map(|place| AuthPlace::parse(place)).collect();
        let source = |setting: &str| match table.from.get(setting).map(String::as_str) {
            None | Some(FLAG) => Source::Flag,
            Some(file) => Source::File(file.into()),
        };
        let from = reading.settings().map(|setting| (setting.to_string(), source(setting))).collect();
        Ok(Kept { from, config: reading.config, credentials })
    }

    /// Puts it in place of what the directory kept before, whole or not at all, and hands that back if it is another.
    pub fn write(&self, directory: &Path) -> io::Result<Option<FormerSettings>> {
        let (path, text) = (directory.join(FILE), self.text());
        let before = std::fs::read(&path).ok();
        if before.as_deref() == Some(text.as_bytes()) {
            return Ok(None);
        }
        replace(&path, text.as_bytes())?;
        Ok(before.map(|text| FormerSettings { path, text }))
    }

    /// What is lost when it is forgotten for these settings, a line each; empty if nothing is.
    pub fn forgotten_for(&self, config: &Config) -> Vec<String> {
        let (old, new) = (texts(&self.config), texts(config));
        let value =
            |text: Option<&String>| text.map_or("unset".to_string(), |text| shown(text, VALUE_CHARS_MAX));
        let lost = self.from.keys().filter(|setting| old.get(*setting) != new.get(*setting));
        let lines = lost.map(|setting| {
            format!("  {setting} was {}, and is {}", value(old.get(setting)), value(new.get(setting)))
        });
        let mut lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            lines.insert(0, "settings of the last run are forgotten (--fresh-settings):".to_string());
        }
        lines
    }

    /// Who told the directory a setting.
    pub(super) fn said_by(&self, setting: &str) -> String {
        match self.from.get(setting) {
            Some(Source::File(path)) => shown_path(path),
            Some(Source::Flag) | None => "a flag".to_string(),
        }
    }

    fn text(&self) -> String {
        let mut text =
            "# What this crawl was told, for its next run (nephila help settings). Secrets are never here.\n"
                .to_string();
        let mut section = "";
        let mut written = self.config.written();
        written.retain(|(setting, _)| self.from.contains_key(setting));
        for (setting, value) in &written {
            let (header, name) = setting.split_once('.').unwrap_or(("", setting));
            if header != section {
                let _ = write!(text, "\n[{header}]\n");
                section = header;
            }
            let _ = writeln!(text, "{name} = {value}");
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f");
        let places: Vec<String> = self.credentials.iter().map(|place| quoted(&place.to_string())).collect();
        let _ = write!(text, "\n[{TABLE}]\nversion = {VERSION}\ncredentials = [{}]\n", places.join(", "));
        let _ = write!(text, "\n[{TABLE}.from]\n");
        for setting in written.iter().map(|(setting, _)| setting) {
            let source = match &self.from[setting] {
                Source::Flag => quoted(FLAG),
                Source::File(path) => quoted(&path.to_string_lossy()),
            };
            let _ = writeln!(text, "{} = {source}", quoted(setting));
        }
        text
    }
}

const MEND: &str = "mend it, or start without it by --fresh-settings";

/// Every setting that has a value, by `section.name`, as it is written whatever directory it is written from.
pub(super) fn texts(config: &Config) -> SortedMap<String, String> {
    let mut config = config.clone();
    config.make_paths_absolute();
    config.written().into_iter().collect()
}

impl Layered {
    /// Defaults, then the file, then what the directory was told before, then the flags. `flags` lays them over, and
    /// names the settings that they set.
    pub fn new(
        file: Option<&Reading>,
        before: Option<&Kept>,
        flags: impl Fn(&mut Config) -> Vec<String>,
    ) -> Layered {
        let mut config = file.map_or_else(Config::default, |file| file.config.clone());
        let path = file.and_then(|file| std::path::absolute(&file.path).ok());
        let said_by_file = texts(&config);
        let mut from = SortedMap::new();
        if let (Some(file), Some(path)) = (file, &path) {
            let settings = file.settings().filter(|setting| is_kept(setting));
            from.extend(settings.map(|setting| (setting.to_string(), Source::File(path.clone()))));
        }
        let (mut taken, mut held) = (Vec::new(), Vec::new());
        for (setting, source) in before.iter().flat_map(|before| &before.from) {
            let in_file = file.is_some_and(|file| file.has(setting));
            let speaks_for_itself = match source {
                Source::Flag => false,
                Source::File(before) => in_file || path.as_ref() == Some(before),
            };
            if speaks_for_itself {
                continue;
            }
            if let Some(text) = said_by_file.get(setting).filter(|_| in_file) {
                held.push((setting, text));
            }
            before.iter().for_each(|before| config.adopt(setting, &before.config));
            from.insert(setting.clone(), source.clone());
            taken.push(setting);
        }
        let by_flags: SortedSet<String> = flags(&mut config).into_iter().collect();
        from.extend(
            by_flags.iter().filter(|setting| is_kept(setting)).map(|setting| (setting.clone(), Source::Flag)),
        );
        let given: SortedSet<AuthPlace> = config.auth.iter().map(|site| site.place().clone()).collect();
        let known = before.iter().flat_map(|before| before.credentials.iter().cloned());
        config.auth_missing = MissingAuth::new(known, given.clone());
        // Until they are forgotten, a run without them fetches nothing there.
        let credentials = given.into_iter().chain(config.auth_missing.iter().cloned()).collect();
        let mut kept = Kept { config: config.clone(), from, credentials };
        kept.config.make_paths_absolute();
        let mut said = Vec::new();
        taken.retain(|setting| !by_flags.contains(*setting));
        if let Some(before) = before {
            held.retain(|(setting, _)| !by_flags.contains(*setting));
            said = Story { before, kept: &kept, file, by_flags: &by_flags }.lines(&taken, &held);
        }
        let taken = taken.into_iter().cloned().collect();
        Layered { config, kept, by_flags, taken, said }
    }
}

/// What became of the settings of a directory.
struct Story<'a> {
    before: &'a Kept,
    kept: &'a Kept,
    file: Option<&'a Reading>,
    by_flags: &'a SortedSet<String>,
}

impl Story<'_> {
    fn lines(&self, taken: &[&String], held: &[(&String, &String)]) -> Vec<String> {
        let (defaults, old, new) =
            (texts(&Config::default()), texts(&self.before.config), texts(&self.kept.config));
        let shown =
            |text: Option<&String>| text.map_or("unset".to_string(), |text| shown(text, VALUE_CHARS_MAX));
        let file = self.file.map_or(String::new(), |file| shown_path(&file.path));
        let mut lines = Vec::new();
        for setting in taken.iter().filter(|setting| new.get(**setting) != defaults.get(**setting)) {
            lines.push(format!("  {setting} = {}", shown(new.get(*setting))));
        }
        if !lines.is_empty() {
            lines.insert(0, "settings of the last run hold (--fresh-settings forgets them):".to_string());
        }
        let all: SortedSet<&String> = self.before.from.keys().chain(self.kept.from.keys()).collect();
        for setting in all.into_iter().filter(|setting| old.get(*setting) != new.get(*setting)) {
            let who = if self.by_flags.contains(setting) { "a flag" } else { &file };
            lines.push(format!(
                "  {setting} = {} by {who}, was {}",
                shown(new.get(setting)),
                shown(old.get(setting))
            ));
        }
        for (setting, text) in held.iter().filter(|(setting, text)| new.get(*setting) != Some(*text)) {
            lines.push(format!(
                "  {setting} stays {}, which a flag said once; {file} says {} (give it as a flag)",
                shown(new.get(*setting)),
                shown(Some(*text))
            ));
        }
        let missing = self.kept.config.auth_missing.iter();
        if missing.len() > 0 {
            let more = missing.len().saturating_sub(PLACES_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = missing.take(PLACES_NAMED);
            let named = named.map(|place| crate::base::shown(&place.to_string(), VALUE_CHARS_MAX));
            lines.push(format!(
                "  credentials are not kept: an earlier run had some for {}{more}, and nothing is fetched there without them (give the file with [[auth]] again by --config; --fresh-settings goes on without)",
                named.collect::<Vec<_>>().join(", ")
            ));
        }
        if lines.first().is_some_and(|line| line.starts_with(' ')) {
            lines.insert(0, "settings have changed since the last run:".to_string());
        }
        lines
    }
}

fn shown_path(path: &Path) -> String {
    shown(&path.display().to_string(), VALUE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Seconds;

    fn reading(name: &str, text: &str) -> Reading {
        Reading::with_table::<()>(text, Path::new(name), None).0
    }

    fn none(_: &mut Config) -> Vec<String> {
        Vec::new()
    }

    fn depth(depth: u16) -> impl Fn(&mut Config) -> Vec<String> {
        move |config| {
            config.crawl.depth = Some(depth);
            vec!["crawl.depth".to_string()]
        }
    }

    /// As the next process reads it.
    fn again(kept: &Kept) -> Kept {
        let text = kept.text();
        let read = Kept::parse(&text, Path::new("settings.toml")).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(read.text(), text);
        read
    }

    #[test]
    fn every_setting_comes_back_as_it_was_told() {
        let file = reading(
            "/a.toml",
            "[crawl]\nscope = \"domain\"\nallow_net = [\"127.0.0.1\", \"::1\"]\ndns = [\"9.9.9.9\"]\ncores = \"0\"\nhosts_file = \"h\"\n\
             max_pages = 3\nseeds = [\"http://a.test/\"]\nreq_host_per_sec = 0.25\ncontact = \"me@a.test\"\n\
             [spider]\nuser_agent = \"bot \\\"x\\\"\\\\\"\ntimeout_req = \"90s\"\nmax_doc_size = 1000\ncookies = true\n\
             [store]\ndata = \"/d\"\ndedup = \"any\"\nfree_bytes_min = 0\n\
             [doc_index]\ndeny = ['\\.zip$', \"a\\tb\\u007f\"]\nrecrawl_max = \"31d\"\nsitemaps = \"all\"\n\
             [[recrawl]]\nmatch = \"/news/\"\nevery = \"10min\"\n",
        );
        file.verdict(Vec::new(), |_| false).unwrap();
        let first = Layered::new(Some(&file), None, none);
        assert!(first.said.is_empty());
        let kept = again(&first.kept);
        for lost in ["crawl.max_pages", "crawl.seeds", "store.data"] {
            assert!(!kept.from.contains_key(lost), "{lost} is of one run");
        }
        let second = Layered::new(None, Some(&kept), none);
        let mut told = first.config.clone();
        (told.crawl.max_pages, told.crawl.seeds) = (None, Vec::new());
        told.store.data = Config::default().store.data;
        told.make_paths_absolute();
        let mut found = second.config.clone();
        found.make_paths_absolute();
        assert_eq!(format!("{found:?}"), format!("{told:?}"));
        assert!(
            second.said.iter().any(|line| line == "  url_server.req_host_per_sec = 0.25"),
            "{:?}",
            second.said
        );
        assert_eq!(again(&second.kept).text(), kept.text());
    }

    #[test]
    fn an_edited_file_holds_and_a_flag_holds_more() {
        let first = Layered::new(
            Some(&reading("/a.toml", "[crawl]\ndepth = 2\n[doc_index]\nretry_first = 60\nretries_max = 1\n")),
            None,
            none,
        );
        let kept = again(&first.kept);
        // A line changed, another removed.
        let edited = reading("/a.toml", "[crawl]\ndepth = 3\n[doc_index]\nretry_first = 60\n");
        let second = Layered::new(Some(&edited), Some(&kept), none);
        assert_eq!((second.config.crawl.depth, second.config.doc_index.retries_max), (Some(3), 5));
        assert_eq!(
            second.said,
            [
                "settings have changed since the last run:",
                "  crawl.depth = 3 by /a.toml, was 2",
                "  doc_index.retries_max = 5 by /a.toml, was 1"
            ]
        );
        // Another file has its say; what it does not say stays.
        let other = Layered::new(Some(&reading("/b.toml", "[crawl]\ndepth = 4\n")), Some(&kept), none);
        let settings = &other.config.doc_index;
        assert_eq!(
            (other.config.crawl.depth, settings.retry_first, settings.retries_max),
            (Some(4), Seconds(60), 1)
        );
        // A flag wins, and from then on wins over the file.
        let flagged = Layered::new(Some(&edited), Some(&kept), depth(7));
        assert_eq!(flagged.config.crawl.depth, Some(7));
        let after = Layered::new(Some(&edited), Some(&again(&flagged.kept)), none);
        assert_eq!(after.config.crawl.depth, Some(7));
        assert_eq!(
            after.said,
            [
                "settings of the last run hold (--fresh-settings forgets them):",
                "  crawl.depth = 7",
                "  crawl.depth stays 7, which a flag said once; /a.toml says 3 (give it as a flag)"
            ]
        );
        let last = Layered::new(None, Some(&again(&after.kept)), depth(7));
        assert!(!last.said.iter().any(|line| line.contains("depth")), "{:?}", last.said);
    }

    #[test]
    fn damage_is_told_in_one_line() {
        for (text, about) in [
            ("", "s.toml:1:kept: is missing"),
            ("[kept]\nversion = 2\n", "a later version"),
            ("[kept]\n", "version"),
            (
                "[kept]\nversion = 1\n[crawl]\ndepth = \"x\"\nscope = 1\n",
                "s.toml:4:crawl.depth: must be a whole number of at most 65535, and 1 more mistakes",
            ),
            ("[kept]\nversion = 1\n[crawl]\nmax_pages = 1\n", "crawl.max_pages: is not kept"),
            (
                "[kept]\nversion = 1\n[[auth]]\nsite = \"http://a\"\nuser = \"u\"\npassword = \"hunter2\"\n",
                "never kept",
            ),
            ("[kept]\nversion = 1\n[crawl\n", "s.toml:3:"),
            ("[kept]\nversion = 1\n[spider]\ntimeout_update = \"1h\"\n", "timeout_spider_status"),
        ] {
            let said = Kept::parse(text, Path::new("s.toml")).unwrap_err().to_string();
            assert!(
                said.contains(about) && !said.contains('\n') && !said.contains("hunter2"),
                "{text}: {said}"
            );
            assert!(said.ends_with("(mend it, or start without it by --fresh-settings)"), "{said}");
        }
    }
}
