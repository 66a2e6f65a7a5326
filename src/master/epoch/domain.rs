use super::job::DomainBy;
use crate::base::fingerprint;
use crate::proto::url::registrable;
use memchr::{memchr, memrchr};
use std::ops::Range;

/// Where domains stand in URLs, with a memory for hosts that come often.
pub struct Domains {
    by: DomainBy,
    /// A host's hash, and how many bytes at its end are its domain.
    known: Vec<(u64, usize)>,
}

const KNOWN_BITS: u32 = 12;

impl Domains {
    pub fn new(by: DomainBy) -> Domains {
        Domains { by, known: vec![(0, 0); 1 << KNOWN_BITS] }
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
        if known.0 != hash || known.1 == 0 {
            *known = (hash, registrable(str::from_utf8(text).unwrap_or_default()).len());
        }
        host.end - known.1.min(host.len())..host.end
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
            let mut domains = Domains::new(DomainBy::Registrable);
            // The second time from memory.
            for _ in 0..2 {
                assert_eq!(&url[domains.place(url.as_bytes())], domain);
            }
            assert_eq!(&url[Domains::new(DomainBy::Host).place(url.as_bytes())], host);
        }
    }
}
