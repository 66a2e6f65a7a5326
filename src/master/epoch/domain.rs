use super::job::DomainBy;
use crate::base::fingerprint;
use crate::proto::url::{host_place, registrable};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Where domains stand in URLs, with a memory for hosts that come often.
pub struct Domains {
    by: DomainBy,
    /// By the top of a host's hash: the rest of it, and in the lowest byte how many bytes at its end are its domain.
    known: Vec<u64>,
}

/// What was known when a partition was done, for the next.
pub(super) struct DomainsPool {
    by: DomainBy,
    idle: Mutex<Vec<Domains>>,
}

/// Goes back when it is dropped.
pub(super) struct LentDomains<'p> {
    pool: &'p DomainsPool,
    domains: Option<Domains>,
}

const KNOWN_BITS: u32 = 17;
const LENGTH: u64 = 0xff;

impl DomainsPool {
    pub fn new(by: DomainBy) -> DomainsPool {
        DomainsPool { by, idle: Mutex::default() }
    }

    pub fn lend(&self) -> LentDomains<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        LentDomains { pool: self, domains: idle }
    }
}

impl LentDomains<'_> {
    pub fn place(&mut self, url: &[u8]) -> Range<usize> {
        self.domains.get_or_insert_with(|| Domains::new(self.pool.by)).place(url)
    }
}

impl Drop for LentDomains<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.domains.take());
    }
}

impl Domains {
    pub fn new(by: DomainBy) -> Domains {
        Domains { by, known: vec![0; 1 << KNOWN_BITS] }
    }

    /// The place of the domain in a URL in normal form.
    pub fn place(&mut self, url: &[u8]) -> Range<usize> {
        let host = host_place(url);
        if self.by == DomainBy::Host {
            return host;
        }
        let text = &url[host.clone()];
        let hash = fingerprint(text);
        let known = &mut self.known[(hash >> (64 - KNOWN_BITS)) as usize];
        let mut length = (*known & LENGTH) as usize;
        if *known & !LENGTH != hash << 8 || length == 0 {
            length = registrable(str::from_utf8(text).unwrap_or_default()).len();
            *known = hash << 8 | u64::try_from(length).ok().filter(|&length| length <= LENGTH).unwrap_or(0);
        }
        host.end - length.min(host.len())..host.end
    }
}

impl DomainBy {
    /// Whether a line of a reflog has a URL of a domain. For one line and then another: [`Domains`] is for all of a log.
    pub fn is_line_of(self, line: &[u8], domain: &str) -> bool {
        let url = line.split(|byte| *byte == b'\t').nth(4);
        let is_url = |url: &&[u8]| url.starts_with(b"http://") || url.starts_with(b"https://");
        let host = url.filter(is_url).and_then(|url| str::from_utf8(&url[host_place(url)]).ok());
        let is_it = |host: &str| match self {
            DomainBy::Host => host == domain,
            DomainBy::Registrable => registrable(host) == domain,
        };
        line.first().is_some_and(u8::is_ascii_digit) && host.is_some_and(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_the_end_of_a_host() {
        for (url, host, domain) in [
            ("http://www.example.co.uk/x", "www.example.co.uk", "example.co.uk"),
            ("https://a.b.example.com:8080/", "a.b.example.com", "example.com"),
            ("http://com.ru/", "com.ru", "com.ru"),
            ("http://localhost/", "localhost", "localhost"),
            ("http://10.1.2.3:81/", "10.1.2.3", "10.1.2.3"),
            ("https://[::1]:81/", "[::1]", "[::1]"),
        ] {
            let by_domain = DomainsPool::new(DomainBy::Registrable);
            // The second time from memory.
            for _ in 0..2 {
                assert_eq!(&url[by_domain.lend().place(url.as_bytes())], domain);
            }
            assert_eq!(&url[DomainsPool::new(DomainBy::Host).lend().place(url.as_bytes())], host);
        }
    }
}
