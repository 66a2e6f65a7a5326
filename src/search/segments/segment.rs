use super::dictionary::Dictionary;
use super::footer::{FOOTER_BYTES, Footer, Lengths, MAGIC};
use super::shown::{Shown, read_record, take_record, unpacked};
use super::writer::{NO_TIME, TIMES};
use crate::base::varint::take;
use crate::base::{u32_at, u64_at};
use crate::search::fields::LANGUAGES;
use crate::search::postings::{Extent, damaged};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A segment as readers have it. What is small, or needed for every question, is in memory.
pub struct Segment {
    file: Arc<File>,
    footer: Footer,
    dictionary: Arc<Dictionary>,
    /// Of each block of what is shown, the number of its first story, and where it begins.
    shown: Vec<(u32, u64)>,
    /// The first and the last time of each part of the stories.
    times: Vec<(i64, i64)>,
    lengths: OnceLock<Vec<u8>>,
}

/// How much of a segment was read to compare it with its checksum.
#[derive(Default)]
pub struct Checked {
    at: u64,
    crc: u32,
}

/// A story is looked for in the time that so many take to be read one after the other.
const LOOKED_FOR: usize = 500;
/// What is read at one time of the whole file.
const STEP_BYTES: u64 = 1 << 20;

impl Segment {
    pub fn open(path: &Path) -> io::Result<Segment> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let (mut magic, mut footer) = ([0; MAGIC.len()], [0; FOOTER_BYTES]);
        let footer_at =
            bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damaged("it is shorter than its footer"))?;
        file.read_exact_at(&mut magic, 0)?;
        if magic != MAGIC {
            return Err(damaged("it is no segment"));
        }
        file.read_exact_at(&mut footer, footer_at)?;
        let footer = Footer::read(&footer, bytes)?;
        let mut indexes = vec![0; (footer.lengths_at - footer.index_at) as usize];
        file.read_exact_at(&mut indexes, footer.index_at)?;
        if crc32c::crc32c(&indexes) != footer.indexes_crc {
            return Err(damaged("the checksum of its indexes is wrong"));
        }
        let (index, rest) = indexes.split_at((footer.shown_index_at - footer.index_at) as usize);
        let (shown, times) = rest.split_at((footer.times_index_at - footer.shown_index_at) as usize);
        let times: Vec<(i64, i64)> = times
            .as_chunks::<16>()
            .0
            .iter()
            .map(|one| (u64_at(one, 0) as i64, u64_at(one, 8) as i64))
            .collect();
        if times.len() != (footer.stories as usize).div_ceil(TIMES) {
            return Err(damaged("the index of its times is damaged"));
        }
        let file = Arc::new(file);
        let dictionary_bytes = (footer.index_at - footer.dictionary_at) as usize;
        let dictionary = Dictionary::read(file.clone(), footer.dictionary_at, dictionary_bytes, index)?;
        let shown =
            read_shown(shown, &footer).ok_or_else(|| damaged("the index of what it shows is damaged"))?;
        Ok(Segment { file, footer, dictionary: Arc::new(dictionary), shown, times, lengths: OnceLock::new() })
    }

    pub fn stories(&self) -> u32 {
        self.footer.stories
    }

    pub fn bytes(&self) -> u64 {
        self.footer.at + FOOTER_BYTES as u64
    }

    pub fn languages(&self) -> &[Lengths; LANGUAGES] {
        &self.footer.languages
    }

    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Bytes of the data of a word, from its beginning on.
    pub fn extent(&self, at: u64, len: u32) -> io::Result<Extent> {
        let is_here = at >= self.footer.words_at
            && at.checked_add(u64::from(len)).is_some_and(|end| end <= self.footer.dictionary_at);
        if !is_here {
            return Err(damaged("its dictionary is damaged"));
        }
        Ok(Extent::new(self.file.clone(), at, len as usize))
    }

    /// The data of all words.
    pub fn words(&self) -> Extent {
        let len = self.footer.dictionary_at - self.footer.words_at;
        Extent::new(self.file.clone(), self.footer.words_at, len as usize)
    }

    /// Where the data of the first word is.
    pub fn words_at(&self) -> u64 {
        self.footer.words_at
    }

    /// Codes of lengths, of all stories.
    pub fn lengths(&self) -> io::Result<&[u8]> {
        if let Some(lengths) = self.lengths.get() {
            return Ok(lengths);
        }
        let mut lengths = vec![0; self.footer.stories as usize];
        self.file.read_exact_at(&mut lengths, self.footer.lengths_at)?;
        Ok(self.lengths.get_or_init(|| lengths))
    }

    /// The first and the last time of the part that a story is in, which [`TIMES`] stories have.
    pub fn times_of_part(&self, number: u32) -> (i64, i64) {
        self.times[number as usize / TIMES]
    }

    /// When stories were published, from a number on, into the whole of `times`.
    pub fn read_times(&self, from: u32, times: &mut [Option<i64>]) -> io::Result<()> {
        let mut bytes = vec![0; times.len() * 8];
        self.file.read_exact_at(&mut bytes, self.footer.times_at + 8 * u64::from(from))?;
        for (at_s, eight) in times.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *at_s = Some(i64::from_le_bytes(*eight)).filter(|at_s| *at_s != NO_TIME);
        }
        Ok(())
    }

    /// Stories in their order, with their numbers here.
    pub fn by_story(&self) -> io::Result<Vec<(u64, u32)>> {
        let mut all = Vec::with_capacity(self.footer.stories as usize);
        let mut bytes = vec![0; 12 * 4_096];
        for from in (0..u64::from(self.footer.stories)).step_by(4_096) {
            let part = &mut bytes[..12 * (u64::from(self.footer.stories) - from).min(4_096) as usize];
            self.file.read_exact_at(part, self.footer.by_story_at + 12 * from)?;
            all.extend(part.as_chunks::<12>().0.iter().map(|one| (u64_at(one, 0), u32_at(one, 8))));
        }
        Ok(all)
    }

    /// Those of some stories that are here, each with its number; with several if it was replaced by one of the same segment.
    pub fn numbers_of(&self, stories: &HashSet<u64>) -> io::Result<Vec<(u64, u32)>> {
        // To look for many is to look at all.
        if stories.len() > self.footer.stories as usize / LOOKED_FOR {
            let all = self.by_story()?.into_iter();
            return self.numbered(all.filter(|(story, _)| stories.contains(story)).collect());
        }
        let mut found = Vec::new();
        for story in stories {
            let (mut low, mut high) = (0, self.footer.stories);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.story_at(middle)?.0 < *story { low = middle + 1 } else { high = middle }
            }
            while low < self.footer.stories {
                let next = self.story_at(low)?;
                if next.0 != *story {
                    break;
                }
                found.push(next);
                low += 1;
            }
        }
        self.numbered(found)
    }

    fn numbered(&self, found: Vec<(u64, u32)>) -> io::Result<Vec<(u64, u32)>> {
        match found.iter().all(|(_, number)| *number < self.footer.stories) {
            true => Ok(found),
            false => Err(damaged("its list of stories is damaged")),
        }
    }

    fn story_at(&self, at: u32) -> io::Result<(u64, u32)> {
        let mut one = [0; 12];
        self.file.read_exact_at(&mut one, self.footer.by_story_at + 12 * u64::from(at))?;
        Ok((u64_at(&one, 0), u32_at(&one, 8)))
    }

    /// Blocks of what is shown.
    pub fn shown_blocks(&self) -> usize {
        self.shown.len()
    }

    /// A block of what is shown, packed, with the number of its first story.
    pub fn shown_block(&self, block: usize) -> io::Result<(u32, Vec<u8>)> {
        let (first, at) = self.shown[block];
        let end = self.shown.get(block + 1).map_or(self.footer.words_at, |next| next.1);
        let mut packed = vec![0; (end - at) as usize];
        self.file.read_exact_at(&mut packed, at)?;
        Ok((first, packed))
    }

    /// What is shown of a story.
    pub fn shown(&self, number: u32) -> io::Result<Shown> {
        let wrong = || damaged("what it shows of stories is damaged");
        let block =
            self.shown.partition_point(|(first, _)| *first <= number).checked_sub(1).ok_or_else(wrong)?;
        let (first, packed) = self.shown_block(block)?;
        let plain = unpacked(&packed).ok_or_else(wrong)?;
        let mut records = &plain[..];
        (first..number).try_for_each(|_| take_record(&mut records).map(drop)).ok_or_else(wrong)?;
        take_record(&mut records).and_then(read_record).ok_or_else(wrong)
    }

    /// Compares every byte with the checksum.
    pub fn check(&self) -> io::Result<()> {
        let mut checked = Checked::default();
        while self.check_part(&mut checked)? > 0 {}
        Ok(())
    }

    /// Reads a part of all bytes, and says how many; 0 once all of them are as the checksum says.
    pub fn check_part(&self, checked: &mut Checked) -> io::Result<u64> {
        let mut part = vec![0; STEP_BYTES.min(self.footer.at - checked.at) as usize];
        self.file.read_exact_at(&mut part, checked.at)?;
        checked.crc = crc32c::crc32c_append(checked.crc, &part);
        checked.at += part.len() as u64;
        match part.is_empty() && checked.crc != self.footer.crc {
            true => Err(damaged("its checksum is wrong")),
            false => Ok(part.len() as u64),
        }
    }
}

fn read_shown(mut index: &[u8], footer: &Footer) -> Option<Vec<(u32, u64)>> {
    let (mut shown, mut at) = (Vec::<(u32, u64)>::new(), 0_u64);
    while !index.is_empty() {
        let (first, rest) = index.split_first_chunk::<4>()?;
        index = rest;
        at = at.checked_add(take(&mut index)?)?;
        let first = u32::from_le_bytes(*first);
        let is_next = shown.last().map_or(first == 0, |last| last.0 < first && last.1 < at);
        if !is_next || at > footer.words_at {
            return None;
        }
        shown.push((first, at));
    }
    (shown.is_empty() == (footer.stories == 0)).then_some(shown)
}
