use crate::config::{Config, DocIndexSettings};
use crate::handler::ScopeKind;
use crate::proto::url::RecrawlRules;
use crate::storage::replace;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The rules by which a process follows links and keeps its doc index: `rules.json` beside the index, so that commands
/// that only look know them, too. Names and units are those of the settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlRules {
    pub user_agent: String,
    pub scope: ScopeKind,
    pub depth: u16,
    /// Without its memory, which is the machine's.
    #[serde(flatten)]
    pub doc_index: DocIndexSettings,
    /// `[[recrawl]]`: a rule and its seconds.
    pub recrawl_rules: RecrawlRules,
}

const RULES: &str = "rules.json";
/// More than the longest lists of the longest rules.
const BYTES_MAX: u64 = 256 << 20;

impl Default for CrawlRules {
    fn default() -> CrawlRules {
        CrawlRules::of(&Config::default())
    }
}

impl CrawlRules {
    pub fn of(config: &Config) -> CrawlRules {
        CrawlRules {
            user_agent: config.spider.agent(),
            scope: config.crawl.scope,
            depth: config.crawl.depth_max(),
            doc_index: DocIndexSettings { memory: None, ..config.doc_index.clone() },
            recrawl_rules: config.recrawl.clone(),
        }
    }

    /// Settings that follow links as these rules do.
    pub fn config(&self) -> Config {
        let mut config = Config {
            doc_index: self.doc_index.clone(),
            recrawl: self.recrawl_rules.clone(),
            ..Config::default()
        };
        (config.crawl.scope, config.crawl.depth) = (self.scope, Some(self.depth));
        config.spider.user_agent.clone_from(&self.user_agent);
        config
    }

    /// Takes the place of what was there, whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        replace(&folder.join(RULES), &serde_json::to_vec_pretty(self)?)
    }

    /// `None` where none were noted. Rules that this build cannot use are an error and never taken for others.
    pub fn read(folder: &Path) -> io::Result<Option<CrawlRules>> {
        let mut text = Vec::new();
        match File::open(folder.join(RULES)) {
            Ok(file) => file.take(BYTES_MAX).read_to_end(&mut text)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        serde_json::from_slice(&text).map(Some).map_err(|cause| {
            let said =
                format!("{RULES} cannot be used: {cause} (the next crawl on this directory writes it anew)");
            io::Error::new(io::ErrorKind::InvalidData, said)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bytes;
    use crate::engine::crawl::settings::index_rules;
    use crate::proto::sitemap::Sitemaps;
    use std::fs;

    const SIGNATURE: u64 = 16_017_295_943_008_939_882;

    #[test]
    fn rules_come_back_as_they_went() {
        let folder = std::env::temp_dir().join(format!("nephila-rules-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(CrawlRules::read(&folder).unwrap().is_none());
        let mut config = Config::default();
        (config.crawl.scope, config.crawl.depth) = (ScopeKind::Prefix, Some(7));
        config.spider.user_agent = "other/1 (\"x\")".to_string();
        config.doc_index.deny = vec![r"/a\d+$".to_string(), "surt:org,".to_string()].try_into().unwrap();
        config.doc_index.memory = Some(Bytes(1 << 30));
        config.doc_index.pages_per_host = 9;
        config.recrawl = vec![("/news/".to_string(), 60)].try_into().unwrap();
        config.doc_index.sitemaps = Sitemaps::Off;
        let rules = CrawlRules::of(&config);
        rules.write(&folder).unwrap();
        let read = CrawlRules::read(&folder).unwrap().unwrap();
        let json = |rules: &CrawlRules| serde_json::to_value(rules).unwrap();
        assert_eq!(json(&read), json(&rules));
        let back = read.config();
        assert_eq!(json(&CrawlRules::of(&back)), json(&rules));
        assert_eq!(index_rules(&back).signature, index_rules(&config).signature);
        for (text, about) in [
            ("{\"scope\":", "EOF"),
            ("{\"deny\":[\"a\",\"(\"]}", "rule 2, \"(\": unclosed group"),
            ("{\"scope\":\"galaxy\"}", "\"host\", \"domain\", \"prefix\" or \"any\""),
        ] {
            fs::write(folder.join(RULES), text).unwrap();
            let said = CrawlRules::read(&folder).unwrap_err().to_string();
            assert!(said.contains(about) && said.contains("writes it anew"), "{said}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Other builds read the file, and the signature of its rules is in the index: neither may change.
    #[test]
    fn the_format_stays() {
        let written = r#"{"user_agent":"other/1","scope":"prefix","depth":7,"allow":[],"deny":["/a"],"path_depth_max":40,
            "segment_repeats_max":3,"query_variants_max":10000,"query_drop":["sid"],"query_sort":true,"pages_per_host":9,
            "pages_per_domain":0,"retry_first":3600,"retries_max":5,"recrawl":false,"recrawl_min":3600,
            "recrawl_start":86400,"recrawl_max":2592000,"recrawl_rules":[["/news/",60]],"sitemaps":"off"}"#;
        let rules: CrawlRules = serde_json::from_str(written).unwrap();
        let value: serde_json::Value = serde_json::from_str(written).unwrap();
        assert_eq!(serde_json::to_value(&rules).unwrap(), value);
        assert_eq!(index_rules(&rules.config()).signature, SIGNATURE);
        let partial: CrawlRules = serde_json::from_str(r#"{"depth":3,"of another build":1}"#).unwrap();
        assert_eq!((partial.depth, partial.doc_index.path_depth_max), (3, 40));
    }
}
