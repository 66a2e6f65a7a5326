use nephila::proto::feed::plain;
use nephila::proto::feed::title::normal;
use std::borrow::Cow;

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (source, title) = text.split_once('\n').unwrap_or(("", &text));
    let found = normal(title, source);
    assert!(!found.contains("  ") && found.trim() == found, "{found:?}");
    assert!(
        found.chars().all(|c| c == ' ' || !c.is_ascii() || c.is_ascii_lowercase() || c.is_ascii_digit()),
        "{found:?}"
    );
    // Case, blanks and punctuation of ASCII around it change nothing.
    assert_eq!(normal(&format!(" {title} !"), source), found, "{title:?}");
    let shown = plain(Cow::Borrowed(title), true);
    assert!(
        !shown.contains(|c: char| c.is_control() || c == '\u{202e}') && shown.trim() == shown,
        "{shown:?}"
    );
    assert_eq!(plain(Cow::Borrowed(&shown), false), shown);
}
