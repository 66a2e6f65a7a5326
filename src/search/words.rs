use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// A longer word is none that anybody looks for.
const WORD_BYTES_MAX: usize = 100;

/// A text as words in lower case. Where a script has no spaces, each character makes a word with the one that follows it;
/// in a text the last of such a run stands for itself, too, so that one character finds every word that begins with it.
#[derive(Clone)]
pub(super) struct Words {
    token: Token,
    of_query: bool,
}

impl Words {
    pub fn of_text() -> Words {
        Words { token: Token::default(), of_query: false }
    }

    /// As they are asked for: a run of characters matches inside a longer one.
    pub fn of_query() -> Words {
        Words { token: Token::default(), of_query: true }
    }

    pub fn are_of_text(&self) -> bool {
        !self.of_query
    }
}

pub(super) struct WordStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
    of_query: bool,
    /// The character before is of the same run.
    in_run: bool,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, at: 0, token: &mut self.token, of_query: self.of_query, in_run: false }
    }
}

/// Scripts that are written without spaces, or whose words are best found by pairs: Thai to Tibetan, Myanmar, Khmer, Kana,
/// Han, Hangul.
#[inline]
pub(super) fn is_unspaced(c: char) -> bool {
    // Nearly all that is met is before the first of them.
    c >= '\u{0e01}'
        && matches!(c,
        '\u{0e01}'..='\u{0e3a}' | '\u{0e40}'..='\u{0e4e}' | '\u{0e81}'..='\u{0ece}' | '\u{0edc}'..='\u{0edf}'
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17d3}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}' | '\u{3130}'..='\u{318f}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// How long the word is that a text begins with.
fn length_of_word(text: &str) -> usize {
    let plain = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    match text.as_bytes().get(plain) {
        Some(byte) if !byte.is_ascii() => {
            text[plain..].find(|c| !is_of_word(c)).map_or(text.len(), |length| plain + length)
        }
        _ => plain,
    }
}

impl WordStream<'_> {
    fn take(&mut self, from: usize, to: usize) {
        self.token.position = self.token.position.wrapping_add(1);
        (self.token.offset_from, self.token.offset_to) = (from, to);
        self.token.text.clear();
        let word = &self.text[from..to];
        match word.is_ascii() {
            true => {
                self.token.text.push_str(word);
                self.token.text.make_ascii_lowercase();
            }
            false => self.token.text.extend(word.chars().flat_map(char::to_lowercase)),
        }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(c) = self.text[self.at..].chars().next() {
            let (from, next) = (self.at, self.at + c.len_utf8());
            if is_unspaced(c) {
                self.at = next;
                let follows = self.text[next..].chars().next().filter(|c| is_unspaced(*c));
                // In a query only a run of one character stands for itself.
                let is_alone = !(self.of_query && self.in_run);
                self.in_run = follows.is_some();
                match follows {
                    Some(second) => self.take(from, next + second.len_utf8()),
                    None if is_alone => self.take(from, next),
                    None => continue,
                }
                return true;
            }
            self.in_run = false;
            if !is_of_word(c) {
                self.at = next;
                continue;
            }
            let length = length_of_word(&self.text[from..]);
            self.at = from + length;
            if length > WORD_BYTES_MAX {
                self.token.position = self.token.position.wrapping_add(1);
                continue;
            }
            self.take(from, self.at);
            return true;
        }
        false
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

    fn words(mut of: Words, text: &str) -> Vec<(usize, String)> {
        let mut stream = of.token_stream(text);
        let mut found = Vec::new();
        while stream.advance() {
            found.push((stream.token().position, stream.token().text.clone()));
        }
        found
    }

    fn joined(of: Words, text: &str) -> String {
        words(of, text).into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_in_lower_case_and_runs_without_spaces_in_pairs() {
        for (text, of_text, of_query) in [
            (
                "The Quick—Brown fox's, ÄRGER №7",
                "the quick brown fox s ärger 7",
                "the quick brown fox s ärger 7",
            ),
            ("東京都に", "東京 京都 都に に", "東京 京都 都に"),
            ("東", "東", "東"),
            ("東京", "東京 京", "東京"),
            ("NHK東京 2026年", "nhk 東京 京 2026 年", "nhk 東京 2026 年"),
            ("ข่าว ใหม่", "ข่ ่า าว ว ให หม ม่ ่", "ข่ ่า าว ให หม ม่"),
            ("서울 시", "서울 울 시", "서울 시"),
            ("", "", ""),
            ("\u{1b}[31m\u{0}", "31m", "31m"),
        ] {
            assert_eq!(joined(Words::of_text(), text), of_text, "{text}");
            assert_eq!(joined(Words::of_query(), text), of_query, "{text}");
        }
    }

    #[test]
    fn a_word_without_end_is_left_out_and_keeps_its_place() {
        let text = format!("a {} b", "x".repeat(1 << 20));
        assert_eq!(words(Words::of_text(), &text), [(0, "a".to_string()), (2, "b".to_string())]);
    }
}
