use crate::base::rfc3339;
use crate::config::Config;
use crate::engine::crawl::provider::Provider;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::explain::{Answer, Explanation};
use crate::engine::runtime::counters::SeedsLost;
use crate::limits::REDIRECTS_MAX;
use crate::proto::url::CrawlUrl;

/// The URLs that this run was given, to be asked about at its end: a crawl that had none of them must say so.
#[derive(Default)]
pub(crate) struct SeedFates {
    seeds: Vec<CrawlUrl>,
    given: usize,
    rules: CrawlRules,
}

/// Seeds that are asked about. Of more than these, the pages of the run tell.
const SEEDS_ASKED_MAX: usize = 1_000;
/// More of them would only hide the first.
const SEEDS_TOLD_MAX: usize = 10;

impl SeedFates {
    pub fn new(seeds: &[CrawlUrl], config: &Config) -> SeedFates {
        let asked = &seeds[..seeds.len().min(SEEDS_ASKED_MAX)];
        SeedFates { seeds: asked.to_vec(), given: seeds.len(), rules: CrawlRules::of(config) }
    }

    /// What happened to each, if all were answered for and none could be had.
    pub fn lost(&self, provider: &Provider, success: u64, unix_ms: u64) -> Option<SeedsLost> {
        let has_more = self.given > self.seeds.len();
        if self.seeds.is_empty() || (has_more && success > 0) {
            return None;
        }
        let (mut lost, now) = (SeedsLost::default(), rfc3339(unix_ms));
        for seed in &self.seeds {
            let why = self.why_lost(provider, seed, &now)?;
            if lost.told.len() < SEEDS_TOLD_MAX {
                lost.told.push((seed.to_string(), why));
            }
        }
        lost.more = self.given - lost.told.len();
        Some(lost)
    }

    /// Why a seed, or where it leads, could not be had; `None` if it could, or nobody knows yet.
    fn why_lost(&self, provider: &Provider, seed: &CrawlUrl, now: &str) -> Option<String> {
        let mut url = seed.clone();
        for _ in 0..=REDIRECTS_MAX {
            let looked = provider.look(&url);
            let Explanation { answer, said } = Explanation::of(&looked, &self.rules, now);
            let leads_to = looked.dossier.and_then(|dossier| dossier.new_url);
            match (answer, leads_to.and_then(|to| CrawlUrl::parse(&to).ok())) {
                (Answer::Redirected, Some(to)) => url = to,
                (answer, _) if answer.is_no() || answer == Answer::FailedDueAgain => {
                    let hop = if url == *seed { String::new() } else { format!("{url}: ") };
                    return Some(format!("{hop}{said}"));
                }
                _ => return None,
            }
        }
        None
    }
}
