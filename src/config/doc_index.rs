use super::ConfigError;
use super::hints::nearest;
use crate::base::shown;
use crate::limits::{PATH_SEGMENTS_COMPARED, QUERY_DROPS_MAX, RULE_BYTES_MAX, RULES_MAX};
use std::path::Path;

/// `[doc_index]`: which URLs are taken in, in what form, and when they are asked for again.
///
/// Rules stand here as they were typed; what compiles them is in `proto::url`.
#[derive(Clone, Debug)]
pub struct DocIndexSettings {
    /// What the index may take of memory; without a figure it decides by itself.
    pub memory_bytes: Option<u64>,
    /// A URL that failed for a reason that may pass is tried again after this long, then twice as long, and so on.
    pub retry_first_s: u64,
    /// Tries after the first; 0 = none.
    pub retries_max: u8,
    /// Documents are asked for again, each as often as it was seen to change.
    pub recrawl: bool,
    /// The shortest, first and longest time between two visits.
    pub recrawl_min_s: u64,
    pub recrawl_start_s: u64,
    pub recrawl_max_s: u64,
    /// `[[recrawl]]`: times for some URLs; the first rule that matches counts.
    pub recrawl_rules: Vec<RecrawlRule>,
    pub sitemaps: Sitemaps,
    /// Pages taken in of one host, and of one registrable domain; 0 = no limit.
    pub pages_per_host: u32,
    pub pages_per_domain: u32,
    /// Segments of a path; 0 = no limit. People nest folders ten or fifteen deep at the worst. A path of more than 40
    /// was made by a program that appends to it.
    pub path_depth_max: u16,
    /// How often one segment may stand in a path; 0 = no limit. Honest sites say a word twice (`/en/shop/en/`), and
    /// dates and versions come to three. At four a relative link is chasing its own tail.
    pub segment_repeats_max: u16,
    /// URLs of one path that differ only in the values of their parameters; 0 = no limit. Large archives page through
    /// thousands; calendars and filters that combine go on for ever.
    pub query_variants_max: u32,
    /// What is in scope besides what the seeds span, and what is out of it whatever else is said. Each is a rule:
    /// `surt:PREFIX`, or a regular expression that is looked for in the whole URL.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Names of parameters that are dropped from every URL; with a `*` at its end a name stands for all that begin so.
    pub query_drop: Vec<String>,
    /// Parameters are sorted by name; those of one name keep their order.
    pub query_sort: bool,
}

/// An entry of `[[recrawl]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecrawlRule {
    pub rule: String,
    pub every_s: u64,
}

/// Which sitemaps are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sitemaps {
    Off,
    /// Those that a robots.txt names.
    #[default]
    Robots,
    /// Also the /sitemap.xml of a host whose robots.txt names none.
    All,
}

impl Sitemaps {
    pub const NAMES: &str = "\"off\", \"robots\" or \"all\"";

    pub fn name(self) -> &'static str {
        match self {
            Sitemaps::Off => "off",
            Sitemaps::Robots => "robots",
            Sitemaps::All => "all",
        }
    }

    pub fn from_name(name: &str) -> Option<Sitemaps> {
        match name {
            "off" => Some(Sitemaps::Off),
            "robots" => Some(Sitemaps::Robots),
            "all" => Some(Sitemaps::All),
            _ => None,
        }
    }
}

impl Default for DocIndexSettings {
    fn default() -> DocIndexSettings {
        DocIndexSettings {
            memory_bytes: None,
            retry_first_s: 3_600,
            retries_max: 5,
            recrawl: false,
            recrawl_min_s: 3_600,
            recrawl_start_s: 86_400,
            recrawl_max_s: 30 * 86_400,
            recrawl_rules: Vec::new(),
            sitemaps: Sitemaps::default(),
            pages_per_host: 0,
            pages_per_domain: 0,
            path_depth_max: 40,
            segment_repeats_max: 3,
            query_variants_max: 10_000,
            allow: Vec::new(),
            deny: Vec::new(),
            query_drop: Vec::new(),
            query_sort: false,
        }
    }
}

