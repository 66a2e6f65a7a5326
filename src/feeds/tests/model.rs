//! The set of stories that feeds of one source come to, against a model of it.

use super::*;
use crate::proto::feed::title::normal;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// What is told of the stories of a source, in the plainest way.
#[derive(Default)]
struct Model {
    urls: HashSet<String>,
    guids: HashSet<String>,
    titles: HashSet<(Week, String)>,
    /// By feed: entries in a row that only a guid makes old; and whether its guids are not believed any more.
    doubts: HashMap<FeedId, (usize, bool)>,
    last: HashMap<FeedId, Vec<String>>,
}

impl Model {
    fn brings(&mut self, feed: FeedId, entries: &[EntryRead], now_s: u32) -> Vec<String> {
        let mut listed: Vec<String> = entries.iter().map(|e| e.url.to_string()).collect();
        listed.sort_unstable();
        if self.last.insert(feed, listed.clone()) == Some(listed) {
            return Vec::new();
        }
        let week = |e: &EntryRead| Week::of(e.published_s.map_or(now_s, |at_s| at_s as u32));
        let title = |e: &EntryRead| (week(e), normal(&e.title, "source"));
        let shared = |e: &EntryRead| entries.iter().any(|other| other.guid == e.guid && other.url != e.url);
        let has_guid = |e: &EntryRead| !e.guid.is_empty() && e.guid != e.url && !shared(e);
        let by_guid_alone = entries.iter().filter(|e| {
            has_guid(e)
                && self.guids.contains(&*e.guid)
                && !self.urls.contains(&*e.url)
                && !self.titles.contains(&title(e))
        });
        let count = by_guid_alone.count();
        let (mut run, mut bad) = self.doubts.get(&feed).copied().unwrap_or_default();
        bad |= count > 0 && count + run >= 3;
        let mut new = Vec::new();
        for e in entries {
            let old_url = !self.urls.insert(e.url.to_string());
            let old_guid = !bad && has_guid(e) && self.guids.contains(&*e.guid);
            let old_title = !title(e).1.is_empty() && self.titles.contains(&title(e));
            if old_url || old_guid || old_title {
                run += usize::from(!old_url && old_guid && !old_title);
                continue;
            }
            if !bad && has_guid(e) && self.guids.insert(e.guid.to_string()) {
                run = 0;
            }
            self.titles.insert(title(e));
            new.push(e.url.to_string());
        }
        self.doubts.insert(feed, (run, bad));
        new
    }
}

/// What becomes of a story in a listing: which it is, whether its URL, guid, title and date are its own.
type Told = (u16, bool, u8, bool, u8);

fn entry_of((story, own_url, guid, own_title, date): Told, feed: u32) -> EntryRead {
    let url = match own_url {
        true => format!("http://s.example/{story}"),
        false => format!("http://s.example/{story}?from={feed}"),
    };
    let guid = match guid {
        0 => String::new(),
        1 => "0".to_string(),
        2 => format!("{feed}-{story}"),
        3 => url.clone(),
        _ => format!("id{story}"),
    };
    let title = if own_title { format!("Story {story}") } else { format!("Story {story}, now in {feed}") };
    let published_s = [0, NOON, NOON + 86_400, NOON + 7 * 86_400][usize::from(date % 4)];
    entry(&url, &guid, &title, published_s)
}

fn told() -> impl Strategy<Value = Told> {
    (0..40u16, any::<bool>(), 0..8u8, prop::bool::weighted(0.8), 0..4u8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 48 } else { 2_000 }, ..ProptestConfig::default() })]

    #[test]
    fn fifty_feeds_of_a_source_come_to_the_stories_of_the_model(
        polls in prop::collection::vec((0..50u32, prop::collection::vec(told(), 0..12), 0..20u32), 1..60),
        restart in any::<u8>(),
    ) {
        let folder = Folder::new(&format!("model-{}", rand_name(&polls)));
        let mut feeds = folder.open(FeedRules::default());
        let ids: Vec<FeedId> = (0..50).map(|n| add(&mut feeds, &format!("http://s.example/feed/{n}"), "source")).collect();
        let mut model = Model::default();
        let mut expected = Vec::new();
        for (at, (feed, listed, hours)) in polls.iter().enumerate() {
            let entries: Vec<EntryRead> = listed.iter().map(|&told| entry_of(told, *feed)).collect();
            let (feed, now_s) = (ids[*feed as usize], NOON + at as u32 * 7_200 + hours * 3_600);
            let wanted = model.brings(feed, &entries, now_s);
            prop_assert_eq!(&brings(&mut feeds, feed, &entries, now_s), &wanted);
            expected.extend(wanted);
            if (at as u8) % 16 == restart % 16 {
                feeds.flush(false).unwrap();
                drop(feeds);
                feeds = folder.open(FeedRules::default());
            }
        }
        feeds.close().unwrap();
        let found: Vec<String> = stories(&folder.0).iter().map(|story| story.url.to_string()).collect();
        prop_assert_eq!(found, expected);
    }
}

fn rand_name(of: &impl std::fmt::Debug) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{of:?}").as_bytes())
}
