use super::scope_kind::ScopeKind;
use super::traps::Traps;
use super::verdict::Verdict;
use crate::proto::url::{Canon, CrawlUrl, RuleRef, UrlRules, UrlView};
use rapidhash::fast::RapidHashSet;
use std::sync::Arc;

/// The URLs a crawl may fetch.
///
/// ```text
///   (spanned by the seeds  or  allowed by a rule)  and  denied by none  and  no sign of a trap
/// ```
///
/// A URL that a user typed is not checked: a seed is in scope by itself, unless a rule denies it.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    /// Hosts, domains or URL prefixes, by kind.
    names: RapidHashSet<Box<str>>,
    depth_max: u16,
    rules: Arc<UrlRules>,
    traps: Traps,
    canon: Canon,
}

/// What is in scope besides what the seeds span, what never is, and the form that URLs are in.
#[derive(Clone, Debug, Default)]
pub struct ScopeRules {
    pub urls: UrlRules,
    /// Segments of a path, and how often one may stand in it; 0 = no such guard.
    pub path_depth_max: u16,
    pub segment_repeats_max: u16,
    pub canon: Canon,
}

impl Scope {
    /// A scope without rules and guards.
    pub fn new(kind: ScopeKind, depth_max: u16) -> Scope {
        Scope {
            kind,
            names: RapidHashSet::default(),
            depth_max,
            rules: Arc::default(),
            traps: Traps::default(),
            canon: Canon::default(),
        }
    }

    pub fn with_rules(self, rules: ScopeRules) -> Scope {
        let traps = Traps {
            path_depth_max: rules.path_depth_max.into(),
            segment_repeats_max: rules.segment_repeats_max.into(),
        };
        Scope { rules: Arc::new(rules.urls), traps, canon: rules.canon, ..self }
    }

    /// The form that URLs are in before they are asked about.
    pub fn canon(&self) -> &Canon {
        &self.canon
    }

    pub fn depth_max(&self) -> u16 {
        self.depth_max
    }

    /// Brings a seed, or where its redirects ended, into scope.
    pub fn add(&mut self, url: &CrawlUrl) {
        let name = match self.kind {
            ScopeKind::Host => url.host(),
            ScopeKind::Domain => url.registrable_domain(),
            ScopeKind::Prefix => prefix(url),
            ScopeKind::Any => return,
        };
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    /// Whether a URL is in scope: what [`Scope::judge`] says, without its reasons and without allocating.
    pub fn holds<'a>(&self, url: impl Into<UrlView<'a>>) -> bool {
        let url = url.into();
        (self.spans(url) || self.rules.allow.holds(url))
            && !self.rules.deny.holds(url)
            && self.traps.caught(url).is_none()
    }

    /// Whether a URL is in scope, and why.
    pub fn judge<'a>(&'a self, url: &'a CrawlUrl) -> Verdict<'a> {
        if let Some(rule) = self.denies(url) {
            return Verdict::Denied(rule);
        }
        let inside = match self.spans(url) {
            true => Verdict::Spanned(self.kind),
            false => match self.rules.allow.which(url.view()) {
                Some(rule) => Verdict::Allowed(rule),
                None => return Verdict::NotSpanned(self.kind),
            },
        };
        self.traps.caught(url.view()).unwrap_or(inside)
    }

    /// The same for a URL that was found so many links from a seed, perhaps by a crawl that followed more of them.
    pub fn judge_at<'a>(&'a self, url: &'a CrawlUrl, depth: Option<u16>) -> Verdict<'a> {
        match depth {
            Some(depth) if depth > self.depth_max => Verdict::TooDeep { depth, max: self.depth_max },
            _ => self.judge(url),
        }
    }

    /// The rule that keeps a URL out, wherever it was found: only this counts for seeds, too.
    pub fn denies(&self, url: &CrawlUrl) -> Option<RuleRef<'_>> {
        self.rules.deny.which(url.view())
    }

    /// Whether it is a seed's host, domain or prefix, by kind.
    pub fn spans<'a>(&self, url: impl Into<UrlView<'a>>) -> bool {
        let url = url.into();
        match self.kind {
            ScopeKind::Any => true,
            ScopeKind::Host => self.names.contains(url.host()),
            ScopeKind::Domain => self.names.contains(url.registrable_domain()),
            ScopeKind::Prefix => {
                // Every directory above the URL is tried, the deepest first.
                let (text, path_start) = (url.as_str(), url.origin().len());
                memchr::memrchr_iter(b'/', url.path().as_bytes())
                    .any(|slash| self.names.contains(&text[..path_start + slash + 1]))
            }
        }
    }
}

