use super::support::*;
use crate::limits::URL_BYTES_MAX;

#[test]
fn links_in_every_place() {
    for (inside, expected) in [
        ("<link>http://h.test/1</link>", Some("http://h.test/1")),
        ("<link>\n  http://h.test/1\n </link>", Some("http://h.test/1")),
        ("<link><![CDATA[ http://h.test/1?a&b ]]></link>", Some("http://h.test/1?a&b")),
        ("<link>http://h.test/1?a&b=c</link>", Some("http://h.test/1?a&b=c")),
        ("<link>/1</link>", Some("http://h.test/1")),
        ("<link>1</link>", Some("http://h.test/feeds/1")),
        ("<link>//o.test/1</link>", Some("http://o.test/1")),
        ("<link>javascript:alert(1)</link>", Some("javascript:alert(1)")),
        ("<link xml:base='http://b.test/x/'>1</link>", Some("http://b.test/x/1")),
        ("<link/><guid>http://h.test/g</guid>", Some("http://h.test/g")),
        ("<link> </link><guid isPermaLink='false'>http://h.test/g</guid>", Some("http://h.test/g")),
        ("<guid isPermaLink='true'>no url at all</guid>", None),
        ("<guid>tag:h.test,2004:1</guid>", None),
        ("<atom:link rel='alternate' href='http://h.test/a'/>", Some("http://h.test/a")),
        (
            "<atom:link rel='self' href='http://h.test/no'/><link>http://h.test/1</link>",
            Some("http://h.test/1"),
        ),
        ("<link href='http://h.test/href'></link>", Some("http://h.test/href")),
        ("<enclosure url='http://h.test/e.mp3' length='1'/>", Some("http://h.test/e.mp3")),
        (
            "<media:content url='/m.mp4'><media:title>m</media:title></media:content>",
            Some("http://h.test/m.mp4"),
        ),
        ("<enclosure url='http://h.test/e.mp3'/><link>http://h.test/1</link>", Some("http://h.test/1")),
        ("<LINK>http://h.test/upper</LINK>", Some("http://h.test/upper")),
        ("<image><link>http://h.test/no</link></image><source><link>http://h.test/no</link></source>", None),
        ("<title>nothing else</title>", None),
    ] {
        assert_eq!(item(inside).url.as_deref(), expected, "{inside}");
    }
    let long = format!("<link>http://h.test/{}</link>", "a".repeat(URL_BYTES_MAX));
    assert_eq!(item(&long).url, None);
    let fits = format!("<link>http://h.test/{}</link>", "a".repeat(URL_BYTES_MAX - 14));
    assert_eq!(item(&fits).url.map(|url| url.len()), Some(URL_BYTES_MAX));
}

#[test]
fn titles_are_plain_text() {
    for (inside, expected) in [
        ("<title>AT&amp;T</title>", "AT&T"),
        ("<title>AT&amp;amp;T</title>", "AT&T"),
        ("<title>AT&T</title>", "AT&T"),
        ("<title>a&nbsp;b &eacute; &unknown; &zwj;</title>", "a b é &unknown; \u{200d}"),
        ("<title>&lt;b&gt;bold&lt;/b&gt;</title>", "bold"),
        ("<title><![CDATA[<i>x</i> &amp; y]]></title>", "x & y"),
        ("<title><b>bold</b> <i>it</i></title>", "bold it"),
        ("<title>one<br/>two</title>", "one two"),
        ("<title>5 &lt; 6 and Vec&lt;T&gt;</title>", "5 < 6 and Vec<T>"),
        ("<title>a<![CDATA[b]]>c</title>", "abc"),
        ("<title>bell&#7; &#x1b;[31m</title>", "bell [31m"),
        ("<title>\u{202e}evil\u{7f}</title>", "evil"),
        ("<title/><dc:title>by dc</dc:title>", "by dc"),
        ("<title>own</title><dc:title>no</dc:title>", "own"),
        ("<media:title>picture</media:title><title>own</title>", "own"),
        ("<title></title>", ""),
        ("<title>one</title><title>two</title>", "one"),
    ] {
        assert_eq!(item(inside).title, expected, "{inside}");
    }
    let long = item(&format!("<title>{}</title>", "é".repeat(1 << 20)));
    assert_eq!(long.title.len(), FeedLimits::default().text_bytes_max);
}

