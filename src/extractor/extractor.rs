use super::page_date::{DateFrom, PageDate};
use super::{language, text};
use crate::base::named_enum;
use crate::proto::html::{Misshapen, ShapeLimits, check_shape};
use std::borrow::Cow;

named_enum! {
    /// How much is done for the text of a page.
    pub enum ExtractDepth {
        Off = "off",
        Fast = "fast",
        Full = "full",
    }
}

/// The version of the rules by which texts are made. A text of older ones may be made again.
pub const RULES: u16 = 1;

/// A page that is larger is refused.
pub(super) const PAGE_BYTES_MAX: usize = 8 << 20;
/// What is kept of a text, and of a title, an author.
const TEXT_BYTES_MAX: usize = 4 << 20;
const LINE_BYTES_MAX: usize = 1_024;
/// The language of a text is told by so many characters of it.
const LANGUAGE_CHARS: usize = 1_000;
/// Browsers stop at 512. A tree is deeper than this by what has no end tag, at most three for each.
const SHAPE: ShapeLimits = ShapeLimits { depth_max: 512, elements_max: 400_000 };
/// A date lies after this, and before the time of fetching and a day.
const DATE_MIN_S: i64 = 0;
const AHEAD_S_MAX: i64 = 86_400;

/// Finds what is to be kept of a page.
#[derive(Clone, Copy, Debug)]
pub struct Extractor {
    depth: ExtractDepth,
}

/// What is known of a story before its page is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// As its feed says.
    pub title: &'a str,
    pub published_s: Option<i64>,
    pub language: &'a str,
    /// When the page was fetched; 0 if nobody knows.
    pub fetched_s: i64,
}

/// What was found on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    pub title: String,
    pub author: String,
    pub published_s: Option<i64>,
    pub date_from: DateFrom,
    /// By two letters, empty if unknown.
    pub language: String,
    pub text: String,
    /// Why there is no text.
    pub failed: Option<Cow<'static, str>>,
}

/// What a parser found.
#[derive(Default)]
pub(super) struct Found {
    pub title: String,
    pub author: String,
    pub text: String,
    pub published_s: Option<i64>,
}

impl Extractor {
    /// `None` if nothing is to be done, or cannot be in a build without the parsers.
    pub fn new(depth: ExtractDepth) -> Option<Extractor> {
        (Extractor::is_built() && depth != ExtractDepth::Off).then_some(Extractor { depth })
    }

    /// Whether this build has the parsers.
    pub fn is_built() -> bool {
        text::IS_THERE
    }

    /// Title, author, date, language and text of a page. What a feed said of it comes first, where it said something.
    pub fn extract(&self, html: &str, url: &str, hints: &Hints<'_>) -> Extracted {
        let mut told = Extracted { title: line(hints.title), ..Extracted::default() };
        let window = DATE_MIN_S..=if hints.fetched_s > 0 { hints.fetched_s + AHEAD_S_MAX } else { i64::MAX };
        let of_feed = hints.published_s.filter(|date| window.contains(date));
        let of_page = match of_feed {
            Some(_) => PageDate::default(),
            None => PageDate::of(html.as_bytes(), url, &window),
        };
        let mut date = of_feed.map(|date| (date, DateFrom::Feed)).or(of_page.said());
        match self.find(html, url, date.is_none()) {
            Ok(found) => {
                let said = found.published_s.filter(|date| window.contains(date));
                date = date.or(said.map(|date| (date, DateFrom::Text)));
                if told.title.is_empty() {
                    told.title = line(&found.title);
                }
                told.author = line(&found.author);
                told.text = found.text;
            }
            Err(why) => told.failed = Some(why.into()),
        }
        let start = told.text.char_indices().nth(LANGUAGE_CHARS).map_or(told.text.len(), |(at, _)| at);
        told.language = text::language(&told.text[..start]).to_string();
        if told.language.is_empty() {
            told.language = language::primary(hints.language).unwrap_or_default();
        }
        if let Some((date, from)) = date.or(of_page.shown()) {
            (told.published_s, told.date_from) = (Some(date), from);
        }
        told
    }

    fn find(&self, html: &str, url: &str, with_date: bool) -> Result<Found, &'static str> {
        if html.len() > PAGE_BYTES_MAX {
            return Err("the page is larger than 8 MiB");
        }
        check_shape(html.as_bytes(), &SHAPE).map_err(|why| match why {
            Misshapen::TooDeep => "its elements are nested too deep",
            Misshapen::TooMany => "it has too many elements",
        })?;
        let mut found = text::find(self.depth, html, url, with_date)?;
        found.text = tidy(&found.text);
        if found.text.is_empty() { Err("no text was found") } else { Ok(found) }
    }
}

/// Lines without white space around them, empty ones at most one at a time, and no more than is kept.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
    let mut is_gap = false;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() {
            is_gap = true;
            continue;
        }
        if !tidy.is_empty() {
            tidy.push_str(if is_gap { "\n\n" } else { "\n" });
        }
        is_gap = false;
        tidy.push_str(line);
        if tidy.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    let end = tidy.floor_char_boundary(TEXT_BYTES_MAX);
    tidy.truncate(end);
    tidy
}

/// A short text on one line.
fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > LINE_BYTES_MAX {
            line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
            break;
        }
    }
    line
}

#[cfg(all(test, feature = "extract"))]
mod tests {
    use super::*;

