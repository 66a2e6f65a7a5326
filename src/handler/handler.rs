use super::feeds::{Discover, FeedAnswer, FeedLink, FeedReading};
use super::link_batch::{LINKS_BYTES_KEPT, LinkBatch};
use super::link_header;
use super::recent::Recent;
use super::scope::Scope;
use crate::base::fingerprint;
use crate::limits::{LINKS_PER_PAGE_MAX, REDIRECTS_MAX, SITEMAPS_DEEP_MAX};
use crate::proto::charset::CharsetReader;
use crate::proto::coding;
use crate::proto::html::{self, Fact, RobotsMeta};
use crate::proto::http1::{Head, Span};
use crate::proto::job::{Candidate, DocKind};
use crate::proto::record::ResultCode;
use crate::proto::sitemap::{self, SitemapEntry, SitemapLimits};
use crate::proto::url::{CrawlUrl, LinkBase, LinkError, UrlView};
use std::borrow::Cow;
use std::sync::Arc;

/// A document and what is known of it.
pub struct Page<'a> {
    pub candidate: &'a Candidate,
    pub result: ResultCode,
    pub head: Option<&'a Head>,
    /// The response head as received; the head's spans point into it.
    pub head_bytes: &'a [u8],
    /// The document came in a content coding and stands here without it.
    pub decoded: bool,
    pub document: &'a [u8],
}

/// The result of handling a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// One URL to use in place of the page's own.
    pub new_url: Option<CrawlUrl>,
    /// `new_url` is to be fetched: it is in scope and the chain is not too long.
    pub follow: bool,
    /// Links to be discovered, one deeper than the page; those of a sitemap are one deep.
    pub links: LinkBatch,
    /// When each of `links` changed, in seconds since 1970, by the sitemap that names it; 0 if it does not say. Empty if
    /// this is no sitemap.
    pub lastmods: Vec<u32>,
    /// Sitemaps that a sitemap names: in scope, or on its own host.
    pub sitemaps: LinkBatch,
    /// The canonical URL that the page names, if it is another one. Noted, and not followed.
    pub canonical: Option<CrawlUrl>,
    /// A seed's chain of redirects ends here: this host is in scope from now on.
    pub into_scope: bool,
    /// Links that lead where this crawl does not go.
    pub out_of_scope: u32,
    /// The page, or a header of it, asks not to be shown in an index.
    pub noindex: bool,
    /// Of a feed: what its answer was.
    pub feed: Option<Box<FeedAnswer>>,
    /// Feeds that the page names, where they are looked for.
    pub feeds: Vec<FeedLink>,
}

/// See the folder's docs.
pub struct Handler {
    /// Shared with the other shards until a redirect of a seed extends it.
    pub(super) scope: Arc<Scope>,
    /// Our name in robots directives.
    product_token: String,
    recent: Recent,
    charsets: CharsetReader,
    /// The link being resolved, its canonical form, all of a page, what is noted of each, and those that are new; kept for their
    /// memory.
    pub(super) resolved: String,
    pub(super) canonical: String,
    resolved_all: String,
    noted: Vec<Noted>,
    new_links: LinkBatch,
    /// Empty between pages; kept for its memory.
    targets: Vec<Cow<'static, [u8]>>,
    pub(super) feed_rules: FeedReading,
}

/// A link of the page that is being read.
struct Noted {
    fingerprint: u64,
    /// Where it ends in the text of them all.
    end: usize,
}

/// Stands in for a fingerprint that the shard remembers; no URL of ours has it.
const SEEN: u64 = 0;
/// Types whose links are read.
const HTML_TYPES: [&[u8]; 2] = [b"text/html", b"application/xhtml+xml"];

impl Handler {
    pub fn new(scope: Arc<Scope>, product_token: String) -> Handler {
        Handler {
            scope,
            product_token,
            recent: Recent::default(),
            charsets: CharsetReader::new(),
            resolved: String::new(),
            canonical: String::new(),
            resolved_all: String::new(),
            noted: Vec::new(),
            new_links: LinkBatch::default(),
            targets: Vec::new(),
            feed_rules: FeedReading::default(),
        }
    }

