use super::listing::Entry;
use crate::proto::feed::title::normal;
use std::collections::HashSet;

/// The stories of a source, by what entries are known by.
pub struct StoryBook {
    name: String,
    urls: HashSet<String>,
    guids: HashSet<String>,
    /// With their weeks.
    titles: HashSet<(u32, String)>,
    stories: HashSet<String>,
    /// The last listing: what it added, and what its feed was before.
    last: Option<Undo>,
}

/// What is remembered of the last listing of a feed.
#[derive(Clone, Default)]
pub struct Remembered {
    urls: Vec<String>,
    newest: Vec<String>,
    /// Entries in a row that only a guid makes old, and whether guids are not believed any more.
    guid_only: usize,
    guids_bad: bool,
    pub gaps: u32,
}

/// What a listing brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brought {
    pub new: usize,
    /// It shares nothing with the one before.
    pub gap: bool,
    /// The oldest date of what is new; 0 where one has none.
    pub oldest_s: Option<u32>,
}

#[derive(Default)]
struct Undo {
    urls: Vec<String>,
    guids: Vec<String>,
    titles: Vec<(u32, String)>,
    stories: Vec<String>,
    feed: usize,
    before: Remembered,
}

/// So many newest entries are known in the next listing.
const NEWEST: usize = 4;
const SHARED_MIN: usize = 3;
const DOUBTS_MAX: usize = 3;

/// Weeks begin with Monday; 1970 began with a Thursday.
fn week(at_s: u32) -> u32 {
    (at_s / 86_400 + 3) / 7
}

impl StoryBook {
    pub fn new(name: &str) -> StoryBook {
        StoryBook {
            name: name.to_string(),
            urls: HashSet::new(),
            guids: HashSet::new(),
            titles: HashSet::new(),
            stories: HashSet::new(),
            last: None,
        }
    }

    pub fn stories(&self) -> &HashSet<String> {
        &self.stories
    }

    /// A feed of the source lists these. A guid that several of them have says nothing, and neither do those of a feed
    /// that gives the guids of stories to others again and again.
    pub fn listed(&mut self, (feed, of): (usize, &mut Remembered), entries: &[Entry], now_s: u32) -> Brought {
        let mut undo = Undo { feed, before: of.clone(), ..Undo::default() };
        let mut urls: Vec<String> = entries.iter().map(|entry| entry.url.clone()).collect();
        urls.sort_unstable();
        if of.urls == urls {
            self.last = Some(undo);
            return Brought::default();
        }
        of.urls = urls;
        let title = |e: &Entry| (week(e.at_s.unwrap_or(now_s)), normal(&e.title, &self.name));
        let titles: Vec<(u32, String)> = entries.iter().map(title).collect();
        let shared = |e: &Entry| entries.iter().any(|other| other.guid == e.guid && other.url != e.url);
        let has_guid = |e: &Entry| !e.guid.is_empty() && e.guid != e.url && !shared(e);
        let doubtful = entries.iter().zip(&titles).filter(|(e, title)| {
            has_guid(e)
                && self.guids.contains(&e.guid)
                && !self.urls.contains(&e.url)
                && !self.titles.contains(title)
        });
        let doubtful = doubtful.count();
        of.guids_bad |= doubtful > 0 && doubtful + of.guid_only >= DOUBTS_MAX;
        let mut brought = Brought::default();
        for (e, title) in entries.iter().zip(titles) {
            if !self.urls.insert(e.url.clone()) {
                continue;
            }
            undo.urls.push(e.url.clone());
            let by_guid = !of.guids_bad && has_guid(e) && self.guids.contains(&e.guid);
            let by_title = !title.1.is_empty() && self.titles.contains(&title);
            if by_guid || by_title {
                of.guid_only += usize::from(by_guid && !by_title);
                continue;
            }
            if !of.guids_bad && has_guid(e) && self.guids.insert(e.guid.clone()) {
                undo.guids.push(e.guid.clone());
                of.guid_only = 0;
            }
            if !title.1.is_empty() {
                self.titles.insert(title.clone());
                undo.titles.push(title);
            }
            self.stories.insert(e.url.clone());
            undo.stories.push(e.url.clone());
            brought.new += 1;
            let at_s = e.at_s.unwrap_or(0);
            brought.oldest_s = Some(brought.oldest_s.map_or(at_s, |oldest_s| oldest_s.min(at_s)));
        }
        let can_tell = of.newest.len().min(entries.len()) >= SHARED_MIN;
        let shares = entries.iter().any(|e| of.newest.contains(&e.url));
        brought.gap = brought.new > 0 && can_tell && !shares;
        of.gaps += u32::from(brought.gap);
        of.newest = newest(entries);
        self.last = Some(undo);
        brought
    }

    /// What the last listing added first, with the feed that had it.
    pub fn last_addition(&self) -> Option<(usize, &str)> {
        let undo = self.last.as_ref()?;
        Some((undo.feed, undo.urls.first()?))
    }

    /// The last listing was not heard.
    pub fn forget_last(&mut self) -> Option<(usize, Remembered)> {
        let undo = self.last.take()?;
        self.urls.retain(|known| !undo.urls.contains(known));
        self.guids.retain(|known| !undo.guids.contains(known));
        self.titles.retain(|known| !undo.titles.contains(known));
        self.stories.retain(|known| !undo.stories.contains(known));
        Some((undo.feed, undo.before))
    }
}

/// By their dates; without any, those at both ends.
fn newest(entries: &[Entry]) -> Vec<String> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    match entries.iter().any(|entry| entry.at_s.is_some()) {
        true => order.sort_by_key(|&at| std::cmp::Reverse(entries[at].at_s)),
        false => order.retain(|&at| at < NEWEST / 2 || at + NEWEST / 2 >= entries.len().max(NEWEST)),
    }
    order.into_iter().take(NEWEST).map(|at| entries[at].url.clone()).collect()
}
