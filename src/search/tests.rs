use super::*;
use crate::base::{Rng, Workers};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Stories in memory; a place is the number of those before it.
#[derive(Default)]
struct Shelf {
    stories: Vec<SearchDoc>,
    at: usize,
}

impl Shelf {
    fn of(stories: &[(u64, &str, &str, &str)]) -> Shelf {
        let mut shelf = Shelf::default();
        for (story, language, title, text) in stories {
            shelf.put(*story, language, title, text);
        }
        shelf
    }

    fn put(&mut self, story: u64, language: &str, title: &str, text: &str) {
        self.stories.push(SearchDoc {
            story,
            source: format!("Source{}.example", story % 2),
            url: format!("http://example.org/{story}"),
            title: title.to_string(),
            text: text.to_string(),
            language: language.to_string(),
            published_s: (story != 4).then_some(story as i64 * 1_000),
            after: self.stories.len() as u64 + 1,
        });
    }
}

impl SearchSource for Shelf {
    fn place(&self) -> u64 {
        self.at as u64
    }

    fn seek(&mut self, place: u64) -> io::Result<bool> {
        self.at = place as usize;
        Ok(self.at <= self.stories.len())
    }

    fn next(&mut self) -> io::Result<Option<SearchDoc>> {
        let next = self.stories.get(self.at).cloned();
        self.at += usize::from(next.is_some());
        Ok(next)
    }
}

/// Threads, as the product has them.
struct Two;

impl Workers for Two {
    fn count(&self) -> usize {
        2
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            scope.spawn(|| work(1));
            work(0);
        });
    }
}

/// A number below another: small ones are met more often.
pub(super) fn skewed(rng: &mut Rng, below: u64) -> u64 {
    let below = 1 + rng.below(below);
    rng.below(below)
}

/// A folder of its own, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nephila-search-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn index(&self) -> PathBuf {
        self.0.join("search")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn index_all(path: &Path, shelf: &mut Shelf) {
    let mut index = StoryIndex::open(path).unwrap();
    while index.take(shelf, 2).unwrap() == 2 {}
    index.commit().unwrap();
}

fn found(path: &Path, text: &str) -> Vec<u64> {
    let mut stories = best(path, SearchQuery::parse(text).unwrap());
    stories.sort_unstable();
    stories
}

fn best(path: &Path, query: SearchQuery) -> Vec<u64> {
    Library::open(path).unwrap().find(&query, 100, &Two).unwrap().iter().map(|hit| hit.story).collect()
}

fn library() -> Shelf {
    Shelf::of(&[
        (1, "en", "Rivers rise", "The rivers were rising quickly, and the dams of the valley held."),
        (2, "deu", "Flüsse steigen", "Die Häuser am Fluss wurden geräumt. Sea level."),
        (3, "en-GB", "Sea level", "The level of the sea rises; a dam does not help. Rivers too."),
        (4, "ja", "東京の天気", "東京都で大雨。川が増水した。"),
        (5, "th", "ข่าววันนี้", "น้ำท่วมกรุงเทพมหานคร"),
        (6, "", "Unnamed", "Ein Wort, a word, 東京 and no language; running rivers"),
        (7, "ru", "Реки", "Уровень рек поднимается"),
        (8, "ar", "أنهار", "ارتفاع منسوب الأنهار"),
        (9, "el", "Ποτάμια", "Η στάθμη των ποταμών ανεβαίνει"),
    ])
}

