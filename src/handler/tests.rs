//! The promise: a page's links are found whatever it is written in, and what it forbids is noticed wherever it says so.

use super::{Handled, Handler, Page, Scope, ScopeKind, ScopeRules};
use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::job::{Candidate, DocKind, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::url::{Canon, CrawlUrl, QueryDrop, RuleList, UrlRules};
use encoding_rs::{EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
use std::sync::Arc;

/// A fetch and the rules that it is looked at under.
struct Case {
    candidate: Candidate,
    rules: ScopeRules,
    result: ResultCode,
    decoded: bool,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            candidate: Candidate::seed(1, CrawlUrl::parse("http://site.test/dir/page.html").unwrap()),
            rules: ScopeRules { path_depth_max: 40, segment_repeats_max: 3, ..ScopeRules::default() },
            result: ResultCode::Ok,
            decoded: false,
        }
    }
}

impl Case {
    fn handle(&self, headers: &str, document: &[u8]) -> Handled {
        let mut scope = Scope::new(ScopeKind::Host, 5).with_rules(self.rules.clone());
        scope.add(&CrawlUrl::parse("http://site.test/").unwrap());
        let head_bytes = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
        let parsed = HeadParser::new(HeadLimits::default(), Method::Get).parse(head_bytes.as_bytes());
        let Ok(HeadStep::Done(head)) = parsed else { panic!("a whole head: {parsed:?}") };
        Handler::new(Arc::new(scope), "nephila".to_string()).handle(&Page {
            candidate: &self.candidate,
            result: self.result,
            head: Some(&head),
            head_bytes: head_bytes.as_bytes(),
            decoded: self.decoded,
            document,
        })
    }
}

fn handle_decoded(headers: &str, document: &[u8], decoded: bool) -> Handled {
    Case { decoded, ..Case::default() }.handle(headers, document)
}

fn handle(headers: &str, document: &[u8]) -> Handled {
    handle_decoded(headers, document, false)
}

fn links(handled: &Handled) -> Vec<&str> {
    handled.links.iter().collect()
}

const HTML: &str = "Content-Type: text/html\r\n";
const PAGE: &[u8] = b"<a href=x>x</a>";
const LINK: [&str; 1] = ["http://site.test/dir/x"];

