use super::fields::{Field, LANGUAGES};
use super::forms::{Form, Forms};
use super::languages::{STEMMED, code, place};
use super::lists::{List, Lists};
use super::postings::skip_numbers;
use super::rank::length_code;
use super::segments::{Columns, Lengths, NO_TIME, SegmentWriter, Shown, ShownBlocks, WordWriter};
use super::source::SearchDoc;
use super::words::Words;
use crate::base::varint::take_u32;
use crate::base::{Rng, fingerprint, random_u64};
use frostem::Stemmer;
use hashbrown::HashTable;
use std::io;
use std::path::Path;

/// A longer text is indexed up to here.
const TEXT_BYTES_MAX: usize = 1 << 20;
const TITLE_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 1 << 10;
/// A word is taken note of so often in one story: what says it again and again says no more.
const MENTIONS_MAX: u32 = 1_000;
/// A word in a title counts as so many in a text.
const TITLE_COUNTS: usize = 2;

/// Stories that are in no segment yet, by their words.
///
/// A word is looked up by the form that it has in the text: the stem of a form is found once. Its postings and its places grow
/// as lists, in the form that a segment has for few stories.
#[derive(Default)]
pub(super) struct StoryBuffer {
    words: Vec<Word>,
    by_key: HashTable<u32>,
    forms: Forms,
    /// Keys, one behind the other.
    texts: Vec<u8>,
    lists: Lists,
    shown: ShownBlocks,
    columns: Columns,
    languages: [Lengths; LANGUAGES],
    together: Together,
    /// What hashes are made with.
    seed: u64,
}

/// A word by its stem.
struct Word {
    key_at: u32,
    key_bytes: u16,
    /// Stories that have it, the last one included, which is not in the list yet.
    stories: u32,
    last: u32,
    /// The story behind the one before.
    next: u32,
    /// How often the last one has it, and where last.
    count: u32,
    place: u32,
    /// Of each story how far it is behind the one before, and whether it has the word once; if not, how often.
    postings: List,
    places: List,
}

/// Words of a text that are looked up together: what of the tables is not in the cache comes at one time for all of them.
#[derive(Default)]
struct Together {
    /// The words, one behind the other.
    text: String,
    /// Of each its place in the story, where it ends in `text`, and what it is.
    words: Vec<(u32, u32, Form)>,
    numbers: Vec<u32>,
}

const TOGETHER: usize = 32;

impl StoryBuffer {
    pub fn new() -> StoryBuffer {
        StoryBuffer { seed: random_u64(), ..StoryBuffer::default() }
    }

    pub fn stories(&self) -> u32 {
        self.columns.lengths.len() as u32
    }

