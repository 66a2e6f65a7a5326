//! The form of a title in which two that mean the same are equal.

use super::entities;
use super::plain::plain;
use std::borrow::Cow;

/// A part of a title that is at least so long stands for the whole.
const PART_CHARS_MIN: usize = 32;
/// What is looked at of a title.
const TITLE_BYTES_MAX: usize = 4_096;

/// Titles of one source.
pub struct Titles {
    /// The words of its name.
    source: String,
}

impl Titles {
    pub fn of(source: &str) -> Titles {
        Titles { source: words(&plain(Cow::Borrowed(cut(source)), true)) }
    }

    /// The normal form of a title: no markup, no case, no punctuation, one blank between words; of a title in parts
    /// (`Story | Section - Source`) the longest, if it is long enough to stand for a story and not the name of the source.
    ///
    /// Empty if the title says nothing but the name of its source: such titles are equal and mean nothing by it.
    pub fn normal(&self, title: &str) -> String {
        let text = plain(Cow::Borrowed(cut(title)), true);
        // Titles of feeds are escaped once too often as a rule.
        let text = entities::decode(&text);
        let whole = words(&text);
        if whole == self.source {
            return String::new();
        }
        // Most titles have no mark in them, and are their only part.
        if whole.len() < PART_CHARS_MIN || mark(&text).is_none() {
            return whole;
        }
        let longest = parts(&text).map(words).max_by_key(|part| chars(part));
        match longest {
            Some(part) if chars(&part) >= PART_CHARS_MIN && part != self.source => part,
            _ => whole,
        }
    }
}

/// The normal form of one title of a source.
pub fn normal(title: &str, source: &str) -> String {
    Titles::of(source).normal(title)
}

fn chars(text: &str) -> usize {
    // Continuation bytes begin no character.
    text.bytes().filter(|octet| octet & 0xc0 != 0x80).count()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TITLE_BYTES_MAX)]
}

/// What stands between marks that part a title.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match mark(text) {
            Some((at, bytes)) => {
                rest = Some(&text[at + bytes..]);
                Some(&text[..at])
            }
            None => rest.take(),
        }
    })
}

/// The first mark that parts a title, and its bytes: `|` anywhere, dashes and colons where a blank is beside them, so that
/// `well-known` and `10:30` stay whole. It is looked for by the bytes that marks begin with.
fn mark(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, octet)| matches!(octet, b'|' | b'-' | b':' | 0xe2 | 0xef)).find_map(
        |(at, _)| {
            let c = text[at..].chars().next()?;
            let after = bytes.get(at + c.len_utf8());
            let before_blank = after.is_none_or(|&octet| octet == b' ');
            let after_blank = at > 0 && bytes[at - 1] == b' ';
            let is_mark = match c {
                '|' | '｜' | '：' => true,
                '-' | '–' | '—' => before_blank || after_blank,
                ':' => before_blank,
                _ => false,
            };
            is_mark.then_some((at, c.len_utf8()))
        },
    )
}