#[test]
fn prefixes_mean_what_they_are_declared_as_or_what_they_are_used_for() {
    let (entries, facts) = all(b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://purl.org/rss/1.0/' \
        xmlns:d='http://purl.org/dc/elements/1.1/'><x:channel><x:title>T</x:title></x:channel><x:item r:about='http://h.test/1'>\
        <x:title>One</x:title><d:date>2004-05-28</d:date><dc:creator>undeclared</dc:creator><y:title>no</y:title></x:item></r:RDF>");
    assert_eq!((facts.title.as_str(), entries.len()), ("T", 1));
    assert_eq!((entries[0].title.as_str(), entries[0].updated_s), ("One", Some(1_085_702_400)));
    assert_eq!(entries[0].author.as_deref(), Some("undeclared"));
}

#[test]
fn equal_guids_and_authors_of_every_kind_are_told_as_they_are() {
    let (entries, _) = all(b"<rss><channel><item><guid>same</guid><author>a@h.test (Ann)</author></item>\
        <item><guid> same </guid><dc:creator><![CDATA[Bo]]></dc:creator></item>\
        <item><guid/><author><name>Cy</name><email>no</email></author></item></channel></rss>");
    let guids: Vec<_> = entries.iter().map(|entry| entry.guid.as_deref()).collect();
    assert_eq!(guids, [Some("same"), Some("same"), None]);
    let authors: Vec<_> = entries.iter().map(|entry| entry.author.as_deref()).collect();
    assert_eq!(authors, [Some("a@h.test (Ann)"), Some("Bo"), Some("Cy")]);
}

#[test]
fn no_entries_and_too_many() {
    let (entries, facts) = all(b"<rss version='2.0'><channel><title>none</title></channel></rss>");
    assert_eq!((entries.len(), facts.damage), (0, None));
    let many = format!(
        "<rss><channel>{}</channel></rss>",
        "<item><link>http://h.test/</link></item>".repeat(50_000)
    );
    let (entries, facts) = all(many.as_bytes());
    assert_eq!((entries.len(), facts.damage), (2_000, Some("it has more entries than are read")));
    let limits = FeedLimits { entries_max: 50_000, ..FeedLimits::default() };
    let (entries, facts) = read_with(many.as_bytes(), None, &limits);
    assert_eq!((entries.len(), facts.unwrap().damage), (50_000, None));
}

#[test]
fn dates_of_every_element() {
    let at_s = Some(1_085_779_885);
    for (inside, published_s, updated_s) in [
        ("<pubDate>Fri, 28 May 2004 21:31:25 GMT</pubDate>", at_s, None),
        ("<dc:date>2004-05-28T21:31:25Z</dc:date>", None, at_s),
        ("<dcterms:issued>2004-05-28T21:31:25Z</dcterms:issued>", at_s, None),
        ("<dcterms:modified>2004-05-28T21:31:25Z</dcterms:modified>", None, at_s),
        ("<dcterms:created>2004-05-28T21:31:25Z</dcterms:created>", at_s, None),
        ("<atom:updated>2004-05-28T21:31:25Z</atom:updated>", None, at_s),
        ("<pubdate>2004-05-28 21:31:25</pubdate>", at_s, None),
        ("<pubDate>soon</pubDate>", None, None),
        ("<pubDate/>", None, None),
    ] {
        let found = item(inside);
        assert_eq!((found.published_s, found.updated_s), (published_s, updated_s), "{inside}");
    }
}
