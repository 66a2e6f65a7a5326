use super::dictionary::{DictionaryScan, Found};
use super::footer::Lengths;
use super::gone::Gone;
use super::segment::{Checked, Segment};
use super::shown::{ShownBlocks, read_record, take_record, unpacked};
use super::writer::{Columns, NO_TIME, SegmentWriter, WordWriter};
use crate::search::fields::LANGUAGES;
use crate::search::languages::place_of;
use crate::search::postings::{Extent, damaged, each_posting, skip_numbers};
use crate::search::rank::length_of;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Several segments as one, in steps: what was replaced is left out. Their bytes are compared with their checksums before any of
/// them is believed: what is merged gets a checksum of its own.
pub struct Merge {
    inputs: Vec<Input>,
    writer: SegmentWriter,
    word: WordWriter,
    key: String,
    columns: Columns,
    languages: [Lengths; LANGUAGES],
    stage: Stage,
}

/// What is done next.
enum Stage {
    /// An input is read once, to compare it with its checksum.
    Check {
        input: usize,
        checked: Checked,
    },
    /// What is shown, from a block of an input on; blocks that are packed anew, as stories of theirs are gone.
    Shown {
        input: usize,
        block: usize,
        anew: ShownBlocks,
    },
    Words,
    Whole,
}

struct Input {
    segment: Arc<Segment>,
    gone: Option<Gone>,
    /// Numbers in the merged segment: of a segment without gone ones those from `base` on.
    base: u32,
    numbers: Option<Vec<u32>>,
    scan: DictionaryScan,
    words: Extent,
    /// The word that the scan is at.
    found: Option<Found>,
    /// What is kept of it, for its memory.
    data: Vec<u8>,
}

/// A story that is gone has no number.
const NO_NUMBER: u32 = u32::MAX;

impl Merge {
    /// Of segments with what is gone of them, into a file.
    pub fn new(path: &Path, segments: Vec<(Arc<Segment>, Option<Gone>)>) -> io::Result<Merge> {
        let mut inputs = Vec::with_capacity(segments.len());
        let mut base = 0;
        for (segment, gone) in segments {
            let gone = gone.filter(|gone| gone.count() > 0);
            let numbers = gone.as_ref().map(|gone| numbers(base, segment.stories(), gone));
            let scan = segment.dictionary().scan("");
            let words = segment.words();
            let input = Input { segment, gone, base, numbers, scan, words, found: None, data: Vec::new() };
            base += input.segment.stories() - input.gone.as_ref().map_or(0, Gone::count);
            inputs.push(input);
        }
        Ok(Merge {
            inputs,
            writer: SegmentWriter::create(path)?,
            word: WordWriter::new(),
            key: String::new(),
            columns: Columns::default(),
            languages: [Lengths::default(); LANGUAGES],
            stage: Stage::Check { input: 0, checked: Checked::default() },
        })
    }

    /// Handles about so many bytes more; true once nothing is left but to finish.
    pub fn step(&mut self, bytes: u64) -> io::Result<bool> {
        let mut handled = 0;
        while handled < bytes {
            handled += match self.stage {
                Stage::Check { .. } => self.step_check()?,
                Stage::Shown { .. } => self.step_shown()?,
                Stage::Words => self.step_word()?,
                Stage::Whole => return Ok(true),
            };
        }
        Ok(matches!(self.stage, Stage::Whole))
    }

