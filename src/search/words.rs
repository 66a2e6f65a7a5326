/// A longer word is none that anybody looks for.
const WORD_BYTES_MAX: usize = 100;

/// A text as words in lower case, each with its place. Where a script has no spaces, each character makes a word with the one
/// that follows it; in a text the last of such a run stands for itself, too, so that one character finds every word that
/// begins with it.
pub(super) struct Words<'t> {
    text: &'t str,
    at: usize,
    /// The place of the next word.
    place: u32,
    of_query: bool,
    /// The character before is of the same run.
    in_run: bool,
    /// A word was passed over, as it is too long to be one.
    left_out: bool,
}

impl<'t> Words<'t> {
    pub fn of_text(text: &'t str) -> Words<'t> {
        Words { text, at: 0, place: 0, of_query: false, in_run: false, left_out: false }
    }

    /// As they are asked for: a run of characters matches inside a longer one.
    pub fn of_query(text: &'t str) -> Words<'t> {
        Words { of_query: true, ..Words::of_text(text) }
    }

    /// Whether a word was left out that is too long to be one.
    pub fn left_out(&self) -> bool {
        self.left_out
    }

    /// The place behind the last word.
    pub fn places(&self) -> u32 {
        self.place
    }

    /// Appends the next word to `out`, and says its place.
    #[inline]
    pub fn read(&mut self, out: &mut String) -> Option<u32> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let skipped = rest.iter().take_while(|byte| KINDS[usize::from(**byte)] == BETWEEN).count();
        let length = rest[skipped..].iter().take_while(|byte| KINDS[usize::from(**byte)] == PLAIN).count();
        let (from, to) = (self.at + skipped, self.at + skipped + length);
        let is_plain = rest.get(skipped + length).is_none_or(|byte| byte.is_ascii());
        if is_plain && (1..=WORD_BYTES_MAX).contains(&length) {
            self.in_run = false;
            self.at = to;
            let start = out.len();
            out.push_str(&self.text[from..to]);
            out[start..].make_ascii_lowercase();
        } else {
            let (from, to) = self.find()?;
            out.extend(self.text[from..to].chars().flat_map(char::to_lowercase));
        }
        self.place += 1;
        Some(self.place - 1)
    }

    /// Where the next word stands, whatever it is.
    fn find(&mut self) -> Option<(usize, usize)> {
        loop {
            let c = self.text[self.at..].chars().next()?;
            let (from, next) = (self.at, self.at + c.len_utf8());
            if is_unspaced(c) {
                self.at = next;
                let follows = self.text[next..].chars().next().filter(|c| is_unspaced(*c));
                // In a query only a run of one character stands for itself.
                let is_alone = !(self.of_query && self.in_run);
                self.in_run = follows.is_some();
                match follows {
                    Some(second) => return Some((from, next + second.len_utf8())),
                    None if is_alone => return Some((from, next)),
                    // It has a place in a text all the same.
                    None => {
                        self.place += 1;
                        continue;
                    }
                }
            }
            self.in_run = false;
            if !is_of_word(c) {
                self.at = next;
                continue;
            }
            let length = length_of_word(&self.text[from..]);
            self.at = from + length;
            if length > WORD_BYTES_MAX {
                (self.place, self.left_out) = (self.place + 1, true);
                continue;
            }
            return Some((from, self.at));
        }
    }
}

/// What a byte is: of a word in ASCII, of a character beyond it, or between words.
const KINDS: [u8; 256] = {
    let mut kinds = [BETWEEN; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte >= 0x80 {
            kinds[byte] = BEYOND;
        } else if (byte as u8).is_ascii_alphanumeric() {
            kinds[byte] = PLAIN;
        }
        byte += 1;
    }
    kinds
};
const BETWEEN: u8 = 0;
const PLAIN: u8 = 1;
const BEYOND: u8 = 2;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(mut of: Words<'_>) -> Vec<(u32, String)> {
        let (mut found, mut word) = (Vec::new(), String::new());
        while let Some(place) = of.read(&mut word) {
            found.push((place, std::mem::take(&mut word)));
        }
        found
    }

    fn joined(of: Words<'_>) -> String {
        words(of).into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
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
            assert_eq!(joined(Words::of_text(text)), of_text, "{text}");
            assert_eq!(joined(Words::of_query(text)), of_query, "{text}");
        }
    }

    #[test]
    fn a_word_without_end_is_left_out_and_keeps_its_place() {
        let text = format!("a {} b", "x".repeat(1 << 20));
        assert_eq!(words(Words::of_text(&text)), [(0, "a".to_string()), (2, "b".to_string())]);
    }
}
