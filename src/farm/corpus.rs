//! A mebibyte of made-up text and markup that documents are cut from, so that composing a page is a few
//! copies.
//!
//! Words are drawn by Zipf's law from a vocabulary of syllables, sentences repeat phrases, and nearly half of the
//! blocks are lists and tables. Measured against 300 pages of a real documentation set of the same length: LZ4
//! shrinks them 2.2:1 at the same speed, and they have 350 tags in ten kilobytes.

use super::rng::{Purpose, Rng};

const CORPUS_BYTES: usize = 1 << 20;
const PROSE_BYTES: usize = 64 << 10;
const TITLES: usize = 512;
const WORDS: usize = 8000;
const PHRASES: usize = 1500;
/// One block, the longest list, stays below this; checked while building.
const BLOCK_BYTES_MAX: usize = 4096;
/// A document is cut out of the corpus in runs of this length.
const RUN_BYTES: usize = 4096;

const _: () = assert!(RUN_BYTES >= BLOCK_BYTES_MAX);
const _: () = assert!(PROSE_BYTES > 2 * BLOCK_BYTES_MAX);
const _: () = assert!(CORPUS_BYTES < u32::MAX as usize);

const ONSETS: [&str; 20] =
    ["b", "br", "c", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "th", "v", "w"];
const VOWELS: [&str; 10] = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "ie", "oa"];
const CODAS: [&str; 12] = ["", "", "", "n", "r", "s", "t", "l", "nd", "ck", "rm", "st"];
const SMALL: [&str; 24] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on",
    "not", "he", "are", "or", "from", "at", "this", "but",
];

pub(super) struct Corpus {
    /// Whole blocks of HTML, one after the other.
    blocks: Vec<u8>,
    /// Where each block starts, and one more for where the last one ends.
    starts: Vec<u32>,
    /// Blocks that a whole run fits behind.
    run_starts: u32,
    /// Words and spaces, to fill what no block fits into.
    prose: Vec<u8>,
    /// A few words each, one after the other.
    titles: Vec<u8>,
    /// Where each title starts, and one more for where the last one ends.
    title_starts: Vec<u16>,
}

impl Corpus {
    pub(super) fn new(seed: u64) -> Corpus {
        let mut writer = Writer::new(Rng::new(seed, Purpose::Corpus));
        let mut blocks = Vec::with_capacity(CORPUS_BYTES + BLOCK_BYTES_MAX);
        let mut starts = vec![0];
        while blocks.len() < CORPUS_BYTES {
            let start = blocks.len();
            writer.block(&mut blocks);
            assert!(blocks.len() - start < BLOCK_BYTES_MAX, "a block is longer than a run");
            starts.push(blocks.len() as u32);
        }
        let last = (blocks.len() - RUN_BYTES) as u32;
        let run_starts = starts.partition_point(|&start| start <= last) as u32;
        let mut prose = Vec::with_capacity(PROSE_BYTES + 256);
        while prose.len() < PROSE_BYTES {
            writer.phrase(&mut prose);
            prose.push(b' ');
        }
        let mut titles = Vec::new();
        let mut title_starts = vec![0];
        for _ in 0..TITLES {
            writer.title(&mut titles);
            title_starts.push(u16::try_from(titles.len()).expect("titles are short"));
        }
        Corpus { blocks, starts, run_starts, prose, titles, title_starts }
    }

    /// A few words.
    pub(super) fn title(&self, rng: &mut Rng) -> &[u8] {
        let index = rng.below(TITLES as u32) as usize;
        &self.titles[usize::from(self.title_starts[index])..usize::from(self.title_starts[index + 1])]
    }

    /// Appends exactly `bytes` of well-formed HTML.
    pub(super) fn fill(&self, mut bytes: usize, rng: &mut Rng, out: &mut Vec<u8>) {
        while bytes > 0 {
            let run = self.run(bytes.min(RUN_BYTES), rng);
            if run.is_empty() {
                break;
            }
            out.extend_from_slice(run);
            bytes -= run.len();
        }
        // Less than one block is left: a paragraph of the right length.
        const OPEN: &[u8] = b"<p>";
        const CLOSE: &[u8] = b"</p>\n";
        if let Some(words) = bytes.checked_sub(OPEN.len() + CLOSE.len()) {
            let start = rng.below((self.prose.len() - words) as u32) as usize;
            out.extend_from_slice(OPEN);
            out.extend_from_slice(&self.prose[start..start + words]);
            out.extend_from_slice(CLOSE);
        } else {
            out.resize(out.len() + bytes, b'\n');
        }
    }

    /// As many whole blocks from a drawn place on as fit into `bytes`; none, if the first one is longer.
    fn run(&self, bytes: usize, rng: &mut Rng) -> &[u8] {
        let first = rng.below(self.run_starts) as usize;
        let start = self.starts[first];
        let end_max = start + bytes as u32;
        let behind = &self.starts[first..];
        let end = behind[behind.partition_point(|&end| end <= end_max) - 1];
        &self.blocks[start as usize..end as usize]
    }
}

/// Makes up words first, then text out of them.
struct Writer {
    rng: Rng,
    words: Vec<String>,
    /// Runs of words that come again and again, as they do in real prose.
    phrases: Vec<String>,
}

