//! Rules over URLs, as the settings have them.
//!
//! A rule is `surt:PREFIX`, a prefix of the URL with its host turned round, or a regular expression that is looked for
//! anywhere in the URL. Both take time in proportion to the URL and none that a URL's author could choose: the
//! expressions are matched without going back.

use super::surt::{self, Surt};
use super::{CrawlUrl, UrlView};
use crate::base::shown;
use crate::limits::{RULE_BYTES_MAX, RULE_COMPILED_BYTES_MAX, RULES_MAX};
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A rule that cannot be used, in one line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("rule {number}, \"{rule}\": {cause}")]
pub struct RuleError {
    /// Its place in the list, from 1.
    pub number: usize,
    pub rule: String,
    pub cause: String,
}

/// `allow` and `deny`.
#[derive(Clone, Debug, Default)]
pub struct UrlRules {
    pub allow: RuleList,
    pub deny: RuleList,
}

/// Rules of which any may match, compiled when they are read. However many there are, a URL is looked up once among the
/// prefixes and read once for all expressions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct RuleList {
    texts: Box<[Box<str>]>,
    /// Sorted, with their places in `texts`. None begins with another: the shorter one says it all.
    prefixes: Box<[(Box<[u8]>, u32)]>,
    patterns: RegexSet,
    /// The places of the expressions in `texts`.
    pattern_places: Box<[u32]>,
}

/// A rule that matches, as it is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleRef<'a> {
    /// Its place in its list, from 1.
    pub number: usize,
    pub text: &'a str,
}

const SURT: &str = "surt:";
/// All expressions of a list together.
const LIST_COMPILED_BYTES_MAX: usize = 16 * RULE_COMPILED_BYTES_MAX;

impl TryFrom<Vec<String>> for RuleList {
    type Error = RuleError;

    fn try_from(rules: Vec<String>) -> Result<RuleList, RuleError> {
        let mut prefixes: Vec<(Box<[u8]>, u32)> = Vec::new();
        let (mut patterns, mut places) = (Vec::new(), Vec::new());
        for (place, rule) in rules.iter().enumerate() {
            let place = place as u32;
            match compile(place as usize + 1, rule)? {
                Test::Prefix(prefix) => prefixes.push((prefix, place)),
                Test::Pattern(_) => {
                    patterns.push(rule);
                    places.push(place);
                }
            }
        }
        // Of equal prefixes the first written is kept: the sort is by place, too.
        prefixes.sort();
        prefixes.dedup_by(|longer, shorter| longer.0.starts_with(&shorter.0));
        let patterns = RegexSetBuilder::new(&patterns)
            .unicode(false)
            .size_limit(LIST_COMPILED_BYTES_MAX)
            .dfa_size_limit(LIST_COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| RuleError {
                number: rules.len(),
                rule: rules.last().map_or(String::new(), |rule| shown(rule, 200)),
                cause: format!("with those before it, {}", cause_of(&error)),
            })?;
        Ok(RuleList {
            texts: rules.iter().map(|rule| rule.as_str().into()).collect(),
            prefixes: prefixes.into(),
            patterns,
            pattern_places: places.into(),
        })
    }
}

impl From<RuleList> for Vec<String> {
    fn from(rules: RuleList) -> Vec<String> {
        rules.texts.into_iter().map(String::from).collect()
    }
}

