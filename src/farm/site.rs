//! Pages: the tree that makes them reachable, what each of them is, and the bytes of a document.
//!
//! ```text
//!   /  ── page 0 of the host, always a document
//!   ├── /p/1.html ─┬─ /p/11.html   A page links to its children first; its other links repeat pages of
//!   ├── /p/2.html  ├─ …            the host, so that a crawl already knows most of them. Only pages without
//!   └── …          └─ /p/20.html   children may be a redirect, an error or broken: they hide no document.
//! ```

use std::ops::Range;

use super::corpus::Corpus;
use super::rng::{Purpose, Rng};
use super::site_spec::{SiteSpec, SpecError};
use super::traps::TRAP_ENTRANCES;
use crate::base::push_decimal;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Document,
    /// Another page of the host. Targets are lower than the page, so a chain of redirects has an end.
    Redirect {
        to: u32,
    },
    Error {
        status: u16,
    },
    /// A document whose answer is held back.
    Slow,
    Broken(Breakage),
}

/// What is wrong with a broken page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakage {
    /// The connection is reset before any byte.
    Reset,
    /// The connection is closed after half of what Content-Length says.
    Truncated,
    BadStatusLine,
    /// The second chunk's size is no number.
    BadChunk,
}

/// The made-up web of a [`SiteSpec`].
pub struct Site {
    pub(super) spec: SiteSpec,
    pub(super) corpus: Corpus,
    /// Children per page.
    branching: u32,
    kinds: KindBounds,
}

/// Upper ends of what a draw from 0 to 1 makes of a page, in this order; above the last one it is a document.
struct KindBounds {
    redirect: f64,
    error: f64,
    broken: f64,
    /// For pages without children.
    slow: f64,
    /// For pages with children, which are slow or documents.
    slow_inner: f64,
}

impl Site {
    pub fn new(spec: SiteSpec) -> Result<Site, SpecError> {
        spec.check()?;
        // Half of the links lead down, the others repeat.
        let branching = (u32::from(spec.links) / 2).max(1);
        let inner = (spec.pages - 1).div_ceil(branching);
        let kinds = KindBounds::new(&spec, spec.pages - inner);
        Ok(Site { corpus: Corpus::new(spec.seed), branching, kinds, spec })
    }

    pub fn spec(&self) -> &SiteSpec {
        &self.spec
    }

    pub(super) fn origin(&self, host: u32, port: u16) -> Origin {
        Origin { tls: self.spec.tls, host, port }
    }