    const ENGLISH: &str = "The council of the town has agreed on a plan for the harbour after a year of talks. \
        Work on the eastern quay begins in spring, and the fish market moves to the old ropery until it is done. \
        Traders who had feared for their stalls said that they were relieved, and asked for lower rents.";
    const GERMAN: &str = "Der Rat der Stadt hat sich nach einem Jahr auf einen Plan für den Hafen geeinigt. \
        Die Arbeiten am östlichen Kai beginnen im Frühling, der Fischmarkt zieht so lange in die alte Seilerei. \
        Händler, die um ihre Stände gefürchtet hatten, zeigten sich erleichtert und baten um niedrigere Mieten.";

    fn page(head: &str, body: &str) -> String {
        format!(
            "<!doctype html><html><head><title>A plan for the harbour - The Quay</title>{head}</head><body>\
             <nav><ul><li><a href=/>Home</a><li><a href=/sport>Sport</a><li><a href=/w>Weather</a></ul></nav>\
             <article><h1>A plan for the harbour</h1>{body}</article>\
             <footer><a href=/imprint>Imprint</a> © The Quay</footer></body></html>"
        )
    }

    fn both(html: &str, hints: &Hints<'_>) -> [Extracted; 2] {
        [ExtractDepth::Full, ExtractDepth::Fast]
            .map(|depth| Extractor::new(depth).unwrap().extract(html, "http://quay.example/plan", hints))
    }

    #[test]
    fn text_without_what_stands_around_it() {
        let html = page("<meta name=author content='Ada Quill'>", &format!("<p>{ENGLISH}</p>").repeat(3));
        for told in both(&html, &Hints::default()) {
            assert_eq!(told.failed, None);
            assert!(told.text.contains("the fish market moves"), "{}", told.text);
            assert!(!told.text.contains("Imprint") && !told.text.contains("Weather"), "{}", told.text);
            assert!(told.title.starts_with("A plan for the harbour"), "{}", told.title);
            assert_eq!((told.author.as_str(), told.language.as_str()), ("Ada Quill", "en"));
        }
        let html = page("", &format!("<p>{GERMAN}</p>").repeat(3));
        for told in both(&html, &Hints { title: " The \n feed's\ttitle ", ..Hints::default() }) {
            assert_eq!((told.title.as_str(), told.language.as_str()), ("The feed's title", "de"));
        }
    }

    #[test]
    fn a_date_says_where_it_is_from() {
        let json = r#"<script type="application/ld+json">{"@graph":[{"datePublished":"2024-03-05T06:07:08Z"}]}</script>"#;
        let meta = "<meta property=article:published_time content=2024-03-04T00:00:00+01:00>";
        let text =
            format!("<p class=date>Published on 3 March 2024</p>{}", format!("<p>{ENGLISH}</p>").repeat(3));
        let fetched_s = 1_720_000_000;
        for (head, published_s, date_from, date_s) in [
            (format!("{meta}{json}"), Some(1_700_000_000), DateFrom::Feed, 1_700_000_000),
            (format!("{meta}{json}"), None, DateFrom::JsonLd, 1_709_618_828),
            // A feed that speaks of years to come is not believed.
            (meta.to_string(), Some(1_999_999_999), DateFrom::Meta, 1_709_506_800),
            (String::new(), None, DateFrom::Text, 1_709_424_000),
        ] {
            let hints = Hints { published_s, fetched_s, ..Hints::default() };
            let told = Extractor::new(ExtractDepth::Full).unwrap().extract(
                &page(&head, &text),
                "http://q.example/p",
                &hints,
            );
            assert_eq!((told.date_from, told.published_s), (date_from, Some(date_s)), "{head}");
        }
    }

    #[test]
    fn pages_that_are_no_articles_are_refused_with_a_reason() {
        let deep = "<div>".repeat(1_000_000);
        let large = format!("<p>{}", "word ".repeat(4 << 20));
        let many = "<p>a</p>".repeat(500_000);
        for (html, why) in [
            ("", "no text"),
            ("<html><body></body></html>", "no text"),
            (deep.as_str(), "nested too deep"),
            (large.as_str(), "larger than 8 MiB"),
            (many.as_str(), "too many elements"),
        ] {
            for told in both(html, &Hints::default()) {
                let failed = told.failed.expect(why);
                assert!(failed.contains(why), "{failed}");
                assert!(told.text.is_empty());
            }
        }
    }

    /// Markup that hides its depth from whoever only counts tags.
    #[test]
    fn depth_that_hides_is_refused_by_the_tree() {
        let hidden = format!("<svg><style>{}</style></svg>", "<div>".repeat(5_000));
        for told in both(&hidden, &Hints::default()) {
            assert!(told.failed.is_some(), "{}", told.text.len());
        }
    }

    #[test]
    fn texts_are_tidy_and_bounded() {
        assert_eq!(tidy("  a \n\n\n\n b\nc  \n"), "a\n\nb\nc");
        let long = format!("{}ü", "a".repeat(TEXT_BYTES_MAX - 1));
        assert_eq!(tidy(&long).len(), TEXT_BYTES_MAX - 1);
        assert_eq!(line("a\u{a0}b \n c"), "a b c");
        assert_eq!(line(&"word ".repeat(9_999)).len(), LINE_BYTES_MAX);
        assert_eq!(line(&"市".repeat(9_999)).len(), LINE_BYTES_MAX / 3 * 3);
    }
}
