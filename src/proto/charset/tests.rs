//! The promise: a page is read in the encoding that a browser would read it in, whoever names it, and an ordinary
//! page is not copied for it.

use encoding_rs::*;
use proptest::prelude::*;

use super::*;

const RUSSIAN: &str = "<html><head><title>Новости дня</title></head><body><p>Сегодня утром в городе прошёл сильный дождь, и движение на главных улицах остановилось.</p><a href='/поиск?q=дождь'>Читать далее</a></body></html>";
const JAPANESE: &str = "<html><head><title>東京の天気</title></head><body><p>今日は朝から雨が降っています。明日は晴れるでしょう。</p><a href='/検索?q=天気'>続きを読む</a></body></html>";
const KOREAN: &str = "<html><body><p>오늘 아침 서울에는 비가 내렸습니다. 내일은 맑겠습니다.</p><a href='/검색?q=날씨'>더 보기</a></body></html>";
const CHINESE: &str = "<html><body><p>今天早上北京下了一场大雨，主要街道的交通都停止了。</p><a href='/搜索?q=天气'>更多内容</a></body></html>";
const FRENCH: &str = "<html><body><p>Ce matin, la forêt était très calme ; l’été s’achève déjà à Besançon, où l’on goûte les dernières pêches.</p><a href='/forêt?q=été'>À suivre…</a></body></html>";
const GREEK: &str = "<html><body><p>Σήμερα το πρωί έβρεξε στην πόλη και οι δρόμοι έκλεισαν για πολλές ώρες.</p><a href='/αναζήτηση?q=βροχή'>Περισσότερα</a></body></html>";

const SAMPLES: [(&Encoding, &str); 8] = [
    (WINDOWS_1251, RUSSIAN),
    (KOI8_R, RUSSIAN),
    (SHIFT_JIS, JAPANESE),
    (EUC_JP, JAPANESE),
    (EUC_KR, KOREAN),
    (GBK, CHINESE),
    (WINDOWS_1252, FRENCH),
    (WINDOWS_1253, GREEK),
];

fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, lost) = encoding.encode(text);
    assert!(!lost, "the sample is in the encoding");
    bytes.into_owned()
}

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    text.encode_utf16()
        .flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
        .collect()
}

fn read(document: &[u8], content_type: &str, tld: Option<&str>) -> (&'static str, String) {
    let mut reader = CharsetReader::new();
    let text = reader.read(document, content_type.as_bytes(), tld);
    (text.encoding.name(), String::from_utf8_lossy(text.bytes).into_owned())
}

#[test]
fn a_header_names_the_encoding() {
    for (encoding, text) in SAMPLES {
        let header = format!("text/html; charset={}", encoding.name());
        assert_eq!(read(&encoded(encoding, text), &header, None), (encoding.name(), text.to_string()));
    }
}

#[test]
fn a_meta_names_the_encoding_and_a_header_outranks_it() {
    for (encoding, text) in SAMPLES {
        let text = format!("<meta charset={}>{text}", encoding.name());
        let document = encoded(encoding, &text);
        assert_eq!(read(&document, "text/html", None), (encoding.name(), text.clone()));
        assert_eq!(read(&document, "text/html; charset=iso-8859-15", None).0, "ISO-8859-15");
        // A name that means nothing does not outrank.
        assert_eq!(read(&document, "text/html; charset=utf-7", None).0, encoding.name());
    }
}

#[test]
fn without_a_label_the_bytes_tell() {
    for ((encoding, text), tld) in SAMPLES.into_iter().zip(["ru", "ru", "jp", "jp", "kr", "cn", "fr", "gr"]) {
        // Of encodings that differ in a few characters only, the wider one may be found.
        let found = read(&encoded(encoding, text), "text/html", Some(tld)).1;
        assert_eq!(found, text, "{}", encoding.name());
        assert_eq!(read(text.as_bytes(), "text/html", Some(tld)), ("UTF-8", text.to_string()));
    }
    for tld in ["", "RU", "1", "xn--p1ai", "é", "a.b"] {
        let _ = read(&encoded(WINDOWS_1251, RUSSIAN), "", Some(tld));
    }
}

#[test]
fn a_late_first_character_is_still_seen() {
    let text = format!("{}{RUSSIAN}", "<p>ascii</p>\n".repeat(20_000));
    assert_eq!(read(&encoded(WINDOWS_1251, &text), "text/html", Some("ru")), ("windows-1251", text));
}