/// An index with less cannot hold its own buffers.
const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Nothing is planned further ahead than ten years.
const TIME_S_MAX: u64 = 10 * 365 * 86_400;

impl DocIndexSettings {
    pub(super) const KEYS: [&str; 17] = [
        "memory",
        "retry_first",
        "retries_max",
        "recrawl",
        "recrawl_min",
        "recrawl_start",
        "recrawl_max",
        "sitemaps",
        "pages_per_host",
        "pages_per_domain",
        "path_depth_max",
        "segment_repeats_max",
        "query_variants_max",
        "allow",
        "deny",
        "query_drop",
        "query_sort",
    ];

    /// Sets what one key of the file says; the error is what it should have said.
    pub(super) fn set(&mut self, key: &str, value: &toml::Value) -> Result<(), &'static str> {
        let whole = || value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or("a whole number");
        let count = || whole().and_then(|n| u32::try_from(n).map_err(|_| "a smaller number"));
        let short = || whole().and_then(|n| u16::try_from(n).map_err(|_| "at most 65535"));
        let truth = || value.as_bool().ok_or("true or false");
        match key {
            "memory" => self.memory_bytes = Some(whole()?),
            "retry_first" => self.retry_first_s = whole()?,
            "retries_max" => self.retries_max = whole()?.try_into().map_err(|_| "at most 255")?,
            "recrawl" => self.recrawl = truth()?,
            "recrawl_min" => self.recrawl_min_s = whole()?,
            "recrawl_start" => self.recrawl_start_s = whole()?,
            "recrawl_max" => self.recrawl_max_s = whole()?,
            "sitemaps" => {
                self.sitemaps = value.as_str().and_then(Sitemaps::from_name).ok_or(Sitemaps::NAMES)?;
            }
            "pages_per_host" => self.pages_per_host = count()?,
            "pages_per_domain" => self.pages_per_domain = count()?,
            "path_depth_max" => self.path_depth_max = short()?,
            "segment_repeats_max" => self.segment_repeats_max = short()?,
            "query_variants_max" => self.query_variants_max = count()?,
            "allow" => self.allow = texts(value)?,
            "deny" => self.deny = texts(value)?,
            "query_drop" => self.query_drop = texts(value)?,
            "query_sort" => self.query_sort = truth()?,
            _ => unreachable!("every key of the table is set"),
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.memory_bytes.is_some_and(|bytes| bytes < MEMORY_BYTES_MIN) {
            return Err(format!("memory must be at least {MEMORY_BYTES_MIN} bytes"));
        }
        for (name, seconds) in [
            ("retry_first", self.retry_first_s),
            ("recrawl_min", self.recrawl_min_s),
            ("recrawl_start", self.recrawl_start_s),
            ("recrawl_max", self.recrawl_max_s),
        ]
        .into_iter()
        .chain(self.recrawl_rules.iter().map(|rule| ("every of [[recrawl]]", rule.every_s)))
        {
            if seconds == 0 {
                return Err(format!("{name} must be at least 1"));
            }
            if seconds > TIME_S_MAX {
                return Err(format!("{name} can be at most ten years ({TIME_S_MAX} s)"));
            }
        }
        if self.recrawl_start_s < self.recrawl_min_s || self.recrawl_start_s > self.recrawl_max_s {
            return Err(format!(
                "recrawl_start ({}) must lie between recrawl_min ({}) and recrawl_max ({})",
                self.recrawl_start_s, self.recrawl_min_s, self.recrawl_max_s
            ));
        }
        for (name, rules) in [("allow", &self.allow), ("deny", &self.deny)] {
            if rules.len() > RULES_MAX {
                return Err(format!("{name} can have at most {RULES_MAX} rules"));
            }
            rules.iter().try_for_each(|rule| rule_fits(name, rule))?;
        }
        if self.recrawl_rules.len() > RULES_MAX {
            return Err(format!("there can be at most {RULES_MAX} entries of [[recrawl]]"));
        }
        self.recrawl_rules.iter().try_for_each(|entry| rule_fits("match of [[recrawl]]", &entry.rule))?;
        if usize::from(self.segment_repeats_max) >= PATH_SEGMENTS_COMPARED {
            return Err(format!("segment_repeats_max must be less than {PATH_SEGMENTS_COMPARED}"));
        }
        if self.query_drop.len() > QUERY_DROPS_MAX {
            return Err(format!("query_drop can have at most {QUERY_DROPS_MAX} names"));
        }
        self.query_drop.iter().try_for_each(|name| name_fits(name))
    }
}

