use crate::config::ScopeKind;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;

/// The URLs a crawl may fetch.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    /// Hosts, domains or URL prefixes, by kind.
    names: RapidHashSet<Box<str>>,
    depth_max: u16,
}

impl Scope {
    pub fn new(kind: ScopeKind, depth_max: u16) -> Scope {
        Scope { kind, names: RapidHashSet::default(), depth_max }
    }

    pub fn depth_max(&self) -> u16 {
        self.depth_max
    }

    /// Brings a seed, or where its redirects ended, into scope.
    pub fn add(&mut self, url: &CrawlUrl) {
        let name = match self.kind {
            ScopeKind::Host => url.host(),
            ScopeKind::Domain => domain(url),
            ScopeKind::Prefix => prefix(url),
            ScopeKind::Any => return,
        };
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    pub fn holds(&self, url: &CrawlUrl) -> bool {
        match self.kind {
            ScopeKind::Any => true,
            ScopeKind::Host => self.names.contains(url.host()),
            ScopeKind::Domain => self.names.contains(domain(url)),
            ScopeKind::Prefix => {
                // Every directory above the URL is tried, the deepest first.
                let text = url.as_str();
                let path_start = url.origin().len();
                let path_end = memchr::memchr(b'?', text.as_bytes()).unwrap_or(text.len());
                memchr::memrchr_iter(b'/', &text.as_bytes()[path_start..path_end])
                    .any(|slash| self.names.contains(&text[..path_start + slash + 1]))
            }
        }
    }
}

/// The registrable domain, or the host itself where there is none (an address, a bare name).
fn domain(url: &CrawlUrl) -> &str {
    let host = url.host();
    if host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

/// The seed up to its last slash.
fn prefix(url: &CrawlUrl) -> &str {
    let text = url.as_str();
    let path_end = memchr::memchr(b'?', text.as_bytes()).unwrap_or(text.len());
    let slash = memchr::memrchr(b'/', &text.as_bytes()[..path_end]).unwrap_or(path_end - 1);
    &text[..slash + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
