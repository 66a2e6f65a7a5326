//! The exact response bytes of a request target, broken ones included, and what to do once they are sent.

use super::framing::Packer;
use super::newsroom::Posted;
use super::rng::{Purpose, Rng};
use super::site::{Breakage, PageKind, Site, push_path};
use super::traps::Trap;
use crate::base::push_decimal;

pub(super) const HTML: &str = "text/html; charset=utf-8";

/// What a request target names.
#[derive(Clone, Copy, Debug, PartialEq, Hash, Eq)]
pub enum Resource {
    Robots,
    Page(u32),
    /// A page that robots.txt denies; asking for it is served and counted.
    Denied(u32),
    /// A feed of the host, by its number there.
    Feed(u32),
    Story(Posted),
    Trap(Trap),
    Missing,
}

/// A question to a host of the farm.
pub struct Asked<'a> {
    pub host: u32,
    pub target: &'a [u8],
    pub port: u16,
    pub head_only: bool,
    /// What packs documents, for a client that takes gzip.
    pub packer: Option<&'a mut Packer>,
}

/// What remains to be done for an answer besides sending its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// No byte leaves before this has passed.
    pub delay_ms: u32,
    pub then: Then,
}

/// What becomes of the connection after the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    KeepAlive,
    Close,
    Reset,
}

impl Site {
    /// What a target names: a path, or the absolute form of it; only in a trap does a query change anything.
    pub fn resource(&self, target: &[u8]) -> Resource {
        let absolute = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
        let path = match absolute {
            Some(rest) => {
                rest.iter().position(|&byte| byte == b'/').map_or(&b"/"[..], |slash| &rest[slash..])
            }
            None => target,
        };
        let (path, query) = match path.iter().position(|&byte| byte == b'?') {
            Some(mark) => (&path[..mark], &path[mark + 1..]),
            None => (path, &b""[..]),
        };
        if let Some(page) = path.strip_prefix(b"/p/").and_then(page_number) {
            return if (1..self.spec.pages).contains(&page) {
                Resource::Page(page)
            } else {
                Resource::Missing
            };
        }
        if let Some(file) = path.strip_prefix(b"/private/") {
            return Resource::Denied(page_number(file).unwrap_or(u32::MAX));
        }
        if self.spec.news.feeds > 0 {
            if let Some(number) = path.strip_prefix(b"/feed/").and_then(number) {
                return Resource::Feed(number);
            }
            if let Some(story) = path.strip_prefix(b"/story/").and_then(story) {
                return Resource::Story(story);
            }
        }
        match path {
            b"/" => Resource::Page(0),
            b"/robots.txt" => Resource::Robots,
            _ if self.spec.traps => Resource::Trap(Trap::at(path, query)),
            _ => Resource::Missing,
        }
    }

    /// How long the answer is held back; cheap, so that a waiting connection need not keep the answer's
    /// bytes.
    pub fn delay_ms(&self, host: u32, resource: Resource) -> u32 {
        match resource {
            Resource::Page(page) if self.spec.slow > 0.0 && self.kind(host, page) == PageKind::Slow => {
                self.latency_ms(host).saturating_add(self.spec.slow_ms)
            }
            _ => self.latency_ms(host),
        }
    }

    /// Appends the response to `target` on a host of the farm, for a client that takes no coding.
    pub fn answer(&self, host: u32, target: &[u8], port: u16, head_only: bool, out: &mut Vec<u8>) -> Answer {
        self.answer_asked(Asked { host, target, port, head_only, packer: None }, out)
    }

    /// Appends the response to a question.
    pub fn answer_asked(&self, asked: Asked<'_>, out: &mut Vec<u8>) -> Answer {
        let Asked { host, target, port, head_only, packer } = asked;
        debug_assert!(host < self.spec.all_hosts());
        let resource = self.resource(target);
        if let Some(misbehaviour) = self.misbehaviour(host, resource) {
            return Answer { delay_ms: 0, then: misbehaviour.push(out) };
        }
        let then = match resource {
            Resource::Robots => self.push_robots(head_only, out),
            Resource::Page(page) => self.push_page(PageRequest { host, page, port, head_only }, packer, out),
            Resource::Trap(trap) => self.push_trap(host, trap, head_only, out),
            Resource::Denied(index) if index < u32::from(self.spec.denied) => {
                self.push_whole(out, head_only, |out| self.push_private_document(host, index, out))
            }
            // Feeds and stories are told at a moment.
            Resource::Denied(_) | Resource::Feed(_) | Resource::Story(_) | Resource::Missing => {
                self.push_status(404, head_only, out)
            }
        };
        Answer { delay_ms: self.delay_ms(host, resource), then }
    }