#[test]
fn a_byte_order_mark_outranks_everything_and_is_no_text() {
    let russian = RUSSIAN.to_string();
    let header = "text/html; charset=windows-1251";
    let utf8 = format!("\u{feff}<meta charset=koi8-r>{russian}");
    assert_eq!(read(utf8.as_bytes(), header, None), ("UTF-8", utf8[3..].to_string()));
    for big_endian in [true, false] {
        let name = if big_endian { "UTF-16BE" } else { "UTF-16LE" };
        let marked = utf16(&format!("\u{feff}{russian}"), big_endian);
        assert_eq!(read(&marked, header, None), (name, russian.clone()));
        assert_eq!(read(&marked, "text/html; charset=utf-16", None), (name, russian.clone()));
        // Without a mark: by a header, or by the first two characters.
        let bare = utf16(&russian, big_endian);
        assert_eq!(read(&bare, &format!("text/html; charset={name}"), None), (name, russian.clone()));
        assert_eq!(read(&bare, "text/html", None), (name, russian.clone()));
    }
}

#[test]
fn a_label_of_utf_16_on_other_bytes_is_passed_over() {
    let text = format!("<meta charset=utf-16>{RUSSIAN}");
    assert_eq!(read(text.as_bytes(), "text/html; charset=utf-16", None), ("UTF-8", text.clone()));
    assert_eq!(read(text.as_bytes(), "text/html", None), ("UTF-8", text));
}

#[test]
fn ordinary_pages_are_not_copied() {
    let ascii = b"<html><a href=/x>x</a></html>".as_slice();
    let mut reader = CharsetReader::new();
    for (document, content_type) in [
        (ascii, "text/html"),
        (ascii, "text/html; charset=windows-1251"),
        (RUSSIAN.as_bytes(), "text/html; charset=utf-8"),
        (RUSSIAN.as_bytes(), "text/html"),
        (b"\xff\xfe\xfd not at all".as_slice().split_at(2).1, "text/html; charset=utf-8"),
    ] {
        assert!(std::ptr::eq(reader.read(document, content_type.as_bytes(), None).bytes, document));
    }
    assert_eq!(reader.text_capacity(), 0);
}

#[test]
fn a_document_cut_inside_a_character_is_still_utf_8() {
    for cut in 0..RUSSIAN.len() {
        assert_eq!(read(&RUSSIAN.as_bytes()[..cut], "", None).0, "UTF-8");
    }
    assert_ne!(read(b"\xe2\x82 x", "", None).0, "UTF-8");
}

#[test]
fn a_fault_does_not_make_utf_8_something_else() {
    let faulty = [RUSSIAN.as_bytes(), b"\xff", RUSSIAN.as_bytes()].concat();
    assert_eq!(read(&faulty, "", Some("ru")), ("UTF-8", format!("{RUSSIAN}\u{fffd}{RUSSIAN}")));
}

#[test]
fn utf_7_is_never_read() {
    let page = "<a href=/x>+ADw-a href=/y+AD4-</a>";
    for header in ["text/html; charset=utf-7", "text/html", "text/html; charset=unicode-1-1-utf-7"] {
        assert_eq!(read(page.as_bytes(), header, None).1, page);
    }
    let meta = format!("<meta charset=utf-7>{page}");
    assert_eq!(read(meta.as_bytes(), "text/html", None).1, meta);
}

#[test]
fn a_large_text_does_not_stay_in_memory() {
    let mut reader = CharsetReader::new();
    let large = encoded(WINDOWS_1251, &"ж".repeat(3 << 20));
    assert_eq!(reader.read(&large, b"text/html; charset=windows-1251", None).bytes.len(), 6 << 20);
    assert!(reader.text_capacity() < 3 * large.len());
    let _ = reader.read(b"<html>", b"", None);
    assert!(reader.text_capacity() <= 1 << 20, "{}", reader.text_capacity());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_under_any_label_are_read(
        start in prop::sample::select(vec![&b""[..], b"<meta charset=", b"<!--", b"\xff\xfe", b"\xfe\xff", b"<?xml encoding='"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        label in prop::sample::select(vec!["", "utf-8", "utf-16le", "utf-16be", "iso-2022-jp", "gb18030", "big5", "shift_jis", "x-user-defined", "replacement", "ibm866"]),
    ) {
        let document = [start, &bytes].concat();
        let (_, text) = read(&document, &format!("text/html; charset={label}"), Some("com"));
        prop_assert!(text.len() <= 3 * document.len() + 3);
    }
}
