use super::set_cookie::{SetCookie, path_of};
use crate::limits::{COOKIE_HEADER_BYTES_MAX, COOKIE_JAR_BYTES_MAX, COOKIES_PER_HOST_MAX};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;
use slab::Slab;
use std::collections::BTreeMap;
use std::fmt;

/// The cookies of a crawl, by origin.
pub struct CookieJar {
    hosts_max: usize,
    hosts: Slab<Host>,
    by_origin: RapidHashMap<Box<str>, usize>,
    /// Who was used when; the first is the next to go.
    by_use: BTreeMap<u64, usize>,
    /// What all cookies and hosts take, about.
    bytes: usize,
    /// Counts uses and cookies: larger is later.
    clock: u64,
}

/// One scheme, host and port. It has at least one cookie.
struct Host {
    origin: Box<str>,
    used: u64,
    /// In the order they are sent: the longest path first, then the oldest.
    cookies: Vec<Cookie>,
}

struct Cookie {
    /// `name=value`
    pair: Box<[u8]>,
    name_bytes: u16,
    path: Box<[u8]>,
    expires_s: u64,
    created: u64,
}

/// What a cookie or a host takes beside its texts, about.
const OVERHEAD_BYTES: usize = 128;

impl CookieJar {
    /// A jar for at most so many origins.
    pub fn new(hosts_max: usize) -> CookieJar {
        CookieJar {
            hosts_max,
            hosts: Slab::new(),
            by_origin: RapidHashMap::default(),
            by_use: BTreeMap::new(),
            bytes: 0,
            clock: 0,
        }
    }

    /// Takes the value of one Set-Cookie header that came with `url`. A cookie of the same name and path is
    /// replaced, or dropped if this one is over already.
    pub fn store(&mut self, url: &CrawlUrl, set_cookie: &[u8], now_unix_s: u64) {
        let Some(new) = SetCookie::parse(url, set_cookie, now_unix_s) else { return };
        let is_over = new.expires_s.is_some_and(|at| at <= now_unix_s);
        let known = self.by_origin.get(url.origin()).copied();
        if self.hosts_max == 0 || (known.is_none() && is_over) {
            return;
        }
        let slot = known.unwrap_or_else(|| self.add_host(url.origin()));
        let now = self.touch(slot);
        let host = &mut self.hosts[slot];
        let before = host.bytes();
        host.drop_expired(now_unix_s);
        let old = host.cookies.iter().position(|cookie| cookie.is(&new));
        match old {
            Some(at) if is_over => drop(host.cookies.remove(at)),
            // It keeps its age, and with it its place.
            Some(at) => host.cookies[at] = Cookie::new(&new, host.cookies[at].created),
            None if is_over => {}
            None => host.add(Cookie::new(&new, now)),
        }
        self.bytes = self.bytes - before + host.bytes();
        if host.cookies.is_empty() {
            self.remove_host(slot);
        }
        while self.bytes > COOKIE_JAR_BYTES_MAX {
            self.remove_longest_unused();
        }
        debug_assert!(self.invariants());
    }

    /// Appends `name=value; name2=value2` for a request to `url`; false, and nothing appended, if there is none.
    /// Cookies beyond [`COOKIE_HEADER_BYTES_MAX`] are left out: servers refuse a longer header.
    pub fn write(&mut self, url: &CrawlUrl, now_unix_s: u64, out: &mut Vec<u8>) -> bool {
        let Some(&slot) = self.by_origin.get(url.origin()) else { return false };
        self.touch(slot);
        let host = &mut self.hosts[slot];
        self.bytes -= host.drop_expired(now_unix_s);
        let start = out.len();
        let path = path_of(url);
        for cookie in host.cookies.iter().filter(|cookie| cookie.covers(path)) {
            let between: &[u8] = if out.len() > start { b"; " } else { b"" };
            if out.len() - start + between.len() + cookie.pair.len() <= COOKIE_HEADER_BYTES_MAX {
                out.extend_from_slice(between);
                out.extend_from_slice(&cookie.pair);
            }
        }
        if host.cookies.is_empty() {
            self.remove_host(slot);
        }
        debug_assert!(self.invariants());
        out.len() > start
    }