#[test]
fn the_best_of_all_languages_comes_first_whichever_it_is() {
    for (best, other) in [("de", "en"), ("en", "de"), ("fi", ""), ("", "fi")] {
        let folder = Folder::new("best");
        let path = folder.index();
        let long =
            "Many other words than Berlin are said here of a town, its mayor, its streets and its weather.";
        index_all(
            &path,
            &mut Shelf::of(&[
                (1, other, "Town", long),
                (2, best, "Berlin", "Berlin"),
                (3, other, "Town", long),
            ]),
        );
        let library = Library::open(&path).unwrap();
        let query = SearchQuery::parse("berlin").unwrap();
        let stories = |limit| {
            library.find(&query, limit, &Two).unwrap().iter().map(|hit| hit.story).collect::<Vec<_>>()
        };
        // The two that are equally good are in one segment, which has them as they were indexed.
        assert_eq!(stories(3), [2, 1, 3], "{best} before {other}");
        assert_eq!(stories(2), [2, 1]);
        assert_eq!(stories(1), [2]);
    }
}

#[test]
fn words_are_found_by_their_stems_in_all_languages_at_once() {
    let folder = Folder::new("languages");
    let path = folder.index();
    index_all(&path, &mut library());
    for (text, expected) in [
        ("river", &[1, 3][..]),
        ("RIVERS", &[1, 3, 6]),
        ("river dams", &[1, 3]),
        ("haus", &[2]),
        ("häuser", &[2]),
        ("\"sea level\"", &[2, 3]),
        ("\"level sea\"", &[]),
        ("\"level of the sea\"", &[3]),
        ("東京", &[4, 6]),
        ("京都", &[4]),
        ("東京都", &[4]),
        ("東都", &[]),
        ("川", &[4]),
        ("水", &[4]),
        ("น้ำท่วม", &[5]),
        ("กรุงเทพ", &[5]),
        ("реками", &[7]),
        ("الأنهار", &[8]),
        ("ποταμών", &[9]),
        ("rivers lang:en", &[1, 3]),
        ("rivers lang:en,de", &[1, 3]),
        ("\"天気 東京都で\"", &[]),
        ("東京都で大雨", &[4]),
        ("\"東京 and no\"", &[6]),
        ("word東京", &[6]),
        ("and東京", &[]),
        (&"river".repeat(30), &[]),
        (&format!("rivers-{}", "x".repeat(200)), &[]),
        ("東京 lang:ja", &[4]),
        ("東京 lang:zh", &[]),
        ("level lang:de lang:en", &[2, 3]),
        ("rivers source:source1.EXAMPLE", &[1, 3]),
        ("rivers source:Source0.example source:nobody", &[6]),
        ("rivers source:nobody", &[]),
        ("nowhere", &[]),
        ("rivers nowhere", &[]),
    ] {
        assert_eq!(found(&path, text), expected, "{text}");
    }
}

#[test]
fn a_title_counts_for_more_and_times_leave_out() {
    let folder = Folder::new("order");
    let path = folder.index();
    let mut shelf = Shelf::of(&[
        (1, "en", "Weather", "A storm is told of here, among many other words that say little."),
        (2, "en", "Storm over the sea", "Other words that say little, and of many other things."),
        (4, "en", "No date", "A storm without a date."),
    ]);
    index_all(&path, &mut shelf);
    let storm = SearchQuery::parse("storm").unwrap();
    assert_eq!(best(&path, storm.clone())[0], 2);
    for (since, until, expected) in [
        (None, None, 3),
        (Some(1_000), Some(2_000), 2),
        (Some(1_001), None, 1),
        (None, Some(1_999), 1),
        (Some(i64::MIN), Some(i64::MAX), 2),
        (Some(2_001), None, 0),
    ] {
        let query = storm.clone().published(since, until).unwrap();
        assert_eq!(best(&path, query).len(), expected, "{since:?} {until:?}");
    }
    let hit = &Library::open(&path).unwrap().find(&storm, 1, &Two).unwrap()[0];
    let told =
        (hit.source.as_str(), hit.language.as_str(), hit.published_s, hit.title.as_str(), hit.url.as_str());
    assert_eq!(told, ("Source0.example", "en", Some(2_000), "Storm over the sea", "http://example.org/2"));
}