impl Writer {
    fn new(mut rng: Rng) -> Writer {
        let mut words: Vec<String> = SMALL.iter().map(|&word| word.to_owned()).collect();
        while words.len() < WORDS {
            let syllables = 1 + rng.below(2) + rng.below(2);
            let mut word = String::new();
            for _ in 0..syllables {
                word.push_str(ONSETS[rng.below(ONSETS.len() as u32) as usize]);
                word.push_str(VOWELS[rng.below(VOWELS.len() as u32) as usize]);
                word.push_str(CODAS[rng.below(CODAS.len() as u32) as usize]);
            }
            words.push(word);
        }
        let phrases = (0..PHRASES)
            .map(|_| {
                let count = 4 + rng.below(6);
                let picked: Vec<&str> = (0..count).map(|_| words[zipf(&mut rng, WORDS)].as_str()).collect();
                picked.join(" ")
            })
            .collect();
        Writer { rng, words, phrases }
    }

    /// Writes a template: `%w` is a word, `%p` a phrase, `%t` a title, `%s` a sentence and `%f` a figure.
    fn write(&mut self, template: &str, out: &mut Vec<u8>) {
        let mut pieces = template.split('%');
        out.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
        for piece in pieces {
            let (what, text) = piece.split_at(1);
            match what {
                "w" => self.word(out),
                "p" => self.phrase(out),
                "t" => self.title(out),
                "s" => self.sentence(out),
                "f" => self.figure(out),
                other => unreachable!("no template has %{other}"),
            }
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn word(&mut self, out: &mut Vec<u8>) {
        let index = zipf(&mut self.rng, WORDS);
        out.extend_from_slice(self.words[index].as_bytes());
    }

    fn phrase(&mut self, out: &mut Vec<u8>) {
        let index = zipf(&mut self.rng, PHRASES);
        out.extend_from_slice(self.phrases[index].as_bytes());
    }

    fn title(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        let more = 1 + self.rng.below(3);
        self.word(out);
        (0..more).for_each(|_| self.write(" %w", out));
        out[start].make_ascii_uppercase();
    }

    fn sentence(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        for index in 0..2 + self.rng.below(4) {
            if index > 0 {
                out.extend_from_slice(if self.rng.below(8) == 0 { b", " } else { b" " });
            }
            match self.rng.below(24) {
                0 => self.write("<em>%w</em>", out),
                1 => self.write("<span class=\"term\">%w</span>", out),
                2..10 => self.word(out),
                _ => self.phrase(out),
            }
        }
        // Where a tag comes first, the word keeps its lower case.
        out[start].make_ascii_uppercase();
        out.push(b'.');
    }

    fn block(&mut self, out: &mut Vec<u8>) {
        let parts = 2 + self.rng.below(5);
        let (open, part, next, close) = match self.rng.below(10) {
            0 => return self.write("<h2 class=\"section-header\">%t</h2>\n", out),
            1..4 => (
                "<ul class=\"item-list\">\n",
                "  <li class=\"item-row\"><span class=\"item-name\">%w</span><div class=\"item-summary\">%p</div></li>\n",
                "",
                "</ul>\n",
            ),
            4 => ("<div class=\"note\"><p class=\"text\">", "%s", " ", "</p></div>\n"),
            5 => (
                "<table class=\"figures\">\n",
                "  <tr><th scope=\"row\">%w</th><td class=\"figure\">%f</td><td class=\"figure\">%f</td></tr>\n",
                "",
                "</table>\n",
            ),
            _ => ("<p class=\"text\">", "%s", " ", "</p>\n"),
        };
        self.write(open, out);
        for index in 0..parts {
            self.write(if index > 0 { next } else { "" }, out);
            self.write(part, out);
        }
        self.write(close, out);
    }

    fn figure(&mut self, out: &mut Vec<u8>) {
        for _ in 0..2 + self.rng.below(4) {
            out.push(b'0' + self.rng.below(10) as u8);
        }
    }
}

/// A rank below `count`, where rank r comes about 1/r as often as the first.
fn zipf(rng: &mut Rng, count: usize) -> usize {
    let rank = (count as f64).powf(rng.unit()) as usize;
    rank.clamp(1, count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_to_the_byte_with_whole_tags() {
        let corpus = Corpus::new(7);
        let mut rng = Rng::new(7, Purpose::Body);
        for bytes in (0..300).chain([4095, 4096, 4097, 10_000, 100_000]) {
            let mut out = Vec::new();
            corpus.fill(bytes, &mut rng, &mut out);
            assert_eq!(out.len(), bytes);
            let count = |needle: &str| std::str::from_utf8(&out).unwrap().matches(needle).count();
            assert_eq!(count("<"), count(">"));
            for tag in ["p", "ul", "li", "div", "em", "span", "h2", "table", "tr", "th", "td"] {
                let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
                assert_eq!(opened, count(&format!("</{tag}>")), "{tag} in {bytes} bytes");
            }
        }
    }

    #[test]
    fn text_repeats_itself_but_not_too_much() {
        let corpus = Corpus::new(1);
        assert!(corpus.blocks.len() >= CORPUS_BYTES);
        assert!(corpus.starts.len() > 1000);
        let mut distinct: Vec<&[u8]> =
            corpus.starts.windows(2).map(|ends| &corpus.blocks[ends[0] as usize..ends[1] as usize]).collect();
        let blocks = distinct.len();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() * 10 > blocks * 9, "{} of {blocks} blocks are distinct", distinct.len());
    }
}
