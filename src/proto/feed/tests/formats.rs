use super::support::*;

pub(super) const RSS: &str = "<?xml version='1.0' encoding='UTF-8'?>\n\
    <rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:atom='http://www.w3.org/2005/Atom'\n\
      xmlns:content='http://purl.org/rss/1.0/modules/content/' xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'>\n\
    <channel><title>News &amp; views</title><link>http://h.test/</link>\n\
      <atom:link rel='self' href='http://h.test/feeds/all.xml'/><atom:link rel='hub' href='//hub.test/'/>\n\
      <description>All <![CDATA[<title>no</title>]]></description><language>en-GB</language><ttl>60</ttl>\n\
      <skipHours><hour>0</hour><hour>23</hour></skipHours><skipDays><day>Sunday</day></skipDays>\n\
      <sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>\n\
      <image><url>http://h.test/i.png</url><title>Picture</title><link>http://h.test/p</link></image>\n\
      <item><title>First &amp;amp; best</title><link>http://h.test/1?a=1&amp;b=2</link>\n\
        <guid isPermaLink='false'>id-1</guid><pubDate>Fri, 28 May 2004 23:31:25 +0200</pubDate>\n\
        <dc:creator>Ann</dc:creator><content:encoded><![CDATA[<p>text</p>]]></content:encoded></item>\n\
      <item><title><![CDATA[Second <b>story</b>]]></title><guid>http://h.test/2</guid>\n\
        <description>&lt;a href='x'&gt;</description></item>\n\
    </channel></rss>\n";

pub(super) const ATOM: &str = "<?xml version='1.0'?>\n\
    <feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://h.test/blog/' xml:lang='de'>\n\
      <title type='html'>A &lt;i&gt;blog&lt;/i&gt;</title><link href='.'/><link rel='hub' href='http://hub.test/'/>\n\
      <updated>2004-05-28T23:31:25+02:00</updated><author><name>Nobody</name></author>\n\
      <entry><title>Eins &amp; zwei</title><link rel='edit' href='/edit'/><link href='1.html'/>\n\
        <link rel='enclosure' href='1.mp3'/><id>tag:h.test,2004:1</id><published>2004-05-28T21:31:25Z</published>\n\
        <updated>2004-05-29T00:00:00Z</updated><author><name>Bea</name><uri>http://bea.test/</uri></author>\n\
        <content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><title>no</title><p>x<br/></p></div></content>\n\
        <source><title>Elsewhere</title><id>no</id><link href='no'/></source></entry>\n\
      <entry xml:lang='fr' xml:base='/fr/'><title type='xhtml'><div><b>Deux</b>ième</div></title>\n\
        <link rel='alternate' type='text/html' href='2'/><id>http://h.test/2</id></entry>\n\
    </feed>";

#[test]
fn rss_2() {
    let (entries, facts) = all(RSS.as_bytes());
    assert_eq!(
        facts,
        FeedFacts {
            format: FeedFormat::Rss20,
            title: "News & views".into(),
            link: Some("http://h.test/".into()),
            language: Some("en-GB".into()),
            hub: Some("http://hub.test/".into()),
            hints: FeedHints {
                ttl_s: Some(3_600),
                period_s: Some(1_800),
                skip_hours: 1 | 1 << 23,
                skip_days: 1 << 6
            },
            entries: 2,
            damage: None,
        }
    );
    let first = Entry {
        url: Some("http://h.test/1?a=1&b=2".into()),
        guid: Some("id-1".into()),
        title: "First & best".into(),
        published_s: Some(1_085_779_885),
        author: Some("Ann".into()),
        ..Entry::default()
    };
    let second = Entry {
        url: Some("http://h.test/2".into()),
        guid: Some("http://h.test/2".into()),
        title: "Second story".into(),
        ..Entry::default()
    };
    assert_eq!(entries, [first, second]);
}