#[test]
fn what_a_kill_takes_is_read_again_and_nothing_is_there_twice() {
    let folder = Folder::new("kill");
    let path = folder.index();
    let mut shelf = library();
    let mut index = StoryIndex::open(&path).unwrap();
    assert_eq!((index.place(), index.take(&mut shelf, 3).unwrap()), (0, 3));
    index.commit().unwrap();
    assert_eq!(index.take(&mut shelf, 3).unwrap(), 3);
    // No commit: a kill.
    drop(index);
    assert_eq!(found(&path, "東京"), [0; 0]);
    let mut index = StoryIndex::open(&path).unwrap();
    assert_eq!((index.place(), index.take(&mut shelf, 100).unwrap()), (3, 6));
    index.commit().unwrap();
    drop(index);
    assert_eq!((found(&path, "東京"), found(&path, "river")), (vec![4, 6], vec![1, 3]));
    // A text that was extracted again takes the place of the one before, in the same commit and in a later one.
    shelf.put(1, "de", "Neu", "Ganz andere Flüsse");
    shelf.put(1, "en", "Newest", "Rivers once more");
    index_all(&path, &mut shelf);
    assert_eq!(
        (found(&path, "flüsse"), found(&path, "rivers"), found(&path, "dam")),
        (vec![2], vec![1, 3, 6], vec![3])
    );
    let facts = Library::open(&path).unwrap().checked().unwrap();
    assert_eq!((facts.stories, facts.place), (9, 11));
}

/// Stories come, come again and are merged by steps, with kills in between: each is there once, as it was last, and nothing is
/// left in the folder but what is of use.
#[test]
fn stories_that_come_again_while_segments_are_merged_are_there_once() {
    let folder = Folder::new("merge");
    let path = folder.index();
    let mut rng = Rng::new(21);
    let (mut shelf, mut last) = (Shelf::default(), std::collections::BTreeMap::new());
    let mut index = StoryIndex::open(&path).unwrap();
    let (mut kills, mut most, mut again) = (0, 0, 0);
    for round in 0..600 {
        for _ in 0..1 + rng.below(12) {
            let is_again = !last.is_empty() && rng.below(4) == 0;
            let story = if is_again { rng.below(last.len() as u64) } else { last.len() as u64 };
            let title = format!("version {round}");
            shelf.put(
                story,
                ["en", "de", "ja", ""][rng.below(4) as usize],
                &title,
                &format!("number{story} common words of round{round} in a row"),
            );
            last.insert(story, title);
            again += u64::from(is_again);
        }
        while index.take(&mut shelf, 5).unwrap() == 5 {}
        if rng.below(10) > 0 {
            index.commit().unwrap();
        }
        for _ in 0..rng.below(20) {
            index.tend().unwrap();
        }
        if rng.below(15) == 0 {
            drop(index);
            index = StoryIndex::open(&path).unwrap();
            kills += 1;
        }
        if round % 50 == 49 {
            index.take(&mut shelf, 1_000).unwrap();
            index.commit().unwrap();
            let facts = Library::open(&path).unwrap().checked().unwrap();
            assert_eq!(facts.stories, last.len() as u64, "{round}");
            most = most.max(facts.segments);
        }
    }
    assert!(kills > 10 && again > 500 && most < 60, "{kills} {again} {most}");
    index.close().unwrap();
    let library = Library::open(&path).unwrap();
    let facts = library.checked().unwrap();
    assert!(facts.segments < 22 && facts.replaced * 3 < facts.stories, "{facts:?}");
    for (story, title) in &last {
        // Where words stand is merged, too.
        let round = title.trim_start_matches("version ");
        let phrase = format!("\"number{story} common words of round{round} in\"");
        let hits = library.find(&SearchQuery::parse(&phrase).unwrap(), 9, &Two).unwrap();
        let found: Vec<_> = hits.iter().map(|hit| (hit.story, hit.title.as_str())).collect();
        assert_eq!(found, [(*story, title.as_str())]);
    }
    let common =
        library.find(&SearchQuery::parse("common source:source1.example").unwrap(), 1_000, &Two).unwrap();
    assert_eq!(common.len(), (last.len() / 2).min(1_000));
    // Files are those of the manifest, the manifest and the lock.
    let gone = fs::read_dir(&path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "gone"));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2 + facts.segments + gone.count());
}

