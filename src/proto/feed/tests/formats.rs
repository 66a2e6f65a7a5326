use super::*;

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
