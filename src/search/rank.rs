/// How much another mention of a word counts, and how much the length of a story does (BM25).
const MENTIONS: f32 = 1.2;
const LENGTHS: f32 = 0.75;

/// The length of a story in words as a byte: exact up to 32, and from there on by one sixteenth.
pub(super) fn length_code(words: u64) -> u8 {
    let Some(exponent) = words.checked_ilog2().filter(|exponent| *exponent >= 4) else { return words as u8 };
    let mantissa = (words >> (exponent - 4)) & 15;
    (u64::from(exponent - 3) * 16 + mantissa).min(u64::from(u8::MAX)) as u8
}

/// The shortest length that has this code.
pub(super) fn length_of(code: u8) -> u64 {
    match u64::from(code) {
        code @ 0..16 => code,
        code => (16 + code % 16) << (code / 16 - 1),
    }
}

/// How good stories of one language are by their words.
pub(super) struct Ranks {
    /// For each code of a length.
    lengths: [f32; 256],
}

impl Ranks {
    /// Of stories that are so long on average.
    pub fn new(mean_words: f32) -> Ranks {
        let of = |code: usize| {
            let length = length_of(code as u8) as f32 / mean_words.max(1.0);
            MENTIONS * (1.0 - LENGTHS + LENGTHS * length)
        };
        Ranks { lengths: std::array::from_fn(of) }
    }

    /// What a story of that length gets for a word that it has so often.
    #[inline]
    pub fn of(&self, weight: f32, count: u32, length: u8) -> f32 {
        let count = count.min(u32::from(u8::MAX)) as f32;
        weight * (count / (count + self.lengths[usize::from(length)]))
    }
}

/// The weight of a word that so many of all stories have: the more seldom, the more.
pub(super) fn weight(having: u64, stories: u64) -> f32 {
    let (having, stories) = (having.min(stories) as f64, stories as f64);
    ((1.0 + (stories - having + 0.5) / (having + 0.5)).ln() * f64::from(MENTIONS + 1.0)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_with_lengths_and_are_near_them() {
        let mut last = 0;
        for words in 0..2_000_000 {
            let code = length_code(words);
            assert!(code >= last && length_of(code) <= words);
            assert!(code == 255 || length_of(code) * 17 >= words * 16, "{words}");
            last = code;
        }
        assert_eq!((length_code(u64::MAX), last), (255, 255));
        (0..=255).for_each(|code| assert_eq!(length_code(length_of(code)), code));
    }

    #[test]
    fn more_mentions_shorter_stories_and_rarer_words_are_better() {
        let ranks = Ranks::new(400.0);
        let weight_of = |having| weight(having, 1_000);
        assert!(weight_of(1) > weight_of(10) && weight_of(10) > weight_of(1_000) && weight_of(1_000) > 0.0);
        assert!(
            ranks.of(1.0, 2, 100) > ranks.of(1.0, 1, 100) && ranks.of(1.0, 1, 90) > ranks.of(1.0, 1, 100)
        );
        assert_eq!(ranks.of(1.0, 255, 9), ranks.of(1.0, 9_999, 9));
    }
}