#[test]
fn an_index_is_made_anew_beside_the_one_in_use() {
    let folder = Folder::new("anew");
    let path = folder.index();
    let mut shelf = library();
    assert_eq!(StoryIndex::reindex(&path, &mut shelf, |_| ()).unwrap(), Reindexed { stories: 9 });
    assert_eq!(found(&path, "river"), [1, 3]);
    let reader = Library::open(&path).unwrap();
    let writer = StoryIndex::open(&path).unwrap();
    let refused = StoryIndex::reindex(&path, &mut shelf, |_| ()).unwrap_err().to_string();
    assert!(refused.contains("another process writes the search index"), "{refused}");
    drop(writer);
    shelf.put(10, "en", "One more", "A river");
    assert_eq!(StoryIndex::reindex(&path, &mut shelf, |_| ()).unwrap(), Reindexed { stories: 10 });
    assert_eq!(found(&path, "river"), [1, 3, 10]);
    assert_eq!(reader.find(&SearchQuery::parse("river").unwrap(), 9, &Two).unwrap().len(), 2);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left beside it");
    // A source that was made anew is shorter than the place of the index.
    let mut shorter = Shelf::of(&[(1, "en", "a", "b")]);
    let error = StoryIndex::open(&path).unwrap().take(&mut shorter, 1).unwrap_err().to_string();
    assert!(error.contains("of other texts") && error.contains("nephila search reindex"), "{error}");
    assert_eq!(StoryIndex::reindex(&path, &mut shorter, |_| ()).unwrap(), Reindexed { stories: 1 });
    assert_eq!(StoryIndex::reindex(&path, &mut Shelf::default(), |_| ()).unwrap(), Reindexed { stories: 0 });
    assert_eq!(found(&path, "b"), [0; 0]);
}

/// Every file of an index, with a byte changed, cut or gone, one at a time.
#[test]
fn a_damaged_index_is_said_with_its_mend() {
    let folder = Folder::new("damage");
    let path = folder.index();
    let missing = Library::open(&path).err().unwrap().to_string();
    assert!(
        missing.contains("has no search index") && missing.contains("nephila search reindex"),
        "{missing}"
    );
    index_all(&path, &mut library());
    damage(&path);
    assert_eq!(found(&path, "river"), [1, 3]);
    fs::write(path.join("manifest"), b"{}").unwrap();
    assert!(StoryIndex::open(&path).is_err());
    assert_eq!(StoryIndex::reindex(&path, &mut library(), |_| ()).unwrap(), Reindexed { stories: 9 });
    assert_eq!(found(&path, "river"), [1, 3]);
}

/// Segments that are due to be merged, with stories that are gone: what is damaged is not merged into something whole.
#[test]
fn a_damaged_segment_is_not_merged() {
    let folder = Folder::new("damaged-merge");
    let path = folder.index();
    let mut shelf = library();
    for story in [1, 4, 6, 2, 1, 7, 8, 3] {
        shelf.put(story, "en", "Again", "The rivers of 東京 rise again, rivers and rivers");
    }
    let mut index = StoryIndex::open(&path).unwrap();
    for stories in [3, 3, 3, 1, 1, 1, 2, 3] {
        index.take(&mut shelf, stories).unwrap();
        index.commit().unwrap();
    }
    drop(index);
    let before = fs::read_dir(&path).unwrap().count();
    damage(&path);
    StoryIndex::open(&path).unwrap().close().unwrap();
    assert!(before > 10 && fs::read_dir(&path).unwrap().count() < 6, "they were due to be merged");
    assert_eq!(found(&path, "rivers"), [1, 2, 3, 4, 6, 7, 8]);
}