    /// Origins with cookies.
    #[cfg(test)]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// What the jar takes, about.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn add_host(&mut self, origin: &str) -> usize {
        if self.hosts.len() >= self.hosts_max {
            self.remove_longest_unused();
        }
        self.clock += 1;
        let slot = self.hosts.insert(Host { origin: origin.into(), used: self.clock, cookies: Vec::new() });
        self.by_origin.insert(origin.into(), slot);
        self.by_use.insert(self.clock, slot);
        self.bytes += self.hosts[slot].bytes();
        slot
    }

    fn remove_longest_unused(&mut self) {
        if let Some((_, &slot)) = self.by_use.first_key_value() {
            self.remove_host(slot);
        }
    }

    fn remove_host(&mut self, slot: usize) {
        let host = self.hosts.remove(slot);
        self.by_use.remove(&host.used);
        self.by_origin.remove(&host.origin);
        self.bytes -= host.bytes();
    }

    /// Makes a host the one used last, and tells when that was.
    fn touch(&mut self, slot: usize) -> u64 {
        self.clock += 1;
        let used = std::mem::replace(&mut self.hosts[slot].used, self.clock);
        self.by_use.remove(&used);
        self.by_use.insert(self.clock, slot);
        self.clock
    }

    // hosts, names and uses are as many; hosts <= hosts_max; bytes <= COOKIE_JAR_BYTES_MAX
    fn invariants(&self) -> bool {
        self.hosts.len() == self.by_origin.len()
            && self.hosts.len() == self.by_use.len()
            && self.hosts.len() <= self.hosts_max
            && self.bytes <= COOKIE_JAR_BYTES_MAX
    }
}

