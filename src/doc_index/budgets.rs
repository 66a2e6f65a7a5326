use super::query_variants::QueryVariants;
use super::rules::IndexRules;
use crate::base::fingerprint;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;

/// How many URLs of a host, of a domain, and of one set of query parameters are taken in.
pub(super) struct Budgets {
    /// 0 for no limit.
    pages_per_host: u32,
    pages_per_domain: u32,
    variants: QueryVariants,
    /// URLs taken in by domain, if that is limited.
    by_domain: RapidHashMap<u64, u32>,
}

/// An entry of the map, with the byte that it has beside it.
const PER_DOMAIN: usize = size_of::<(u64, u32)>() + 1;

impl Budgets {
    pub fn new(rules: &IndexRules) -> Budgets {
        Budgets {
            pages_per_host: rules.pages_per_host,
            pages_per_domain: rules.pages_per_domain,
            variants: QueryVariants::new(rules.query_variants_max),
            by_domain: RapidHashMap::default(),
        }
    }

    /// Whether one more URL may be taken in, of a host with `host_known` of them. If it may, it is counted.
    pub fn admit(&mut self, url: &str, host_known: u32) -> bool {
        if self.pages_per_host > 0 && host_known >= self.pages_per_host {
            return false;
        }
        if !self.variants.admit(url) {
            return false;
        }
        if self.pages_per_domain > 0 {
            let known = self.by_domain.entry(domain_of(url)).or_default();
            if *known >= self.pages_per_domain {
                return false;
            }
            *known += 1;
        }
        true
    }

    /// Counts a URL that was taken in by an earlier process.
    pub fn count(&mut self, url: &str) {
        self.variants.admit(url);
        if self.pages_per_domain > 0 {
            *self.by_domain.entry(domain_of(url)).or_default() += 1;
        }
    }

    /// URLs that count against the budget of a domain; `None` without one.
    pub fn domain_known(&self, url: &str) -> Option<u32> {
        (self.pages_per_domain > 0).then(|| self.by_domain.get(&domain_of(url)).copied().unwrap_or(0))
    }

    pub fn variants(&self) -> &QueryVariants {
        &self.variants
    }

    pub fn ram_bytes(&self) -> usize {
        self.variants.ram_bytes() + self.by_domain.capacity() * PER_DOMAIN
    }
}

fn domain_of(url: &str) -> u64 {
    let url = CrawlUrl::from_normal(url).ok();
    fingerprint(url.as_ref().map_or("", CrawlUrl::registrable_domain).as_bytes())
}