/// Every file of an index, with a bit changed, cut or gone, one at a time: each is said, whatever a writer does first.
fn damage(path: &Path) {
    let all = |path: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let paths = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let whole_index = all(path);
    let files: Vec<PathBuf> = whole_index.iter().map(|(path, _)| path.clone()).collect();
    for file in files.iter().filter(|file| !file.ends_with("lock")) {
        let whole = fs::read(file).unwrap();
        let turned = (0..whole.len()).step_by(1 + whole.len() / 100).map(|at| {
            let mut turned = whole.clone();
            turned[at] ^= 1 << (at % 8);
            Some(turned)
        });
        let cut = (0..5).map(|part| Some(whole[..whole.len() * part / 5].to_vec()));
        for damaged in turned.chain(cut).chain([None]) {
            match damaged {
                Some(bytes) => fs::write(file, bytes).unwrap(),
                None => fs::remove_file(file).unwrap(),
            }
            // Without a manifest it would be begun anew.
            if file.exists()
                && let Ok(index) = StoryIndex::open(path)
            {
                let _ = index.close();
            }
            let looked = Library::open(path).and_then(|library| {
                for text in
                    ["river 東 \"sea level\"", "rivers source:source1.example", "水", "\"the level of\""]
                {
                    let _ = library.find(&SearchQuery::parse(text).unwrap(), 10, &Two);
                }
                library.checked()
            });
            let error =
                looked.err().unwrap_or_else(|| panic!("{} was not missed", file.display())).to_string();
            assert!(error.contains("nephila search reindex"), "{}: {error}", file.display());
            all(path).into_iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
            whole_index.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        }
    }
}

#[test]
fn hostile_texts_and_questions_have_bounds() {
    let folder = Folder::new("hostile");
    let path = folder.index();
    let long = "word ".repeat(400_000) + "behind";
    let control: String = (0..0x3000).filter_map(char::from_u32).collect();
    let mut shelf = Shelf::of(&[
        (u64::MAX, "en", &"t".repeat(100_000), &long),
        (7, "\u{0}", &control, &"\u{301}".repeat(10_000)),
        (8, "el", "", &"ς".repeat(10_000)),
    ]);
    index_all(&path, &mut shelf);
    assert_eq!(found(&path, "word"), [u64::MAX]);
    assert_eq!(found(&path, "behind"), [0; 0]);
    let library = Library::open(&path).unwrap();
    // Pairs of characters are words, too.
    let pairs = SearchQuery::parse(&"東京".repeat(100)).unwrap();
    let error = library.find(&pairs, 10, &Two).unwrap_err().to_string();
    assert!(error.starts_with("a question has at most"), "{error}");
    for text in ["*", "a*b?", "[a TO b]", "text_en:x", "(((", "+-!^~", "a AND OR NOT b", ".*東", "\u{202e}x"]
    {
        if let Ok(query) = SearchQuery::parse(text) {
            library.find(&query, usize::MAX, &Two).unwrap();
        }
    }
}

/// Words whose stems are themselves.
const WORDS: [&str; 8] = ["ba", "ko", "ri", "tu", "ze", "mo", "lu", "po"];

/// Stories as lists of words: who has what is told by looking at all of them.
struct Plain {
    title: Vec<usize>,
    text: Vec<usize>,
    published_s: Option<i64>,
}

impl Plain {
    fn drawn(rng: &mut Rng, longest: u64) -> Plain {
        let mut words = |most: u64| -> Vec<usize> {
            // Common words and seldom ones.
            (0..1 + rng.below(most))
                .map(|_| rng.below(WORDS.len() as u64).min(rng.below(12)) as usize)
                .collect()
        };
        let (title, text) = (words(4), words(longest));
        let published_s = (rng.below(8) > 0).then(|| rng.below(100) as i64);
        Plain { title, text, published_s }
    }