    /// Memory that the stories take, about.
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
            + self.texts.len()
            + self.shown.bytes()
            + self.words.len() * (size_of::<Word>() + 8)
            + self.forms.bytes()
            + self.columns.lengths.len() * 32
    }

    pub fn add(&mut self, story: &SearchDoc) {
        let number = self.stories();
        let language = code(&story.language);
        let field = place(language.as_deref().unwrap_or_default());
        let source = cut(story.source.trim(), NAME_BYTES_MAX);
        let title = cut(&story.title, TITLE_BYTES_MAX);
        let words = self.add_words(number, field, title, cut(&story.text, TEXT_BYTES_MAX));
        self.add_name(number, Field::Source, &source.to_lowercase());
        if let Some(language) = language.as_deref().filter(|_| field == STEMMED.len()) {
            self.add_name(number, Field::Language, language);
        }
        self.shown.put(&Shown {
            story: story.story,
            published_s: story.published_s,
            language: language.unwrap_or_default(),
            source: source.to_string(),
            title: title.to_string(),
            url: cut(&story.url, crate::limits::URL_BYTES_MAX).to_string(),
        });
        self.columns.lengths.push(length_code(words));
        self.columns.times.push(story.published_s.unwrap_or(NO_TIME));
        self.columns.by_story.push((story.story, number));
        self.languages[field].stories += 1;
        self.languages[field].words += words;
    }

    /// Adds the words of a title, as often as it counts, and behind them those of a text; says how many there are. No phrase
    /// reaches from one into the next.
    fn add_words(&mut self, story: u32, language: usize, title: &str, text: &str) -> u64 {
        let (mut count, mut base) = (0, 0);
        for part in std::iter::repeat_n(title, TITLE_COUNTS).chain([text]) {
            let mut words = Words::of_text(part);
            while let read @ 1.. = self.look_up(&mut words, language) {
                for number in 0..read {
                    let (place, ..) = self.together.words[number];
                    self.put(self.together.numbers[number], story, base + place);
                }
                count += read as u64;
            }
            base += words.places() + 1;
        }
        count
    }

    /// Reads some words and looks them up; says how many.
    fn look_up(&mut self, words: &mut Words<'_>, language: usize) -> usize {
        let mut together = std::mem::take(&mut self.together);
        let Together { text, words: read, numbers } = &mut together;
        text.clear();
        read.clear();
        numbers.clear();
        let (mut from, mut touched) = (0, 0);
        while read.len() < TOGETHER
            && let Some(place) = words.read(text)
        {
            let form = Form::new(&text.as_bytes()[from..], language as u8, self.seed);
            touched ^= self.forms.touch(&form);
            from = text.len();
            read.push((place, from as u32, form));
        }
        let mut from = 0;
        for (_, to, form) in read.iter() {
            let word = &text[from..*to as usize];
            from = *to as usize;
            let number = match self.forms.find(form, word.as_bytes()) {
                Some(number) => number,
                None => self.add_form(form, language, word),
            };
            numbers.push(number);
        }
        for number in numbers.iter() {
            let word = &self.words[*number as usize];
            touched ^= self.lists.touch(&word.places) ^ self.lists.touch(&word.postings);
        }
        std::hint::black_box(touched);
        let count = read.len();
        self.together = together;
        count
    }

    /// Takes note that a word stands at a place of a story.
    #[inline]
    fn put(&mut self, word: u32, story: u32, place: u32) {
        let Self { words, lists, .. } = self;
        let word = &mut words[word as usize];
        if word.stories == 0 || word.last != story {
            word.end_story(lists);
            word.stories += 1;
            (word.last, word.count, word.place) = (story, 0, 0);
        }
        if word.count < MENTIONS_MAX {
            word.count += 1;
            lists.put(&mut word.places, place - word.place);
            word.place = place;
        }
    }

    fn add_name(&mut self, story: u32, field: Field, name: &str) {
        let word = self.word_of_key(field, name);
        let Self { words, lists, .. } = self;
        let word = &mut words[word as usize];
        word.end_story(lists);
        word.stories += 1;
        (word.last, word.count) = (story, 1);
    }

    fn add_form(&mut self, form: &Form, language: usize, word: &str) -> u32 {
        let stemmer = STEMMED.get(language).map(|(.., algorithm)| Stemmer::new(*algorithm));
        let stem = stemmer.as_ref().map(|stemmer| stemmer.stem(word));
        let number = self.word_of_key(Field::Text(language), stem.as_deref().unwrap_or(word));
        self.forms.insert(*form, word.as_bytes(), number);
        number
    }

    fn word_of_key(&mut self, field: Field, word: &str) -> u32 {
        let Self { words, by_key, texts, .. } = self;
        let at = texts.len();
        texts.extend_from_slice(field.key(word).as_bytes());
        let key = &texts[at..];
        let hash_of = |key: &[u8]| Rng::mix(fingerprint(key) ^ self.seed);
        let hash = hash_of(key);
        if let Some(known) = by_key.find(hash, |known| words[*known as usize].key(texts) == key) {
            texts.truncate(at);
            return *known;
        }
        let number = words.len() as u32;
        words.push(Word {
            key_at: at as u32,
            key_bytes: key.len() as u16,
            stories: 0,
            last: 0,
            next: 0,
            count: 0,
            place: 0,
            postings: List::default(),
            places: List::default(),
        });
        by_key.insert_unique(hash, number, |known| hash_of(words[*known as usize].key(texts)));
        number
    }

    /// Words in the order of their keys. Most are told apart by how their keys begin.
    fn in_order(&self) -> impl Iterator<Item = u32> + use<> {
        let beginning = |key: &[u8]| {
            let mut eight = [0; 8];
            let bytes = key.len().min(8);
            eight[..bytes].copy_from_slice(&key[..bytes]);
            u64::from_be_bytes(eight)
        };
        let key = |word: u32| self.words[word as usize].key(&self.texts);
        let mut order: Vec<(u64, u32)> =
            (0..self.words.len() as u32).map(|word| (beginning(key(word)), word)).collect();
        order.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1))));
        order.into_iter().map(|(_, word)| word)
    }

    /// Writes all stories as a segment, durably, and begins anew.
    pub fn write(&mut self, path: &Path) -> io::Result<()> {
        let mut segment = SegmentWriter::create(path)?;
        self.shown.drain(|first, packed| segment.put_shown(first, packed))?;
        let (mut out, mut postings) = (WordWriter::new(), Vec::new());
        for number in self.in_order() {
            let word = &mut self.words[number as usize];
            word.end_story(&mut self.lists);
            postings.clear();
            self.lists.read(&word.postings, &mut postings);
            self.lists.read(&word.places, &mut out.places);
            word.tell(&postings, &mut out, &self.columns.lengths);
            // Made of whole characters.
            let key = str::from_utf8(self.words[number as usize].key(&self.texts)).unwrap_or_default();
            out.finish(key, &mut segment)?;
        }
        self.columns.by_story.sort_unstable();
        segment.finish(&self.columns, self.languages)?;
        *self = StoryBuffer::new();
        Ok(())
    }
}

impl Word {
    fn key<'t>(&self, texts: &'t [u8]) -> &'t [u8] {
        &texts[self.key_at as usize..][..usize::from(self.key_bytes)]
    }

    /// Writes the last story into the list.
    fn end_story(&mut self, lists: &mut Lists) {
        if self.stories == 0 {
            return;
        }
        lists.put(&mut self.postings, (self.last - self.next) << 1 | u32::from(self.count == 1));
        self.next = self.last + 1;
        if self.count > 1 {
            lists.put(&mut self.postings, self.count);
        }
    }

    /// Goes through the stories that a list has, whose places are already in `out`.
    fn tell(&self, mut postings: &[u8], out: &mut WordWriter, lengths: &[u8]) {
        let (mut places, mut next) = (&out.places[..], 0);
        while let Some(gap) = take_u32(&mut postings) {
            let (story, is_one) = (next + (gap >> 1), gap & 1 == 1);
            let count = if is_one { 1 } else { take_u32(&mut postings).unwrap_or(1) };
            let (_, bytes) = skip_numbers(places, u64::from(count));
            places = &places[bytes..];
            out.postings.put(story, count, bytes as u32, lengths[story as usize]);
            next = story + 1;
        }
    }
}

/// The beginning of a text, in whole characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
