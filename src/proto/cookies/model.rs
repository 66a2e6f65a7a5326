//! The promise: whatever is set and asked in whatever order, the jar sends what a list of all cookies would, its
//! bounds hold, and nothing it writes can leave its header line.

use proptest::prelude::*;

use super::CookieJar;
use crate::limits::{COOKIE_HEADER_BYTES_MAX, COOKIE_JAR_BYTES_MAX, COOKIES_PER_HOST_MAX};
use crate::proto::url::CrawlUrl;

const ORIGINS: [&str; 6] = [
    "http://a.test",
    "https://a.test",
    "http://a.test:81",
    "https://b.a.test",
    "http://b.a.test",
    "http://192.0.2.1",
];
const PAGES: [&str; 6] = ["/", "/x", "/x/", "/x/y?q=/z", "/xy", "/x/y/z/"];
const PATHS: [&str; 6] = ["/", "/x", "/x/", "/x/y", "rel", ""];
const DOMAINS: [&str; 7] = ["a.test", ".b.a.test", "test", "b.test", "192.0.2.1", "2.1", ""];

/// One Set-Cookie, in its parts.
#[derive(Clone, Debug)]
struct Set {
    prefix: &'static str,
    name: u8,
    value: u16,
    path: Option<&'static str>,
    domain: Option<&'static str>,
    secure: bool,
    max_age: Option<i8>,
    /// A second of 1970's first hour.
    expires: Option<u16>,
}

#[derive(Clone, Debug)]
enum Op {
    Store { origin: &'static str, page: &'static str, set: Set },
    Write { origin: &'static str, page: &'static str },
    Wait { seconds: u8 },
}

impl Set {
    fn name(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }

    fn text(&self) -> String {
        let mut text = format!("{}={}", self.name(), self.value);
        if let Some(path) = self.path {
            text += &format!("; Path={path}");
        }
        if let Some(expires) = self.expires {
            text += &format!("; Expires=Thu, 01-Jan-70 00:{:02}:{:02} GMT", expires / 60, expires % 60);
        }
        if let Some(domain) = self.domain {
            text += &format!(";domain={domain}");
        }
        if let Some(age) = self.max_age {
            text += &format!(" ; Max-Age = {age}");
        }
        text + if self.secure { "; Secure" } else { "" }
    }
}

/// A cookie of the model.
struct Kept {
    origin: &'static str,
    name: String,
    path: String,
    value: u16,
    expires: Option<i64>,
}

/// Every cookie in the order it was first set, and every origin in the order of use.
struct Model {
    hosts_max: usize,
    cookies: Vec<Kept>,
    used: Vec<&'static str>,
}

impl Model {
    fn store(&mut self, origin: &'static str, page: &str, set: &Set, now: i64) {
        let https = origin.starts_with("https:");
        let host = origin.split('/').nth(2).unwrap().split(':').next().unwrap();
        let domain = set.domain.unwrap_or("").trim_start_matches('.');
        let domain_is_ours = match host.starts_with(char::is_numeric) {
            true => host == domain,
            false => host == domain || host.ends_with(&format!(".{domain}")),
        };
        let promise_kept = match set.prefix {
            "__Host-" => set.secure && domain.is_empty() && set.path == Some("/"),
            "__Secure-" => set.secure,
            _ => true,
        };
        if (set.secure && !https) || (!domain.is_empty() && !domain_is_ours) || !promise_kept {
            return;
        }
        let page = page.split('?').next().unwrap();
        let directory = &page[..page.rfind('/').unwrap()];
        let path = match set.path {
            Some(path) if path.starts_with('/') => path,
            _ if directory.is_empty() => "/",
            _ => directory,
        };
        let expires = match (set.max_age, set.expires) {
            (Some(age), _) if age < 0 => Some(0),
            (Some(age), _) => Some(now + i64::from(age)),
            (None, expires) => expires.map(i64::from),
        };
        let is_over = expires.is_some_and(|at| at <= now);
        if !self.used.contains(&origin) {
            if is_over {
                return;
            }
            if self.used.len() == self.hosts_max {
                let gone = self.used.remove(0);
                self.cookies.retain(|cookie| cookie.origin != gone);
            }
        }
        self.use_now(origin, now);
        let new = Kept { origin, name: set.name(), path: path.to_string(), value: set.value, expires };
        let same = |old: &Kept| (old.origin, &old.name, &old.path) == (origin, &new.name, &new.path);
        let ours: Vec<usize> =
            (0..self.cookies.len()).filter(|at| self.cookies[*at].origin == origin).collect();
        match self.cookies.iter().position(same) {
            Some(at) if is_over => drop(self.cookies.remove(at)),
            Some(at) => self.cookies[at] = new,
            None if is_over => {}
            None => {
                if ours.len() == COOKIES_PER_HOST_MAX {
                    self.cookies.remove(ours[0]);
                }
                self.cookies.push(new);
            }
        }
        self.forget_empty(origin);
    }

