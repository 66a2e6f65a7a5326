/// Three letters and two, as feeds and indexes of words name a language.
const LETTERS: [(&str, &str); 70] = [
    ("afr", "af"),
    ("aka", "ak"),
    ("amh", "am"),
    ("ara", "ar"),
    ("aze", "az"),
    ("bel", "be"),
    ("ben", "bn"),
    ("bul", "bg"),
    ("cat", "ca"),
    ("ces", "cs"),
    ("cmn", "zh"),
    ("cym", "cy"),
    ("dan", "da"),
    ("deu", "de"),
    ("ell", "el"),
    ("eng", "en"),
    ("epo", "eo"),
    ("est", "et"),
    ("fin", "fi"),
    ("fra", "fr"),
    ("guj", "gu"),
    ("heb", "he"),
    ("hin", "hi"),
    ("hrv", "hr"),
    ("hun", "hu"),
    ("hye", "hy"),
    ("ind", "id"),
    ("ita", "it"),
    ("jav", "jv"),
    ("jpn", "ja"),
    ("kan", "kn"),
    ("kat", "ka"),
    ("khm", "km"),
    ("kor", "ko"),
    ("lat", "la"),
    ("lav", "lv"),
    ("lit", "lt"),
    ("mal", "ml"),
    ("mar", "mr"),
    ("mkd", "mk"),
    ("mya", "my"),
    ("nep", "ne"),
    ("nld", "nl"),
    ("nob", "nb"),
    ("ori", "or"),
    ("pan", "pa"),
    ("pes", "fa"),
    ("pol", "pl"),
    ("por", "pt"),
    ("ron", "ro"),
    ("rus", "ru"),
    ("sin", "si"),
    ("slk", "sk"),
    ("slv", "sl"),
    ("sna", "sn"),
    ("spa", "es"),
    ("srp", "sr"),
    ("swe", "sv"),
    ("tam", "ta"),
    ("tel", "te"),
    ("tgl", "tl"),
    ("tha", "th"),
    ("tuk", "tk"),
    ("tur", "tr"),
    ("ukr", "uk"),
    ("urd", "ur"),
    ("uzb", "uz"),
    ("vie", "vi"),
    ("yid", "yi"),
    ("zul", "zu"),
];

/// The two letters of a language that has three; empty for one without.
#[cfg_attr(not(feature = "extract"), allow(dead_code, reason = "whoever asks is not built"))]
pub(super) fn two_letters(three: &str) -> &'static str {
    LETTERS.iter().find(|(known, _)| *known == three).map_or("", |(_, two)| two)
}

/// Whether a feed's or a page's word for a language is one: `en`, `en-GB`, `zh_CN`. Its first letters, in lower case.
pub(super) fn primary(word: &str) -> Option<String> {
    let first = word.split(['-', '_']).next()?.trim().to_ascii_lowercase();
    LETTERS.iter().find(|(three, two)| *two == first || *three == first).map(|(_, two)| (*two).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_languages() {
        assert_eq!(two_letters("deu"), "de");
        assert_eq!(two_letters("xxx"), "");
        for (word, told) in
            [("en-GB", Some("en")), ("ZH_cn", Some("zh")), ("deu", Some("de")), ("x", None), ("", None)]
        {
            assert_eq!(primary(word).as_deref(), told, "{word}");
        }
    }
}
