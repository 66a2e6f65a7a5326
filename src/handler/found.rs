use super::link_batch::LinkBatch;
use super::recent::Recent;
use super::scope::Scope;
use crate::base::fingerprint;
use crate::limits::{LINKS_PER_PAGE_MAX, REDIRECTS_MAX};
use crate::proto::html::{self, Fact};
use crate::proto::http1::Head;
use crate::proto::lines::Candidate;
use crate::proto::record::ResultCode;
use crate::proto::url::{CrawlUrl, LinkBase, Scheme};

/// A document and what is known of it.
pub struct Page<'a> {
    pub candidate: &'a Candidate,
    pub result: ResultCode,
    pub head: Option<&'a Head>,
    /// The response head as received; the head's spans point into it.
    pub head_bytes: &'a [u8],
    pub document: &'a [u8],
}

/// What a page came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// One URL to use in place of the page's own.
    pub new_url: Option<CrawlUrl>,
    /// `new_url` is to be fetched: it is in scope and the chain is not too long.
    pub follow: bool,
    /// Links to be discovered, one deeper than the page.
    pub links: LinkBatch,
    /// A seed's chain of redirects ends here: this host is in scope from now on.
    pub into_scope: bool,
    /// Links that lead where this crawl does not go.
    pub out_of_scope: u32,
}

/// See the folder's docs.
pub struct Handler {
    scope: Scope,
    recent: Recent,
    /// The link being resolved; kept for its memory.
    resolved: String,
}

/// A `<base>` further down than this comes too late to be one.
const BASE_WITHIN: usize = 8 * 1024;
/// Types whose links are read.
const HTML_TYPES: [&[u8]; 2] = [b"text/html", b"application/xhtml+xml"];

impl Handler {
    pub fn new(scope: Scope) -> Handler {
        Handler {
            scope,
            recent: Recent::new(),
            resolved: String::new(),
        }
    }

    /// Another shard found where a seed leads.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        self.scope.add(url);
    }

    pub fn handle(&mut self, page: &Page<'_>) -> Handled {
        let mut handled = Handled::default();
        let candidate = page.candidate;
        let Some(head) = page.head else { return handled };
        if page.result == ResultCode::Redirect {
            handled.new_url = redirect_target(&candidate.url, head.location.of(page.head_bytes));
            handled.follow = handled
                .new_url
                .as_ref()
                .is_some_and(|url| self.may_follow(candidate, url));
            return handled;
        }
        if candidate.seed_chain && candidate.hops > 0 && page.result.is_success() {
            handled.into_scope = true;
            self.scope.add(&candidate.url);
        }
        let encoded = !head.content_encoding.of(page.head_bytes).is_empty();
        if !page.result.is_success()
            || encoded
            || !is_html(head.content_type.of(page.head_bytes), page.document)
        {
            return handled;
        }
        self.read_html(page, &mut handled);
        handled
    }

    fn read_html(&mut self, page: &Page<'_>, handled: &mut Handled) {
        let candidate = page.candidate;
        let deeper = candidate.depth < self.scope.depth_max();
        let base = base_of(page, &mut self.resolved);
        let mut nofollow_page = false;
        let mut refresh = None;
        let (scope, recent, resolved) = (&self.scope, &mut self.recent, &mut self.resolved);
        html::scan(page.document, &mut |fact| match fact {
            Fact::Base(_) => {}
            Fact::Link { target, nofollow, .. } => {
                if nofollow || nofollow_page || !deeper || handled.links.len() >= LINKS_PER_PAGE_MAX {
                    return;
                }
                if base.resolve(&target, resolved).is_err() {
                    return;
                }
                let print = fingerprint(resolved.as_bytes());
                if recent.holds(print) {
                    return;
                }
                match CrawlUrl::from_normal(resolved) {
                    // Only what is in scope is remembered: the rest may come into scope later.
                    Ok(url) if can_fetch(&url) && scope.holds(&url) => {
                        recent.note(print);
                        handled.links.push(resolved);
                    }
                    Ok(_) => handled.out_of_scope += 1,
                    Err(_) => {}
                }
            }
            Fact::Refresh { target, .. } => {
                if refresh.is_none() && base.resolve(&target, resolved).is_ok() {
                    refresh = CrawlUrl::from_normal(resolved).ok();
                }
            }
            Fact::Robots(robots) => nofollow_page |= robots.nofollow,
        });
        if nofollow_page {
            handled.links = LinkBatch::default();
        }
        if let Some(url) = refresh.filter(|url| *url != candidate.url) {
            handled.follow = self.may_follow(candidate, &url);
            handled.new_url = Some(url);
        }
    }

    fn may_follow(&self, candidate: &Candidate, target: &CrawlUrl) -> bool {
        candidate.hops < REDIRECTS_MAX
            && can_fetch(target)
            && (candidate.seed_chain || self.scope.holds(target))
    }
}

/// What the links of a page are resolved against. A `<base>` counts for the links before it, too, so it is looked
/// for first; few pages have one.
fn base_of(page: &Page<'_>, resolved: &mut String) -> LinkBase {
    let own = LinkBase::new(&page.candidate.url);
    let start = &page.document[..page.document.len().min(BASE_WITHIN)];
    let named = |at: usize| {
        start[at..]
            .get(1..5)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"base"))
    };
    if !memchr::memchr_iter(b'<', start).any(named) {
        return own;
    }
    let mut base = None;
    html::scan(page.document, |fact| {
        if let Fact::Base(href) = fact
            && base.is_none()
            && own.resolve(&href, resolved).is_ok()
        {
            base = CrawlUrl::from_normal(resolved).ok();
        }
    });
    base.map_or(own, |url| LinkBase::new(&url))
}

/// TLS is not spoken yet, so an https URL would only fail.
fn can_fetch(url: &CrawlUrl) -> bool {
    url.scheme() == Scheme::Http
}

/// The target of a Location header, as the URL of a page of its own.
pub fn redirect_target(from: &CrawlUrl, location: &[u8]) -> Option<CrawlUrl> {
    let mut resolved = String::new();
    LinkBase::new(from).resolve(location, &mut resolved).ok()?;
    CrawlUrl::from_normal(&resolved).ok()
}

/// By its type; a document without one is looked at.
fn is_html(content_type: &[u8], document: &[u8]) -> bool {
    let essence = content_type
        .split(|&b| b == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if essence.is_empty() {
        return document.trim_ascii_start().starts_with(b"<");
    }
    HTML_TYPES.iter().any(|html| essence.eq_ignore_ascii_case(html))
}
