//! What to make up: sizes and shares, and where hosts live.

use std::net::Ipv4Addr;

use super::newsroom::NewsSpec;
use super::spread::SPREAD_MAX;

use serde::Serialize;
use thiserror::Error;

/// Host indices stay below this: 127.16.0.0 to 127.143.255.255.
pub const HOSTS_MAX: u32 = 1 << 23;
/// A page is composed in memory, once per thread.
const PAGE_BYTES_MAX: u32 = 64 << 20;
/// Beyond it nearly every draw would be at one of its bounds.
const SIGMA_MAX: f64 = 4.0;
const FIRST_ADDR: u32 = u32::from_be_bytes([127, 16, 0, 0]);

const _: () = assert!(FIRST_ADDR + (HOSTS_MAX - 1) < u32::from_be_bytes([127, 255, 255, 255]));

/// The made-up web. Shares are fractions of all pages of a host, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteSpec {
    pub seed: u64,
    pub hosts: u32,
    /// Hosts behind those, which are slow or broken: see [`Misbehaviour`](super::Misbehaviour).
    pub slow_hosts: u32,
    /// Pages per host, the one at `/` included.
    pub pages: u32,
    /// Length of a document's body, or the median of them; one whose links alone are longer is as long as it must
    /// be.
    pub page_bytes: u32,
    /// How far lengths are from their median: the sigma of a log-normal draw for each page. 0 = all alike.
    pub page_sigma: f64,
    /// Share of a document's bytes that is the same on all pages of its host.
    pub frame: f64,
    /// Links of a page to pages of its own host. The link to a denied page and those to other hosts come on
    /// top.
    pub links: u16,
    /// Page 0 of host i links to page 0 of hosts 2i+1 and 2i+2.
    pub cross_links: bool,
    /// Every answer is held back this long, or the median of that.
    pub latency_ms: u32,
    /// How far hosts are from that median: the sigma of a log-normal draw for each. 0 = all alike.
    pub latency_sigma: f64,
    pub redirects: f64,
    pub errors: f64,
    /// Pages whose answer is held back `slow_ms` longer than the latency.
    pub slow: f64,
    pub slow_ms: u32,
    pub broken: f64,
    /// Documents sent in chunks and not with a Content-Length.
    pub chunked: f64,
    /// Documents that go in gzip to a client that takes it.
    pub gzip: f64,
    /// Every host also has what traps crawlers: see [`Trap`](super::Trap).
    pub traps: bool,
    /// Pages per host below `/private/`, which robots.txt denies.
    pub denied: u16,
    /// Close the connection after every answer.
    pub close: bool,
    /// Crawl-delay of every robots.txt, in seconds.
    pub crawl_delay_s: Option<f64>,
    /// Every URL is an https one, and only TLS is spoken.
    pub tls: bool,
    pub news: NewsSpec,
    /// When feeds began to post, in milliseconds since 1970.
    pub began_unix_ms: u64,
}

impl Default for SiteSpec {
    fn default() -> SiteSpec {
        SiteSpec {
            seed: 1,
            hosts: 1000,
            slow_hosts: 0,
            pages: 20,
            page_bytes: 10_000,
            page_sigma: 0.0,
            frame: 0.0,
            links: 20,
            cross_links: true,
            latency_ms: 0,
            latency_sigma: 0.0,
            redirects: 0.0,
            errors: 0.0,
            slow: 0.0,
            slow_ms: 2000,
            broken: 0.0,
            chunked: 0.0,
            gzip: 0.0,
            traps: false,
            denied: 1,
            close: false,
            crawl_delay_s: None,
            tls: false,
            news: NewsSpec::default(),
            began_unix_ms: 0,
        }
    }
}

impl SiteSpec {
    /// Hosts of either sort.
    pub fn all_hosts(&self) -> u32 {
        self.hosts.saturating_add(self.slow_hosts)
    }

    /// Whether such a web can be made up.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.hosts == 0 || self.all_hosts() > HOSTS_MAX {
            return Err(SpecError::Hosts(self.all_hosts()));
        }
        if self.pages == 0 {
            return Err(SpecError::NoPages);
        }
        for (name, sigma) in [("page", self.page_sigma), ("latency", self.latency_sigma)] {
            if !(0.0..=SIGMA_MAX).contains(&sigma) {
                return Err(SpecError::Sigma { name, sigma });
            }
        }
        let bytes_max = match self.page_sigma > 0.0 {
            true => PAGE_BYTES_MAX / SPREAD_MAX,
            false => PAGE_BYTES_MAX,
        };
        if self.page_bytes > bytes_max {
            return Err(SpecError::PageBytes { bytes: self.page_bytes, max: bytes_max });
        }
        if self.pages > 1 && self.links == 0 {
            return Err(SpecError::NoLinks);
        }
        if !(0.001..=1e9).contains(&self.news.every_s) {
            return Err(SpecError::FeedEvery(self.news.every_s));
        }
        let shares = [
            ("redirects", self.redirects),
            ("errors", self.errors),
            ("slow", self.slow),
            ("broken", self.broken),
            ("chunked", self.chunked),
            ("gzip", self.gzip),
            ("frame", self.frame),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(SpecError::Share { name, share });
            }
        }
        let kinds = self.redirects + self.errors + self.slow + self.broken;
        // Shares come from decimal fractions whose sum may miss 1 by a rounding.
        if kinds > 1.0 + 1e-9 {
            return Err(SpecError::SharesSum(kinds));
        }
        match self.crawl_delay_s {
            Some(delay_s) if !delay_s.is_finite() || delay_s < 0.0 => Err(SpecError::CrawlDelay(delay_s)),
            _ => Ok(()),
        }
    }
}

