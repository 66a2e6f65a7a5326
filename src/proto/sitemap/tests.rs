//! The promise: what a site says of its pages is read, however it is written, and what it does to us is bounded.

use super::entry::SitemapEnd;
use super::*;
use crate::limits::URL_BYTES_MAX;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

type Entries = Vec<(String, Option<u32>)>;

/// The entries, those of an index with a `+` before them, and the summary.
fn entries_of(bytes: &[u8], limits: &SitemapLimits) -> (Entries, Result<SitemapSummary, SitemapError>) {
    let mut entries = Vec::new();
    let summary = read(bytes, limits, |entry| {
        entries.push(match entry {
            SitemapEntry::Page { loc, lastmod } => (loc.to_string(), lastmod),
            SitemapEntry::Sitemap { loc, lastmod } => (format!("+{loc}"), lastmod),
        })
    });
    (entries, summary)
}

fn all(bytes: &[u8]) -> (Entries, SitemapSummary) {
    let (entries, summary) = entries_of(bytes, &SitemapLimits::default());
    let summary = summary.unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
    assert_eq!(entries.len(), summary.entries);
    (entries, summary)
}

fn locs(bytes: &[u8]) -> Vec<String> {
    all(bytes).0.into_iter().map(|(loc, _)| loc).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const PAGES: &str = "<?xml version='1.0' encoding='UTF-8'?>\n\
    <urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:image='urn:i' xmlns:xhtml='urn:x'>\n\
    <url><loc> http://h.test/a?x=1&amp;y=2 </loc><lastmod>2005-01-01</lastmod><priority>0.8</priority>\n\
      <image:image><image:loc>http://h.test/a.png</image:loc></image:image>\n\
      <xhtml:link rel='alternate' hreflang='de' href='http://h.test/de'/></url>\n\
    <!-- <url><loc>http://h.test/no</loc></url> -->\n\
    <url><lastmod>never</lastmod><loc><![CDATA[http://h.test/b?x&y]]></loc></url>\n\
    <url><loc/></url>\n\
    <url><loc>http://h.test/c&#47;&#x64;?a=1&b=2</loc></url>\n\
    </urlset>\n";

#[test]
fn pages_of_a_sitemap() {
    let (entries, summary) = all(PAGES.as_bytes());
    assert_eq!(
        entries,
        [
            ("http://h.test/a?x=1&y=2".to_string(), Some(1_104_537_600)),
            ("http://h.test/b?x&y".to_string(), None),
            ("http://h.test/c/d?a=1&b=2".to_string(), None),
        ]
    );
    let SitemapSummary { format, skipped, end, .. } = summary;
    assert_eq!((format, skipped, end), (SitemapFormat::Pages, 1, SitemapEnd::Whole));
}

#[test]
fn sitemaps_of_an_index_and_prefixed_names() {
    let index = "<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://h.test/1.xml</s:loc>\
                 <s:lastmod>2005-01-01T00:00:01Z</s:lastmod></s:sitemap></s:sitemapindex>";
    let (entries, summary) = all(index.as_bytes());
    assert_eq!(entries, [("+http://h.test/1.xml".to_string(), Some(1_104_537_601))]);
    assert_eq!(summary.format, SitemapFormat::Index);
}

#[test]
fn feeds_used_as_sitemaps() {
    let rss = "<rss version='2.0'><channel><link>http://h.test/</link><item><title>t</title>\
               <atom:link rel='self' href='http://h.test/feed'/><link>http://h.test/1</link></item>\
               <item><link>\n http://h.test/2 \n</link><dc:date>2005-01-01</dc:date></item></channel></rss>";
    let (entries, summary) = all(rss.as_bytes());
    assert_eq!(entries[0].0, "http://h.test/1");
    assert_eq!(entries[1], ("http://h.test/2".to_string(), Some(1_104_537_600)));
    assert_eq!((entries.len(), summary.format), (2, SitemapFormat::Feed));
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://h.test/'/><entry>\
                <link rel='enclosure' href='http://h.test/x.mp3'/><link href='http://h.test/1?a&amp;b'/>\
                <link rel='alternate' href='http://h.test/late'/><updated>2005-01-01T00:00:00Z</updated></entry>\
                <entry><link rel='alternate' href='http://h.test/2'/></entry></feed>";
    let (entries, _) = all(atom.as_bytes());
    assert_eq!(entries[0], ("http://h.test/1?a&b".to_string(), Some(1_104_537_600)));
    assert_eq!(entries[1].0, "http://h.test/2");
    assert_eq!(entries.len(), 2);
}

#[test]
fn a_url_a_line() {
    let text = "\u{feff}http://h.test/a\r\nHTTPS://h.test/b \n\n# no\nhttp://h.test/\u{fc}\rftp://h.test/";
    let (entries, summary) = all(text.as_bytes());
    let locs: Vec<&str> = entries.iter().map(|(loc, _)| loc.as_str()).collect();
    assert_eq!(locs, ["http://h.test/a", "HTTPS://h.test/b", "http://h.test/\u{fc}"]);
    assert_eq!((summary.format, summary.skipped), (SitemapFormat::Text, 2));
}

#[test]
fn what_is_no_sitemap_is_refused() {
    let unknown = SitemapError::Unknown;
    for (document, error) in [
        ("", unknown),
        ("  \n", unknown),
        ("<", unknown),
        ("not found", unknown),
        ("<!DOCTYPE html><html><body><a href=x>", unknown),
        ("<url><loc>http://h.test/</loc></url>", unknown),
        ("\0\0\0", unknown),
        ("\u{1f}\u{8b}", unknown),
        ("<!DOCTYPE urlset [<!ENTITY a 'b'>]><urlset/>", SitemapError::Entities),
        ("<!DOCTYPE urlset [ ]><urlset/>", SitemapError::Entities),
        ("<!DOCTYPE x SYSTEM 'http://h.test/entity.dtd'><urlset/>", SitemapError::Entities),
    ] {
        assert_eq!(entries_of(document.as_bytes(), &SitemapLimits::default()).1, Err(error), "{document}");
    }
    assert_eq!(entries_of(b"\x1f\x8b", &SitemapLimits::default()).1, Err(SitemapError::Coding));
    assert_eq!(all(b"<!DOCTYPE urlset SYSTEM 'http://h.test/x.dtd'><urlset/>").1.end, SitemapEnd::Whole);
}

#[test]
fn an_entity_of_nobody_spoils_its_entry_only() {
    let text =
        "<urlset><url><loc>http://h.test/&nbsp;x</loc></url><url><loc>http://h.test/b</loc></url></urlset>";
    assert_eq!(locs(text.as_bytes()), ["http://h.test/b"]);
    let bomb =
        "<!DOCTYPE l [<!ENTITY l 'l'><!ENTITY m '&l;&l;&l;'>]><urlset><url><loc>&m;</loc></url></urlset>";
    assert_eq!(entries_of(bomb.as_bytes(), &SitemapLimits::default()), (vec![], Err(SitemapError::Entities)));
}

#[test]
fn broken_xml_keeps_what_came_before() {
    let whole = locs(PAGES.as_bytes());
    for at in 0..PAGES.len() {
        let (found, summary) = entries_of(&PAGES.as_bytes()[..at], &SitemapLimits::default());
        let found: Vec<String> = found.into_iter().map(|(loc, _)| loc).collect();
        assert!(whole.starts_with(&found), "{at}");
        if let Ok(summary) = summary {
            let ended = PAGES[..at].trim_end().ends_with("</urlset>");
            assert_eq!(summary.end == SitemapEnd::Whole, ended, "{at}");
        }
    }
    let crossed =
        "<urlset><url><loc>http://h.test/a</loc></url><url><loc>http://h.test/b</url></loc></urlset>";
    let (entries, summary) = all(crossed.as_bytes());
    assert_eq!((entries.len(), summary.end), (1, SitemapEnd::Broken));
}

#[test]
fn limits_are_kept() {
    let many = |count: usize| {
        let urls: String = (0..count).map(|n| format!("<url><loc>http://h.test/{n}</loc></url>")).collect();
        format!("<urlset>{urls}</urlset>")
    };
    let few = SitemapLimits { entries_max: 3, ..SitemapLimits::default() };
    for document in [many(4), "http://h.test/a\n".repeat(4)] {
        let (entries, summary) = entries_of(document.as_bytes(), &few);
        assert_eq!((entries.len(), summary.unwrap().end), (3, SitemapEnd::Limit));
    }
    assert_eq!(entries_of(many(3).as_bytes(), &few).1.unwrap().end, SitemapEnd::Whole);

    let short = SitemapLimits { bytes_max: 100, ..SitemapLimits::default() };
    for document in [many(50).into_bytes(), gzip(many(50).as_bytes())] {
        let (entries, summary) = entries_of(&document, &short);
        assert_eq!((entries.len(), summary.unwrap().end), (2, SitemapEnd::Limit));
    }

    let deep = format!("<urlset>{}", "<x>".repeat(100_000));
    assert_eq!(all(deep.as_bytes()).1.end, SitemapEnd::Limit);

    let long = |bytes: usize| format!("http://h.test/{}", "x".repeat(bytes - "http://h.test/".len()));
    for (bytes, taken) in [(URL_BYTES_MAX, 1), (URL_BYTES_MAX + 1, 0)] {
        let loc = long(bytes);
        let document = format!("<urlset><url><loc>  {loc}\n  </loc></url></urlset>");
        assert_eq!(all(document.as_bytes()).0.len(), taken, "{bytes}");
        let feed = format!("<feed><entry><link href='{loc}'/></entry></feed>");
        assert_eq!(all(feed.as_bytes()).0.len(), taken, "{bytes}");
    }
}

#[test]
fn gzip_is_undone_whatever_the_headers_said() {
    assert_eq!(locs(&gzip(PAGES.as_bytes())), locs(PAGES.as_bytes()));
    assert_eq!(locs(&gzip(b"http://h.test/a\n")), ["http://h.test/a"]);
    let zipped = gzip(PAGES.as_bytes());
    assert_eq!(all(&zipped[..zipped.len() - 4]).1.end, SitemapEnd::Broken, "its sum is missing");
    let bomb = gzip(&vec![b' '; 40 << 20]);
    assert_eq!(entries_of(&bomb, &SitemapLimits::default()).1, Err(SitemapError::Coding));
}

#[test]
fn other_encodings_are_read() {
    let text = "<?xml version='1.0' encoding='windows-1251'?><urlset><url><loc>http://h.test/дом</loc></url></urlset>";
    assert_eq!(locs(&encoding_rs::WINDOWS_1251.encode(text).0), ["http://h.test/дом"]);
    let utf_16: Vec<u8> = format!("\u{feff}{PAGES}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(locs(&utf_16), locs(PAGES.as_bytes()));
    let faulty = [
        b"<rss><channel><title>\xff</title>".as_slice(),
        b"<item><link>http://h.test/</link></item></channel></rss>",
    ];
    assert_eq!(locs(&faulty.concat()), ["http://h.test/"]);
}

/// A reader that went back over its bytes would need some 10^12 steps for one of these.
#[test]
fn hostile_documents_take_one_pass() {
    for unit in [
        "<",
        ">",
        "&",
        "&a",
        "&#",
        "&#x41;",
        "&amp;",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "<!",
        "<?",
        "?>",
        "<url>",
        "<url><loc>",
        "</loc>",
        "<a b='",
        "<link href=x ",
        "<link a='b' ",
        "</",
        "<a/>",
        "<link/>",
        "\u{e9}",
    ] {
        for head in ["<urlset>", "<urlset><url><loc>", "<feed><entry><link ", "<!DOCTYPE ", ""] {
            let document = [head, &unit.repeat((1 << 20) / unit.len())].concat();
            let (entries, _) = entries_of(document.as_bytes(), &SitemapLimits::default());
            assert!(entries.is_empty(), "{head}{unit}");
        }
    }
}