    /// What a page is, drawn from the seed.
    pub fn kind(&self, host: u32, page: u32) -> PageKind {
        if page == 0 {
            return PageKind::Document;
        }
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Kind, host, page);
        let draw = rng.unit();
        if !self.children(page).is_empty() {
            return if draw < self.kinds.slow_inner { PageKind::Slow } else { PageKind::Document };
        }
        if draw < self.kinds.redirect {
            PageKind::Redirect { to: rng.below(page) }
        } else if draw < self.kinds.error {
            const STATUSES: [u16; 6] = [404, 404, 404, 410, 500, 503];
            PageKind::Error { status: STATUSES[rng.below(6) as usize] }
        } else if draw < self.kinds.broken {
            const BREAKAGES: [Breakage; 4] =
                [Breakage::Reset, Breakage::Truncated, Breakage::BadStatusLine, Breakage::BadChunk];
            PageKind::Broken(BREAKAGES[rng.below(4) as usize])
        } else if draw < self.kinds.slow {
            PageKind::Slow
        } else {
            PageKind::Document
        }
    }

    /// The body of a page that is a document. Its absolute links name the farm's port.
    pub fn document(&self, host: u32, page: u32, port: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.document_bytes(host, page) as usize);
        self.push_document(host, page, port, &mut out);
        out
    }

    /// The pages that are reached through `page`.
    pub fn children(&self, page: u32) -> Range<u32> {
        let first = u64::from(page) * u64::from(self.branching) + 1;
        let end = first + u64::from(self.branching);
        let pages = u64::from(self.spec.pages);
        first.min(pages) as u32..end.min(pages) as u32
    }

    pub(super) fn push_document(&self, host: u32, page: u32, port: u16, out: &mut Vec<u8>) {
        let start = out.len();
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Body, host, page);
        self.push_opening(host, &mut rng, out);
        self.push_frame(host, out);
        out.extend_from_slice(b"<nav>\n<ul class=\"links\">\n");
        let children = self.children(page);
        let origin = self.origin(host, port);
        let repeats = u32::from(self.spec.links) - children.len() as u32;
        for to in children {
            self.push_link(Link { origin, from: page, to }, &mut rng, out);
        }
        for _ in 0..repeats {
            let to = rng.below(self.spec.pages);
            self.push_link(Link { origin, from: page, to }, &mut rng, out);
        }
        if self.spec.denied > 0 {
            self.push_item(&mut rng, out, |_, out| {
                out.extend_from_slice(b"/private/");
                push_decimal(out, u64::from(page % u32::from(self.spec.denied)));
                out.extend_from_slice(b".html");
            });
        }
        if page == 0 && self.spec.cross_links {
            for neighbour in [2 * u64::from(host) + 1, 2 * u64::from(host) + 2] {
                if neighbour < u64::from(self.spec.hosts) {
                    self.push_item(&mut rng, out, |_, out| {
                        self.origin(neighbour as u32, port).push(out);
                        out.push(b'/');
                    });
                }
            }
        }
        if page == 0 && self.spec.traps {
            for entrance in TRAP_ENTRANCES {
                self.push_item(&mut rng, out, |_, out| out.extend_from_slice(entrance.as_bytes()));
            }
        }
        out.extend_from_slice(b"</ul>\n</nav>\n<main>\n");
        self.push_rest(start, self.document_bytes(host, page), &mut rng, out);
    }

    pub(super) fn push_private_document(&self, host: u32, index: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let mut rng = Rng::of_page(self.spec.seed, Purpose::PrivateBody, host, index);
        self.push_opening(host, &mut rng, out);
        out.extend_from_slice(b"<main>\n");
        self.push_rest(start, self.spec.page_bytes, &mut rng, out);
    }

    pub(super) fn push_opening(&self, host: u32, rng: &mut Rng, out: &mut Vec<u8>) {
        let title = self.corpus.title(rng);
        out.extend_from_slice(
            b"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>",
        );
        out.extend_from_slice(title);
        out.extend_from_slice(b" - h");
        push_decimal(out, u64::from(host));
        out.extend_from_slice(b"</title>\n</head>\n<body>\n<h1>");
        out.extend_from_slice(title);
        out.extend_from_slice(b"</h1>\n");
    }

    /// What all pages of a host have in common.
    fn push_frame(&self, host: u32, out: &mut Vec<u8>) {
        let bytes = (f64::from(self.spec.page_bytes) * self.spec.frame) as usize;
        if bytes > 0 {
            out.extend_from_slice(b"<header>\n");
            let mut rng = Rng::of_page(self.spec.seed, Purpose::Frame, host, 0);
            self.corpus.fill(bytes, &mut rng, out);
            out.extend_from_slice(b"</header>\n");
        }
    }

    /// Fills up to the length that a body should have and closes it.
    pub(super) fn push_rest(&self, start: usize, length: u32, rng: &mut Rng, out: &mut Vec<u8>) {
        const CLOSING: &[u8] = b"</main>\n</body>\n</html>\n";
        let bytes = out.len() - start + CLOSING.len();
        self.corpus.fill((length as usize).saturating_sub(bytes), rng, out);
        out.extend_from_slice(CLOSING);
    }

    fn push_link(&self, link: Link, rng: &mut Rng, out: &mut Vec<u8>) {
        self.push_item(rng, out, |rng, out| link.push(rng, out));
    }

    pub(super) fn push_item(
        &self,
        rng: &mut Rng,
        out: &mut Vec<u8>,
        href: impl FnOnce(&mut Rng, &mut Vec<u8>),
    ) {
        out.extend_from_slice(b"<li><a href=\"");
        href(rng, out);
        out.extend_from_slice(b"\">");
        out.extend_from_slice(self.corpus.title(rng));
        out.extend_from_slice(b"</a></li>\n");
    }
}