/// Letters and digits in lower case, with a blank wherever something else was.
fn words(text: &str) -> String {
    // ASCII, which is most of it, is gone through by bytes.
    let ascii = match text.is_ascii() {
        true => text.len(),
        false => text.bytes().position(|octet| !octet.is_ascii()).unwrap_or(text.len()),
    };
    let mut out = ascii_words(&text[..ascii]);
    let mut blank = out.ends_with(' ');
    if blank {
        out.pop();
    }
    for c in text[ascii..].chars().filter(|&c| !is_joined(c)) {
        if is_punctuation(c) {
            blank = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut blank) {
            out.push(' ');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The words of a text in ASCII, and a blank behind them if something that is in no word comes last. There is a blank for
/// each, and the next takes the place of one that has another before it: without a branch that depends on where words end.
fn ascii_words(text: &str) -> String {
    let mut out = vec![0; text.len()];
    let (mut end, mut last) = (0, b' ');
    for &octet in text.as_bytes() {
        let sign = IN_WORDS[usize::from(octet & 0x7f)];
        if sign == JOINED {
            continue;
        }
        out[end] = sign;
        // No other sign has the bits of a blank alone.
        end += usize::from(sign | last != b' ');
        last = sign;
    }
    out.truncate(end);
    String::from_utf8(out).unwrap_or_default()
}

/// What stands for each sign of ASCII between others of a title.
const IN_WORDS: [u8; 128] = {
    let mut signs = [b' '; 128];
    let mut octet = 0;
    while octet < 128 {
        if (octet as u8).is_ascii_alphanumeric() {
            signs[octet] = (octet as u8).to_ascii_lowercase();
        }
        octet += 1;
    }
    signs[b'\'' as usize] = JOINED;
    signs[b'`' as usize] = JOINED;
    signs
};
const JOINED: u8 = 0;

fn is_joined(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | '`' | '´' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
}

/// Signs of other scripts count as letters: some write vowels with what is none by its kind.
fn is_punctuation(c: char) -> bool {
    match c {
        '\0'..='\x7f' => !c.is_ascii_alphanumeric(),
        '\u{80}'..='\u{bf}' => !c.is_alphanumeric(),
        '\u{2000}'..='\u{206f}'
        | '\u{2190}'..='\u{2bff}'
        | '\u{3000}'..='\u{303f}'
        | '\u{fe10}'..='\u{fe6f}' => true,
        '\u{ff01}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff20}'
        | '\u{ff3b}'..='\u{ff40}'
        | '\u{ff5b}'..='\u{ff65}' => true,
        '؟' | '،' | '؛' | '۔' | '।' | '॥' | '×' | '÷' => true,
        _ => c.is_whitespace() || c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_mean_the_same_are_equal() {
        for (title, expected) in [
            ("Plain title", "plain title"),
            ("  PLAIN,   Title! ", "plain title"),
            ("<b>Plain</b> &#8220;title&#8221;", "plain title"),
            ("&amp;lt;Plain&amp;gt; title", "plain title"),
            ("Don’t stop", "dont stop"),
            ("Don't stop", "dont stop"),
            ("A well-known fact: 10:30", "a well known fact 10 30"),
            (
                "Fire in the old harbour destroys three ships - The Daily Web",
                "fire in the old harbour destroys three ships",
            ),
            (
                "The Daily Web | Fire in the old harbour destroys three ships",
                "fire in the old harbour destroys three ships",
            ),
            (
                "Breaking: fire in the old harbour destroys three ships",
                "fire in the old harbour destroys three ships",
            ),
            ("Fire in the old harbour – The Daily Web", "fire in the old harbour the daily web"),
            ("Daily briefing", "daily briefing"),
            ("Straße in Köln", "straße in köln"),
            ("東京で火事、三隻が沈没", "東京で火事 三隻が沈没"),
            ("शिक्षा में नया क़ानून।", "शिक्षा में नया क़ानून"),
            ("هل ينجح؟", "هل ينجح"),
            ("The Daily Web", ""),
            ("the daily web!", ""),
            ("", ""),
            ("!!! … ???", ""),
        ] {
            assert_eq!(normal(title, "The Daily Web"), expected, "{title}");
        }
    }

    #[test]
    fn a_long_name_of_a_source_does_not_stand_for_its_stories() {
        let source = "The Very Long Name of an Evening Newspaper";
        assert_eq!(
            normal(&format!("Rain | {source}"), source),
            "rain the very long name of an evening newspaper"
        );
        assert_ne!(normal(&format!("Rain | {source}"), source), normal(&format!("Sun | {source}"), source));
    }

    /// The same by characters, as the rules say it.
    fn by_chars(title: &str) -> String {
        let mut out = String::new();
        for c in title.chars().filter(|&c| !is_joined(c)) {
            match is_punctuation(c) {
                true if out.is_empty() || out.ends_with(' ') => {}
                true => out.push(' '),
                false => out.extend(c.to_lowercase()),
            }
        }
        out.trim_end().to_string()
    }

    #[test]
    fn by_bytes_words_are_what_they_are_by_characters() {
        let signs: Vec<char> = "aB9 -:|'’–—｜：éßИ東。ि\u{200b}\u{a0}".chars().collect();
        let mut rng = crate::base::Rng::new(16);
        for _ in 0..20_000 {
            let count = rng.below(24);
            let text: String = (0..count).map(|_| signs[rng.below(signs.len() as u64) as usize]).collect();
            assert_eq!(words(&text), by_chars(&text), "{text:?}");
            assert_eq!(chars(&text), text.chars().count());
            let marks: usize = parts(&text).count() - 1;
            let whole: String = parts(&text).collect();
            assert_eq!(whole.chars().count() + marks, text.chars().count(), "{text:?}");
        }
    }

    #[test]
    fn a_megabyte_of_title_is_cut() {
        let long = "é ".repeat(500_000);
        assert!(normal(&long, "x").len() <= TITLE_BYTES_MAX);
        assert!(normal("x", &long) == "x");
    }
}