/// Short enough to be a rule, and not what would match everything by mistake.
fn rule_fits(list: &str, rule: &str) -> Result<(), String> {
    if rule.is_empty() {
        return Err(format!(
            "{list}: a rule is empty, and would match every URL (\".\" does that on purpose)"
        ));
    }
    if rule.len() > RULE_BYTES_MAX {
        return Err(format!("{list}: rule {} is longer than {RULE_BYTES_MAX} bytes", shown(rule, 60)));
    }
    Ok(())
}

/// The name of a parameter as it stands in a URL.
fn name_fits(name: &str) -> Result<(), String> {
    let bare = name.strip_suffix('*').unwrap_or(name);
    let wrong = |octet: u8| !octet.is_ascii_graphic() || matches!(octet, b'&' | b'=' | b'#' | b'*');
    if name.is_empty() || name.len() > RULE_BYTES_MAX || bare.bytes().any(wrong) {
        return Err(format!(
            "query_drop: {:?} is no name of a parameter (as it stands in a URL, with a * at its end only)",
            shown(name, 60)
        ));
    }
    Ok(())
}

fn texts(value: &toml::Value) -> Result<Vec<String>, &'static str> {
    let entries = value.as_array().ok_or(TEXTS)?;
    entries.iter().map(|entry| entry.as_str().map(str::to_string).ok_or(TEXTS)).collect()
}

const TEXTS: &str = "a list of texts in quotes, like [\"a\", \"b\"]";

impl RecrawlRule {
    const KEYS: [&str; 2] = ["match", "every"];

    /// The entries of a settings file. `path` is the file, for what is said about it.
    pub(super) fn read(value: &toml::Value, path: &Path) -> Result<Vec<RecrawlRule>, ConfigError> {
        let Some(entries) = value.as_array() else {
            return Err(ConfigError::Type {
                path: path.to_path_buf(),
                name: "recrawl".to_string(),
                expected: "a list: each entry begins with [[recrawl]] (the switch is recrawl under [doc_index])",
            });
        };
        let read = |(at, entry)| {
            RecrawlRule::read_one(entry).map_err(|cause| ConfigError::Recrawl {
                path: path.to_path_buf(),
                entry: at + 1,
                cause,
            })
        };
        entries.iter().enumerate().map(read).collect()
    }

    fn read_one(entry: &toml::Value) -> Result<RecrawlRule, String> {
        let table = entry.as_table().ok_or("it must be a section")?;
        let known = RecrawlRule::KEYS.map(str::to_string);
        if let Some(key) = table.keys().find(|key| !known.contains(key)) {
            return Err(format!("unknown setting {}{}", shown(key, 200), nearest(key, &known)));
        }
        let rule =
            table.get("match").and_then(toml::Value::as_str).ok_or("match must be a rule in quotes")?;
        let every_s = table
            .get("every")
            .and_then(toml::Value::as_integer)
            .and_then(|seconds| u64::try_from(seconds).ok())
            .ok_or("every must be a whole number of seconds")?;
        Ok(RecrawlRule { rule: rule.to_string(), every_s })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn read(text: &str) -> Result<DocIndexSettings, String> {
        let mut config = Config::default();
        config.read_text(text, Path::new("c.toml")).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config.doc_index)
    }

