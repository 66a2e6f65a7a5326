use super::words::{WordStream, Words};
use rapidhash::fast::GlobalState;
use std::hash::BuildHasher;
use tantivy::tokenizer::{Language, Stemmer, Token, TokenFilter, TokenStream, Tokenizer};

/// Words of a text by their stems in a language. A text says most of its words again and again: what was found last is kept.
pub(super) struct StemmedWords {
    words: Words,
    stems: Stems,
    /// Words that are read ahead; kept for their memory.
    ahead: Vec<Token>,
}

impl StemmedWords {
    pub fn new(words: Words, language: Language) -> StemmedWords {
        let stems = Stems::new(language, words.are_of_text());
        StemmedWords { words, stems, ahead: vec![Token::default(); AHEAD] }
    }
}

/// What was found is not worth a copy: every segment that is written clones its tokenizers.
impl Clone for StemmedWords {
    fn clone(&self) -> StemmedWords {
        StemmedWords::new(self.words.clone(), self.stems.language)
    }
}

impl Tokenizer for StemmedWords {
    type TokenStream<'a> = StemStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> StemStream<'a> {
        let StemmedWords { words, stems, ahead } = self;
        StemStream { words: words.token_stream(text), stems, ahead, at: 0, count: 0 }
    }
}

/// Some words are read at once: the table of stems is larger than a cache, and so its misses overlap.
pub(super) struct StemStream<'a> {
    words: WordStream<'a>,
    stems: &'a mut Stems,
    ahead: &'a mut Vec<Token>,
    /// The word that the stream is at, and how many there are.
    at: usize,
    count: usize,
}

/// Words that are read at once.
const AHEAD: usize = 16;

impl StemStream<'_> {
    fn read_ahead(&mut self) {
        (self.at, self.count) = (0, 0);
        while self.count < AHEAD && self.words.advance() {
            std::mem::swap(&mut self.ahead[self.count], self.words.token_mut());
            // The words count on from here.
            self.words.token_mut().position = self.ahead[self.count].position;
            self.count += 1;
        }
        let read = &mut self.ahead[..self.count];
        self.stems.look_ahead(read);
        read.iter_mut().for_each(|token| self.stems.stem(&mut token.text));
    }
}

impl TokenStream for StemStream<'_> {
    fn advance(&mut self) -> bool {
        self.at += 1;
        if self.at >= self.count {
            self.read_ahead();
        }
        self.at < self.count
    }

    fn token(&self) -> &Token {
        &self.ahead[self.at]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.ahead[self.at]
    }
}

/// Stems of words by a stemmer; of those that were met last they are kept.
struct Stems {
    language: Language,
    stemmer: <Stemmer as TokenFilter>::Tokenizer<OneWord>,
    /// Pairs of places: the words of a pair have hashes that are alike, and the first was met after the second. Empty before the
    /// first word.
    kept: Vec<Kept>,
    /// The few words of a question are worth no table.
    keeps: bool,
}

/// A word and its stem, in a line of the cache: to look for a word and to keep one allocates nothing.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Kept {
    word: Short,
    stem: Short,
}

#[derive(Clone, Copy)]
struct Short {
    bytes: [u8; SHORT_BYTES_MAX],
    length: u8,
}

/// Nearly no word in Latin letters is longer; the stem of one that is, is found each time.
const SHORT_BYTES_MAX: usize = 31;
/// Eight megabytes for each language that texts are written in: a tenth of the time would be spent on finding stems anew with a
/// quarter of them.
const PAIRS: usize = 1 << 16;

impl Short {
    const NONE: Short = Short { bytes: [0; SHORT_BYTES_MAX], length: 0 };