impl RuleList {
    /// The rules as they were written.
    pub fn texts(&self) -> &[Box<str>] {
        &self.texts
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether any rule matches.
    pub fn holds(&self, url: UrlView<'_>) -> bool {
        !self.is_empty() && (self.by_prefix(url).is_some() || self.patterns.is_match(url.as_str().as_bytes()))
    }

    /// A rule that matches: the widest prefix, or else the first expression.
    pub fn which(&self, url: UrlView<'_>) -> Option<RuleRef<'_>> {
        let by_pattern = || {
            let first = self.patterns.matches(url.as_str().as_bytes()).iter().next()?;
            self.pattern_places.get(first).copied()
        };
        let place = match self.is_empty() {
            true => None,
            false => self.by_prefix(url).or_else(by_pattern),
        }?;
        Some(RuleRef { number: place as usize + 1, text: &self.texts[place as usize] })
    }

    fn by_prefix(&self, url: UrlView<'_>) -> Option<u32> {
        if self.prefixes.is_empty() {
            return None;
        }
        let surt = Surt::of(url);
        // The one prefix that the URL can begin with is the last that does not come after it.
        let after = self.prefixes.partition_point(|(prefix, _)| surt.cmp(prefix).is_ge());
        let (prefix, place) = self.prefixes.get(after.checked_sub(1)?)?;
        surt.starts_with(prefix).then_some(*place)
    }
}

/// How often some URLs are asked for, compiled when it is read. The first rule that matches counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, u64)>", into = "Vec<(String, u64)>")]
pub struct RecrawlRules {
    rules: Box<[RecrawlRule]>,
}

#[derive(Clone, Debug)]
struct RecrawlRule {
    text: Box<str>,
    test: Test,
    every_s: u64,
}

/// Rules, and the seconds between two visits for each.
impl TryFrom<Vec<(String, u64)>> for RecrawlRules {
    type Error = RuleError;

    fn try_from(rules: Vec<(String, u64)>) -> Result<RecrawlRules, RuleError> {
        let compiled = |(place, (rule, every_s)): (usize, (String, u64))| {
            Ok(RecrawlRule { test: compile(place + 1, &rule)?, text: rule.into(), every_s })
        };
        Ok(RecrawlRules { rules: rules.into_iter().enumerate().map(compiled).collect::<Result<_, _>>()? })
    }
}

impl From<RecrawlRules> for Vec<(String, u64)> {
    fn from(rules: RecrawlRules) -> Vec<(String, u64)> {
        rules.rules.into_iter().map(|rule| (rule.text.into(), rule.every_s)).collect()
    }
}

impl RecrawlRules {
    /// The longest time between two visits that a rule sets; 0 without rules.
    pub fn every_s_max(&self) -> u64 {
        self.rules.iter().map(|rule| rule.every_s).max().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Seconds between two visits, if a rule says so.
    pub fn every_s(&self, url: &CrawlUrl) -> Option<u64> {
        self.rules.iter().find(|rule| rule.test.matches(url)).map(|rule| rule.every_s)
    }
}

/// One rule, ready for use.
#[derive(Clone, Debug)]
enum Test {
    Prefix(Box<[u8]>),
    Pattern(Regex),
}

impl Test {
    fn matches(&self, url: &CrawlUrl) -> bool {
        match self {
            Test::Prefix(prefix) => Surt::of(url.view()).starts_with(prefix),
            Test::Pattern(pattern) => pattern.is_match(url.as_str().as_bytes()),
        }
    }
}

/// `number` is the place of the rule in its list, from 1.
fn compile(number: usize, rule: &str) -> Result<Test, RuleError> {
    let wrong = |cause: String| RuleError { number, rule: shown(rule, 200), cause };
    if number > RULES_MAX {
        return Err(wrong(format!("at most {RULES_MAX} rules are read (drop some)")));
    }
    if rule.is_empty() {
        return Err(wrong("it is empty, and would match every URL (\".\" does that on purpose)".to_string()));
    }
    if rule.len() > RULE_BYTES_MAX {
        return Err(wrong(format!("it is longer than {RULE_BYTES_MAX} bytes (shorten it)")));
    }
    if let Some(written) = rule.strip_prefix(SURT) {
        let prefix = surt::prefix(written).ok_or_else(|| {
            wrong("not a SURT prefix, like surt:com,example, or surt:com,example,)/private".to_string())
        })?;
        return Ok(Test::Prefix(prefix.into()));
    }
    if !rule.is_ascii() {
        return Err(wrong(
            "URLs are ASCII: write other letters as they stand in a URL, like %C3%BC".to_string(),
        ));
    }
    RegexBuilder::new(rule)
        .unicode(false)
        .size_limit(RULE_COMPILED_BYTES_MAX)
        .dfa_size_limit(RULE_COMPILED_BYTES_MAX)
        .build()
        .map(Test::Pattern)
        .map_err(|error| wrong(cause_of(&error)))
}

/// What is wrong with an expression, in one line: the drawing above it is left out.
fn cause_of(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(bytes) => format!("too large: it compiles to more than {bytes} bytes"),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(rules: &[&str]) -> Result<RuleList, RuleError> {
        RuleList::try_from(rules.iter().map(|rule| rule.to_string()).collect::<Vec<_>>())
    }

    fn which(rules: &[&str], url: &str) -> Option<usize> {
        let (list, url) = (list(rules).unwrap(), CrawlUrl::parse(url).unwrap());
        let found = list.which(url.view());
        assert_eq!(found.is_some(), list.holds(url.view()), "{rules:?} {url}");
        found.map(|rule| {
            assert_eq!(rule.text, rules[rule.number - 1]);
            rule.number
        })
    }

    #[test]
    fn prefixes_and_expressions_match_side_by_side() {
        let rules = [
            r"\.(zip|ISO)$",
            "surt:com,example,)/private",
            "surt:com,example,shop,",
            "surt:org",
            "surt:com,example,shop,)/x",
            "(?i)sessionid=",
            r"^https://[^/]*\d{3}",
        ];
        for (url, expected) in [
            ("http://a.test/x.zip", Some(1)),
            ("http://a.test/x.iso", None),
            ("http://example.com/private/a", Some(2)),
            ("https://example.com/privateer", Some(2)),
            ("http://www.example.com/private/a", None),
            ("http://example.com/Private", None),
            ("http://a.shop.example.com/", Some(3)),
            ("http://shop.example.com/x", Some(3)),
            ("http://shops.example.com/", None),
            ("http://any.org/", Some(4)),
            ("http://any.organic/", Some(4)),
            ("http://a.test/?SESSIONID=4", Some(6)),
            ("https://a123.test/", Some(7)),
            ("http://a123.test/", None),
        ] {
            assert_eq!(which(&rules, url), expected, "{url}");
        }
        assert_eq!(which(&[], "http://a.test/"), None);
    }

    #[test]
    fn a_rule_that_is_none_is_named_in_one_line() {
        for (rules, said) in [
            (&["a", "("][..], "rule 2, \"(\": unclosed group"),
            (&["surt:http://example.com/"], "rule 1, \"surt:http://example.com/\": not a SURT prefix"),
            (&["ü"], "URLs are ASCII"),
            (&["(a{1000}){1000}"], "too large"),
            (&[r"\p{Greek}"], "rule 1, \"\\p{Greek}\": "),
            (&["(?=a)"], "look-around"),
            (&["."; RULES_MAX + 1], "rule 10001, \".\": at most 10000 rules are read"),
            (&[""], "rule 1, \"\": it is empty"),
            (&[&"a".repeat(RULE_BYTES_MAX + 1)], "it is longer than 4096 bytes"),
        ] {
            let error = list(rules).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_first_rule_says_how_often() {
        let rule = |rule: &str, every_s: u64| (rule.to_string(), every_s);
        let written = vec![rule("/news/", 60), rule("surt:com,example,", 600), rule("/new", 6)];
        let rules = RecrawlRules::try_from(written.clone()).unwrap();
        assert_eq!((rules.every_s_max(), Vec::from(rules.clone())), (600, written));
        let every_s = |url: &str| rules.every_s(&CrawlUrl::parse(url).unwrap());
        assert_eq!(every_s("http://example.com/news/1"), Some(60));
        assert_eq!(every_s("http://www.example.com/new"), Some(600));
        assert_eq!(every_s("http://a.test/new"), Some(6));
        assert_eq!(every_s("http://a.test/"), None);
        let error = RecrawlRules::try_from(vec![rule("[", 1)]).unwrap_err().to_string();
        assert!(error.starts_with("rule 1, \"[\": "), "{error}");
    }

    proptest! {
        #[test]
        fn a_list_of_prefixes_is_each_of_them(
            rules in prop::collection::vec("[ab](,[ab]{1,2}){0,2},?(:8)?(\\)(/[ab]?)?)?", 0..6),
            url in "http://([ab]{1,2}\\.){0,2}[ab]{1,2}(:8)?/[ab/]{0,3}",
        ) {
            let rules: Vec<String> = rules.iter().map(|rule| format!("surt:{rule}")).collect();
            // A generated text may be no prefix, like one with a port and nothing after it.
            let rules: Vec<String> =
                rules.into_iter().filter(|rule| compile(1, rule).is_ok()).collect();
            let url = CrawlUrl::parse(&url).unwrap();
            let any = rules.iter().any(|rule| compile(1, rule).unwrap().matches(&url));
            prop_assert_eq!(RuleList::try_from(rules).unwrap().holds(url.view()), any);
        }
    }
}
