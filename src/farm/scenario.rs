//! Webs by name: a set of values for the settings, for a purpose.

use super::site_spec::SiteSpec;
use crate::base::named_enum;

named_enum! {
    /// What a farm is for.
    pub enum Scenario {
        /// As the web is: lengths and latencies that differ, redirects, errors, failures, gzip and chunks.
        Web = "web",
        /// Nothing but documents of one length, at once.
        Fast = "fast",
        /// Pages of which most is the frame of their host.
        Templates = "templates",
        /// Hosts and pages that are held back.
        Slow = "slow",
        /// Answers that are reset, cut and malformed.
        Broken = "broken",
        /// URLs without an end.
        Traps = "traps",
        /// The fast one over TLS.
        Tls = "tls",
    }
}

impl Scenario {
    /// Its values.
    pub fn spec(self) -> SiteSpec {
        let plain = SiteSpec::default();
        match self {
            Scenario::Web => SiteSpec {
                page_bytes: 30_000,
                page_sigma: 1.0,
                latency_ms: 60,
                latency_sigma: 1.0,
                redirects: 0.08,
                errors: 0.06,
                broken: 0.06,
                gzip: 0.6,
                chunked: 0.3,
                ..plain
            },
            Scenario::Fast => plain,
            Scenario::Templates => SiteSpec { page_bytes: 20_000, frame: 0.7, ..plain },
            Scenario::Slow => SiteSpec {
                hosts: 500,
                slow_hosts: 500,
                latency_ms: 200,
                latency_sigma: 1.0,
                slow: 0.1,
                slow_ms: 3_000,
                ..plain
            },
            Scenario::Broken => SiteSpec { hosts: 100, slow_hosts: 90, errors: 0.1, broken: 0.3, ..plain },
            Scenario::Traps => SiteSpec { hosts: 10, page_bytes: 3_000, traps: true, ..plain },
            Scenario::Tls => SiteSpec { tls: true, ..plain },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::misbehaviour::Misbehaviour;
    use super::super::site::{PageKind, Site};
    use super::*;
    use crate::base::SortedSet;

    #[test]
    fn each_can_be_made_up_and_is_another() {
        let all: Vec<SiteSpec> = Scenario::ALL.iter().map(|scenario| scenario.spec()).collect();
        for (at, spec) in all.iter().enumerate() {
            assert_eq!(spec.check(), Ok(()), "{}", Scenario::ALL[at].name());
            assert!(!all[..at].contains(spec), "{}", Scenario::ALL[at].name());
        }
        assert_eq!(Scenario::Fast.spec(), SiteSpec::default());
        assert_eq!(SiteSpec { tls: false, ..Scenario::Tls.spec() }, Scenario::Fast.spec());
    }

    #[test]
    fn the_web_is_what_it_says() {
        let site = Site::new(Scenario::Web.spec()).unwrap();
        let all: Vec<(u32, u32)> = (0..1000).flat_map(|host| (0..20).map(move |page| (host, page))).collect();
        let kinds = |of: fn(PageKind) -> bool| {
            all.iter().filter(|(host, page)| of(site.kind(*host, *page))).count() as f64 / all.len() as f64
        };
        for (share, expected) in [
            (kinds(|kind| matches!(kind, PageKind::Redirect { .. })), 0.08),
            (kinds(|kind| matches!(kind, PageKind::Error { .. })), 0.06),
            (kinds(|kind| matches!(kind, PageKind::Broken(_))), 0.06),
        ] {
            assert!((share - expected).abs() < 0.01, "{share} for {expected}");
        }
    }

    #[test]
    fn what_is_broken_is_so_in_every_way() {
        let site = Site::new(Scenario::Broken.spec()).unwrap();
        let spec = site.spec();
        let pages = (0..spec.hosts).flat_map(|host| (0..spec.pages).map(move |page| (host, page)));
        let ways: SortedSet<String> = pages
            .filter_map(|(host, page)| match site.kind(host, page) {
                PageKind::Broken(breakage) => Some(format!("{breakage:?}")),
                _ => None,
            })
            .collect();
        assert_eq!(ways.len(), 4);
        // Each misbehaviour with its robots.txt in order, and without.
        assert!(spec.slow_hosts >= 2 * Misbehaviour::ALL.len() as u32);
    }
}