    fn new(text: &str) -> Option<Short> {
        let mut short = Short { length: text.len() as u8, ..Short::NONE };
        short.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(short)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Stems {
    fn new(language: Language, keeps: bool) -> Stems {
        let stemmer = Stemmer::new(language).transform(OneWord::default());
        Stems { language, stemmer, kept: Vec::new(), keeps }
    }

    /// The place of a word's pair.
    fn place(word: &str) -> usize {
        2 * (GlobalState::new().hash_one(word.as_bytes()) as usize % PAIRS)
    }

    /// Asks memory for what these words will be looked for in, for all of them at once.
    fn look_ahead(&mut self, words: &[Token]) {
        if self.keeps && self.kept.is_empty() {
            self.kept.resize(2 * PAIRS, Kept { word: Short::NONE, stem: Short::NONE });
        }
        if !self.kept.is_empty() {
            let length = |word: &Token| u64::from(self.kept[Stems::place(&word.text)].word.length);
            std::hint::black_box(words.iter().map(length).sum::<u64>());
        }
    }

    fn stem(&mut self, word: &mut String) {
        let Some(short) = Short::new(word).filter(|_| !self.kept.is_empty()) else { return self.find(word) };
        let at = Stems::place(word);
        if self.kept[at].word.bytes() != short.bytes() {
            self.kept.swap(at, at + 1);
            if self.kept[at].word.bytes() != short.bytes() {
                self.find(word);
                if let Some(stem) = Short::new(word) {
                    self.kept[at] = Kept { word: short, stem };
                }
                return;
            }
        }
        word.clear();
        word.push_str(str::from_utf8(self.kept[at].stem.bytes()).unwrap_or_default());
    }

    fn find(&mut self, word: &mut String) {
        let mut stream = self.stemmer.token_stream(word);
        stream.advance();
        let stem = std::mem::take(&mut stream.token_mut().text);
        drop(stream);
        *word = stem;
    }
}

/// Takes a text for one word: so a stemmer is asked for the stem of a word.
#[derive(Clone, Default)]
struct OneWord(Token);

struct OneWordStream<'a> {
    token: &'a mut Token,
    is_read: bool,
}

impl Tokenizer for OneWord {
    type TokenStream<'a> = OneWordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> OneWordStream<'a> {
        self.0.reset();
        self.0.text.push_str(text);
        OneWordStream { token: &mut self.0, is_read: false }
    }
}

impl TokenStream for OneWordStream<'_> {
    fn advance(&mut self) -> bool {
        !std::mem::replace(&mut self.is_read, true)
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::search::languages::STEMMED;

    fn words_of(mut tokenizer: impl Tokenizer, text: &str) -> Vec<Token> {
        let mut stream = tokenizer.token_stream(text);
        let mut all = Vec::new();
        while stream.advance() {
            all.push(stream.token().clone());
        }
        all
    }

    #[test]
    fn stems_are_those_of_the_stemmer_in_every_language() {
        let text = "The crawlers' connections were connected, connecting fruitlessly; Häuser, läuft, \
                    nationalité, поисковая, хорошими, naciones: connections again, 東京";
        for (short, _, language) in STEMMED {
            let plain = Stemmer::new(language).transform(Words::of_text());
            assert_eq!(
                words_of(StemmedWords::new(Words::of_text(), language), text),
                words_of(plain, text),
                "{short}"
            );
        }
    }

    #[test]
    fn more_words_than_are_kept_have_their_stems_too() {
        let mut rng = Rng::new(7);
        let ends = ["", "s", "ed", "ing", "ly"];
        let word = |rng: &mut Rng| format!("w{}{}", rng.below(40_000), ends[rng.below(5) as usize]);
        let long = format!(" {}connections", "a".repeat(2 * SHORT_BYTES_MAX));
        let text = (0..300_000).map(|_| word(&mut rng)).collect::<Vec<_>>().join(" ") + &long.repeat(2);
        let mut stemmed = StemmedWords::new(Words::of_text(), Language::English);
        let mut stream = stemmed.token_stream(&text);
        let mut of = Stemmer::new(Language::English).transform(Words::of_text());
        let mut plain = of.token_stream(&text);
        while plain.advance() {
            assert!(stream.advance() && stream.token() == plain.token());
        }
        assert!(!stream.advance());
        assert_eq!(stemmed.stems.kept.len(), 2 * PAIRS);
    }
}
