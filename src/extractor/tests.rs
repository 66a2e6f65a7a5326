//! The store of texts, whatever becomes of its files.

use super::{DateFrom, RULES, StoryText, Texts, TextsView};
use std::fs;
use std::path::PathBuf;

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let path = std::env::temp_dir().join(format!("nephila-texts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        TestDir(path)
    }

    fn log(&self) -> PathBuf {
        self.0.join("texts")
    }

    fn places(&self) -> PathBuf {
        self.0.join("texts.places")
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(story: u32, words: &str) -> StoryText {
    StoryText {
        story,
        doc_id: story + 100,
        rules: RULES,
        title: format!("Title of {story}"),
        author: "Ada Quill".to_string(),
        published_s: story.is_multiple_of(2).then_some(1_700_000_000 + i64::from(story)),
        date_from: if story.is_multiple_of(2) { DateFrom::Meta } else { DateFrom::Nowhere },
        language: "en".to_string(),
        text: words.repeat(story as usize % 7 + 1),
        failed: None,
    }
}

fn failed(story: u32) -> StoryText {
    StoryText { story, rules: RULES, failed: Some("no text was found".to_string()), ..StoryText::default() }
}

fn all(view: &TextsView) -> Vec<StoryText> {
    view.since(0).map(|read| read.unwrap().1).collect()
}

#[test]
fn texts_come_back_in_order_and_by_story() {
    let dir = TestDir::new("round");
    let view = TextsView::open(&dir.0).unwrap();
    assert_eq!((all(&view).len(), view.by_story(1).unwrap()), (0, None), "no directory, no texts");
    let mut texts = Texts::open(&dir.0).unwrap();
    let written: Vec<StoryText> =
        (0..50).map(|story| if story == 7 { failed(7) } else { text(story, "word ") }).collect();
    for text in &written[..30] {
        texts.append(text).unwrap();
    }
    texts.sync().unwrap();
    let mut view = TextsView::open(&dir.0).unwrap();
    assert_eq!(all(&view), written[..30]);
    let position = view.since(0).last().unwrap().unwrap().0;
    drop(texts);
    let mut texts = Texts::open(&dir.0).unwrap();
    assert_eq!(texts.mended(), (0, 0));
    for text in &written[30..] {
        texts.append(text).unwrap();
    }
    // Not synced: a reader of the same machine has it all the same.
    view.refresh().unwrap();
    let later: Vec<StoryText> = view.since(position).map(|read| read.unwrap().1).collect();
    assert_eq!(later, written[30..]);
    for text in &written {
        assert_eq!(view.by_story(text.story).unwrap().as_ref(), Some(text));
    }
    assert_eq!(view.by_story(99).unwrap(), None);
    // Of two of one story the latest counts, also before its place is durable.
    let again = StoryText { rules: RULES + 1, ..text(3, "other ") };
    texts.append(&again).unwrap();
    view.refresh().unwrap();
    assert_eq!(view.by_story(3).unwrap(), Some(again));
    assert!(texts.has(3, RULES + 1).unwrap() && !texts.has(4, RULES + 1).unwrap());
    assert!(texts.has(7, 0).unwrap() && !texts.has(99, 0).unwrap());
}

#[test]
fn a_torn_tail_is_cut_and_written_over() {
    let dir = TestDir::new("torn");
    let mut texts = Texts::open(&dir.0).unwrap();
    let mut ends = vec![texts.end()];
    for story in 1..=2 {
        texts.append(&text(story, "words ")).unwrap();
        ends.push(texts.end());
    }
    texts.sync().unwrap();
    drop(texts);
    let (whole, places) = (fs::read(dir.log()).unwrap(), fs::read(dir.places()).unwrap());
    for keeps_places in [true, false] {
        for length in 0..whole.len() {
            fs::write(dir.log(), &whole[..length]).unwrap();
            fs::write(dir.places(), if keeps_places { &places[..] } else { &[] }).unwrap();
            let count = ends.iter().filter(|end| **end <= length as u64).count().saturating_sub(1);
            let mut texts = Texts::open(&dir.0).unwrap();
            texts.append(&text(9, "after ")).unwrap();
            texts.sync().unwrap();
            let view = TextsView::open(&dir.0).unwrap();
            let expected: Vec<u32> = (1..=count as u32).chain([9]).collect();
            let found: Vec<u32> = all(&view).iter().map(|text| text.story).collect();
            assert_eq!(found, expected, "cut at {length}");
            for story in 1..=2 {
                let is_there = story <= count as u32;
                assert_eq!(view.by_story(story).unwrap().is_some(), is_there, "cut at {length}");
                assert_eq!(texts.has(story, 0).unwrap(), is_there, "cut at {length}");
            }
        }
    }
}

/// Any byte wrong in either file: a text is as it was written, or it is not there.
#[test]
fn a_wrong_byte_is_found_or_does_no_harm() {
    let dir = TestDir::new("flip");
    let mut texts = Texts::open(&dir.0).unwrap();
    let written: Vec<StoryText> = (1..=2).map(|story| text(story, "words ")).collect();
    for text in &written {
        texts.append(text).unwrap();
    }
    texts.sync().unwrap();
    drop(texts);
    let (log, places) = (fs::read(dir.log()).unwrap(), fs::read(dir.places()).unwrap());
    for (path, whole, other, kept) in
        [(dir.log(), &log, dir.places(), &places), (dir.places(), &places, dir.log(), &log)]
    {
        let is_log = path == dir.log();
        for at in 0..whole.len() {
            for bits in [0x01, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= bits;
                fs::write(&path, &bytes).unwrap();
                fs::write(&other, kept).unwrap();
                let Ok(view) = TextsView::open(&dir.0) else {
                    assert!(is_log && at < 16, "only a wrong head is refused");
                    assert!(Texts::open(&dir.0).is_err());
                    continue;
                };
                let found = all(&view);
                assert!(found.iter().all(|text| written.contains(text)), "byte {at}");
                assert!(
                    found.len() + usize::from(is_log) >= written.len(),
                    "byte {at}: one record is lost at most"
                );
                for text in &written {
                    match view.by_story(text.story).unwrap() {
                        Some(read) => assert_eq!(read, *text, "byte {at}"),
                        None => assert!(is_log, "byte {at} of places hides story {}", text.story),
                    }
                }
                let texts = Texts::open(&dir.0).unwrap();
                assert!(texts.end() >= 16);
            }
        }
    }
}

#[test]
fn a_file_of_another_kind_or_version_is_refused() {
    let dir = TestDir::new("kind");
    fs::create_dir_all(&dir.0).unwrap();
    fs::write(dir.log(), "something else altogether").unwrap();
    let refused = Texts::open(&dir.0).err().unwrap().to_string();
    assert!(refused.contains("is no file of texts"), "{refused}");
    let mut head = *b"NEPHTEXT\x02\0\0\0\0\0\0\0";
    let crc = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    fs::write(dir.log(), head).unwrap();
    let refused = TextsView::open(&dir.0).err().unwrap().to_string();
    assert!(refused.contains("version 2"), "{refused}");
}
