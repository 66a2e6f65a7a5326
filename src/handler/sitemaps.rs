use super::handler::{Handled, Handler};
use crate::base::fingerprint;
use crate::limits::SITEMAPS_DEEP_MAX;
use crate::proto::lines::Candidate;
use crate::proto::sitemap::{self, SitemapEntry, SitemapLimits};
use crate::proto::url::{CrawlUrl, LinkBase};

impl Handler {
    /// Reads a document as a sitemap. Its pages are one link deep: what names them is not a page. The
    /// depth of a sitemap is how many sitemaps led to it.
    pub(super) fn read_sitemap(&mut self, candidate: &Candidate, document: &[u8], handled: &mut Handled) {
        let base = LinkBase::new(&candidate.url);
        let pages = self.scope.depth_max() > 0;
        let sitemaps = candidate.depth < SITEMAPS_DEEP_MAX;
        // What is no sitemap names nothing, and what is broken names what came before.
        let _ = sitemap::read(document, &SitemapLimits::default(), |entry| match entry {
            SitemapEntry::Page { loc, lastmod } if pages => {
                self.add_page(&base, loc, lastmod.unwrap_or(0), handled);
            }
            SitemapEntry::Sitemap { loc, .. } if sitemaps => {
                if base.resolve(loc.as_bytes(), &mut self.resolved).is_ok()
                    && let Ok(url) = CrawlUrl::from_normal(&self.resolved)
                    && url != candidate.url
                {
                    match self.may_hold_sitemap(candidate, &url) {
                        true => handled.sitemaps.push(url.as_str()),
                        false => handled.out_of_scope += 1,
                    }
                }
            }
            SitemapEntry::Page { .. } | SitemapEntry::Sitemap { .. } => {}
        });
        debug_assert_eq!(handled.links.len(), handled.lastmods.len());
    }

    /// A page that was seen recently is reported again if the sitemap says when it changed: the date may be new.
    fn add_page(&mut self, base: &LinkBase, loc: &str, lastmod: u32, handled: &mut Handled) {
        if base.resolve(loc.as_bytes(), &mut self.resolved).is_err() {
            return;
        }
        let url = self.scope.canon().apply(&self.resolved, &mut self.canonical);
        let fingerprint = fingerprint(url.as_bytes());
        if lastmod == 0 && self.recent.holds(fingerprint) {
            return;
        }
        match CrawlUrl::from_normal(url) {
            Ok(parsed) if self.scope.holds(&parsed) => {
                self.recent.note(fingerprint);
                handled.links.push(url);
                handled.lastmods.push(lastmod);
            }
            Ok(_) => handled.out_of_scope += 1,
            Err(_) => {}
        }
    }

    /// A host may spread its sitemaps over itself, also where the crawl does not take its pages.
    pub(super) fn may_hold_sitemap(&self, named_by: &Candidate, url: &CrawlUrl) -> bool {
        match url.host() == named_by.url.host() {
            true => self.scope.denies(url).is_none(),
            false => self.scope.holds(url),
        }
    }
}