    fn push_page(&self, request: PageRequest, packer: Option<&mut Packer>, out: &mut Vec<u8>) -> Then {
        let PageRequest { host, page, port, head_only } = request;
        let body = |out: &mut Vec<u8>| self.push_document(host, page, port, out);
        match self.kind(host, page) {
            PageKind::Document | PageKind::Slow => self.push_framed(request, packer, out),
            PageKind::Redirect { to } => self.push_redirect(request, to, out),
            PageKind::Error { status } => self.push_status(status, head_only, out),
            PageKind::Broken(Breakage::Reset) => Then::Reset,
            PageKind::Broken(Breakage::Truncated) => {
                let start = out.len();
                self.push_whole(out, head_only, body);
                if !head_only {
                    // Half of the whole is well inside the body.
                    out.truncate(start + (out.len() - start) / 2);
                }
                Then::Close
            }
            PageKind::Broken(Breakage::BadStatusLine) => {
                out.extend_from_slice(b"HTTP/1.1 2x0 Perhaps\r\nContent-Length: 0\r\n\r\n");
                Then::Close
            }
            PageKind::Broken(Breakage::BadChunk) => {
                self.push_head(200, HTML, out);
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                if !head_only {
                    out.extend_from_slice(b"10\r\n<!doctype html>\n\r\nzz\r\n<p>lost</p>\r\n0\r\n\r\n");
                }
                Then::Close
            }
        }
    }

    /// A 200 with a Content-Length.
    pub(super) fn push_whole(
        &self,
        out: &mut Vec<u8>,
        head_only: bool,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Then {
        self.push_head(200, HTML, out);
        push_measured(self.spec.page_bytes, head_only, out, body);
        self.then()
    }

    fn push_redirect(&self, request: PageRequest, to: u32, out: &mut Vec<u8>) -> Then {
        let PageRequest { host, page, port, head_only } = request;
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Framing, host, page);
        const STATUSES: [u16; 4] = [301, 302, 307, 308];
        let status = STATUSES[rng.below(4) as usize];
        let mut place = Vec::new();
        if rng.below(2) == 0 {
            self.origin(host, port).push(&mut place);
        }
        push_path(&mut place, to);
        self.push_location(status, &place, head_only, out)
    }

    pub(super) fn push_location(
        &self,
        status: u16,
        place: &[u8],
        head_only: bool,
        out: &mut Vec<u8>,
    ) -> Then {
        self.push_head(status, "text/plain; charset=utf-8", out);
        out.extend_from_slice(b"Location: ");
        out.extend_from_slice(place);
        out.extend_from_slice(b"\r\n");
        push_body(b"Elsewhere.\n", head_only, out);
        self.then()
    }

    fn push_robots(&self, head_only: bool, out: &mut Vec<u8>) -> Then {
        let mut robots = String::from("User-agent: *\nDisallow: /private/\n");
        if let Some(delay_s) = self.spec.crawl_delay_s {
            robots.push_str(&format!("Crawl-delay: {delay_s}\n"));
        }
        self.push_head(200, "text/plain; charset=utf-8", out);
        push_body(robots.as_bytes(), head_only, out);
        self.then()
    }

    pub(super) fn push_status(&self, status: u16, head_only: bool, out: &mut Vec<u8>) -> Then {
        self.push_head(status, "text/plain; charset=utf-8", out);
        push_body(reason(status).as_bytes(), head_only, out);
        self.then()
    }

    pub(super) fn push_head(&self, status: u16, content_type: &str, out: &mut Vec<u8>) {
        push_head(status, content_type, out);
        if self.spec.close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
    }

    pub(super) fn then(&self) -> Then {
        if self.spec.close { Then::Close } else { Then::KeepAlive }
    }
}

