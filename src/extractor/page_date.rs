use crate::base::{Civil, named_enum};
use crate::proto::feed::date;
use crate::proto::html::{About, about};
use std::ops::RangeInclusive;

named_enum! {
    /// Where a date of publication is from.
    #[derive(Default)]
    pub enum DateFrom {
        #[default]
        Nowhere = "nowhere",
        Feed = "feed",
        JsonLd = "json_ld",
        Meta = "meta",
        /// The text of the page, or its URL.
        Text = "text",
    }
}

impl DateFrom {
    pub(super) fn to_byte(self) -> u8 {
        self as u8
    }

    pub(super) fn of_byte(byte: u8) -> Option<DateFrom> {
        DateFrom::ALL.get(usize::from(byte)).copied()
    }
}

/// Dates of publication that a page gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageDate {
    json_ld: Option<i64>,
    meta: Option<i64>,
    time: Option<i64>,
    url: Option<i64>,
}

/// Names by which pages give it, in lower case.
const NAMES: [&str; 27] = [
    "article:published",
    "article:published_time",
    "article_date_original",
    "article.published",
    "bt:pubdate",
    "citation_date",
    "citation_publication_date",
    "cxenseparse:recs:publishtime",
    "date",
    "datecreated",
    "datepublished",
    "dc.date",
    "dc.date.created",
    "dc.date.issued",
    "dc:date",
    "dcterms.created",
    "dcterms.date",
    "dcterms.issued",
    "og:published_time",
    "og:pubdate",
    "parsely-pub-date",
    "pubdate",
    "publication_date",
    "publish_date",
    "publishdate",
    "rnews:datepublished",
    "sailthru.date",
];
/// Of one page no more is looked at.
const FINDINGS_MAX: usize = 2_000;

impl PageDate {
    /// Reads a page. Dates outside of the window are none.
    pub fn of(html: &[u8], url: &str, window: &RangeInclusive<i64>) -> PageDate {
        let mut dates =
            PageDate { url: in_path(url).filter(|date| window.contains(date)), ..PageDate::default() };
        let mut left = FINDINGS_MAX;
        let read = |text: &[u8]| {
            let date = str::from_utf8(text).ok().and_then(date::parse);
            date.filter(|date| window.contains(date))
        };
        let is_date = |name: &[u8]| NAMES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
        about(html, |about| {
            left = left.saturating_sub(1);
            match about {
                _ if left == 0 => {}
                About::JsonLd(json) if dates.json_ld.is_none() => dates.json_ld = in_json(json, &read),
                About::Meta { name, content } if dates.meta.is_none() && is_date(name.trim_ascii()) => {
                    dates.meta = read(&content);
                }
                About::Time(time) if dates.time.is_none() => dates.time = read(&time),
                _ => {}
            }
        });
        dates
    }

    /// What the page says for programs.
    pub fn said(&self) -> Option<(i64, DateFrom)> {
        let of = |date: Option<i64>, from| date.map(|date| (date, from));
        of(self.json_ld, DateFrom::JsonLd).or(of(self.meta, DateFrom::Meta))
    }

    /// What its readers may see.
    pub fn shown(&self) -> Option<(i64, DateFrom)> {
        self.time.or(self.url).map(|date| (date, DateFrom::Text))
    }
}

/// The first date of publication in JSON, which is often none that a parser would take.
fn in_json(json: &[u8], read: &impl Fn(&[u8]) -> Option<i64>) -> Option<i64> {
    for name in [b"\"datePublished\"".as_slice(), b"\"dateCreated\""] {
        for at in memchr::memmem::find_iter(json, name) {
            let rest = json[at + name.len()..].trim_ascii_start();
            let Some(value) = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start) else { continue };
            let Some(value) = value.strip_prefix(b"\"") else { continue };
            let value = &value[..value.len().min(64)];
            let end = memchr::memchr(b'"', value).unwrap_or(value.len());
            if let Some(date) = read(&value[..end]) {
                return Some(date);
            }
        }
    }
    None
}

/// A day in a URL's path: `/2024/03/05/`, `/2024-03-05-`.
fn in_path(url: &str) -> Option<i64> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split(['?', '#']).next()?;
    let path = path.as_bytes();
    for at in memchr::memchr_iter(b'/', path) {
        let Some(&[_, a, b, c, d, s, e, f, t, g, h, ..]) = path.get(at..).filter(|rest| rest.len() >= 11)
        else {
            continue;
        };
        let is_end = path.get(at + 11).is_none_or(|octet| !octet.is_ascii_digit());
        let (year, month, day) = (digits(&[a, b, c, d]), digits(&[e, f]), digits(&[g, h]));
        if let (true, true, Some(year), Some(month), Some(day)) =
            (is_end, s == t && matches!(s, b'/' | b'-'), year, month, day)
            && let Some(civil) = Civil::checked(year, month, day)
        {
            return Some(i64::from(civil.days()) * 86_400);
        }
    }
    None
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter()
        .try_fold(0, |number, octet| octet.is_ascii_digit().then(|| number * 10 + u32::from(octet - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 1_709_596_800; // 2024-03-05

    #[test]
    fn urls() {
        for (url, is_date) in [
            ("http://a.example/2024/03/05/plan", true),
            ("http://a.example/news/2024-03-05-plan.html", true),
            ("http://a.example/2024/03/05", true),
            ("http://a.example/2024/03-05/", false),
            ("http://a.example/2024/03/055", false),
            ("http://a.example/?/2024/03/05/", false),
            ("http://a.example/2024/13/05/", false),
            ("", false),
        ] {
            assert_eq!(in_path(url), is_date.then_some(DAY), "{url}");
        }
    }

    #[test]
    fn json_first_then_meta_then_what_is_shown() {
        let window = 0..=DAY * 2;
        let of = |html: &str| {
            let dates = PageDate::of(html.as_bytes(), "http://a.example/", &window);
            dates.said().or(dates.shown())
        };
        let json = "<script type=application/ld+json>{\"datePublished\" : \"2024-03-05\",}</script>";
        let meta = "<meta name=DC.Date.Issued content=2024-03-05T00:00:01Z>";
        let time = "<time datetime=2024-03-05T00:00:02Z>";
        assert_eq!(of(&format!("{time}{meta}{json}")), Some((DAY, DateFrom::JsonLd)));
        assert_eq!(of(&format!("{time}{meta}")), Some((DAY + 1, DateFrom::Meta)));
        assert_eq!(of(time), Some((DAY + 2, DateFrom::Text)));
        assert_eq!(of("<time datetime=2924-03-05>"), None, "centuries ahead");
        assert_eq!(
            of("<script type=application/ld+json>{\"datePublished\":{\"datePublished\":</script>"),
            None
        );
    }

    #[test]
    fn bytes_of_a_record_stay() {
        for (byte, from) in DateFrom::ALL.iter().enumerate() {
            assert_eq!((from.to_byte(), DateFrom::of_byte(byte as u8)), (byte as u8, Some(*from)));
        }
        assert_eq!(DateFrom::of_byte(99), None);
    }
}