/// Why a [`SiteSpec`] cannot be made up.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpecError {
    #[error("{0} hosts: from 1 to {HOSTS_MAX} fit into 127.0.0.0/8")]
    Hosts(u32),
    #[error("0 pages: a host has at least the page at /")]
    NoPages,
    #[error("pages of {bytes} bytes: at most {max}")]
    PageBytes { bytes: u32, max: u32 },
    #[error("{name} sigma of {sigma}: from 0 to {SIGMA_MAX}")]
    Sigma { name: &'static str, sigma: f64 },
    #[error("0 links: pages beyond the first need at least 1 to be reached")]
    NoLinks,
    #[error("share of {name} is {share}: from 0 to 1")]
    Share { name: &'static str, share: f64 },
    #[error("shares of redirects, errors, slow and broken sum to {0}: at most 1")]
    SharesSum(f64),
    #[error("a story every {0} s: from 0.001 to 1000000000")]
    FeedEvery(f64),
    #[error("crawl delay of {0} s: 0 or more")]
    CrawlDelay(f64),
}

/// `h{host}.farm.test`.
pub fn host_name(host: u32) -> String {
    format!("h{host}.farm.test")
}

/// 127.16.0.0 + `host`.
pub fn host_addr(host: u32) -> Ipv4Addr {
    assert!(host < HOSTS_MAX, "host {host} has no address");
    Ipv4Addr::from(FIRST_ADDR + host)
}

/// The host at an address, whether or not a farm is as large as that.
pub fn host_index(addr: Ipv4Addr) -> Option<u32> {
    u32::from(addr).checked_sub(FIRST_ADDR).filter(|&host| host < HOSTS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_there_and_back() {
        assert_eq!(host_addr(0), Ipv4Addr::new(127, 16, 0, 0));
        assert_eq!(host_addr(0x1_02_03), Ipv4Addr::new(127, 17, 2, 3));
        for host in [0, 1, 255, 256, 65_535, 65_536, 7_999_999, HOSTS_MAX - 1] {
            assert_eq!(host_index(host_addr(host)), Some(host));
        }
        assert_eq!(host_index(Ipv4Addr::new(127, 0, 0, 1)), None);
        assert_eq!(host_index(Ipv4Addr::new(127, 144, 0, 0)), None);
        assert_eq!(host_name(12), "h12.farm.test");
    }

    #[test]
    fn impossible_specs_are_named() {
        let spec = SiteSpec::default();
        assert_eq!(spec.check(), Ok(()));
        let refused = |spec: SiteSpec| spec.check().unwrap_err();
        assert_eq!(refused(SiteSpec { hosts: 0, ..spec.clone() }), SpecError::Hosts(0));
        assert_eq!(
            refused(SiteSpec { hosts: HOSTS_MAX + 1, ..spec.clone() }),
            SpecError::Hosts(HOSTS_MAX + 1)
        );
        assert_eq!(
            refused(SiteSpec { slow_hosts: HOSTS_MAX, ..spec.clone() }),
            SpecError::Hosts(HOSTS_MAX + 1_000)
        );
        assert_eq!(refused(SiteSpec { pages: 0, ..spec.clone() }), SpecError::NoPages);
        assert_eq!(refused(SiteSpec { links: 0, ..spec.clone() }), SpecError::NoLinks);
        let large = SiteSpec { page_bytes: 4 << 20, ..spec.clone() };
        assert_eq!(large.check(), Ok(()));
        assert_eq!(
            refused(SiteSpec { page_sigma: 0.5, ..large }).to_string(),
            "pages of 4194304 bytes: at most 2097152"
        );
        assert_eq!(
            refused(SiteSpec { latency_sigma: 4.5, ..spec.clone() }).to_string(),
            "latency sigma of 4.5: from 0 to 4"
        );
        assert!(SiteSpec { page_sigma: f64::NAN, ..spec.clone() }.check().is_err());
        assert_eq!(
            refused(SiteSpec { gzip: 2.0, ..spec.clone() }).to_string(),
            "share of gzip is 2: from 0 to 1"
        );
        assert_eq!(
            refused(SiteSpec { errors: -0.1, ..spec.clone() }),
            SpecError::Share { name: "errors", share: -0.1 }
        );
        assert_eq!(
            refused(SiteSpec { redirects: 0.75, broken: 0.5, ..spec.clone() }),
            SpecError::SharesSum(1.25)
        );
        assert!(SiteSpec { redirects: 0.1, errors: 0.2, slow: 0.7, ..spec.clone() }.check().is_ok());
        assert!(matches!(
            refused(SiteSpec { crawl_delay_s: Some(f64::NAN), ..spec }),
            SpecError::CrawlDelay(_)
        ));
    }
}
