use crate::base::Rng;
use crate::search::SearchDoc;

/// Words of the made-up languages, and characters of the one without spaces.
const WORDS: f64 = 200_000.0;
const CHARACTERS: f64 = 3_000.0;
const SOURCES: u64 = 200;
/// A story a minute, from 2025 on.
const FIRST_S: i64 = 1_735_689_600;
const GAP_S: i64 = 60;

const SYLLABLES: [&str; 32] = [
    "ba", "con", "dar", "el", "fi", "gor", "hin", "ist", "ja", "kel", "lo", "mar", "nen", "or", "pa", "qui",
    "ren", "sta", "ter", "un", "ver", "wil", "xa", "yor", "zu", "bre", "cli", "dro", "fle", "gra", "pri",
    "tri",
];
const ENDINGS: [&str; 8] = ["", "", "", "s", "ing", "ed", "ation", "ly"];

/// Stories that are made up from a seed, each by its number.
pub(super) struct SearchTexts {
    seed: u64,
    stories: u64,
    /// Of a story, on average.
    words: u64,
}

impl SearchTexts {
    pub fn new(seed: u64, stories: u64, words: u64) -> SearchTexts {
        SearchTexts { seed, stories, words }
    }

    pub fn first_s(&self) -> i64 {
        FIRST_S
    }

    pub fn span_s(&self) -> i64 {
        (self.stories as i64 * GAP_S).max(10)
    }

    pub fn story(&self, story: u64) -> SearchDoc {
        let mut rng = self.rng(story);
        let language = match rng.below(100) {
            0..70 => "en",
            70..80 => "de",
            80..88 => "fr",
            88..95 => "es",
            _ => "ja",
        };
        let length = self.words / 2 + rng.below(self.words);
        let (title, text) = (said(&mut rng, language, 9), said(&mut rng, language, length));
        let source = rng.below(SOURCES);
        SearchDoc {
            story,
            source: format!("source{source}.example"),
            url: format!(
                "https://www.source{source}.example/news/2026/11/{story}-some-words-of-a-title.html"
            ),
            title,
            text,
            language: language.to_string(),
            published_s: Some(FIRST_S + story as i64 * GAP_S),
            after: story + 1,
        }
    }

    fn rng(&self, story: u64) -> Rng {
        Rng::new(Rng::mix(self.seed ^ story.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A word that somebody asks for: seldom one of the most common, which say nothing.
    pub fn asked(&self, rng: &mut Rng) -> String {
        let mut word = String::new();
        push_word(&mut word, 10 + zipf(rng, WORDS / 4.0));
        word
    }

    /// Three words that follow each other in some story.
    pub fn phrase(&self, rng: &mut Rng) -> String {
        let text = self.story(rng.below(self.stories)).text;
        match text.contains(' ') {
            true => text.split_whitespace().skip(20).take(3).collect::<Vec<_>>().join(" "),
            false => text.chars().take(3).collect(),
        }
    }
}

/// The rank of a word: the n-th is met n times more seldom than the first.
fn zipf(rng: &mut Rng, words: f64) -> u64 {
    let u = rng.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    words.powf(u) as u64
}

fn said(rng: &mut Rng, language: &str, words: u64) -> String {
    let mut text = String::with_capacity(words as usize * 8);
    for number in 0..words {
        if language == "ja" {
            let character = char::from_u32(0x4e00 + (zipf(rng, CHARACTERS) as u32)).unwrap_or('一');
            text.push(character);
            if number % 20 == 19 {
                text.push('。');
            }
            continue;
        }
        let rank = zipf(rng, WORDS);
        push_word(&mut text, rank);
        text.push_str(if number % 12 == 11 { ". " } else { " " });
    }
    text
}

/// A rank as a word: common ones are short.
fn push_word(text: &mut String, rank: u64) {
    let mut left = rank;
    loop {
        text.push_str(SYLLABLES[(left % 32) as usize]);
        left /= 32;
        if left == 0 {
            break;
        }
    }
    text.push_str(ENDINGS[(Rng::mix(rank) % 8) as usize]);
}