#[test]
fn atom_1() {
    let (entries, facts) = all(ATOM.as_bytes());
    assert_eq!((facts.format, facts.title.as_str()), (FeedFormat::Atom10, "A blog"));
    assert_eq!(
        (facts.link.as_deref(), facts.hub.as_deref()),
        (Some("http://h.test/blog/"), Some("http://hub.test/"))
    );
    assert_eq!((facts.language.as_deref(), facts.damage), (Some("de"), None));
    let first = Entry {
        url: Some("http://h.test/blog/1.html".into()),
        guid: Some("tag:h.test,2004:1".into()),
        title: "Eins & zwei".into(),
        published_s: Some(1_085_779_885),
        updated_s: Some(1_085_788_800),
        author: Some("Bea".into()),
        language: None,
    };
    let second = Entry {
        url: Some("http://h.test/fr/2".into()),
        guid: Some("http://h.test/2".into()),
        title: "Deuxième".into(),
        language: Some("fr".into()),
        ..Entry::default()
    };
    assert_eq!(entries, [first, second]);
}

/// The format and the entries of a document.
fn formats(text: &str) -> (FeedFormat, Vec<Entry>) {
    let (entries, facts) = all(text.as_bytes());
    assert_eq!(facts.damage, None, "{text}");
    (facts.format, entries)
}

#[test]
fn every_version_of_rss() {
    for (version, expected) in [
        (" version='0.90'", FeedFormat::Rss090),
        (" version=\"0.91\"", FeedFormat::Rss091),
        (" version='0.92'", FeedFormat::Rss092),
        (" version='0.93'", FeedFormat::Rss093),
        (" version='0.94'", FeedFormat::Rss094),
        (" version='1.0'", FeedFormat::Rss10),
        (" version='2.0'", FeedFormat::Rss20),
        (" version='2.0.1'", FeedFormat::Rss20),
        (" version='9'", FeedFormat::Rss20),
        ("", FeedFormat::Rss20),
        // A portal of open data does so.
        (" xmlns='http://www.w3.org/2005/Atom'", FeedFormat::Rss20),
    ] {
        let text = format!(
            "<rss{version}><channel><item><title>t</title><link>http://h.test/1</link></item></channel></rss>"
        );
        let (format, entries) = formats(&text);
        assert_eq!((format, entries.len()), (expected, 1), "{version}");
        assert_eq!(entries[0].url.as_deref(), Some("http://h.test/1"));
    }
}

#[test]
fn rdf() {
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/' \
        xmlns:dc='http://purl.org/dc/elements/1.1/'><channel rdf:about='http://h.test/'><title>R</title>\
        <items><rdf:Seq><rdf:li resource='http://h.test/1'/></rdf:Seq></items></channel>\
        <image rdf:about='i'><title>no</title></image>\
        <item rdf:about='http://h.test/1'><title>One</title><link>http://h.test/1</link>\
        <dc:date>2004-05-28T23:31:25+02:00</dc:date><dc:language>fr</dc:language></item><item rdf:about='http://h.test/2'/></rdf:RDF>";
    let (format, entries) = formats(rdf);
    assert_eq!((format, entries.len()), (FeedFormat::Rss10, 2));
    assert_eq!((entries[0].updated_s, entries[0].language.as_deref()), (Some(1_085_779_885), Some("fr")));
    assert_eq!(entries[1].url.as_deref(), Some("http://h.test/2"));
    let old = rdf.replace("http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/");
    assert_eq!(formats(&old).0, FeedFormat::Rss090);
}

#[test]
fn atom_03_and_cdf() {
    let atom = "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><title>A</title><entry><title mode='escaped' \
        type='text/html'>x &lt;b&gt;y&lt;/b&gt;</title><link rel='alternate' type='text/html' href='http://h.test/1'/>\
        <issued>2004-05-28T21:31:25Z</issued><modified>2004-05-29T00:00:00Z</modified><created>2003-01-01T00:00:00Z</created>\
        <id>1</id></entry></feed>";
    let (format, entries) = formats(atom);
    assert_eq!(format, FeedFormat::Atom03);
    assert_eq!((entries[0].title.as_str(), entries[0].published_s), ("x y", Some(1_085_779_885)));
    assert_eq!(entries[0].updated_s, Some(1_085_788_800));
    let cdf = "<CHANNEL HREF='http://h.test/' BASE='http://b.test/'><TITLE>C</TITLE>\
        <ITEM HREF='1' LASTMOD='2004-05-28'><TITLE>One</TITLE></ITEM></CHANNEL>";
    let (format, entries) = formats(cdf);
    assert_eq!((format, entries[0].url.as_deref()), (FeedFormat::Cdf, Some("http://b.test/1")));
    assert_eq!((entries[0].title.as_str(), entries[0].updated_s), ("One", Some(1_085_702_400)));
}