/// The seed up to its last slash.
fn prefix(url: &CrawlUrl) -> &str {
    let slash = memchr::memrchr(b'/', url.path().as_bytes()).unwrap_or(0);
    &url.as_str()[..url.origin().len() + slash + 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::url::RuleList;
    use proptest::prelude::*;

    fn holds(kind: ScopeKind, seed: &str, url: &str) -> bool {
        let mut scope = Scope::new(kind, 9);
        scope.add(&CrawlUrl::parse(seed).unwrap());
        scope.holds(&CrawlUrl::parse(url).unwrap())
    }

    #[test]
    fn each_kind_draws_its_line() {
        use ScopeKind::*;
        let seed = "http://www.example.co.uk/a/b.html?x=/y/";
        assert!(holds(Host, seed, "http://www.example.co.uk/z"));
        assert!(holds(Host, seed, "http://www.example.co.uk:81/z"));
        assert!(!holds(Host, seed, "http://example.co.uk/a/"));
        assert!(holds(Domain, seed, "http://other.example.co.uk/"));
        assert!(!holds(Domain, seed, "http://elsewhere.co.uk/"));
        assert!(holds(Prefix, seed, "http://www.example.co.uk/a/c/d"));
        assert!(holds(Prefix, seed, "http://www.example.co.uk/a/"));
        assert!(!holds(Prefix, seed, "http://www.example.co.uk/ab"));
        assert!(!holds(Prefix, seed, "http://www.example.co.uk:81/a/"));
        assert!(!holds(Prefix, seed, "http://www.example.co.uk/?/a/"));
        assert!(holds(Any, seed, "http://else.test/"));
        assert!(holds(Domain, "http://127.0.0.1/", "http://127.0.0.1:8080/"));
        assert!(!holds(Domain, "http://127.0.0.1/", "http://9.0.0.1/"));
    }

    fn ruled(kind: ScopeKind, seed: &str, allow: &[&str], deny: &[&str]) -> Scope {
        let list = |rules: &[&str]| {
            RuleList::try_from(rules.iter().map(|rule| rule.to_string()).collect::<Vec<_>>()).unwrap()
        };
        let mut scope = Scope::new(kind, 9).with_rules(ScopeRules {
            urls: UrlRules { allow: list(allow), deny: list(deny) },
            path_depth_max: 40,
            segment_repeats_max: 3,
            ..ScopeRules::default()
        });
        scope.add(&CrawlUrl::parse(seed).unwrap());
        scope
    }

    #[test]
    fn every_verdict_has_its_reason() {
        let allow = ["surt:org,allowed,", r"\.pdf$"];
        let deny = ["/logout", "surt:test,site,)/private"];
        let scope = ruled(ScopeKind::Host, "http://site.test/", &allow, &deny);
        let deep = format!("http://site.test/{}", "x1/x2/x3/".repeat(14));
        let again = format!("http://site.test/{}", "calendar/".repeat(4));
        for (url, name, said) in [
            ("http://site.test/a", "seed_host", "in scope: its host is that of a seed"),
            ("http://www.allowed.org/a", "allowed", "in scope: allow rule 1, \"surt:org,allowed,\""),
            ("http://else.test/a.pdf", "allowed", r#"in scope: allow rule 2, "\.pdf$""#),
            ("http://else.test/a", "out_of_scope", "out of scope: no seed has its host"),
            ("http://site.test/logout", "denied", "out of scope: deny rule 1, \"/logout\""),
            ("http://allowed.org/logout", "denied", "out of scope: deny rule 1, \"/logout\""),
            (
                "https://site.test/private/a",
                "denied",
                "out of scope: deny rule 2, \"surt:test,site,)/private\"",
            ),
            (&deep, "trap_path_depth", "out of scope: its path has more than 40 segments (path_depth_max)"),
            (
                &again,
                "trap_repeated_segment",
                "out of scope: \"calendar\" stands more than 3 times in its path (segment_repeats_max)",
            ),
        ] {
            let url = CrawlUrl::parse(url).unwrap();
            let verdict = scope.judge(&url);
            assert_eq!((verdict.name(), verdict.to_string().as_str()), (name, said), "{url}");
            assert_eq!(verdict.is_in(), scope.holds(&url), "{url}");
        }
        assert!(scope.denies(&CrawlUrl::parse("http://any.test/logout").unwrap()).is_some());
        assert!(scope.denies(&CrawlUrl::parse(&deep).unwrap()).is_none(), "a guard is no rule");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]
        #[test]
        fn the_fast_way_agrees_with_the_reasons(
            kind in prop::sample::select(vec![
                ScopeKind::Host, ScopeKind::Domain, ScopeKind::Prefix, ScopeKind::Any,
            ]),
            seed in "http://([ab]\\.){1,2}(com|org)/([ab]/){0,2}",
            allow in prop::collection::vec("surt:(com|org),[ab],(\\)/[ab])?|[ab]\\.[ab]|/[ab]/[ab]", 0..3),
            deny in prop::collection::vec("surt:(com|org),[ab],(\\)/[ab])?|[ab]/[ab][$]", 0..2),
            url in "https?://([ab]\\.){1,2}(com|org)/([ab]/){0,9}[ab]?",
        ) {
            let texts = |rules: &'_ [String]| -> Vec<&'static str> {
                rules.iter().map(|rule| &*rule.clone().leak()).collect()
            };
            let scope = ruled(kind, &seed, &texts(&allow), &texts(&deny));
            let url = CrawlUrl::parse(&url).unwrap();
            prop_assert_eq!(scope.judge(&url).is_in(), scope.holds(&url));
        }
    }
}
