//! The exact response bytes of a request target, broken ones included, and what to do once they are sent.

use super::newsroom::Posted;
use super::rng::{Purpose, Rng};
use super::site::{Breakage, PageKind, Site, push_path};
use crate::base::push_decimal;

const CHUNK_BYTES_MAX: u32 = 4096;

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
    Missing,
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
    /// What a target names: a path, or the absolute form of it; a query changes nothing.
    pub fn resource(&self, target: &[u8]) -> Resource {
        let absolute = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
        let path = match absolute {
            Some(rest) => {
                rest.iter().position(|&byte| byte == b'/').map_or(&b"/"[..], |slash| &rest[slash..])
            }
            None => target,
        };
        let path = path.iter().position(|&byte| byte == b'?').map_or(path, |query| &path[..query]);
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
            _ => Resource::Missing,
        }
    }

    /// How long the answer is held back; cheap, so that a waiting connection need not keep the answer's
    /// bytes.
    pub fn delay_ms(&self, host: u32, resource: Resource) -> u32 {
        match resource {
            Resource::Page(page) if self.spec.slow > 0.0 && self.kind(host, page) == PageKind::Slow => {
                self.spec.latency_ms.saturating_add(self.spec.slow_ms)
            }
            _ => self.spec.latency_ms,
        }
    }

    /// Appends the response to `target` on a host of the farm.
    pub fn answer(&self, host: u32, target: &[u8], port: u16, head_only: bool, out: &mut Vec<u8>) -> Answer {
        debug_assert!(host < self.spec.all_hosts());
        let resource = self.resource(target);
        if let Some(misbehaviour) = self.misbehaviour(host, resource) {
            return Answer { delay_ms: 0, then: misbehaviour.push(out) };
        }
        let then = match resource {
            Resource::Robots => self.push_robots(head_only, out),
            Resource::Page(page) => self.push_page(PageRequest { host, page, port, head_only }, out),
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

    fn push_page(&self, request: PageRequest, out: &mut Vec<u8>) -> Then {
        let PageRequest { host, page, port, head_only } = request;
        let body = |out: &mut Vec<u8>| self.push_document(host, page, port, out);
        match self.kind(host, page) {
            PageKind::Document | PageKind::Slow if self.is_chunked(host, page) => {
                self.push_head(200, "text/html; charset=utf-8", out);
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                if !head_only {
                    let start = out.len();
                    body(out);
                    chunk(out, start, &mut Rng::of_page(self.spec.seed, Purpose::Framing, host, page));
                }
                self.then()
            }
            PageKind::Document | PageKind::Slow => self.push_whole(out, head_only, body),
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
                self.push_head(200, "text/html; charset=utf-8", out);
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
        self.push_head(200, "text/html; charset=utf-8", out);
        out.extend_from_slice(b"Content-Length: ");
        let digits = out.len();
        push_decimal(out, u64::from(self.spec.page_bytes));
        let digits_end = out.len();
        out.extend_from_slice(b"\r\n\r\n");
        let start = out.len();
        body(out);
        let bytes = out.len() - start;
        if head_only {
            out.truncate(start);
        }
        // Only a body whose links alone are longer than the length asked for misses the guess.
        if bytes != self.spec.page_bytes as usize {
            out.splice(digits..digits_end, bytes.to_string().into_bytes());
        }
        self.then()
    }

    fn push_redirect(&self, request: PageRequest, to: u32, out: &mut Vec<u8>) -> Then {
        let PageRequest { host, page, port, head_only } = request;
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Framing, host, page);
        const STATUSES: [u16; 4] = [301, 302, 307, 308];
        self.push_head(STATUSES[rng.below(4) as usize], "text/plain; charset=utf-8", out);
        out.extend_from_slice(b"Location: ");
        if rng.below(2) == 0 {
            self.origin(host, port).push(out);
        }
        push_path(out, to);
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
struct PageRequest {
    host: u32,
    page: u32,
    port: u16,
    head_only: bool,
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

/// Ends the head and adds the body.
pub(super) fn push_body(body: &[u8], head_only: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    push_decimal(out, body.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    if !head_only {
        out.extend_from_slice(body);
    }
}

/// Turns the body that starts at `start` into chunks of drawn lengths, and ends it.
fn chunk(out: &mut Vec<u8>, start: usize, rng: &mut Rng) {
    let end = out.len();
    let mut at = start;
    while at < end {
        let bytes = (1 + rng.below(CHUNK_BYTES_MAX) as usize).min(end - at);
        push_hex(out, bytes as u32);
        out.extend_from_slice(b"\r\n");
        out.extend_from_within(at..at + bytes);
        out.extend_from_slice(b"\r\n");
        at += bytes;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out.drain(start..end);
}

fn push_hex(out: &mut Vec<u8>, number: u32) {
    let digits = number.checked_ilog2().map_or(1, |bits| bits / 4 + 1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
    }
}

/// `12` of `12.html`; one page has one name, so no leading zeros.
fn page_number(file: &[u8]) -> Option<u32> {
    number(file.strip_suffix(b".html")?)
}

/// `17/42.html`: the feed, and its story.
fn story(path: &[u8]) -> Option<Posted> {
    let slash = path.iter().position(|&byte| byte == b'/')?;
    Some(Posted { feed: number(&path[..slash])?, number: page_number(&path[slash + 1..])? })
}

fn number(digits: &[u8]) -> Option<u32> {
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

    #[test]
    fn chunks_join_to_the_document() {
        let site = Site::new(SiteSpec { chunked: 1.0, ..SiteSpec::default() }).unwrap();
        let (_, bytes) = answer(&site, 1, "/p/2.html");
        let (head, mut rest) = bytes.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with("Transfer-Encoding: chunked"));
        let (mut body, mut chunks) = (String::new(), 0);
        loop {
            let (size, after) = rest.split_once("\r\n").unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                assert_eq!(after, "\r\n");
                break;
            }
            body.push_str(&after[..size]);
            rest = after[size..].strip_prefix("\r\n").unwrap();
            chunks += 1;
        }
        assert!(chunks > 2);
        assert_eq!(body.as_bytes(), site.document(1, 2, PORT));
    }

    #[test]
    fn hexadecimals() {
        for number in [0, 1, 15, 16, 255, 256, 4096, u32::MAX] {
            let mut out = Vec::new();
            push_hex(&mut out, number);
            assert_eq!(out, format!("{number:x}").as_bytes());
        }
    }
}