/// Counts only: a cookie may be a key to someone's session.
impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar")
            .field("hosts", &self.hosts.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Host {
    fn bytes(&self) -> usize {
        let cookies: usize = self.cookies.iter().map(Cookie::bytes).sum();
        2 * self.origin.len() + OVERHEAD_BYTES + cookies
    }

    /// Tells what the dropped ones took.
    fn drop_expired(&mut self, now_unix_s: u64) -> usize {
        let mut freed = 0;
        self.cookies.retain(|cookie| {
            let lives = cookie.expires_s > now_unix_s;
            freed += if lives { 0 } else { cookie.bytes() };
            lives
        });
        freed
    }

    /// Puts a cookie in its place; among too many the oldest goes.
    fn add(&mut self, new: Cookie) {
        if self.cookies.len() >= COOKIES_PER_HOST_MAX {
            let ages = self.cookies.iter().enumerate().map(|(at, cookie)| (cookie.created, at));
            if let Some((_, oldest)) = ages.min() {
                self.cookies.remove(oldest);
            }
        }
        let at = self.cookies.partition_point(|cookie| cookie.path.len() >= new.path.len());
        self.cookies.insert(at, new);
    }
}

impl Cookie {
    fn new(from: &SetCookie<'_>, created: u64) -> Cookie {
        Cookie {
            pair: [from.name, b"=", from.value].concat().into(),
            name_bytes: from.name.len() as u16,
            path: from.path.into(),
            // The end of time is the end of the crawl.
            expires_s: from.expires_s.unwrap_or(u64::MAX),
            created,
        }
    }

    fn is(&self, other: &SetCookie<'_>) -> bool {
        self.pair[..usize::from(self.name_bytes)] == *other.name && *self.path == *other.path
    }

    /// Whether a path is the cookie's or lies below it.
    fn covers(&self, path: &[u8]) -> bool {
        path.strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || self.path.ends_with(b"/"))
    }

    fn bytes(&self) -> usize {
        self.pair.len() + self.path.len() + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::COOKIE_BYTES_MAX;

    fn url(text: &str) -> CrawlUrl {
        CrawlUrl::parse(text).unwrap()
    }

    fn sent(jar: &mut CookieJar, to: &str, now: u64) -> String {
        let mut out = b"Cookie: ".to_vec();
        let any = jar.write(&url(to), now, &mut out);
        assert_eq!(any, out.len() > 8);
        String::from_utf8(out.split_off(8)).unwrap()
    }

    /// A jar with what one page set at second 0.
    fn jar(page: &str, cookies: &[&str]) -> CookieJar {
        let mut jar = CookieJar::new(8);
        cookies.iter().for_each(|cookie| jar.store(&url(page), cookie.as_bytes(), 0));
        jar
    }

    #[test]
    fn the_longest_path_goes_first_then_the_oldest() {
        let mut jar = jar(
            "http://h/",
            &["a=1", "b=2; path=/x", "c=3; path=/x/y", "d=4; path=/z/z", "e=5; path=/x", "a=6"],
        );
        assert_eq!(sent(&mut jar, "http://h/x/y?q", 0), "c=3; b=2; e=5; a=6");
        assert_eq!(sent(&mut jar, "http://h/xy", 0), "a=6");
        assert_eq!(sent(&mut jar, "http://h/z/z/", 0), "d=4; a=6");
    }

    #[test]
    fn no_other_scheme_host_or_port_gets_a_cookie() {
        let mut jar = jar("https://a.example.org/", &["a=1; domain=example.org", "s=2; secure"]);
        for other in [
            "http://a.example.org/",
            "https://a.example.org:444/",
            "https://example.org/",
            "https://b.example.org/",
            "https://b.a.example.org/",
            "https://evil.test/",
        ] {
            assert_eq!(sent(&mut jar, other, 0), "", "{other}");
        }
        assert_eq!(sent(&mut jar, "https://A.example.org:443/x", 0), "a=1; s=2");
    }

    #[test]
    fn cookies_end() {
        let mut jar =
            jar("http://h/", &["a=1; max-age=10", "b=2", "c=3; expires=Thu, 01 Jan 1970 00:00:05 GMT"]);
        assert_eq!(sent(&mut jar, "http://h/", 4), "a=1; b=2; c=3");
        assert_eq!(sent(&mut jar, "http://h/", 5), "a=1; b=2");
        assert_eq!(sent(&mut jar, "http://h/", 10), "b=2");
        jar.store(&url("http://h/"), b"b=; max-age=0; path=/x", 10);
        assert_eq!(sent(&mut jar, "http://h/", 10), "b=2", "of another path");
        jar.store(&url("http://h/"), b"b=; max-age=0", 10);
        assert_eq!(sent(&mut jar, "http://h/", 10), "");
        assert_eq!((jar.hosts(), jar.bytes()), (0, 0));
    }

    #[test]
    fn a_host_has_so_many_cookies_and_the_oldest_goes() {
        let mut jar = jar("http://h/", &["first=0; path=/x", "second=0"]);
        for n in 2..=COOKIES_PER_HOST_MAX {
            jar.store(&url("http://h/"), format!("n{n}=1").as_bytes(), 0);
        }
        let all = sent(&mut jar, "http://h/x", 0);
        assert!(all.starts_with("second=0; n2=1; "), "{all}");
        assert_eq!(all.split("; ").count(), COOKIES_PER_HOST_MAX);
    }

    #[test]
    fn a_request_carries_so_many_bytes() {
        let mut jar = CookieJar::new(1);
        for name in ["a", "b", "c"] {
            let cookie = format!("{name}={}", "v".repeat(COOKIE_HEADER_BYTES_MAX / 2 - 200));
            jar.store(&url("http://h/"), cookie.as_bytes(), 0);
        }
        jar.store(&url("http://h/"), b"d=small", 0);
        let all = sent(&mut jar, "http://h/", 0);
        let names: Vec<&str> = all.split("; ").map(|pair| &pair[..2]).collect();
        assert_eq!(names, ["a=", "b=", "d="], "what fits goes");
        assert!(all.len() <= COOKIE_HEADER_BYTES_MAX);
    }

    #[test]
    fn a_jar_has_so_many_hosts_and_the_longest_unused_goes() {
        let mut jar = CookieJar::new(2);
        jar.store(&url("http://a/"), b"a=1", 0);
        jar.store(&url("http://b/"), b"b=1", 0);
        assert_eq!(sent(&mut jar, "http://a/", 0), "a=1");
        jar.store(&url("http://c/"), b"c=1", 0);
        assert_eq!(sent(&mut jar, "http://b/", 0), "");
        assert_eq!(sent(&mut jar, "http://a/", 0), "a=1");
        assert_eq!(sent(&mut jar, "http://c/", 0), "c=1");

        let mut none = CookieJar::new(0);
        none.store(&url("http://a/"), b"a=1", 0);
        assert_eq!(none.hosts(), 0);
    }

    #[test]
    fn a_jar_has_so_many_bytes() {
        let mut jar = CookieJar::new(1_000);
        for host in 0..100 {
            for name in 10..10 + COOKIES_PER_HOST_MAX {
                let cookie = format!("{name}={}", "v".repeat(COOKIE_BYTES_MAX - 4));
                jar.store(&url(&format!("http://h{host}/")), cookie.as_bytes(), 0);
            }
            assert!(jar.bytes() <= COOKIE_JAR_BYTES_MAX);
        }
        assert!(jar.hosts() < 100 && jar.bytes() > COOKIE_JAR_BYTES_MAX / 10 * 9, "{jar:?}");
        assert_eq!(sent(&mut jar, "http://h0/", 0), "");
        assert!(!sent(&mut jar, "http://h99/", 0).is_empty());
    }

    #[test]
    fn debug_output_holds_no_cookie() {
        let shown = format!("{:?}", jar("http://h/", &["key=secret"]));
        assert!(shown.contains("hosts: 1") && !shown.contains("secret"), "{shown}");
    }
}
