use super::languages::{OTHER, STEMMED};

/// What a word of the dictionary is one of. A key of the dictionary begins with it: a character below 0x80.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Words of titles and texts in a language, by its place.
    Text(usize),
    /// A source's name in lower case.
    Source,
    /// The code of a language that has no stems.
    Language,
}

/// Languages that have a field of their own, that of all others included.
pub(super) const LANGUAGES: usize = STEMMED.len() + 1;

impl Field {
    pub fn mark(self) -> char {
        let number = match self {
            Field::Text(place) => place as u8,
            Field::Source => b's',
            Field::Language => b'l',
        };
        char::from(number)
    }

    /// The key of a word in this field.
    pub fn key(self, word: &str) -> String {
        let mut key = String::with_capacity(1 + word.len());
        key.push(self.mark());
        key.push_str(word);
        key
    }
}

const _: () = assert!(LANGUAGES < b'l' as usize);

/// Codes of languages in the order of their places.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    STEMMED.iter().map(|(short, ..)| *short).chain([OTHER])
}
