use super::super::discovery::{Discovered, DiscoveredKind, find, find_in_header};
use super::super::opml::{OpmlError, OpmlFeed, read, write};
use crate::proto::url::CrawlUrl;

fn feeds(text: &str) -> (Vec<OpmlFeed<'static>>, Option<&'static str>) {
    let mut found = Vec::new();
    let summary = read(text.as_bytes(), |feed| {
        found.push(OpmlFeed {
            url: feed.url.into_owned().into(),
            title: feed.title.into_owned().into(),
            site: feed.site.map(|site| site.into_owned().into()),
            folder: feed.folder.into_owned().into(),
            line: feed.line,
        })
    });
    (found, summary.unwrap_or_else(|error| panic!("{error}: {text}")).damage)
}

fn feed(url: &str, title: &str, folder: &str, line: u32) -> OpmlFeed<'static> {
    OpmlFeed {
        url: url.to_string().into(),
        title: title.to_string().into(),
        site: None,
        folder: folder.to_string().into(),
        line,
    }
}

#[test]
fn folders_and_feeds() {
    let (found, damage) = feeds(
        "<?xml version='1.0'?>\n<opml version='2.0'><head><title>L</title></head><body>\n\
         <outline text='News'>\n<outline text='A &amp; B' title='no' type='rss' xmlUrl='http://h.test/a?x=1&amp;y'/>\n\
         <outline text='Europe'><outline title='C' xmlUrl='http://h.test/c'></outline></outline></outline>\n\
         <outline xmlUrl='file:///etc/passwd'/><outline text='link' type='link' url='http://h.test/'/>\n\
         <OUTLINE TYPE=rss URL=\"http://h.test/d\" TEXT='D'/></body></opml>",
    );
    assert_eq!(damage, None);
    assert_eq!(
        found,
        [
            feed("http://h.test/a?x=1&y", "A & B", "News", 4),
            feed("http://h.test/c", "C", "News/Europe", 5),
            feed("file:///etc/passwd", "", "", 6),
            feed("http://h.test/d", "D", "", 7),
        ]
    );
}

#[test]
fn lists_that_are_broken_or_large() {
    let (found, damage) = feeds(
        "<opml><body><outline text='a' xmlUrl='http://h.test/a'><outline xmlUrl='http://h.test/b'/><outline xmlUrl='http://h",
    );
    assert_eq!((found.len(), damage.is_some()), (2, true));
    let many = format!(
        "<opml><body>{}</body></opml>",
        "<outline text='same' xmlUrl='http://h.test/'/>".repeat(100_000)
    );
    assert_eq!(feeds(&many).0.len(), 100_000);
    let deep = format!(
        "{}<outline xmlUrl='http://h.test/'/>{}<outline xmlUrl='http://h.test/2'/>",
        "<outline text='f'>".repeat(1_000),
        "</outline>".repeat(1_000)
    );
    let (found, _) = feeds(&deep);
    assert_eq!((&*found[0].folder, &*found[1].folder), ("f/f/f/f/f/f/f/f", ""));
    assert_eq!(read(b"<opml><body/></opml>", |_| {}), Err(OpmlError::Unknown));
    assert_eq!(read(b"not a list", |_| {}), Err(OpmlError::Unknown));
}

#[test]
fn what_is_written_is_read_the_same() {
    let list = [
        feed("http://h.test/a?x=1&y=\"2\"", "A & <B> \u{202e}\u{1b}", "", 5),
        OpmlFeed { site: Some("http://h.test/".into()), ..feed("http://h.test/b", "B", "News & more", 8) },
        feed("http://h.test/c", "", "News & more", 9),
        feed("http://h.test/d", "D", "Other", 12),
        feed("http://h.test/e", "E", "", 14),
    ];
    let (mut found, damage) = feeds(&write("Mine <1>", list.clone()));
    assert_eq!(damage, None);
    found[0].title = list[0].title.clone();
    found.iter_mut().zip(&list).for_each(|(found, feed)| found.line = feed.line);
    assert_eq!(found, list);
    assert_eq!(write("none", []).matches("outline").count(), 0);
}

fn found(html: &str) -> Vec<(String, DiscoveredKind, String)> {
    let base = CrawlUrl::parse("http://h.test/a/").unwrap();
    let mut found = Vec::new();
    find(html.as_bytes(), &base, |feed: Discovered<'_>| {
        found.push((feed.url.to_string(), feed.kind, feed.title.into_owned()));
    });
    found
}

#[test]
fn feeds_that_a_page_names() {
    let page = "<html><head><LINK REL=Alternate TYPE='application/rss+xml' TITLE='News &amp; more' HREF='feed?a&amp;b'>\n\
        <link rel='alternate' type='application/atom+xml; charset=utf-8' href=\"//o.test/atom\"/>\
        <link rel='feed alternate' type=application/feed+json href=/j.json>\
        <link rel='alternate' type='application/rss+xml' href='feed?a&b'>\
        <link rel='alternate' type='application/rss+xml' title='x &raquo; Comments Feed' href='/c'>\
        <link rel='alternate' type='application/rss+xml' href='/comments/feed/'>\
        <link rel='alternate' type='application/json' href='/wp-json/wp/v2/posts/1'>\
        <link rel='alternate' type='application/json+oembed' href='/oembed?x'>\
        <link rel='alternate' hreflang='de' href='/de'><link rel='stylesheet' type='application/rss+xml' href='/s'>\
        <link rel='alternate' type='application/rss+xml' href='javascript:x'>\
        <!-- <link rel='alternate' type='application/rss+xml' href='/commented'> -->\
        <script>'<link rel=alternate type=application/rss+xml href=/script>'</script></head>\
        <body><link rel=alternate type=application/rss+xml href=/late></body>";
    let expected = [
        ("http://h.test/a/feed?a&b", DiscoveredKind::Rss, "News & more"),
        ("http://o.test/atom", DiscoveredKind::Atom, ""),
        ("http://h.test/j.json", DiscoveredKind::Json, ""),
        ("http://h.test/late", DiscoveredKind::Rss, ""),
    ];
    assert_eq!(found(page), expected.map(|(url, kind, title)| (url.to_string(), kind, title.to_string())));
    let based = "<base href='http://b.test/x/'><link rel=alternate type=application/rss+xml href=y>";
    assert_eq!(found(based)[0].0, "http://b.test/x/y");
    let many: String =
        (0..1_000).map(|n| format!("<link rel=alternate type=application/rss+xml href=/{n}>")).collect();
    assert_eq!(found(&many).len(), 32);
    assert_eq!(found("<link rel=alternate type=application/rss+xml href='/cut"), []);
}

#[test]
fn feeds_that_a_header_names() {
    let base = CrawlUrl::parse("http://h.test/a/").unwrap();
    let mut found = Vec::new();
    let value =
        b"</feed>; rel=\"alternate\"; type=\"application/rss+xml\"; title=\"a, b; c\", <x>; rel=next, \
        <atom>;type=application/atom+xml;rel=alternate, </wp-json/>; rel=\"https://api.w.org/\", <cut";
    find_in_header(value, &base, |feed| found.push((feed.url.to_string(), feed.title.into_owned())));
    let expected = [("http://h.test/feed", "a, b; c"), ("http://h.test/a/atom", "")];
    assert_eq!(found, expected.map(|(url, title)| (url.to_string(), title.to_string())));
}
