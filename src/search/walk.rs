use super::among::{Among, cursor};
use super::best::{Best, StoryAt};
use super::phrases::PhraseHere;
use super::postings::{Cursor, NONE};
use super::question::{Asked, Published, Question};
use super::rank::Ranks;
use super::segments::{Found, Gone, Segment, TIMES};
use std::io;
use std::ops::Range;

/// A segment in one language of a question, all of whose words it has.
pub(super) struct Part<'a> {
    /// Its number among the segments.
    pub number: u32,
    pub segment: &'a Segment,
    pub gone: Option<&'a Gone>,
    pub asked: &'a Asked,
    /// The words, as they are asked for, and what each weighs.
    pub found: Vec<Found>,
    pub weights: Vec<f32>,
    pub ranks: &'a Ranks,
}

/// Stories that are looked through by one.
const RANGE_STORIES: u32 = if cfg!(test) { 700 } else { 1 << 17 };

/// A sum of what blocks say of their best may be rounded down, and that of a story up.
const ROUNDING: f32 = 1.0 + 1e-5;

impl Part<'_> {
    /// At most so many stories answer.
    pub fn stories_at_most(&self) -> u32 {
        self.found.iter().map(|word| word.stories).min().unwrap_or(self.segment.stories())
    }

    /// Ranges of stories that may be looked through by several at once.
    pub fn ranges(&self, question: &Question) -> impl Iterator<Item = Range<u32>> + use<> {
        let stories = self.segment.stories();
        // Those one of whose words will do are found all at once.
        let is_marked =
            !self.asked.beginnings.is_empty() || question.sources.len() > 1 || self.asked.codes.len() > 1;
        let step = if is_marked { stories.max(1) } else { RANGE_STORIES };
        (0..stories).step_by(step as usize).map(move |from| from..from.saturating_add(step).min(stories))
    }

    /// Puts the stories of a range that answer to the best, but for those that are not among them.
    pub fn look_through(&self, range: Range<u32>, question: &Question, best: &Best) -> io::Result<()> {
        match Walk::begin(self, question)? {
            Some(mut walk) => walk.go(range, best),
            None => Ok(()),
        }
    }
}

/// A way through the stories of a segment that have all words.
struct Walk<'a> {
    part: &'a Part<'a>,
    lengths: &'a [u8],
    words: Vec<Cursor>,
    /// What else a story must be among.
    among: Vec<Among>,
    /// All of these, those with the fewest stories first: words by their numbers, then the others.
    order: Vec<usize>,
    /// Of each in that order, the most that a story can get for those behind it.
    rest: Vec<f32>,
    times: Option<Times>,
    phrases: Vec<PhraseHere>,
}