#[test]
fn links_are_found_in_any_encoding() {
    let samples: [(&'static Encoding, &str, &str); 5] = [
        (WINDOWS_1251, "дом?q=дом", "%D0%B4%D0%BE%D0%BC?q=%E4%EE%EC"),
        (WINDOWS_1252, "é?é", "%C3%A9?%E9"),
        // Its second byte is that of a backslash, which a query may hold.
        (SHIFT_JIS, "表?q=表", "%E8%A1%A8?q=%95\\"),
        (GBK, "中文?中", "%E4%B8%AD%E6%96%87?%D6%D0"),
        (EUC_KR, "한?한", "%ED%95%9C?%C7%D1"),
    ];
    for (encoding, link, expected) in samples {
        let page = format!("<p>{link}</p><a href='{link}'>{link}</a><a href=plain.html>");
        let document = encoding.encode(&page).0;
        let expected =
            [format!("http://site.test/dir/{expected}"), "http://site.test/dir/plain.html".to_string()];
        let by_header = format!("Content-Type: text/html; charset={}\r\n", encoding.name());
        assert_eq!(links(&handle(&by_header, &document)), expected, "{}", encoding.name());
        let by_meta = [format!("<meta charset={}>", encoding.name()).as_bytes(), &document].concat();
        assert_eq!(links(&handle(HTML, &by_meta)), expected, "{}", encoding.name());
    }
    let utf8 = "<a href='é?é'>".as_bytes();
    for headers in [HTML, "Content-Type: text/html; charset=utf-8\r\n", ""] {
        assert_eq!(links(&handle(headers, utf8)), ["http://site.test/dir/%C3%A9?%C3%A9"]);
    }
}

#[test]
fn links_are_found_in_utf_16() {
    for mark in ["\u{feff}", ""] {
        let units = || format!("{mark}<a href='é?é'>").encode_utf16().collect::<Vec<_>>();
        let little: Vec<u8> = units().iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units().iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for document in [little, big] {
            for headers in [HTML, ""] {
                let handled = handle(headers, &document);
                assert_eq!(links(&handled), ["http://site.test/dir/%C3%A9?%C3%A9"], "{mark:?} {headers}");
            }
        }
    }
}

#[test]
fn a_base_and_a_refresh_are_read_in_the_encoding_of_the_page() {
    let page = "<base href='/ж/'><a href='?ж'></a><meta http-equiv=refresh content='3;url=?q=ж'>";
    let handled = handle("Content-Type: text/html; charset=windows-1251\r\n", &WINDOWS_1251.encode(page).0);
    assert_eq!(links(&handled), ["http://site.test/%D0%B6/?%E6"]);
    assert_eq!(handled.new_url.unwrap().as_str(), "http://site.test/%D0%B6/?q=%E6");
}

#[test]
fn a_refresh_after_half_a_minute_is_no_redirect() {
    let page = |delay: u32| format!("<meta http-equiv=refresh content='{delay};url=/next'>");
    for delay in [0, 5, 30] {
        let handled = handle(HTML, page(delay).as_bytes());
        assert_eq!(handled.new_url.unwrap().as_str(), "http://site.test/next", "{delay}");
        assert!(handled.follow);
    }
    for delay in [31, 600, u32::MAX] {
        assert_eq!(handle(HTML, page(delay).as_bytes()).new_url, None, "{delay}");
    }
}

#[test]
fn a_document_still_in_its_coding_is_not_read() {
    for coding in ["gzip", "br, identity", "identity\r\nContent-Encoding: gzip", "what"] {
        let headers = format!("{HTML}Content-Encoding: {coding}\r\n");
        assert!(handle(&headers, PAGE).links.is_empty(), "{coding}");
        assert_eq!(links(&handle_decoded(&headers, PAGE, true)), LINK, "{coding}");
    }
    for coding in ["", "identity", "Identity,", "utf-8"] {
        assert_eq!(links(&handle(&format!("{HTML}Content-Encoding: {coding}\r\n"), PAGE)), LINK, "{coding}");
    }
}

#[test]
fn a_header_speaks_to_everybody_or_to_one() {
    for (headers, nofollow, noindex) in [
        ("", false, false),
        ("X-Robots-Tag: nofollow\r\n", true, false),
        ("X-Robots-Tag: noindex, NoFollow\r\n", true, true),
        ("X-Robots-Tag: none\r\n", true, true),
        ("X-Robots-Tag: NoIndex\r\n", false, true),
        ("X-Robots-Tag: Nephila: nofollow\r\n", true, false),
        ("X-Robots-Tag: max-snippet: 5, nofollow\r\n", true, false),
        ("X-Robots-Tag: otherbot: noindex, nephila: none\r\n", true, true),
        ("X-Robots-Tag: otherbot: nofollow\r\n", false, false),
        ("X-Robots-Tag: otherbot: noindex, nofollow\r\n", false, false),
        ("X-Robots-Tag: unavailable_after: 1 Jan 2030 00:00:00 GMT\r\n", false, false),
        // Every header counts, and a name in one says nothing of the next.
        ("X-Robots-Tag:\r\nX-Robots-Tag: noindex\r\nx-robots-tag: nofollow\r\n", true, true),
        ("X-Robots-Tag: otherbot: none\r\nX-Robots-Tag: noindex\r\n", false, true),
        ("X-Robots-Tag: noarchive\r\nX-Robots-Tag: otherbot:\r\n noindex, nofollow\r\n", false, false),
    ] {
        let handled = handle(&format!("{HTML}{headers}"), PAGE);
        assert_eq!((handled.links.is_empty(), handled.noindex), (nofollow, noindex), "{headers}");
    }
}

#[test]
fn a_page_that_asks_not_to_be_indexed_is_marked() {
    for (page, noindex) in [
        ("<meta name=robots content=noindex><a href=x>", true),
        ("<meta name=robots content='nofollow'><meta name=robots content='none'>", true),
        ("<meta name=robots content='index, nofollow'>", false),
        ("<!-- <meta name=robots content=noindex> -->", false),
        ("<meta name=NEPHILA content=noindex>", true),
        ("<meta name=otherbot content=noindex>", false),
    ] {
        assert_eq!(handle(HTML, page.as_bytes()).noindex, noindex, "{page}");
    }
    // A header speaks for documents that are not read, too.
    assert!(handle("Content-Type: application/pdf\r\nX-Robots-Tag: noindex\r\n", b"%PDF-1.7").noindex);
}

#[test]
fn whatever_leads_on_is_in_canonical_form() {
    let drop = QueryDrop::try_from(vec!["sid".to_string()]).unwrap();
    let mut case = Case::default();
    case.rules.canon = Canon::new(&drop, true);
    let page = "<a href='x?sid=1'><a href='x?sid=2'><a href='y?b&a'><a href='y?a&b'>\
                <meta http-equiv=refresh content='0;url=/r?sid=1&z&c'>";
    let handled = case.handle(HTML, page.as_bytes());
    assert_eq!(links(&handled), ["http://site.test/dir/x", "http://site.test/dir/y?a&b"]);
    assert_eq!(handled.new_url.unwrap().as_str(), "http://site.test/r?c&z");
    let redirect = Case { result: ResultCode::Redirect, ..case };
    let handled = redirect.handle("Location: /to?z&sid=4&c\r\n", b"");
    assert_eq!(handled.new_url.unwrap().as_str(), "http://site.test/to?c&z");
}

#[test]
fn a_rule_keeps_out_links_and_where_a_seed_leads() {
    let deny = RuleList::try_from(vec!["/private".to_string()]).unwrap();
    let mut case = Case::default();
    case.rules.urls = UrlRules { deny, ..UrlRules::default() };
    let handled = case.handle(HTML, b"<a href=/private/x><a href=/a/a/a/a/><a href=x>");
    assert_eq!((links(&handled), handled.out_of_scope), (LINK.to_vec(), 2));
    let redirect = Case { result: ResultCode::Redirect, ..case };
    assert!(!redirect.handle("Location: http://other.test/private\r\n", b"").follow);
    assert!(redirect.handle("Location: http://other.test/\r\n", b"").follow, "a seed leads where it leads");
    assert!(redirect.handle("Location: /a/a/a/a/a\r\n", b"").follow, "and guards do not count for it");
}

#[test]
fn a_page_says_what_it_would_rather_be_called() {
    let page = |href: &str| format!("<head><link rel=canonical href='{href}'></head><a href=x>");
    let said = |headers: &str, href: &str| {
        let handled = handle(&format!("{HTML}{headers}"), page(href).as_bytes());
        handled.canonical.map(|url| url.as_str().to_string())
    };
    let header = "Link: </by-header>; rel=\"canonical\"\r\n";
    for (headers, href, expected) in [
        ("", "other", Some("http://site.test/dir/other")),
        ("", "https://else.test/%7ex", Some("https://else.test/~x")),
        ("", "http://SITE.test/dir/page.html#top", None),
        ("", "", None),
        ("", "mailto:a@b", None),
        (header, "other", Some("http://site.test/by-header")),
        ("Link: <page.html>; rel=canonical\r\n", "other", Some("http://site.test/dir/other")),
    ] {
        assert_eq!(said(headers, href).as_deref(), expected, "{headers}{href}");
    }
    let pdf = handle(&format!("Content-Type: application/pdf\r\n{header}"), b"%PDF");
    assert_eq!(pdf.canonical.unwrap().as_str(), "http://site.test/by-header");
    let based = b"<base href=/base/><link rel=canonical href=c><body><link rel=canonical href=late>";
    assert_eq!(handle(HTML, based).canonical.unwrap().as_str(), "http://site.test/base/c");
    // It is a link, too, as it always was; and a page elsewhere is not followed.
    let handled = handle(HTML, page("http://else.test/").as_bytes());
    assert_eq!((links(&handled), handled.out_of_scope, handled.follow), (LINK.to_vec(), 1, false));
}

fn sitemap(depth: u16) -> Case {
    let mut case = Case::default();
    case.candidate.url = CrawlUrl::parse("http://site.test/sitemap.xml").unwrap();
    case.candidate.provenance = Provenance { kind: DocKind::Sitemap, ..Provenance::link(depth) };
    case
}

#[test]
fn a_sitemap_names_pages_and_when_they_changed() {
    let text = "<urlset><url><loc>http://site.test/a</loc><lastmod>2005-01-01</lastmod></url>\
                <url><loc>http://site.test/b</loc></url><url><loc>http://else.test/</loc></url>\
                <url><loc>http://site.test/b</loc></url><url><loc>mailto:x</loc></url></urlset>";
    for headers in ["Content-Type: application/xml\r\n", HTML, ""] {
        let handled = sitemap(0).handle(headers, text.as_bytes());
        assert_eq!(links(&handled), ["http://site.test/a", "http://site.test/b"]);
        assert_eq!((handled.lastmods, handled.out_of_scope), (vec![1_104_537_600, 0], 1));
        assert!(handled.sitemaps.is_empty());
    }
    let handled = handle(HTML, text.as_bytes());
    assert!(handled.links.is_empty() && handled.lastmods.is_empty(), "only where a sitemap was asked for");
    assert!(sitemap(0).handle("X-Robots-Tag: nofollow\r\n", text.as_bytes()).links.is_empty());
    assert_eq!(sitemap(0).handle("", b"<html>not found</html>"), Handled::default());
}

#[test]
fn a_sitemap_names_sitemaps_to_a_depth() {
    let text = "<sitemapindex><sitemap><loc>http://site.test/1.xml</loc></sitemap>\
                <sitemap><loc>https://site.test/private.xml</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap>\
                <sitemap><loc>http://else.test/3.xml</loc></sitemap>\
                <sitemap><loc>http://site.test/sitemap.xml</loc></sitemap></sitemapindex>";
    let denied = |depth| {
        let mut case = sitemap(depth);
        case.rules.urls.deny = RuleList::try_from(vec!["private".to_string()]).unwrap();
        case.handle("", text.as_bytes())
    };
    for depth in [0, 4] {
        let handled = denied(depth);
        let sitemaps: Vec<&str> = handled.sitemaps.iter().collect();
        assert_eq!(sitemaps, ["http://site.test/1.xml", "http://site.test/2.xml"]);
        assert_eq!((handled.links.len(), handled.out_of_scope), (0, 2));
    }
    assert!(denied(5).sitemaps.is_empty());
    // One that a robots.txt named on a host that is not crawled may have its parts there.
    let mut elsewhere = sitemap(0);
    elsewhere.candidate.url = CrawlUrl::parse("http://else.test/index.xml").unwrap();
    let handled = elsewhere.handle("", text.as_bytes());
    assert_eq!(handled.sitemaps.iter().filter(|url| url.contains("else")).count(), 2, "/2.xml and /3.xml");
    let redirect = Case { result: ResultCode::Redirect, ..elsewhere };
    assert!(redirect.handle("Location: /moved.xml\r\n", b"").follow);
    assert!(!redirect.handle("Location: http://third.test/\r\n", b"").follow);
}
