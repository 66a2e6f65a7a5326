use super::job::DomainBy;
use crate::base::fingerprint;
use crate::proto::url::registrable;
use memchr::{memchr, memrchr};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Where domains stand in URLs, with a memory for hosts that come often.
pub struct Domains {
    by: DomainBy,
    known: Vec<KnownHost>,
}

/// A host's hash, and how many bytes at its end are its domain.
#[derive(Clone, Copy, Default)]
struct KnownHost {
    hash: u64,
    domain_bytes: usize,
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

const KNOWN_BITS: u32 = 14;

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
        Domains { by, known: vec![KnownHost::default(); 1 << KNOWN_BITS] }
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
        if known.hash != hash || known.domain_bytes == 0 {
            let domain_bytes = registrable(str::from_utf8(text).unwrap_or_default()).len();
            *known = KnownHost { hash, domain_bytes };
        }
        host.end - known.domain_bytes.min(host.len())..host.end
    }
}

/// The host of a URL in normal form, without its port.
fn host_place(url: &[u8]) -> Range<usize> {
    let from = if url.get(4) == Some(&b's') { 8 } else { 7 };
    let end = memchr(b'/', &url[from..]).map_or(url.len(), |at| from + at);
    let authority = &url[from..end];
    let host_bytes = match memrchr(b']', authority) {
        Some(bracket) => bracket + 1,
        None => memchr(b':', authority).unwrap_or(authority.len()),
    };
    from..from + host_bytes
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