impl<'a> Walk<'a> {
    /// None if no story of the segment answers.
    fn begin(part: &'a Part<'a>, question: &Question) -> io::Result<Option<Walk<'a>>> {
        let Part { segment, asked, .. } = part;
        let mut among = Vec::new();
        for beginning in &asked.beginnings {
            let Some(begins) = Among::beginning_with(segment, beginning)? else { return Ok(None) };
            among.push(begins);
        }
        for names in [&question.sources, &asked.codes].into_iter().filter(|names| !names.is_empty()) {
            let Some(named) = Among::any_of(segment, names)? else { return Ok(None) };
            among.push(named);
        }
        let words: Vec<Cursor> =
            part.found.iter().map(|word| cursor(segment, word)).collect::<io::Result<_>>()?;
        let phrases = asked.phrases.iter().map(|phrase| PhraseHere::of(phrase, segment, &part.found));
        let phrases = phrases.collect::<io::Result<_>>()?;
        let stories = |number: &usize| match words.get(*number) {
            Some(word) => word.stories(),
            None => among[number - words.len()].stories(),
        };
        let mut order: Vec<usize> = (0..words.len() + among.len()).collect();
        order.sort_by_key(stories);
        let lengths = segment.lengths()?;
        let times = question.published.map(|published| Times::new(published, segment.stories()));
        let rest = vec![0.0; order.len()];
        Ok(Some(Walk { part, lengths, words, among, order, rest, times, phrases }))
    }

    fn go(&mut self, range: Range<u32>, best: &Best) -> io::Result<()> {
        let mut story = range.start;
        // What the blocks say of their best was looked at up to here.
        let mut looked_to = None;
        while story < range.end {
            if looked_to.is_none_or(|to| story > to) {
                let (most, to) = self.most_from(story);
                if most < best.worst() {
                    if to >= NONE - 1 {
                        return Ok(());
                    }
                    story = to + 1;
                    continue;
                }
                looked_to = Some(to);
            }
            let next = self.next_from(story, looked_to.unwrap_or(NONE), best)?;
            if next == NONE {
                return Ok(());
            }
            story = next;
            if story < range.end && looked_to.is_some_and(|to| story <= to) {
                story = self.look_at(story, best)?;
            }
        }
        Ok(())
    }

    /// The most that a story from this one on may get, up to the end of a block.
    fn most_from(&mut self, story: u32) -> (f32, u32) {
        let Part { ranks, weights, .. } = self.part;
        let (mut most, mut to) = (0.0, NONE - 1);
        for (rest, at) in self.rest.iter_mut().zip(&self.order).rev() {
            *rest = most;
            if let Some(word) = self.words.get_mut(*at) {
                word.seek_block(story);
                to = to.min(word.block_end());
                let weight = weights[*at];
                most +=
                    word.best(|count, length| ranks.of(weight, u32::from(count), length)).unwrap_or(weight);
            }
        }
        (most * ROUNDING, to)
    }

    /// The first story that is among all, from this one on; or any that is behind the end. Stories that cannot be among the
    /// best by the words that were looked at are passed over.
    fn next_from(&mut self, from: u32, end: u32, best: &Best) -> io::Result<u32> {
        let Part { ranks, weights, .. } = self.part;
        let worst = best.worst();
        let mut story = from;
        'stories: loop {
            let mut score = 0.0;
            for (number, at) in self.order.iter().enumerate() {
                let next = match self.words.get_mut(*at) {
                    Some(word) => word.seek(story)?,
                    None => self.among[at - self.words.len()].seek(story)?,
                };
                if next > end {
                    return Ok(next);
                }
                if next != story {
                    story = next;
                    if number > 0 {
                        continue 'stories;
                    }
                }
                let Some(word) = self.words.get(*at) else { continue };
                let length = self.lengths.get(story as usize).copied().unwrap_or(0);
                score += ranks.of(weights[*at], word.count(), length);
                if (score + self.rest[number]) * ROUNDING < worst {
                    if story == end {
                        return Ok(story + 1);
                    }
                    story += 1;
                    continue 'stories;
                }
            }
            return Ok(story);
        }
    }

    /// Puts a story that is among all to the best if it is one of them, and says from which story on to go on.
    fn look_at(&mut self, story: u32, best: &Best) -> io::Result<u32> {
        let Part { number, segment, gone, ranks, weights, .. } = self.part;
        let Some(length) = self.lengths.get(story as usize) else {
            return Err(super::postings::damaged("a story is none of its segment"));
        };
        let of_word = |(word, weight): (&Cursor, &f32)| ranks.of(*weight, word.count(), *length);
        let score: f32 = self.words.iter().zip(weights).map(of_word).sum();
        if score < best.worst() || gone.is_some_and(|gone| gone.has(story)) {
            return Ok(story + 1);
        }
        if let Some(times) = &mut self.times {
            match times.next_possible(segment, story)? {
                next if next == story => {}
                next => return Ok(next),
            }
        }
        for phrase in &mut self.phrases {
            if !phrase.is_in(|word| &self.words[word])? {
                return Ok(story + 1);
            }
        }
        best.put(score, StoryAt { segment: *number, story });
        Ok(story + 1)
    }
}

/// When stories were published, read by parts as they are looked at.
struct Times {
    published: Published,
    stories: u32,
    part: Option<u32>,
    times: Vec<Option<i64>>,
}

impl Times {
    fn new(published: Published, stories: u32) -> Times {
        Times { published, stories, part: None, times: Vec::new() }
    }

    /// This story if it was published in time; if not, one in front of which none was.
    fn next_possible(&mut self, segment: &Segment, story: u32) -> io::Result<u32> {
        let Published { since_s, until_s } = self.published;
        let part = story / TIMES as u32;
        let (first_s, last_s) = segment.times_of_part(story);
        if first_s > until_s || last_s < since_s {
            return Ok((part + 1).saturating_mul(TIMES as u32));
        }
        if self.part != Some(part) {
            let from = part * TIMES as u32;
            self.times.resize((self.stories - from).min(TIMES as u32) as usize, None);
            segment.read_times(from, &mut self.times)?;
            self.part = Some(part);
        }
        let at_s = self.times[story as usize % TIMES];
        let is_in_time = at_s.is_some_and(|at_s| (since_s..=until_s).contains(&at_s));
        Ok(if is_in_time { story } else { story + 1 })
    }
}