    fn has(&self, phrase: &[usize]) -> bool {
        [&self.title, &self.text].iter().any(|words| words.windows(phrase.len()).any(|part| part == phrase))
    }
}

fn said(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

/// Whatever is left out unread: all that answers is found, and nothing else, and fewer hits are the first of more.
#[test]
fn what_is_found_is_what_a_look_at_every_story_finds() {
    let folder = Folder::new("model");
    let path = folder.index();
    let mut rng = Rng::new(16);
    // Segments of other languages and lengths, and of more stories than a block has.
    let parts = [
        (2_500, ["en", "en", "en", "de"], 20),
        (1_000, ["de", "de", "en", ""], 90),
        (500, ["", "en", "fi", ""], 8),
    ];
    let mut shelf = Shelf::default();
    let mut plain: Vec<Plain> = Vec::new();
    let mut index = StoryIndex::open(&path).unwrap();
    for (stories, languages, longest) in parts {
        for _ in 0..stories {
            let story = Plain::drawn(&mut rng, longest);
            let (language, number) = (languages[rng.below(4) as usize], plain.len());
            shelf.put(number as u64, language, &said(&story.title), &said(&story.text));
            shelf.stories[number].published_s = story.published_s;
            plain.push(story);
        }
        index.take(&mut shelf, stories).unwrap();
        index.commit().unwrap();
    }
    // Some twice, so that the first of the two is left out.
    for story in (0..plain.len()).step_by(9) {
        let again = shelf.stories[story].clone();
        index.add(&again).unwrap();
    }
    index.commit().unwrap();
    index.close().unwrap();
    let library = Library::open(&path).unwrap();
    for number in 0..300 {
        let phrases: Vec<Vec<usize>> = (0..1 + rng.below(3))
            .map(|_| (0..1 + rng.below(3)).map(|_| rng.below(WORDS.len() as u64) as usize).collect())
            .collect();
        let source = (rng.below(4) == 0).then(|| rng.below(2));
        let since_s = (rng.below(3) == 0).then(|| rng.below(100) as i64);
        let until_s = (rng.below(3) == 0).then(|| since_s.unwrap_or(0) + rng.below(50) as i64);
        let mut text: Vec<String> = phrases.iter().map(|phrase| format!("\"{}\"", said(phrase))).collect();
        text.extend(source.map(|source| format!("source:source{source}.example")));
        let query = SearchQuery::parse(&text.join(" ")).unwrap().published(since_s, until_s).unwrap();
        let has = |(story, plain): &(usize, &Plain)| {
            let in_time = plain.published_s.is_some_and(|at_s| {
                since_s.is_none_or(|since_s| at_s >= since_s) && until_s.is_none_or(|until_s| at_s <= until_s)
            });
            phrases.iter().all(|phrase| plain.has(phrase))
                && source.is_none_or(|source| *story as u64 % 2 == source)
                && (in_time || (since_s.is_none() && until_s.is_none()))
        };
        let expected: Vec<u64> =
            plain.iter().enumerate().filter(has).map(|(story, _)| story as u64).collect();
        let all = library.find(&query, 1_000, &Two).unwrap();
        let mut stories: Vec<u64> = all.iter().map(|hit| hit.story).collect();
        stories.sort_unstable();
        match expected.len() <= 1_000 {
            true => assert_eq!(stories, expected, "{number}: {query:?}"),
            false => assert!(all.len() == 1_000 && stories.iter().all(|story| expected.contains(story))),
        }
        assert!(all.is_sorted_by(|one, other| one.score >= other.score), "{number}: {query:?}");
        for limit in [1, 3, 10, 10] {
            let first = library.find(&query, limit, &Two).unwrap();
            assert_eq!(first, all[..limit.min(all.len())], "{number}: {query:?}");
        }
    }
}
