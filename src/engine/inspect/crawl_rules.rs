use crate::config::{Config, DocIndexSettings, RecrawlRule, ScopeKind, Sitemaps};
use crate::proto::url::{RecrawlRules, UrlRules};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// The rules by which a process follows links and keeps its doc index: `rules.json` beside the index, so that whoever
/// only looks knows them, too. Names and units are those of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlRules {
    pub user_agent: String,
    pub scope: String,
    pub depth: u16,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub path_depth_max: u16,
    pub segment_repeats_max: u16,
    pub query_variants_max: u32,
    pub query_drop: Vec<String>,
    pub query_sort: bool,
    pub pages_per_host: u32,
    pub pages_per_domain: u32,
    pub retry_first: u64,
    pub retries_max: u8,
    pub recrawl: bool,
    pub recrawl_min: u64,
    pub recrawl_start: u64,
    pub recrawl_max: u64,
    /// `[[recrawl]]`: a rule and its seconds.
    pub recrawl_rules: Vec<(String, u64)>,
    pub sitemaps: String,
}

const RULES: &str = "rules.json";
const FRESH: &str = "rules.fresh";
/// More than the longest lists of the longest rules.
const BYTES_MAX: u64 = 256 << 20;

impl Default for CrawlRules {
    fn default() -> CrawlRules {
        CrawlRules::of(&Config::default())
    }
}

impl CrawlRules {
    pub fn of(config: &Config) -> CrawlRules {
        let settings = config.doc_index.clone();
        CrawlRules {
            user_agent: config.spider.user_agent.clone(),
            scope: config.scope.name().to_string(),
            depth: config.depth,
            allow: settings.allow,
            deny: settings.deny,
            path_depth_max: settings.path_depth_max,
            segment_repeats_max: settings.segment_repeats_max,
            query_variants_max: settings.query_variants_max,
            query_drop: settings.query_drop,
            query_sort: settings.query_sort,
            pages_per_host: settings.pages_per_host,
            pages_per_domain: settings.pages_per_domain,
            retry_first: settings.retry_first_s,
            retries_max: settings.retries_max,
            recrawl: settings.recrawl,
            recrawl_min: settings.recrawl_min_s,
            recrawl_start: settings.recrawl_start_s,
            recrawl_max: settings.recrawl_max_s,
            recrawl_rules: settings.recrawl_rules.into_iter().map(|rule| (rule.rule, rule.every_s)).collect(),
            sitemaps: settings.sitemaps.name().to_string(),
        }
    }

    /// Settings that follow links as these rules do. `None` if this build cannot use them: a file may be of another.
    pub fn config(&self) -> Option<Config> {
        let rules = self.recrawl_rules.iter().cloned();
        let mut config =
            Config { scope: ScopeKind::from_name(&self.scope)?, depth: self.depth, ..Config::default() };
        config.spider.user_agent.clone_from(&self.user_agent);
        config.doc_index = DocIndexSettings {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            path_depth_max: self.path_depth_max,
            segment_repeats_max: self.segment_repeats_max,
            query_variants_max: self.query_variants_max,
            query_drop: self.query_drop.clone(),
            query_sort: self.query_sort,
            pages_per_host: self.pages_per_host,
            pages_per_domain: self.pages_per_domain,
            retry_first_s: self.retry_first,
            retries_max: self.retries_max,
            recrawl: self.recrawl,
            recrawl_min_s: self.recrawl_min,
            recrawl_start_s: self.recrawl_start,
            recrawl_max_s: self.recrawl_max,
            recrawl_rules: rules.map(|(rule, every_s)| RecrawlRule { rule, every_s }).collect(),
            sitemaps: Sitemaps::from_name(&self.sitemaps)?,
            ..DocIndexSettings::default()
        };
        let usable = UrlRules::of(&config.doc_index).is_ok()
            && RecrawlRules::of(&config.doc_index.recrawl_rules).is_ok();
        usable.then_some(config)
    }

    /// Takes the place of what was there, whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let fresh = folder.join(FRESH);
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        fs::rename(fresh, folder.join(RULES))
    }

    /// `None` where none were noted, or what is there makes no sense.
    pub fn read(folder: &Path) -> io::Result<Option<CrawlRules>> {
        let mut text = Vec::new();
        match File::open(folder.join(RULES)) {
            Ok(file) => file.take(BYTES_MAX).read_to_end(&mut text)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(serde_json::from_slice(&text).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_as_they_went() {
        let folder = std::env::temp_dir().join(format!("nephila-rules-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(CrawlRules::read(&folder).unwrap(), None);
        let mut config = Config { scope: ScopeKind::Prefix, depth: 7, ..Config::default() };
        config.spider.user_agent = "other/1 (\"x\")".to_string();
        config.doc_index.deny = vec![r"/a\d+$".to_string(), "surt:org,".to_string()];
        config.doc_index.pages_per_host = 9;
        config.doc_index.recrawl_rules = vec![RecrawlRule { rule: "/news/".to_string(), every_s: 60 }];
        config.doc_index.sitemaps = Sitemaps::Off;
        let rules = CrawlRules::of(&config);
        rules.write(&folder).unwrap();
        let read = CrawlRules::read(&folder).unwrap().unwrap();
        assert_eq!(read, rules);
        let back = read.config().unwrap();
        assert_eq!(CrawlRules::of(&back), rules);
        assert_eq!(
            crate::engine::index_rules(&back).signature,
            crate::engine::index_rules(&config).signature
        );
        fs::write(folder.join(RULES), "{\"scope\":").unwrap();
        assert_eq!(CrawlRules::read(&folder).unwrap(), None, "torn");
        fs::remove_dir_all(&folder).unwrap();
        assert!(CrawlRules { deny: vec!["(".to_string()], ..rules.clone() }.config().is_none());
        assert!(CrawlRules { scope: "galaxy".to_string(), ..rules }.config().is_none());
    }
}
