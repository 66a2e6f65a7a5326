use super::config::Config;
use super::file::Reading;
use super::hints::nearest;
use super::kept::Layered;
use super::reference::{SECTIONS, live_of};
use crate::base::{SortedMap, shown};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::path::Path;

/// A setting as it is shown to people and programs.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// `section.name`.
    pub key: String,
    /// In `unit`, if it has one; null if it is unset.
    pub value: Json,
    /// As a file would have it.
    #[serde(serialize_with = "or_unset")]
    pub text: Option<String>,
    #[serde(serialize_with = "or_unset")]
    pub default: Option<String>,
    pub unit: &'static str,
    /// `default`, `file`, `kept` or `flag`.
    pub source: &'static str,
    /// Where it was said: `file:line`, or who told the data directory.
    pub from: Option<String>,
    /// When a change of it holds in a crawl that runs.
    pub changes: &'static str,
}

fn or_unset<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().unwrap_or("unset").serialize(serializer)
}

/// What a list of rules and the sites with credentials are called.
const RECRAWL: &str = "recrawl";
const AUTH: &str = "auth";
const SERVER: &str = "server";

impl Listed {
    /// Whether it is what it would be if nobody had said anything.
    pub fn is_default(&self) -> bool {
        self.text == self.default
    }
}

impl Layered {
    /// Every setting, whoever said it. Of credentials there are the sites only.
    pub fn listing(&self, file: Option<&Reading>) -> Vec<Listed> {
        let texts: SortedMap<String, String> = self.config.written().into_iter().collect();
        let values = values_of(&self.config);
        let mut all = Vec::new();
        for section in SECTIONS.iter().filter(|section| !section.header.starts_with("[[")) {
            let defaults: SortedMap<&str, String> = (section.defaults)().into_iter().collect();
            for setting in section.settings {
                let key = format!("{}.{}", section.name, setting.name);
                let (source, from) = self.source_of(&key, file);
                let unit = match setting.unit {
                    "" if setting.name.ends_with("_per_sec") => "per second",
                    unit => unit,
                };
                all.push(Listed {
                    value: values.get(&key).cloned().unwrap_or_default(),
                    text: texts.get(&key).cloned(),
                    default: defaults.get(setting.name).cloned(),
                    unit,
                    source,
                    from,
                    changes: setting.live.word(),
                    key,
                });
            }
        }
        let (source, from) = self.source_of(RECRAWL, file);
        let rules: Vec<(String, u64)> = self.config.recrawl.clone().into();
        let rules =
            rules.into_iter().map(|(rule, every_s)| serde_json::json!({"match": rule, "every": every_s}));
        all.push(Listed {
            key: RECRAWL.to_string(),
            value: rules.collect(),
            text: texts.get(RECRAWL).cloned(),
            default: None,
            unit: "s",
            source,
            from,
            changes: live_of(RECRAWL).word(),
        });
        let (source, from) = self.source_of(SERVER, file);
        let servers = self.config.servers.iter().map(
            |server| serde_json::json!({"id": server.id, "capacity": server.capacity, "state": server.state}),
        );
        all.push(Listed {
            key: SERVER.to_string(),
            value: servers.collect(),
            text: texts.get(SERVER).cloned(),
            default: None,
            unit: "",
            source,
            from,
            changes: live_of(SERVER).word(),
        });
        let sites: Vec<String> = self.config.auth.iter().map(|site| site.origin().to_string()).collect();
        let line = file.and_then(|file| Some(place(&file.path, file.line_of(AUTH)?)));
        all.push(Listed {
            key: AUTH.to_string(),
            text: (!sites.is_empty()).then(|| format!("{sites:?}")),
            source: if sites.is_empty() { "default" } else { "file" },
            value: sites.into(),
            default: None,
            unit: "",
            from: line,
            changes: live_of(AUTH).word(),
        });
        all
    }

    fn source_of(&self, key: &str, file: Option<&Reading>) -> (&'static str, Option<String>) {
        if self.by_flags.contains(key) {
            return ("flag", None);
        }
        if self.taken.contains(key) {
            return ("kept", Some(self.kept.said_by(key)));
        }
        match file.and_then(|file| Some(place(&file.path, file.line_of(key)?))) {
            Some(place) => ("file", Some(place)),
            None => ("default", None),
        }
    }
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", shown(&path.display().to_string(), 200))
}

/// Every setting that has a value, by `section.name`.
fn values_of(config: &Config) -> SortedMap<String, Json> {
    let sections = [
        ("crawl", serde_json::to_value(&config.crawl)),
        ("url_server", serde_json::to_value(&config.url_server)),
        ("spider", serde_json::to_value(&config.spider)),
        ("store", serde_json::to_value(&config.store)),
        ("doc_index", serde_json::to_value(&config.doc_index)),
        ("feeds", serde_json::to_value(&config.feeds)),
        ("content", serde_json::to_value(&config.content)),
        ("master", serde_json::to_value(&config.master)),
        ("admin", serde_json::to_value(&config.admin)),
        ("cluster", serde_json::to_value(&config.cluster)),
    ];
    let mut values = SortedMap::new();
    for (section, found) in sections {
        let Ok(Json::Object(settings)) = found else { continue };
        values.extend(settings.into_iter().map(|(name, value)| (format!("{section}.{name}"), value)));
    }
    values
}

/// Those of a listing that are asked for: by `section.name`, by name, or by section. An error names the nearest.
pub fn picked(all: Vec<Listed>, asked: &[String]) -> Result<Vec<Listed>, String> {
    let is_meant = |listed: &Listed, asked: &str| {
        let (section, name) = listed.key.split_once('.').unwrap_or((&listed.key, &listed.key));
        [listed.key.as_str(), section, name].contains(&asked)
    };
    for asked in asked {
        if !all.iter().any(|listed| is_meant(listed, asked)) {
            let names = all.iter().flat_map(|listed| {
                let name = listed.key.split_once('.').map(|(_, name)| name);
                std::iter::once(listed.key.as_str()).chain(name)
            });
            let hint = nearest(asked, &names.collect::<Vec<_>>());
            return Err(format!("{}: unknown setting{hint}", shown(asked, 100)));
        }
    }
    let is_asked = |listed: &Listed| asked.is_empty() || asked.iter().any(|asked| is_meant(listed, asked));
    Ok(all.into_iter().filter(is_asked).collect())
}
