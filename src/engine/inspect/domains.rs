use crate::proto::url::{CrawlUrl, registrable};
use rapidhash::fast::RapidHashSet;

/// Domains by their names: registrable ones, or single hosts where a map goes by those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(RapidHashSet<Box<str>>);

impl Domains {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, domain: &str) {
        self.0.insert(domain.into());
    }

    pub fn remove(&mut self, domain: &str) -> bool {
        self.0.remove(domain)
    }

    /// Whether it is one of them, by its name.
    pub fn holds_name(&self, domain: &str) -> bool {
        self.0.contains(domain)
    }

    /// Whether a URL is of one of them.
    pub fn holds(&self, url: &CrawlUrl) -> bool {
        !self.is_empty() && self.holds_host(url.host())
    }

    /// Whether a host is, by its origin.
    pub fn holds_origin(&self, origin: &str) -> bool {
        !self.is_empty() && self.holds_host(host_of(origin))
    }

    fn holds_host(&self, host: &str) -> bool {
        self.0.contains(host) || self.0.contains(registrable(host))
    }
}

/// Whether a host, by its origin, is of a domain.
pub fn is_of(origin: &str, domain: &str) -> bool {
    let host = host_of(origin);
    host == domain || registrable(host) == domain
}

/// The host of an origin, as it stands in a URL.
fn host_of(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.rfind(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or(authority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_its_hosts_and_a_host_itself() {
        let mut domains = Domains::default();
        assert!(!domains.holds_origin("http://a.ru"));
        domains.insert("a.ru");
        domains.insert("www.b.co.uk");
        domains.insert("[::1]");
        for (origin, is_in) in [
            ("http://a.ru", true),
            ("https://x.y.a.ru:8080", true),
            ("http://aa.ru", false),
            ("http://www.b.co.uk", true),
            ("http://b.co.uk", false),
            ("http://x.b.co.uk", false),
            ("http://[::1]:81", true),
            ("http://[::2]", false),
        ] {
            assert_eq!(domains.holds_origin(origin), is_in, "{origin}");
            let url = CrawlUrl::parse(&format!("{origin}/x")).unwrap();
            assert_eq!(domains.holds(&url), is_in, "{origin}");
        }
        assert!(
            domains.remove("a.ru")
                && !domains.holds_origin("http://a.ru")
                && is_of("http://x.a.ru:1", "a.ru")
        );
    }
}
