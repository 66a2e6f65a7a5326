use super::support::*;
use encoding_rs::{EUC_KR, Encoding, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

fn feed(declared: &str, title: &str) -> String {
    let declaration = match declared {
        "" => String::new(),
        name => format!("<?xml version='1.0' encoding='{name}'?>"),
    };
    format!("{declaration}<rss version='2.0'><channel><item><title>{title}</title></item></channel></rss>")
}

#[track_caller]
fn title(bytes: &[u8], content_type: Option<&str>) -> (String, bool) {
    let (entries, facts) = read_with(bytes, content_type.map(str::as_bytes), &FeedLimits::default());
    (entries[0].title.clone(), facts.unwrap().damage.is_some())
}

fn in_charset(charset: &'static Encoding, text: &str) -> Vec<u8> {
    charset.encode(text).0.into_owned()
}

#[test]
fn charsets_by_mark_shape_header_and_declaration() {
    let text = "Grüße – 東京 😀";
    let utf8 = feed("utf-8", text);
    let wide = |big: bool, unit_bytes: usize, mark: bool| -> Vec<u8> {
        let text = format!("{}{utf8}", if mark { "\u{feff}" } else { "" });
        let units: Vec<u32> = match unit_bytes {
            2 => text.encode_utf16().map(u32::from).collect(),
            _ => text.chars().map(u32::from).collect(),
        };
        let bytes = |unit: u32| match big {
            true => unit.to_be_bytes()[4 - unit_bytes..].to_vec(),
            false => unit.to_le_bytes()[..unit_bytes].to_vec(),
        };
        units.into_iter().flat_map(bytes).collect()
    };
    let expected = (text.to_string(), false);
    assert_eq!(title(utf8.as_bytes(), None), expected);
    assert_eq!(title(format!("\u{feff}{utf8}").as_bytes(), Some("text/xml; charset=iso-8859-1")), expected);
    assert_eq!(title(feed("", text).as_bytes(), None), expected);
    for (big, unit_bytes, mark) in [(true, 2), (false, 2), (true, 4), (false, 4)]
        .iter()
        .flat_map(|(b, u)| [(*b, *u, true), (*b, *u, false)])
    {
        assert_eq!(title(&wide(big, unit_bytes, mark), None), expected, "{big} {unit_bytes} {mark}");
    }
    assert_eq!(title(&in_charset(SHIFT_JIS, &feed("Shift_JIS", "東京")), None), ("東京".into(), false));
    assert_eq!(
        title(&in_charset(WINDOWS_1251, &feed("", "Москва")), Some("text/xml; charset=\"windows-1251\"")),
        ("Москва".into(), false)
    );
    assert_eq!(
        title(&in_charset(EUC_KR, &feed("euc-kr", "서울")), Some("application/xml")),
        ("서울".into(), false)
    );
    let late = format!("<!-- a comment -->\n{}", feed("windows-1252", "café"));
    assert_eq!(title(&in_charset(WINDOWS_1252, &late), None), ("café".into(), false));
}

#[test]
fn charsets_that_lie() {
    // Says one thing and is another: what can be read counts.
    assert_eq!(title(feed("utf-16", "café").as_bytes(), None), ("café".into(), false));
    assert_eq!(title(feed("iso-8859-1", "café").as_bytes(), None), ("café".into(), false));
    assert_eq!(title(feed("us-ascii-x", "café").as_bytes(), None), ("café".into(), false));
    assert_eq!(title(feed("utf-8", "café").as_bytes(), Some("text/xml; charset=utf-16")).0, "café");
    assert_eq!(
        title(&in_charset(WINDOWS_1252, &feed("utf-8", "café au lait")), None),
        ("café au lait".into(), true)
    );
    assert_eq!(
        title(&in_charset(WINDOWS_1252, &feed("utf-8", "café")), Some("text/xml; charset=iso-8859-1")),
        ("café".into(), false)
    );
    let mut damaged = feed("utf-8", "Größe ändern für Österreich über Zürich, Füße und Übermut").into_bytes();
    let at = damaged.len() - 60;
    damaged.insert(at, 0xff);
    assert!(title(&damaged, None).1);
    let ebcdic = [0x4c, 0x6f, 0xa7, 0x94, 0x93, 0x6f, 0x6e, 0x4c, 0x99, 0xa2, 0xa2, 0x61, 0x6e];
    assert_eq!(all(&ebcdic).1.format, FeedFormat::Rss20);
}
