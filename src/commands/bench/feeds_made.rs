//! Feeds to measure with, made up by a seed: as large as those of news sites, and written as those are.

use crate::base::Rng;

/// A feed, and what it is like.
pub(super) struct MadeFeed {
    pub name: &'static str,
    pub text: String,
    pub entries: u32,
}

/// What an entry's text is written in.
#[derive(Clone, Copy)]
enum Content {
    /// HTML in a CDATA section, as RSS has it.
    CData,
    /// HTML with its tags as references.
    Escaped,
    /// HTML as elements of the feed.
    Xhtml,
    /// A sentence.
    Summary,
}

const ENGLISH: &str = "harbour ship council minister report market river winter election police train the of and to a in on after says";
const GERMAN: &str = "Hafen Schiff Rat Ministerin Bericht Märkte Fluss über Wahl Polizei Züge der die das und von für größer heißt";
const RUSSIAN: &str =
    "гавань корабль совет министр доклад рынок река зима выборы полиция поезд и в на после что говорит";
const KOREAN: &str = "항구 선박 의회 장관 보고서 시장 겨울 선거 경찰 기차 그리고 이후 말했다 서울 오늘";
const URDU: &str = "بندرگاہ جہاز کونسل وزیر رپورٹ بازار دریا سردی انتخاب پولیس ریل اور میں کے بعد کہا آج";

/// Six feeds of 18 to 190 KB: both formats, several languages, every way to write HTML.
pub(super) fn feeds() -> Vec<MadeFeed> {
    vec![
        atom("large_atom", 190_000, ENGLISH, Content::Escaped),
        rss("large_rss", 167_000, ENGLISH, Content::CData),
        rss("headlines", 175_000, GERMAN, Content::Summary),
        rss("korean", 152_000, KOREAN, Content::Escaped),
        rss("urdu", 25_000, URDU, Content::CData),
        atom("small_atom", 18_000, RUSSIAN, Content::Xhtml),
    ]
}

fn rss(name: &'static str, bytes_min: usize, words: &str, content: Content) -> MadeFeed {
    let mut maker = Maker::new(words, bytes_min);
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\" xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:media=\"http://search.yahoo.com/mrss/\" \
         xmlns:atom=\"http://www.w3.org/2005/Atom\">\n<channel>\n<title>News &amp; more</title>\n\
         <link>http://news.test/</link>\n<atom:link rel=\"self\" href=\"http://news.test/feed\"/>\n<ttl>30</ttl>\n",
    );
    let mut entries = 0;
    while text.len() < bytes_min {
        entries += 1;
        let title = maker.sentence(9);
        text += &format!(
            "<item>\n<title>{}</title>\n<link>http://news.test/story/{entries}?ref=rss&amp;n={entries}</link>\n\
             <guid isPermaLink=\"false\">story-{entries}@news.test</guid>\n\
             <pubDate>Mon, {:02} Nov 2026 {:02}:31:25 +0100</pubDate>\n<dc:creator>A. Writer</dc:creator>\n\
             <category><![CDATA[{}]]></category>\n<media:thumbnail url=\"http://news.test/i/{entries}.jpg\" width=\"90\"/>\n",
            if entries % 2 == 0 {
                format!("<![CDATA[{title} – “{}”]]>", maker.word())
            } else {
                format!("{title} &amp; more")
            },
            entries % 28 + 1,
            entries % 24,
            maker.word(),
        );
        text += &match content {
            Content::CData => format!(
                "<description>{}</description>\n<content:encoded><![CDATA[{}]]></content:encoded>\n",
                maker.sentence(20),
                maker.html(6)
            ),
            Content::Summary => format!("<description>{}</description>\n", maker.sentence(24)),
            _ => format!("<description>{}</description>\n", escaped(&maker.html(4))),
        };
        text += "</item>\n";
    }
    text += "</channel>\n</rss>\n";
    MadeFeed { name, text, entries }
}

fn atom(name: &'static str, bytes_min: usize, words: &str, content: Content) -> MadeFeed {
    let mut maker = Maker::new(words, bytes_min);
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"en\">\n\
         <title type=\"html\">News &amp;amp; more</title>\n<id>tag:news.test,2026:feed</id>\n\
         <link rel=\"alternate\" href=\"http://news.test/\"/>\n<updated>2026-11-16T12:00:00Z</updated>\n",
    );
    let mut entries = 0;
    while text.len() < bytes_min {
        entries += 1;
        text += &format!(
            "<entry>\n<id>tag:news.test,2026:{entries}</id>\n<title type=\"html\">{} &amp;amp; &lt;em&gt;{}&lt;/em&gt;</title>\n\
             <link rel=\"alternate\" type=\"text/html\" href=\"http://news.test/story/{entries}?a=1&amp;b=2\"/>\n\
             <link rel=\"replies\" type=\"application/atom+xml\" href=\"http://news.test/story/{entries}/comments\"/>\n\
             <published>2026-11-{:02}T{:02}:31:25+01:00</published>\n<updated>2026-11-16T{:02}:00:00Z</updated>\n\
             <author><name>A. Writer</name><uri>http://news.test/writer</uri></author>\n",
            maker.sentence(8),
            maker.word(),
            entries % 28 + 1,
            entries % 24,
            entries % 24,
        );
        text += &match content {
            Content::Xhtml => format!(
                "<content type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\">{}</div></content>\n",
                maker.html(3)
            ),
            _ => format!("<content type=\"html\">{}</content>\n", escaped(&maker.html(8))),
        };
        text += "</entry>\n";
    }
    text += "</feed>\n";
    MadeFeed { name, text, entries }
}

fn escaped(html: &str) -> String {
    html.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Maker<'a> {
    words: Vec<&'a str>,
    rng: Rng,
}

impl<'a> Maker<'a> {
    fn new(words: &'a str, seed: usize) -> Maker<'a> {
        Maker { words: words.split(' ').collect(), rng: Rng::new(seed as u64) }
    }

    fn word(&mut self) -> &'a str {
        self.words[self.rng.below(self.words.len() as u64) as usize]
    }

    fn sentence(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Paragraphs with a link, a picture and references, well-formed as XML, too.
    fn html(&mut self, paragraphs: usize) -> String {
        let mut html = String::new();
        for number in 0..paragraphs {
            let (before, link, after) = (self.sentence(30), self.sentence(3), self.sentence(14));
            html += &format!(
                "<p class=\"text\">{before} <a href=\"http://news.test/{number}?x=1&amp;y=2\">{link}</a>, {after} &#8211; <strong>{}</strong>.</p>\
                 <img src=\"http://news.test/{number}.jpg\" alt=\"{}\" width=\"640\" height=\"480\" /><br />\n",
                self.word(),
                self.word(),
            );
        }
        html
    }
}