    /// Makes it durable under its name.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish(&self.columns, self.languages)
    }

    /// What is gone by now of what was merged, by its numbers in the merged segment.
    pub fn gone_since<'m>(&'m self, gone: &'m [Option<Gone>]) -> impl Iterator<Item = u32> + 'm {
        self.inputs.iter().zip(gone).flat_map(|(input, gone)| {
            let since = gone.iter().flat_map(|gone| gone.since(input.gone.as_ref()));
            since.map(|number| input.number(number))
        })
    }

    fn step_check(&mut self) -> io::Result<u64> {
        let Stage::Check { input: at, checked } = &mut self.stage else { return Ok(0) };
        if let Some(input) = self.inputs.get(*at) {
            let bytes = input.segment.check_part(checked)?;
            if bytes == 0 {
                (*at, *checked) = (*at + 1, Checked::default());
            }
            return Ok(bytes);
        }
        self.stage = Stage::Shown { input: 0, block: 0, anew: ShownBlocks::default() };
        for input in &mut self.inputs {
            input.put_columns(&mut self.columns)?;
            if input.gone.is_none() {
                for (all, one) in self.languages.iter_mut().zip(input.segment.languages()) {
                    all.stories += one.stories;
                    all.words += one.words;
                }
            }
            input.found = input.scan.next()?;
        }
        self.columns.by_story.sort_unstable();
        Ok(0)
    }

    fn step_shown(&mut self) -> io::Result<u64> {
        let Stage::Shown { input: at, block, anew } = &mut self.stage else { return Ok(0) };
        let Some(input) = self.inputs.get(*at) else {
            self.stage = Stage::Words;
            return Ok(0);
        };
        if *block == input.segment.shown_blocks() {
            anew.drain(|first, packed| self.writer.put_shown(first, packed))?;
            let next = self.inputs.get(*at + 1).map_or(0, |next| next.base);
            (*at, *block, *anew) = (*at + 1, 0, ShownBlocks::from(next));
            return Ok(0);
        }
        let (first, packed) = input.segment.shown_block(*block)?;
        *block += 1;
        if input.gone.is_none() {
            self.writer.put_shown(input.base + first, &packed)?;
            return Ok(packed.len() as u64);
        }
        let wrong = || damaged("what it shows of stories is damaged");
        let plain = unpacked(&packed).ok_or_else(wrong)?;
        let (mut records, mut number) = (&plain[..], first);
        while !records.is_empty() {
            let shown = take_record(&mut records).and_then(read_record).ok_or_else(wrong)?;
            if input.number(number) != NO_NUMBER {
                // Its length is known by its code only.
                let code = self.columns.lengths[input.number(number) as usize];
                let lengths = &mut self.languages[place_of(&shown.language)];
                lengths.stories += 1;
                lengths.words += length_of(code);
                anew.put(&shown);
            }
            number += 1;
        }
        anew.drain_packed(|first, packed| self.writer.put_shown(first, packed))?;
        Ok(packed.len() as u64)
    }

    fn step_word(&mut self) -> io::Result<u64> {
        let first =
            self.inputs.iter().filter(|input| input.found.is_some()).map(|input| input.scan.key()).min();
        let Some(first) = first else {
            self.stage = Stage::Whole;
            return Ok(0);
        };
        self.key.clear();
        self.key.push_str(first);
        let before = self.writer.bytes();
        for input in &mut self.inputs {
            if input.found.is_some() && input.scan.key() == self.key {
                input.put_word(&mut self.word, &self.columns.lengths)?;
                input.found = input.scan.next()?;
                if input.found.is_some() && input.scan.key() <= self.key.as_str() {
                    return Err(damaged("its dictionary is damaged"));
                }
            }
        }
        self.word.finish(&self.key, &mut self.writer)?;
        Ok(self.writer.bytes() - before)
    }
}

/// Numbers in a merged segment.
fn numbers(base: u32, stories: u32, gone: &Gone) -> Vec<u32> {
    let mut next = base;
    let number = |number: u32| match gone.has(number) {
        true => NO_NUMBER,
        false => {
            next += 1;
            next - 1
        }
    };
    (0..stories).map(number).collect()
}

impl Input {
    #[inline]
    fn number(&self, number: u32) -> u32 {
        match &self.numbers {
            None => self.base.saturating_add(number),
            Some(numbers) => numbers.get(number as usize).copied().unwrap_or(NO_NUMBER),
        }
    }

    fn put_columns(&self, columns: &mut Columns) -> io::Result<()> {
        let stories = self.segment.stories();
        let is_here = |number: &u32| self.number(*number) != NO_NUMBER;
        let mut times = vec![None; stories as usize];
        self.segment.read_times(0, &mut times)?;
        let lengths = self.segment.lengths()?;
        columns.lengths.extend((0..stories).filter(is_here).map(|number| lengths[number as usize]));
        columns
            .times
            .extend((0..stories).filter(is_here).map(|number| times[number as usize].unwrap_or(NO_TIME)));
        let numbered =
            self.segment.by_story()?.into_iter().map(|(story, number)| (story, self.number(number)));
        columns.by_story.extend(numbered.filter(|(_, number)| *number != NO_NUMBER));
        Ok(())
    }

    /// Adds the stories of the word that the scan is at.
    fn put_word(&mut self, word: &mut WordWriter, lengths: &[u8]) -> io::Result<()> {
        let wrong = || damaged("the data of a word is damaged");
        let Some(found) = self.found else { return Ok(()) };
        let from = found.at.checked_sub(self.segment.words_at()).ok_or_else(wrong)? as usize;
        let (postings, places) = (found.postings_bytes as usize, found.places_bytes as usize);
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        data.extend_from_slice(self.words.bytes(from, from + postings + places)?);
        let (postings, mut places) = data.split_at(postings);
        let has_places = !places.is_empty();
        let stories = self.segment.stories();
        let put = |story, count: u32| {
            if story >= stories || count == 0 {
                return None;
            }
            let bytes = match has_places {
                false => 0,
                true => {
                    let (counted, bytes) = skip_numbers(places, u64::from(count));
                    if counted != u64::from(count) {
                        return None;
                    }
                    bytes
                }
            };
            let (here, rest) = places.split_at(bytes);
            places = rest;
            let number = self.number(story);
            if number != NO_NUMBER {
                word.postings.put(number, count, bytes as u32, *lengths.get(number as usize)?);
                word.places.extend_from_slice(here);
            }
            Some(())
        };
        let put = each_posting(found.stories, postings, put);
        self.data = data;
        put.ok_or_else(wrong)
    }
}