impl KindBounds {
    /// Shares are of all pages, but only some of them may be other than a document: those get proportionally
    /// more, as far as there is room.
    fn new(spec: &SiteSpec, leaves: u32) -> KindBounds {
        // A host of one page has no page that is drawn.
        let per_leaf = f64::from(spec.pages) / f64::from(leaves.max(1));
        let per_page = f64::from(spec.pages) / f64::from((spec.pages - 1).max(1));
        let sum = (spec.redirects + spec.errors + spec.broken) * per_leaf + spec.slow * per_page;
        let room = if sum > 1.0 { 1.0 / sum } else { 1.0 };
        let redirect = spec.redirects * per_leaf * room;
        let error = redirect + spec.errors * per_leaf * room;
        let broken = error + spec.broken * per_leaf * room;
        let slow = broken + spec.slow * per_page * room;
        KindBounds { redirect, error, broken, slow, slow_inner: spec.slow * per_page }
    }
}

/// A link between two pages of a host.
#[derive(Clone, Copy)]
struct Link {
    origin: Origin,
    from: u32,
    to: u32,
}

impl Link {
    /// Writes the reference in one of the forms that pages use, now and then with a fragment.
    fn push(self, rng: &mut Rng, out: &mut Vec<u8>) {
        let draw = rng.next();
        match (draw & 7, self.from, self.to) {
            (0..=2, _, to) => push_path(out, to),
            (3..=5, 0, 0) => out.extend_from_slice(b"./"),
            (3..=5, _, 0) => out.extend_from_slice(b"../"),
            (3..=5, 0, to) => {
                out.extend_from_slice(b"p/");
                push_file(out, to);
            }
            (3..=5, _, to) => push_file(out, to),
            (_, _, to) => {
                self.origin.push(out);
                push_path(out, to);
            }
        }
        if draw >> 8 & 15 == 0 {
            out.extend_from_slice(b"#s");
            push_decimal(out, draw >> 12 & 7);
        }
    }
}

/// `/` or `/p/{page}.html`.
pub(super) fn push_path(out: &mut Vec<u8>, page: u32) {
    out.push(b'/');
    if page != 0 {
        out.extend_from_slice(b"p/");
        push_file(out, page);
    }
}

fn push_file(out: &mut Vec<u8>, page: u32) {
    push_decimal(out, u64::from(page));
    out.extend_from_slice(b".html");
}

/// `http://h{host}.farm.test:{port}`, or the same with https; without the port where it is the scheme's own.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    tls: bool,
    host: u32,
    port: u16,
}

