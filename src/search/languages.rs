use frostem::Algorithm;

/// Languages with stems, by their ISO 639-1 and 639-3 codes.
pub(super) const STEMMED: [(&str, &str, Algorithm); 18] = [
    ("ar", "ara", Algorithm::Arabic),
    ("da", "dan", Algorithm::Danish),
    ("nl", "nld", Algorithm::Dutch),
    ("en", "eng", Algorithm::English),
    ("fi", "fin", Algorithm::Finnish),
    ("fr", "fra", Algorithm::French),
    ("de", "deu", Algorithm::German),
    ("el", "ell", Algorithm::Greek),
    ("hu", "hun", Algorithm::Hungarian),
    ("it", "ita", Algorithm::Italian),
    ("no", "nor", Algorithm::Norwegian),
    ("pt", "por", Algorithm::Portuguese),
    ("ro", "ron", Algorithm::Romanian),
    ("ru", "rus", Algorithm::Russian),
    ("es", "spa", Algorithm::Spanish),
    ("sv", "swe", Algorithm::Swedish),
    ("ta", "tam", Algorithm::Tamil),
    ("tr", "tur", Algorithm::Turkish),
];

/// The others whose long codes are met, and other names for some.
const SHORT: [(&str, &str); 12] = [
    ("cmn", "zh"),
    ("zho", "zh"),
    ("jpn", "ja"),
    ("kor", "ko"),
    ("tha", "th"),
    ("nob", "no"),
    ("nno", "no"),
    ("nb", "no"),
    ("nn", "no"),
    ("iw", "he"),
    ("heb", "he"),
    ("ukr", "uk"),
];

/// What is not known, or has no stems.
pub(super) const OTHER: &str = "xx";

/// A language's code in one form: `en` for `en-GB`, `EN` and `eng`. None for what cannot be a code.
pub(super) fn code(text: &str) -> Option<String> {
    let main = text.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    if !(2..=3).contains(&main.len()) || !main.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let stemmed = STEMMED.iter().find(|(_, long, _)| *long == main).map(|(short, ..)| *short);
    let short = stemmed.or_else(|| SHORT.iter().find(|(long, _)| *long == main).map(|(_, short)| *short));
    Some(short.map_or(main, str::to_string))
}

/// The place of a language by whatever it is called.
pub(super) fn place_of(text: &str) -> usize {
    code(text).as_deref().map_or(STEMMED.len(), place)
}

/// The place of a language's field: that of a language with stems, or the last.
pub(super) fn place(code: &str) -> usize {
    STEMMED.iter().position(|(short, ..)| *short == code).unwrap_or(STEMMED.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_one_code() {
        for (text, expected) in [
            ("en", Some("en")),
            ("en-GB", Some("en")),
            ("pt_BR", Some("pt")),
            (" DEU ", Some("de")),
            ("nb-NO", Some("no")),
            ("jpn", Some("ja")),
            ("vie", Some("vie")),
            ("", None),
            ("english", None),
            ("日本", None),
            ("e\u{1b}", None),
        ] {
            assert_eq!(code(text).as_deref(), expected, "{text}");
        }
        assert_eq!((place("ar"), place("tr"), place("ja"), place(OTHER)), (0, 17, 18, 18));
    }
}