    /// The same, with other rules for feeds.
    pub fn with_feeds(self, feed_rules: FeedReading) -> Handler {
        Handler { feed_rules, ..self }
    }

    /// Adds a host to the scope, to which another shard found that a seed leads.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        Arc::make_mut(&mut self.scope).add(url);
    }

    pub fn handle(&mut self, page: &Page<'_>) -> Handled {
        let mut handled = Handled::default();
        let candidate = page.candidate;
        let Some(head) = page.head else { return handled };
        if page.result == ResultCode::Redirect {
            let target = redirect_target(&candidate.url, head, page.head_bytes);
            handled.new_url = target.map(|url| self.in_canonical_form(url));
            handled.follow = handled.new_url.as_ref().is_some_and(|url| self.may_follow(candidate, url));
            if candidate.provenance.kind == DocKind::Feed {
                handled.feed = Some(Box::new(FeedAnswer::of(head, page.head_bytes)));
            }
            return handled;
        }
        if candidate.provenance.kind == DocKind::Feed {
            self.read_feed(page, head, &mut handled);
            return handled;
        }
        if candidate.provenance.seed_chain && !candidate.provenance.is_seed() && page.result.is_success() {
            handled.into_scope = true;
            Arc::make_mut(&mut self.scope).add(&candidate.url);
        }
        if !page.result.is_success() {
            return handled;
        }
        let said = header_says(head, page.head_bytes, &self.product_token);
        handled.noindex = said.noindex;
        if candidate.provenance.kind == DocKind::Sitemap {
            if !said.nofollow {
                self.read_sitemap(candidate, page.document, &mut handled);
            }
            return handled;
        }
        if let Some(target) = link_header::canonical(head, page.head_bytes) {
            handled.canonical = self.canonical_of(candidate, &LinkBase::new(&candidate.url), &target);
        }
        let readable = page.decoded || coding::is_plain(&coding::header_of(head, page.head_bytes));
        if readable && is_html(head.content_type.of(page.head_bytes), page.document) {
            // Out of its place while the facts of a page borrow from its text.
            let mut charsets = std::mem::take(&mut self.charsets);
            self.read_html(page, head, &mut charsets, said, &mut handled);
            self.charsets = charsets;
        }
        handled
    }

    fn read_html(
        &mut self,
        page: &Page<'_>,
        head: &Head,
        charsets: &mut CharsetReader,
        said: RobotsMeta,
        handled: &mut Handled,
    ) {
        let candidate = page.candidate;
        let tld = candidate.url.host().rsplit('.').next();
        let text = charsets.read(page.document, head.content_type.of(page.head_bytes), tld);
        let mut facts = Facts { said, links: std::mem::take(&mut self.targets), ..Facts::default() };
        html::scan_as(self.product_token.as_bytes(), text.bytes, |fact| facts.take(fact));
        handled.noindex = facts.said.noindex;
        // A `<base>` counts for the links before it, too, so links are resolved only now.
        let mut base = LinkBase::new(&candidate.url).of_page_in(text.encoding);
        if let Some(href) = &facts.base
            && base.resolve(href, &mut self.resolved).is_ok()
            && let Ok(url) = CrawlUrl::from_normal(&self.resolved)
        {
            base = LinkBase::new(&url).of_page_in(text.encoding);
        }
        if let Some(target) = &facts.canonical
            && handled.canonical.is_none()
        {
            handled.canonical = self.canonical_of(candidate, &base, target);
        }
        if self.feed_rules.discover != Discover::Off {
            self.find_feeds(text.bytes, page, head, handled);
        }
        if !facts.said.nofollow && candidate.provenance.depth < self.scope.depth_max() {
            self.read_links(&base, &facts.links, handled);
        }
        if let Some(target) = &facts.refresh
            && base.resolve(target, &mut self.resolved).is_ok()
            && let Ok(url) = CrawlUrl::from_normal(&self.resolved)
            && let url = self.in_canonical_form(url)
            && url != candidate.url
        {
            handled.follow = self.may_follow(candidate, &url);
            handled.new_url = Some(url);
        }
        self.targets = emptied(facts.links);
    }

    /// Keeps the links that are new to this shard and in scope.
    fn read_links(&mut self, base: &LinkBase, targets: &[Cow<'_, [u8]>], handled: &mut Handled) {
        self.resolved_all.clear();
        self.noted.clear();
        for target in targets {
            if base.resolve(target, &mut self.resolved).is_ok() {
                let url = self.scope.canon().apply(&self.resolved, &mut self.canonical);
                self.resolved_all.push_str(url);
                let fingerprint = fingerprint(url.as_bytes()).max(SEEN + 1);
                self.noted.push(Noted { fingerprint, end: self.resolved_all.len() });
            }
        }
        // One after the other, with nothing between: the table is larger than the cache, and so its misses overlap.
        for noted in &mut self.noted {
            if self.recent.holds(noted.fingerprint) {
                noted.fingerprint = SEEN;
            }
        }
        let mut end_before = 0;
        for &Noted { fingerprint, end } in &self.noted {
            let url = &self.resolved_all[std::mem::replace(&mut end_before, end)..end];
            // A link that stands twice on the page was noted in this very loop.
            if fingerprint == SEEN || self.recent.holds(fingerprint) {
                continue;
            }
            match UrlView::of(url) {
                // Only what is in scope is remembered: the rest may come into scope later.
                Ok(parsed) if self.scope.holds(parsed) => {
                    self.recent.note(fingerprint);
                    self.new_links.push(url);
                }
                Ok(_) => handled.out_of_scope += 1,
                Err(_) => {}
            }
        }
        handled.links = self.new_links.take();
        self.resolved_all.clear();
        self.resolved_all.shrink_to(LINKS_BYTES_KEPT);
    }

    /// The other URL that a page wants to be known by.
    fn canonical_of(&mut self, candidate: &Candidate, base: &LinkBase, target: &[u8]) -> Option<CrawlUrl> {
        base.resolve(target, &mut self.resolved).ok()?;
        let url = CrawlUrl::from_normal(&self.resolved).ok()?;
        Some(self.in_canonical_form(url)).filter(|url| *url != candidate.url)
    }

    fn in_canonical_form(&mut self, url: CrawlUrl) -> CrawlUrl {
        let text = self.scope.canon().apply(url.as_str(), &mut self.canonical);
        if text == url.as_str() {
            return url;
        }
        CrawlUrl::from_normal(text).unwrap_or(url)
    }

    fn may_follow(&self, candidate: &Candidate, target: &CrawlUrl) -> bool {
        // Where a seed or a story leads is where it was meant to lead, unless a rule forbids it; and a sitemap stays one.
        let in_scope = match candidate.provenance.seed_chain || candidate.provenance.is_story() {
            true => self.scope.denies(target).is_none(),
            false if candidate.provenance.kind == DocKind::Sitemap => {
                self.may_hold_sitemap(candidate, target)
            }
            false => self.scope.holds(target),
        };
        candidate.provenance.hops < REDIRECTS_MAX && in_scope
    }

    /// Reads a document as a sitemap. Its pages are one link deep: what names them is not a page. The
    /// depth of a sitemap is how many sitemaps led to it.
    fn read_sitemap(&mut self, candidate: &Candidate, document: &[u8], handled: &mut Handled) {
        let base = LinkBase::new(&candidate.url);
        let pages = self.scope.depth_max() > 0;
        let sitemaps = candidate.provenance.depth < SITEMAPS_DEEP_MAX;
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
        match UrlView::of(url) {
            Ok(parsed) if self.scope.holds(parsed) => {
                self.recent.note(fingerprint);
                handled.links.push(url);
                handled.lastmods.push(lastmod);
            }
            Ok(_) => handled.out_of_scope += 1,
            Err(_) => {}
        }
    }

    /// A host may spread its sitemaps over itself, also where the crawl does not take its pages.
    fn may_hold_sitemap(&self, named_by: &Candidate, url: &CrawlUrl) -> bool {
        match url.host() == named_by.url.host() {
            true => self.scope.denies(url).is_none(),
            false => self.scope.holds(url),
        }
    }
}