impl Origin {
    pub(super) fn push(self, out: &mut Vec<u8>) {
        let (scheme, own_port) = if self.tls { (&b"https://h"[..], 443) } else { (&b"http://h"[..], 80) };
        out.extend_from_slice(scheme);
        push_decimal(out, u64::from(self.host));
        out.extend_from_slice(b".farm.test");
        if self.port != own_port {
            out.push(b':');
            push_decimal(out, u64::from(self.port));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, VecDeque};

    const PORT: u16 = 8080;

    fn site(spec: SiteSpec) -> Site {
        Site::new(spec).unwrap()
    }

    #[test]
    fn pages_of_a_host_have_their_frame_in_common() {
        let site = site(SiteSpec { frame: 0.5, ..SiteSpec::default() });
        let frame = |host: u32, page: u32| {
            let document = String::from_utf8(site.document(host, page, PORT)).unwrap();
            assert_eq!(document.len(), 10_000);
            let (_, rest) = document.split_once("<header>").unwrap();
            rest.split_once("</header>").unwrap().0.to_string()
        };
        assert!((4_900..5_100).contains(&frame(3, 1).len()));
        assert_eq!(frame(3, 1), frame(3, 7));
        assert_ne!(frame(3, 1), frame(4, 1));
        assert!(SiteSpec { frame: 1.5, ..SiteSpec::default() }.check().is_err());
    }

    fn hrefs(body: &[u8]) -> Vec<String> {
        let body = std::str::from_utf8(body).unwrap();
        body.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }

    /// An absolute URL without fragment; knows just the forms that the site writes.
    fn resolve(host: u32, page: u32, href: &str) -> String {
        let href = href.split('#').next().unwrap();
        let origin = format!("http://h{host}.farm.test:{PORT}");
        if href.starts_with("http://") {
            href.to_owned()
        } else if href.starts_with('/') {
            origin + href
        } else if href == "./" || href == "../" {
            origin + "/"
        } else if page == 0 {
            origin + "/" + href
        } else {
            origin + "/p/" + href
        }
    }

    /// All URLs that a crawl of any scope finds from page 0 of host 0, reading documents only.
    fn reachable(site: &Site) -> BTreeSet<String> {
        let origin = |host| format!("http://h{host}.farm.test:{PORT}");
        let mut seen = BTreeSet::from([origin(0) + "/"]);
        let mut queue = VecDeque::from([(0u32, 0u32)]);
        while let Some((host, page)) = queue.pop_front() {
            if !matches!(site.kind(host, page), PageKind::Document | PageKind::Slow) {
                continue;
            }
            for href in hrefs(&site.document(host, page, PORT)) {
                let url = resolve(host, page, &href);
                if !seen.insert(url.clone()) {
                    continue;
                }
                let (name, path) =
                    url.strip_prefix("http://h").unwrap().split_once(".farm.test:8080").unwrap();
                let host = name.parse().unwrap();
                match path.strip_prefix("/p/").and_then(|file| file.strip_suffix(".html")) {
                    Some(number) => queue.push_back((host, number.parse().unwrap())),
                    None if path == "/" => queue.push_back((host, 0)),
                    None => assert!(path.starts_with("/private/"), "{path}"),
                }
            }
        }
        seen
    }

    #[test]
    fn a_page_is_the_same_every_time_and_for_every_site_of_its_seed() {
        let spec = SiteSpec { seed: 42, ..SiteSpec::default() };
        let (one, two) = (site(spec.clone()), site(spec.clone()));
        let other = site(SiteSpec { seed: 43, ..spec });
        for (host, page) in [(0, 0), (0, 1), (3, 19), (999, 7)] {
            assert_eq!(one.document(host, page, PORT), two.document(host, page, PORT));
            assert_ne!(one.document(host, page, PORT), other.document(host, page, PORT));
        }
        assert_ne!(one.document(1, 1, PORT), one.document(1, 2, PORT));
        assert_ne!(one.document(1, 1, PORT), one.document(2, 1, PORT));
    }

    #[test]
    fn bodies_have_the_length_asked_for() {
        for page_bytes in [5000, 10_000, 10_001, 65_536, 300_000] {
            let site = site(SiteSpec { page_bytes, hosts: 7, ..SiteSpec::default() });
            for page in 0..20 {
                assert_eq!(site.document(2, page, PORT).len(), page_bytes as usize);
            }
            let mut private = Vec::new();
            site.push_private_document(2, 0, &mut private);
            assert_eq!(private.len(), page_bytes as usize);
        }
        let tiny = site(SiteSpec { page_bytes: 0, ..SiteSpec::default() }).document(0, 0, PORT);
        assert!(tiny.len() > 500 && tiny.ends_with(b"</html>\n"));
        assert_eq!(hrefs(&tiny).len(), 20 + 1 + 2);
    }

    #[test]
    fn every_page_of_every_host_is_reachable() {
        for (hosts, pages, links) in [(9, 20, 20), (2, 300, 5), (3, 1, 4), (1, 12, 1)] {
            let shares =
                SiteSpec { redirects: 0.2, errors: 0.2, slow: 0.1, broken: 0.2, ..SiteSpec::default() };
            let site = site(SiteSpec { hosts, pages, links, denied: 2, page_bytes: 100, ..shares });
            let seen = reachable(&site);
            let pages_seen = seen.iter().filter(|url| !url.contains("/private/")).count();
            assert_eq!(pages_seen, (hosts * pages) as usize, "{hosts} hosts, {pages} pages, {links} links");
            let denied_seen = seen.len() - pages_seen;
            assert_eq!(denied_seen, hosts as usize * pages.min(2) as usize);
        }
    }

    #[test]
    fn hosts_stay_apart_without_cross_links() {
        let site = site(SiteSpec { hosts: 9, cross_links: false, denied: 0, ..SiteSpec::default() });
        assert_eq!(reachable(&site).len(), 20);
    }

    #[test]
    fn links_come_in_all_forms() {
        let site = site(SiteSpec::default());
        let all: Vec<String> = (0..20).flat_map(|page| hrefs(&site.document(5, page, PORT))).collect();
        let any = |form: fn(&str) -> bool| all.iter().any(|href| form(href));
        assert!(any(|href| href.starts_with("/p/")));
        assert!(any(|href| href.starts_with("p/")));
        assert!(any(|href| href.as_bytes()[0].is_ascii_digit()));
        assert!(any(|href| href.starts_with("http://h5.farm.test:8080/p/")));
        assert!(any(|href| href == "../"));
        assert!(any(|href| href.contains("#s")));
        assert!(all.contains(&"http://h11.farm.test:8080/".to_owned()));
        assert!(all.contains(&"/private/0.html".to_owned()));
        assert!(hrefs(&site.document(5, 0, 80)).contains(&"http://h12.farm.test/".to_owned()));
    }

    #[test]
    fn with_tls_every_absolute_link_is_https() {
        let site = site(SiteSpec { tls: true, ..SiteSpec::default() });
        for (port, first) in [(8443, "https://h11.farm.test:8443/"), (443, "https://h11.farm.test/")] {
            let all: Vec<String> = (0..20).flat_map(|page| hrefs(&site.document(5, page, port))).collect();
            assert!(all.contains(&first.to_owned()));
            assert!(all.iter().all(|href| !href.starts_with("http:")));
        }
        assert!(hrefs(&site.document(5, 0, 80)).contains(&"https://h11.farm.test:80/".to_owned()));
    }

    #[test]
    fn shares_are_of_all_pages() {
        let shares =
            SiteSpec { redirects: 0.1, errors: 0.2, slow: 0.05, broken: 0.15, ..SiteSpec::default() };
        let site = site(SiteSpec { chunked: 0.3, ..shares });
        let (mut redirects, mut errors, mut slow, mut broken, mut chunked) = (0, 0, 0, 0, 0);
        let total = 1000 * 20;
        for host in 0..1000 {
            assert_eq!(site.kind(host, 0), PageKind::Document);
            for page in 0..20 {
                chunked += u32::from(site.is_chunked(host, page));
                match site.kind(host, page) {
                    PageKind::Document => continue,
                    PageKind::Slow => {
                        slow += 1;
                        continue;
                    }
                    PageKind::Redirect { to } => {
                        assert!(to < page);
                        redirects += 1;
                    }
                    PageKind::Error { status } => {
                        assert!((400..600).contains(&status));
                        errors += 1;
                    }
                    PageKind::Broken(_) => broken += 1,
                }
                assert!(site.children(page).is_empty());
            }
        }
        for (count, share) in [(redirects, 0.1), (errors, 0.2), (slow, 0.05), (broken, 0.15), (chunked, 0.3)]
        {
            let got = f64::from(count) / f64::from(total);
            assert!((got - share).abs() < 0.01, "{got} for {share}");
        }
    }

    #[test]
    fn shares_of_one_take_every_page_that_may() {
        let site = site(SiteSpec { errors: 1.0, ..SiteSpec::default() });
        let errors = (0..20).filter(|&page| matches!(site.kind(4, page), PageKind::Error { .. })).count();
        let leaves = (0..20).filter(|&page| site.children(page).is_empty()).count();
        assert_eq!(errors, leaves);
    }

    #[test]
    fn decimals() {
        for number in [0, 1, 9, 10, 65_535, u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