pub(super) const JSON: &str = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "J &amp; K",
    "home_page_url": "http://h.test/", "language": "en", "hubs": [{"type": "WebSub", "url": "/hub"}],
    "_x": {"items": [{"id": "no"}]}, "items": [
    {"id": 7, "url": "/1", "title": "One \"é\" \ud83d\ude00", "content_html": "<p>]}</p>",
     "date_published": "2004-05-28T23:31:25+02:00", "date_modified": null, "authors": [{"name": "Ann"}, {"name": "Bo"}]},
    {"id": "2", "external_url": "http://o.test/2", "author": {"url": "x", "name": "Cy"}, "language": "fr"},
    {"id": "http://h.test/3", "attachments": [{"url": "/3.mp3"}]}]}"#;

#[test]
fn json_feed() {
    let (entries, facts) = all(JSON.as_bytes());
    assert_eq!((facts.format, facts.title.as_str(), facts.damage), (FeedFormat::Json11, "J & K", None));
    assert_eq!((facts.hub.as_deref(), facts.language.as_deref()), (Some("http://h.test/hub"), Some("en")));
    let first = Entry {
        url: Some("http://h.test/1".into()),
        guid: Some("7".into()),
        title: "One \"é\" 😀".into(),
        published_s: Some(1_085_779_885),
        author: Some("Ann".into()),
        ..Entry::default()
    };
    assert_eq!(entries[0], first);
    assert_eq!(
        (entries[1].url.as_deref(), entries[1].author.as_deref()),
        (Some("http://o.test/2"), Some("Cy"))
    );
    assert_eq!(entries[2].url.as_deref(), Some("http://h.test/3"));
    assert_eq!(all(JSON.replace("/1.1", "/1").as_bytes()).1.format, FeedFormat::Json10);
    for other in ["{}", "{\"items\": [{}]}", "{\"error\": 404}", "{\"title\": \"x\"}"] {
        assert_eq!(
            read_with(other.as_bytes(), None, &FeedLimits::default()).1,
            Err(FeedError::Unknown),
            "{other}"
        );
    }
    let deep = format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"_x\":{}", "[".repeat(1_000_000));
    assert!(all(deep.as_bytes()).1.damage.is_some());
}

#[test]
fn news_sitemaps() {
    let news = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
        xmlns:n='http://www.google.com/schemas/sitemap-news/0.9' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>\
        <url><loc>http://h.test/1?a&amp;b</loc><lastmod>2004-05-29</lastmod><n:news><n:publication><n:name>Paper</n:name>\
        <n:language>en</n:language></n:publication><n:publication_date>2004-05-28T21:31:25Z</n:publication_date>\
        <n:title>One &amp; two</n:title></n:news><image:image><image:loc>http://h.test/i</image:loc></image:image></url>\
        <url><loc>http://h.test/2</loc></url></urlset>";
    let (format, entries) = formats(news);
    let first = Entry {
        url: Some("http://h.test/1?a&b".into()),
        title: "One & two".into(),
        published_s: Some(1_085_779_885),
        updated_s: Some(1_085_788_800),
        language: Some("en".into()),
        ..Entry::default()
    };
    assert_eq!((format, &entries[0]), (FeedFormat::NewsSitemap, &first));
    assert_eq!(entries[1].url.as_deref(), Some("http://h.test/2"));
    let index = b"<sitemapindex><sitemap><loc>http://h.test/s</loc></sitemap></sitemapindex>";
    assert_eq!(read_with(index, None, &FeedLimits::default()).1, Err(FeedError::SitemapIndex));
}

#[test]
fn what_is_no_feed() {
    for (text, expected) in [
        ("", FeedError::Empty),
        (" \n ", FeedError::Empty),
        ("<!DOCTYPE html><html><head><link rel=alternate></head></html>", FeedError::Html),
        ("<HTML><rss/></HTML>", FeedError::Html),
        ("<svg/>", FeedError::Unknown),
        ("just text", FeedError::Unknown),
        ("<opml><body><outline/></body></opml>", FeedError::Unknown),
        ("\x1f\x3b", FeedError::Unknown),
    ] {
        assert_eq!(read_with(text.as_bytes(), None, &FeedLimits::default()).1, Err(expected), "{text}");
    }
    assert_eq!(read_with(b"\x1f\x8b\x08no gzip", None, &FeedLimits::default()).1, Err(FeedError::Coding));
}