/// The facts of a page, before any of them is resolved.
#[derive(Default)]
struct Facts<'a> {
    base: Option<Cow<'a, [u8]>>,
    links: Vec<Cow<'a, [u8]>>,
    canonical: Option<Cow<'a, [u8]>>,
    refresh: Option<Cow<'a, [u8]>>,
    /// None of its links is to be followed, or it is not to be indexed: by its headers and by itself.
    said: RobotsMeta,
}

impl<'a> Facts<'a> {
    fn take(&mut self, fact: Fact<'a>) {
        match fact {
            Fact::Base(href) => self.base = self.base.take().or(Some(href)),
            Fact::Link { nofollow: true, .. } => {}
            Fact::Link { target, .. } => {
                if self.links.len() < LINKS_PER_PAGE_MAX {
                    self.links.push(target);
                }
            }
            Fact::Canonical(target) => self.canonical = Some(target),
            Fact::Refresh { target, .. } => self.refresh = self.refresh.take().or(Some(target)),
            Fact::Robots(robots) => {
                self.said.nofollow |= robots.nofollow;
                self.said.noindex |= robots.noindex;
            }
        }
    }
}

/// The memory of a list, for another that borrows from elsewhere. What has no elements is collected in its place.
fn emptied(mut links: Vec<Cow<'_, [u8]>>) -> Vec<Cow<'static, [u8]>> {
    links.clear();
    links.into_iter().map(|_| Cow::Borrowed(&[][..])).collect()
}

/// The target of a Location header, as the URL of a page of its own; `bytes` is what the head was parsed from. One that
/// is empty, or only a fragment, names the page it stands on.
pub fn redirect_target(from: &CrawlUrl, head: &Head, bytes: &[u8]) -> Option<CrawlUrl> {
    if head.location == Span::default() {
        return None;
    }
    let mut resolved = String::new();
    match LinkBase::new(from).resolve(head.location.of(bytes), &mut resolved) {
        Ok(()) => CrawlUrl::from_normal(&resolved).ok(),
        Err(LinkError::SamePage) => Some(from.clone()),
        Err(LinkError::Url(_)) => None,
    }
}

/// What all X-Robots-Tag headers of a response forbid.
fn header_says(head: &Head, head_bytes: &[u8], product_token: &str) -> RobotsMeta {
    let mut said = RobotsMeta::default();
    if head.x_robots_tag == Span::default() {
        return said;
    }
    for (name, value) in head.headers(head_bytes) {
        if name.eq_ignore_ascii_case(b"x-robots-tag") {
            add_directives(&value, product_token, &mut said);
        }
    }
    said
}

/// `nofollow`, `noindex`, or `none` for both, for every agent or for ours: `otherbot: nofollow` is neither. A name counts
/// up to the end of its header.
fn add_directives(value: &[u8], product_token: &str, said: &mut RobotsMeta) {
    let mut ours = true;
    for part in value.split(|&b| b == b',') {
        let mut directive = part.trim_ascii();
        if let Some(colon) = memchr::memchr(b':', directive) {
            let name = directive[..colon].trim_ascii();
            directive = directive[colon + 1..].trim_ascii();
            // What has a value of its own is no agent.
            if !name.starts_with(b"max-") && !name.eq_ignore_ascii_case(b"unavailable_after") {
                ours = name.eq_ignore_ascii_case(product_token.as_bytes());
            }
        }
        if ours {
            let both = directive.eq_ignore_ascii_case(b"none");
            said.nofollow |= both || directive.eq_ignore_ascii_case(b"nofollow");
            said.noindex |= both || directive.eq_ignore_ascii_case(b"noindex");
        }
    }
}

/// By its type; a document without one is looked at.
pub(super) fn is_html(content_type: &[u8], document: &[u8]) -> bool {
    let essence = content_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    if essence.is_empty() {
        // Before it may stand a byte order mark, and zeros are halves of characters in UTF-16.
        let marks =
            |octet: &u8| matches!(octet, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff) || octet.is_ascii_whitespace();
        return document.iter().find(|octet| !marks(octet)) == Some(&b'<');
    }
    HTML_TYPES.iter().any(|html| essence.eq_ignore_ascii_case(html))
}