    fn write(&mut self, origin: &'static str, page: &str, now: i64) -> String {
        if !self.used.contains(&origin) {
            return String::new();
        }
        self.use_now(origin, now);
        let page = page.split('?').next().unwrap();
        let below =
            |path: &str| page == path || page.starts_with(&format!("{}/", path.trim_end_matches('/')));
        // A path that ends in a slash does not cover the name before the slash.
        let mut found: Vec<&Kept> = self
            .cookies
            .iter()
            .filter(|cookie| {
                cookie.origin == origin && below(&cookie.path) && page.len() >= cookie.path.len()
            })
            .collect();
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let text: Vec<String> =
            found.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        self.forget_empty(origin);
        text.join("; ")
    }

    fn use_now(&mut self, origin: &'static str, now: i64) {
        self.used.retain(|used| *used != origin);
        self.used.push(origin);
        self.cookies.retain(|cookie| cookie.origin != origin || cookie.expires.is_none_or(|at| at > now));
    }

    fn forget_empty(&mut self, origin: &'static str) {
        if !self.cookies.iter().any(|cookie| cookie.origin == origin) {
            self.used.retain(|used| *used != origin);
        }
    }
}

fn set() -> impl Strategy<Value = Set> {
    let prefix = prop_oneof![9 => Just("n"), 1 => Just("__Host-"), 1 => Just("__Secure-")];
    let path = prop::option::of(prop::sample::select(PATHS.to_vec()));
    let domain = prop::option::weighted(0.2, prop::sample::select(DOMAINS.to_vec()));
    let secure = prop::bool::weighted(0.3);
    let max_age = prop::option::weighted(0.2, -1..20_i8);
    let expires = prop::option::weighted(0.1, 0..3_600_u16);
    (prefix, 0..12_u8, any::<u16>(), path, domain, secure, max_age, expires).prop_map(
        |(prefix, name, value, path, domain, secure, max_age, expires)| Set {
            prefix,
            name,
            value,
            path,
            domain,
            secure,
            max_age,
            expires,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let origin = prop_oneof![2 => Just(ORIGINS[1]), 1 => prop::sample::select(ORIGINS.to_vec())];
    let page = prop::sample::select(PAGES.to_vec());
    prop_oneof![
        8 => (origin.clone(), page.clone(), set()).prop_map(|(origin, page, set)| Op::Store { origin, page, set }),
        3 => (origin, page).prop_map(|(origin, page)| Op::Write { origin, page }),
        1 => (0..20_u8).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

fn url(origin: &str, page: &str) -> CrawlUrl {
    CrawlUrl::parse(&format!("{origin}{page}")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_jar_sends_what_a_list_of_all_cookies_would(ops in prop::collection::vec(op(), 0..300), hosts_max in 1..6_usize) {
        let mut jar = CookieJar::new(hosts_max);
        let mut model = Model { hosts_max, cookies: Vec::new(), used: Vec::new() };
        let mut now = 1_800_u16;
        for op in &ops {
            match op {
                Op::Wait { seconds } => now += u16::from(*seconds),
                Op::Store { origin, page, set } => {
                    jar.store(&url(origin, page), set.text().as_bytes(), u64::from(now));
                    model.store(origin, page, set, i64::from(now));
                }
                Op::Write { origin, page } => {
                    let mut out = Vec::new();
                    let any = jar.write(&url(origin, page), u64::from(now), &mut out);
                    let expected = model.write(origin, page, i64::from(now));
                    prop_assert_eq!(any, !expected.is_empty());
                    prop_assert_eq!(String::from_utf8(out).unwrap(), expected, "{:?}", op);
                }
            }
            prop_assert_eq!(jar.hosts(), model.used.len(), "{:?}", op);
        }
    }

    #[test]
    fn whatever_comes_the_bounds_hold_and_one_line_goes_out(
        lines in prop::collection::vec(almost_a_cookie(), 0..80), hosts_max in 0..4_usize,
    ) {
        let mut jar = CookieJar::new(hosts_max);
        for (at, line) in lines.iter().enumerate() {
            let url = url(ORIGINS[at % ORIGINS.len()], PAGES[at % PAGES.len()]);
            jar.store(&url, line, 50);
            let mut out = Vec::new();
            jar.write(&url, 50, &mut out);
            prop_assert!(!out.iter().any(u8::is_ascii_control), "{:?}", String::from_utf8_lossy(&out));
            prop_assert!(out.len() <= COOKIE_HEADER_BYTES_MAX);
            prop_assert!(jar.hosts() <= hosts_max && jar.bytes() <= COOKIE_JAR_BYTES_MAX);
        }
    }
}

/// Bytes that a cookie is made of, more often than chance has it.
fn almost_a_cookie() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "a=b",
        "=",
        ";",
        "; ",
        "path=/",
        "path=",
        "domain=a.test",
        "expires=",
        "06 Nov 2094 08:49:37",
        "max-age=9",
        "max-age=-",
        "secure",
        "__Host-",
        "\r\n",
        "\0",
        "\t",
        "\u{e4}",
        "Set-Cookie: ",
    ])
    .prop_map(|word| word.as_bytes().to_vec());
    let long = (0..6_000_usize).prop_map(|bytes| vec![b'v'; bytes]);
    let piece = prop_oneof![16 => word, 1 => long, 2 => prop::collection::vec(any::<u8>(), 0..8)];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}