#[derive(Clone, Copy)]
pub(super) struct PageRequest {
    pub(super) host: u32,
    pub(super) page: u32,
    pub(super) port: u16,
    pub(super) head_only: bool,
}

/// Appends the answer to a request that no page is looked up for, after which the connection is closed.
pub(super) fn push_refusal(status: u16, out: &mut Vec<u8>) {
    push_head(status, "text/plain; charset=utf-8", out);
    if status == 405 {
        out.extend_from_slice(b"Allow: GET, HEAD\r\n");
    }
    out.extend_from_slice(b"Connection: close\r\n");
    push_body(reason(status).as_bytes(), false, out);
}

/// Appends a small JSON answer.
pub(super) fn push_json(json: &str, head_only: bool, out: &mut Vec<u8>) {
    push_head(200, "application/json", out);
    push_body(json.as_bytes(), head_only, out);
}

/// Status line and the fields every answer has. There is no Date, so that the bytes depend on nothing but the
/// request.
fn push_head(status: u16, content_type: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\nServer: nephila-farm\r\nContent-Type: ");
    out.extend_from_slice(content_type.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Ends the head and adds a body that is composed here. A guess of its length that is right saves a move.
pub(super) fn push_measured(guess: u32, head_only: bool, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"Content-Length: ");
    let digits = out.len();
    push_decimal(out, u64::from(guess));
    let digits_end = out.len();
    out.extend_from_slice(b"\r\n\r\n");
    let start = out.len();
    body(out);
    let bytes = out.len() - start;
    if head_only {
        out.truncate(start);
    }
    // A body whose links alone are longer than the length asked for misses the guess.
    if bytes != guess as usize {
        out.splice(digits..digits_end, bytes.to_string().into_bytes());
    }
}

/// Ends the head and adds the body.
pub(super) fn push_body(body: &[u8], head_only: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    push_decimal(out, body.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    if !head_only {
        out.extend_from_slice(body);
    }
}

/// `12` of `12.html`; one page has one name, so no leading zeros.
pub(super) fn page_number(file: &[u8]) -> Option<u32> {
    number(file.strip_suffix(b".html")?)
}

/// `17/42.html`: the feed, and its story.
fn story(path: &[u8]) -> Option<Posted> {
    let slash = path.iter().position(|&byte| byte == b'/')?;
    Some(Posted { feed: number(&path[..slash])?, number: page_number(&path[slash + 1..])? })
}

pub(super) fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    digits.iter().try_fold(0u32, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        421 => "Misdirected Request",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => unreachable!("no page answers {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::site_spec::SiteSpec;
    use super::*;

    const PORT: u16 = 8080;

    fn answer(site: &Site, host: u32, target: &str) -> (Answer, String) {
        let mut out = Vec::new();
        let answer = site.answer(host, target.as_bytes(), PORT, false, &mut out);
        (answer, String::from_utf8(out).unwrap())
    }

    fn find(site: &Site, wanted: impl Fn(PageKind) -> bool) -> (u32, u32) {
        let pages = site.spec().pages;
        (0..site.spec().hosts)
            .flat_map(|host| (0..pages).map(move |page| (host, page)))
            .find(|&(host, page)| wanted(site.kind(host, page)))
            .expect("a thousand hosts have one of each kind")
    }

    fn mixed() -> Site {
        let shares = SiteSpec { redirects: 0.2, errors: 0.2, broken: 0.2, slow: 0.2, ..SiteSpec::default() };
        Site::new(shares).unwrap()
    }

    #[test]
    fn targets_name_resources() {
        let site = Site::new(SiteSpec::default()).unwrap();
        let is = |target: &str, resource| assert_eq!(site.resource(target.as_bytes()), resource, "{target}");
        is("/", Resource::Page(0));
        is("/?q=1", Resource::Page(0));
        is("/p/19.html", Resource::Page(19));
        is("/p/19.html?q=/", Resource::Page(19));
        is("/p/20.html", Resource::Missing);
        is("/p/0.html", Resource::Missing);
        is("/p/01.html", Resource::Missing);
        is("/p/1.htm", Resource::Missing);
        is("/p/4294967297.html", Resource::Missing);
        is("/private/0.html", Resource::Denied(0));
        is("/private/x", Resource::Denied(u32::MAX));
        is("/robots.txt", Resource::Robots);
        is("http://h3.farm.test:8080", Resource::Page(0));
        is("http://h3.farm.test:8080/p/3.html", Resource::Page(3));
        is("*", Resource::Missing);
    }

    #[test]
    fn a_document_is_its_head_and_its_bytes() {
        let site = Site::new(SiteSpec::default()).unwrap();
        let (after, bytes) = answer(&site, 2, "/p/3.html");
        assert_eq!(after, Answer { delay_ms: 0, then: Then::KeepAlive });
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\nServer: nephila-farm\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 10000"
        );
        assert_eq!(body.as_bytes(), site.document(2, 3, PORT));
        let mut head_out = b"before".to_vec();
        site.answer(2, b"/p/3.html", PORT, true, &mut head_out);
        assert_eq!(head_out, format!("before{head}\r\n\r\n").as_bytes());
    }

    #[test]
    fn a_longer_body_corrects_its_length() {
        let site = Site::new(SiteSpec { page_bytes: 9, close: true, ..SiteSpec::default() }).unwrap();
        let (after, bytes) = answer(&site, 0, "/");
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with(&format!("\r\nConnection: close\r\nContent-Length: {}", body.len())),
            "{head}"
        );
        assert_eq!(after.then, Then::Close);
    }

    #[test]
    fn robots_deny_private_and_missing_is_404() {
        let site =
            Site::new(SiteSpec { crawl_delay_s: Some(0.5), latency_ms: 7, ..SiteSpec::default() }).unwrap();
        let (after, bytes) = answer(&site, 0, "/robots.txt");
        assert!(bytes.ends_with("\r\n\r\nUser-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n"));
        assert_eq!(after.delay_ms, 7);
        assert!(answer(&site, 0, "/private/0.html").1.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer(&site, 0, "/private/1.html").1.starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(answer(&site, 0, "/favicon.ico").1.starts_with("HTTP/1.1 404 Not Found\r\n"));
    }

    #[test]
    fn redirects_point_at_their_target() {
        let site = mixed();
        let (host, page) = find(&site, |kind| matches!(kind, PageKind::Redirect { .. }));
        let PageKind::Redirect { to } = site.kind(host, page) else { unreachable!() };
        let (_, bytes) = answer(&site, host, &format!("/p/{page}.html"));
        let location = bytes.split("Location: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let path = if to == 0 { "/".to_owned() } else { format!("/p/{to}.html") };
        assert!(
            location == path || location == format!("http://h{host}.farm.test:{PORT}{path}"),
            "{location}"
        );
        assert!(bytes.starts_with("HTTP/1.1 30"));
    }

    #[test]
    fn slow_pages_wait_and_errors_err() {
        let site = mixed();
        let (host, page) = find(&site, |kind| kind == PageKind::Slow);
        assert_eq!(answer(&site, host, &format!("/p/{page}.html")).0.delay_ms, site.spec().slow_ms);
        let (host, page) = find(&site, |kind| kind == PageKind::Error { status: 503 });
        assert!(answer(&site, host, &format!("/p/{page}.html")).1.starts_with("HTTP/1.1 503 "));
    }

    #[test]
    fn breakages_break() {
        let site = mixed();
        let broken = |breakage| {
            let (host, page) = find(&site, |kind| kind == PageKind::Broken(breakage));
            let (after, bytes) = answer(&site, host, &format!("/p/{page}.html"));
            (after.then, bytes, site.document(host, page, PORT))
        };
        let (then, bytes, _) = broken(Breakage::Reset);
        assert_eq!((then, bytes.len()), (Then::Reset, 0));
        let (then, bytes, document) = broken(Breakage::Truncated);
        let body = bytes.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(then, Then::Close);
        assert!(bytes.contains("Content-Length: 10000\r\n") && (1..10_000).contains(&body.len()));
        assert!(document.starts_with(body.as_bytes()));
        let (then, bytes, _) = broken(Breakage::BadStatusLine);
        assert_eq!(then, Then::Close);
        assert!(bytes.starts_with("HTTP/1.1 2x0"));
        let (then, bytes, _) = broken(Breakage::BadChunk);
        assert_eq!(then, Then::Close);
        assert!(bytes.contains("\r\nzz\r\n"));
    }
}
