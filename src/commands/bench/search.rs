use super::cpu::{process_us, thread_us};
use super::record::RecordArgs;
use super::search_texts::SearchTexts;
use super::stage::Stage;
use crate::base::Rng;
use crate::commands::search_answers::THREADS_MAX;
use crate::commands::shared::Failure;
use crate::engine::Threads;
use crate::search::{Library, SearchQuery, StoryIndex};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Index made-up stories, ask for words of them, and print what a story and a question cost
///
/// Words are drawn by Zipf's law, from a seed. Stories are in English (70 %), German, French, Spanish and Japanese, and of
/// 200 sources.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench search --record bench/runs/my-machine-search.json\n  nephila bench search --stories 1000000 --data /mnt/disk/bench\n\nThe cost of a story is CPU time of all threads, segments merged, without what it takes to make its text up.\nThat of a question is wall time, on an index that was just written and is in memory as far as it fits."
)]
pub(super) struct SearchBenchArgs {
    /// Where the index is written; it is removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-search")]
    data: PathBuf,
    /// Stories
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    stories: u64,
    /// Words of a story, on average; the default makes stories of 3.6 KB
    #[arg(long, value_name = "N", default_value_t = 413, value_parser = clap::value_parser!(u64).range(60..=100_000))]
    words: u64,
    /// Questions
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    questions: usize,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct SearchBenchReport {
    stories: u64,
    text_bytes: u64,
    index_bytes: u64,
    segments: usize,
    story_us: f64,
    mb_per_s: f64,
    questions: usize,
    p50_ms: f64,
    p99_ms: f64,
    kinds: Vec<Kind>,
}

/// One kind of question.
#[derive(Serialize)]
struct Kind {
    name: &'static str,
    questions: usize,
    with_hits: usize,
    p50_ms: f64,
    p99_ms: f64,
    slowest_ms: f64,
}

const KINDS: [&str; 6] = ["one word", "two words", "phrase", "one language", "one source", "a tenth of time"];

impl SearchBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.stories == 0 || self.questions == 0 {
            return Err(Failure::Usage("measure at least once (--stories, --questions)".into()));
        }
        let stage = Stage::unmade(&self.data)?;
        let texts = SearchTexts::new(self.seed, self.stories, self.words);
        let (mut made_us, mut text_bytes, before_us) = (0.0, 0, process_us());
        let mut index = StoryIndex::open(&stage.dir)?;
        for story in 0..self.stories {
            let begun_us = thread_us();
            let story = texts.story(story);
            made_us += thread_us() - begun_us;
            text_bytes += (story.text.len() + story.title.len()) as u64;
            index.add(&story)?;
        }
        index.commit()?;
        index.close()?;
        let story_us = (process_us() - before_us - made_us) / self.stories as f64;
        let library = Library::open(&stage.dir)?;
        let facts = library.checked()?;
        let threads = Threads::at_most(THREADS_MAX);
        let mut rng = Rng::new(self.seed ^ 0x5ea2);
        let mut took: Vec<Vec<f64>> = vec![Vec::new(); KINDS.len()];
        let mut with_hits = [0; KINDS.len()];
        // Some to warm up.
        for number in 0..self.questions + KINDS.len() * 5 {
            let kind = number % KINDS.len();
            let query = self.question(kind, &texts, &mut rng)?;
            let begun = Instant::now();
            let hits = library.find(&query, 10, &threads)?;
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            if number >= KINDS.len() * 5 {
                took[kind].push(ms);
                with_hits[kind] += usize::from(!hits.is_empty());
            }
        }
        let all = sorted(took.concat());
        let kinds = KINDS.iter().zip(took).zip(with_hits).map(|((name, took), with_hits)| {
            let took = sorted(took);
            Kind {
                name,
                questions: took.len(),
                with_hits,
                p50_ms: share(&took, 0.5),
                p99_ms: share(&took, 0.99),
                slowest_ms: share(&took, 1.0),
            }
        });
        let report = SearchBenchReport {
            stories: self.stories,
            text_bytes,
            index_bytes: facts.bytes,
            segments: facts.segments,
            story_us,
            mb_per_s: text_bytes as f64 / self.stories as f64 / story_us,
            questions: all.len(),
            p50_ms: share(&all, 0.5),
            p99_ms: share(&all, 0.99),
            kinds: kinds.collect(),
        };
        drop(stage);
        self.record.tell(&report, SearchBenchReport::text)
    }

    fn question(&self, kind: usize, texts: &SearchTexts, rng: &mut Rng) -> Result<SearchQuery, Failure> {
        let one = texts.asked(rng);
        let two = format!("{one} {}", texts.asked(rng));
        let parse = |text: &str| SearchQuery::parse(text).map_err(Failure::usage);
        let tenth_s = texts.span_s() / 10;
        match KINDS[kind] {
            "two words" => parse(&two),
            "phrase" => parse(&format!("\"{}\"", texts.phrase(rng))),
            "one language" => parse(&format!("{two} lang:de")),
            "one source" => parse(&format!("{one} source:source{}.example", rng.below(200))),
            "a tenth of time" => {
                let since_s = texts.first_s() + rng.below(9 * tenth_s.unsigned_abs()) as i64;
                parse(&one)?.published(Some(since_s), Some(since_s + tenth_s)).map_err(Failure::usage)
            }
            _ => parse(&one),
        }
    }
}

fn sorted(mut took: Vec<f64>) -> Vec<f64> {
    took.sort_by(f64::total_cmp);
    took
}

/// What that share of all took no longer than.
fn share(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
}

impl SearchBenchReport {
    fn text(&self) -> String {
        let Self { stories, text_bytes, index_bytes, segments, story_us, mb_per_s, p50_ms, p99_ms, .. } =
            self;
        let mean = text_bytes / stories;
        let part = *index_bytes as f64 / *text_bytes as f64;
        let mut text = format!(
            "index     {story_us:.0} us CPU a story of {mean} bytes, {mb_per_s:.1} MB/s; {stories} stories in {segments} segments, {part:.2} of their bytes\n\
             ask       {} questions, half within {p50_ms:.2} ms, 99 % within {p99_ms:.2} ms\n\n\
             {:<16} questions  with hits   p50 ms   p99 ms   slowest\n",
            self.questions, ""
        );
        for Kind { name, questions, with_hits, p50_ms, p99_ms, slowest_ms } in &self.kinds {
            text += &format!(
                "{name:<16} {questions:>9} {with_hits:>10} {p50_ms:>8.2} {p99_ms:>8.2} {slowest_ms:>9.2}\n"
            );
        }
        text
    }
}