    #[test]
    fn every_setting_is_read() {
        let settings = read(
            "[doc_index]\nmemory = 100000000\nretry_first = 60\nretries_max = 2\nrecrawl = true\nrecrawl_min = 10\n\
             recrawl_start = 20\nrecrawl_max = 30\nsitemaps = \"all\"\npages_per_host = 5\npages_per_domain = 6\n\
             path_depth_max = 7\nsegment_repeats_max = 8\nquery_variants_max = 9\nallow = [\"surt:org,\"]\n\
             deny = [\"a\", \"b\"]\nquery_drop = [\"utm_*\"]\nquery_sort = true\n\
             [[recrawl]]\nmatch = \"/news/\"\nevery = 600\n[[recrawl]]\nmatch = \".\"\nevery = 7\n",
        )
        .unwrap();
        assert_eq!((settings.memory_bytes, settings.retry_first_s), (Some(100_000_000), 60));
        assert_eq!((settings.retries_max, settings.recrawl), (2, true));
        assert_eq!((settings.recrawl_min_s, settings.recrawl_start_s, settings.recrawl_max_s), (10, 20, 30));
        assert_eq!(settings.sitemaps, Sitemaps::All);
        assert_eq!((settings.pages_per_host, settings.pages_per_domain), (5, 6));
        assert_eq!((settings.path_depth_max, settings.segment_repeats_max), (7, 8));
        assert_eq!(settings.query_variants_max, 9);
        assert_eq!((settings.allow, settings.deny.len()), (vec!["surt:org,".to_string()], 2));
        assert_eq!((settings.query_drop, settings.query_sort), (vec!["utm_*".to_string()], true));
        let times: Vec<_> = settings.recrawl_rules.iter().map(|rule| (&*rule.rule, rule.every_s)).collect();
        assert_eq!(times, [("/news/", 600), (".", 7)]);
        let plain = read("").unwrap();
        assert_eq!((plain.sitemaps, plain.recrawl, plain.path_depth_max), (Sitemaps::Robots, false, 40));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            (
                "[doc_index]\nrecraw = true",
                "unknown setting doc_index.recraw (did you mean doc_index.recrawl?)",
            ),
            ("[doc_index]\nsitemaps = \"some\"", "doc_index.sitemaps must be \"off\", \"robots\" or \"all\""),
            ("[doc_index]\ndeny = \"x\"", "doc_index.deny must be a list of texts"),
            ("[doc_index]\ndeny = [\"\"]", "deny: a rule is empty"),
            ("[doc_index]\nretries_max = 256", "doc_index.retries_max must be at most 255"),
            ("[doc_index]\nretry_first = 0", "retry_first must be at least 1"),
            ("[doc_index]\nrecrawl_max = 99999999999", "recrawl_max can be at most ten years"),
            (
                "[doc_index]\nrecrawl_min = 90000",
                "recrawl_start (86400) must lie between recrawl_min (90000)",
            ),
            ("[doc_index]\nsegment_repeats_max = 64", "segment_repeats_max must be less than 64"),
            ("[doc_index]\nmemory = 1", "memory must be at least"),
            ("[doc_index]\nquery_drop = [\"a*b\"]", "query_drop: \"a*b\" is no name"),
            ("[doc_index]\nquery_drop = [\"a=\"]", "query_drop: \"a=\" is no name"),
            ("recrawl = true", "recrawl must be a list: each entry begins with [[recrawl]]"),
            ("[[recrawl]]\nevery = 5", "[[recrawl]] entry 1: match must be a rule"),
            ("[[recrawl]]\nmatch = \"x\"\nevery = -5", "[[recrawl]] entry 1: every must be a whole number"),
            ("[[recrawl]]\nmatch = \"x\"\nevery = 5\nmach = 1", "unknown setting mach (did you mean match?)"),
            ("[[recrawl]]\nmatch = \"x\"\nevery = 0", "every of [[recrawl]] must be at least 1"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(said) && !found.contains('\n'), "{text}: {found}");
        }
    }
}
