use super::book::Book;
use super::feed::{Feed, cut};
use super::ids::{FeedId, SourceId, StoryId};
use super::ledger::{DuplicateEntry, Ledger, StoryEntry};
use super::polls::Polls;
use super::prints::{NUMBER_MAX, PrintKind, Prints};
use super::read::{EntryRead, FeedRead, NewStory, ReadTold, Redundant};
use super::rows::{Row, RowState, Rows};
use super::rules::{FeedRules, StoryScope};
use super::week::Week;
use crate::base::named_enum;
use crate::proto::feed::title::Titles;
use crate::storage::seen::Answer;
use rapidhash::fast::RapidHashMap;
use std::hint::black_box;
use std::io;

named_enum! {
    /// What makes an entry the same as a story that is known.
    pub enum DuplicateBy {
        Url = "url",
        Guid = "guid",
        Title = "title",
    }
}

/// A listing, looked through. Kept for its memory.
#[derive(Default)]
pub(super) struct Entries {
    urls: Asked,
    guids: Asked,
    /// Of entries whose URL is known, nobody needs the title.
    titles: Asked,
    weeks: Vec<Week>,
    answers: Vec<Answer>,
    /// For every guid the print of its URL; 0 if entries of the listing have it with several.
    shared: RapidHashMap<u64, u64>,
}

/// Prints of the entries of a listing, and whether each was known before it. 0: an entry has none.
#[derive(Default)]
struct Asked {
    prints: Vec<u64>,
    known: Vec<bool>,
}

impl Asked {
    fn ask(&mut self, prints: &Prints, answers: &mut Vec<Answer>) -> io::Result<()> {
        prints.ask(&self.prints, answers, &mut self.known)
    }

    fn is_known(&self, at: usize) -> bool {
        self.prints[at] != 0 && self.known[at]
    }

    /// Also by an entry before it in its listing.
    fn is_known_now(&self, at: usize, prints: &Prints) -> bool {
        self.is_known(at) || (self.prints[at] != 0 && prints.is_fresh(self.prints[at]))
    }
}

/// A date further ahead than this is wrong.
const AHEAD_MAX_S: i64 = 7 * 86_400;
/// Entries in a row that have the guid of another story, and neither its URL nor its title: guids that tell nothing.
const GUID_ONLY_MAX: u32 = 3;
/// A feed that lists fewer shares nothing with the listing before as a rule.
const GAP_ENTRIES_MIN: usize = 3;
/// Entries of a listing that are remembered until the next.
const NEWEST: usize = 4;
/// What is kept of a guid and of a title, and compared.
const GUID_BYTES_MAX: usize = 1_024;
const TITLE_BYTES_MAX: usize = 1_024;

/// What a listing is told to.
pub(super) struct Desk<'a> {
    pub prints: &'a mut Prints,
    pub ledger: &'a mut Ledger,
    pub rows: &'a mut Rows,
    pub rules: &'a FeedRules,
    pub now_s: u32,
}

impl Entries {
    /// Looks through a listing of a feed. If the disk does not answer, nothing has changed.
    pub fn read(
        &mut self,
        book: &mut Book,
        feed: FeedId,
        read: &FeedRead,
        desk: &mut Desk<'_>,
        mut new: impl FnMut(NewStory<'_>),
    ) -> io::Result<ReadTold> {
        let Some(of) = book.feed(feed) else { return Ok(ReadTold::default()) };
        let count = read.entries.len() as u32;
        if let Some(by) = redundant(&of.polls, read) {
            let mut told = ReadTold::redundant(by, count, read.skipped);
            if let Some(feed) = book.feed_mut(feed) {
                told.has_changed = take_facts(feed, read);
                feed.polls.digest = read.digest;
            }
            return Ok(told);
        }
        let source = match desk.rules.scope {
            StoryScope::Source => of.source,
            StoryScope::All => SourceId(0),
        };
        touch(read);
        let name = book.source(of.source).map_or("", |source| &source.name);
        self.ask(source, name, read, desk)?;
        let (of_source, language) = (of.source, language_of(&read.facts.language).to_string());
        let mut polls = of.polls;
        let mut told = ReadTold { entries: count, skipped: read.skipped, ..ReadTold::default() };
        let guids_bad = polls.guids_bad || self.are_guids_bad(&polls, read);
        for (at, entry) in read.entries.iter().enumerate() {
            if is_home_page(&entry.url) || entry.url.is_empty() {
                told.skipped += 1;
                continue;
            }
            let [url, guid, title] = [&self.urls, &self.guids, &self.titles].map(|asked| asked.prints[at]);
            if self.urls.is_known_now(at, desk.prints) {
                told.dup_url += 1;
                continue;
            }
            let is_guid_known = self.guids.is_known_now(at, desk.prints);
            let by_guid = !guids_bad && !self.is_shared(guid) && is_guid_known;
            let by_title = self.titles.is_known_now(at, desk.prints);
            let number = desk.ledger.next_number();
            if number > NUMBER_MAX {
                return Err(io::Error::other("there are more stories than have numbers"));
            }
            if by_guid || by_title {
                let (by, print) = match by_guid {
                    true => (DuplicateBy::Guid, guid),
                    false => (DuplicateBy::Title, title),
                };
                let of_story = StoryId(desk.prints.find(print)?.unwrap_or(0));
                let row = Row { at: desk.ledger.place(), state: RowState::Duplicate, ..Row::default() };
                desk.rows.push(number, row);
                desk.ledger.add_duplicate(&DuplicateEntry {
                    of: of_story,
                    by,
                    source: of_source,
                    feed,
                    week: self.weeks[at],
                    seen_s: desk.now_s,
                    url: &entry.url,
                });
                desk.prints.insert(url, PrintKind::Url, number);
                match by_guid {
                    true => told.dup_guid += 1,
                    false => told.dup_title += 1,
                }
                polls.guid_only = polls.guid_only.saturating_add(u8::from(by_guid && !by_title));
                continue;
            }
            let published_s = published(entry, desk.now_s);
            desk.rows.push(number, Row { at: desk.ledger.place(), ..Row::default() });
            // What a guid tells nothing of, others are not to be known by.
            let is_guid_new = guid != 0 && !guids_bad && !self.is_shared(guid) && !is_guid_known;
            desk.ledger.add_story(&StoryEntry {
                source: of_source,
                feed,
                seen_s: desk.now_s,
                published_s,
                url: &entry.url,
                guid: cut(&entry.guid, GUID_BYTES_MAX),
                title: cut(&entry.title, TITLE_BYTES_MAX),
                language: &language,
                by_guid: is_guid_new,
            });
            desk.prints.insert(url, PrintKind::Url, number);
            if is_guid_new {
                desk.prints.insert(guid, PrintKind::Guid, number);
                polls.guid_only = 0;
            }
            if title != 0 {
                desk.prints.insert(title, PrintKind::Title, number);
            }
            told.new += 1;
            told.is_late_news |= published_s.is_none_or(|at_s| at_s < polls.success_s);
            new(NewStory { story: StoryId(number), url: &entry.url });
        }
        polls.guids_bad = guids_bad;
        polls.has_news |= told.new > 0;
        let before = polls.newest;
        let known = before.iter().filter(|&&hash| hash != 0).count();
        let can_tell = known.min(read.entries.len()) >= GAP_ENTRIES_MIN;
        told.gap = told.new > 0 && can_tell && !shares(&before, &self.urls.prints);
        told.mean_gap_s = mean_gap(&read.entries, desk.now_s);
        polls.newest = newest(&read.entries, &self.urls.prints);
        (polls.checksum, polls.digest) = (read.checksum, read.digest);
        for (count, more) in [
            (&mut polls.entries, told.entries),
            (&mut polls.found, told.new),
            (&mut polls.dup_url, told.dup_url),
            (&mut polls.dup_guid, told.dup_guid),
            (&mut polls.dup_title, told.dup_title),
            (&mut polls.skipped, told.skipped),
            (&mut polls.gaps, u32::from(told.gap)),
        ] {
            *count = count.saturating_add(more);
        }
        if let Some(feed) = book.feed_mut(feed) {
            feed.polls = polls;
            told.has_changed = take_facts(feed, read);
        }
        Ok(told)
    }

    /// Asks about all entries at once.
    fn ask(&mut self, source: SourceId, name: &str, read: &FeedRead, desk: &mut Desk<'_>) -> io::Result<()> {
        let Entries { urls, guids, titles, weeks, answers, shared } = self;
        for prints in [&mut urls.prints, &mut guids.prints, &mut titles.prints] {
            prints.clear();
        }
        weeks.clear();
        shared.clear();
        urls.prints
            .extend(read.entries.iter().map(|entry| desk.prints.of_text(PrintKind::Url, source, &entry.url)));
        urls.ask(desk.prints, answers)?;
        let is_all_known = urls.known.iter().all(|&known| known);
        let of_source = Titles::of(if is_all_known { "" } else { name });
        for (entry, (&url, &known)) in read.entries.iter().zip(urls.prints.iter().zip(&urls.known)) {
            let week = Week::of(published(entry, desk.now_s).unwrap_or(desk.now_s));
            weeks.push(week);
            // A guid that is the URL says nothing more.
            let guid = match is_all_known || entry.guid.is_empty() || entry.guid == entry.url {
                true => 0,
                false => desk.prints.of_text(PrintKind::Guid, source, cut(&entry.guid, GUID_BYTES_MAX)),
            };
            guids.prints.push(guid);
            if guid != 0 {
                let first = shared.entry(guid).or_insert(url);
                if *first != url {
                    *first = 0;
                }
            }
            let title =
                if known { String::new() } else { of_source.normal(cut(&entry.title, TITLE_BYTES_MAX)) };
            titles.prints.push(match title.is_empty() {
                true => 0,
                false => desk.prints.of_title(source, week, &title),
            });
        }
        guids.ask(desk.prints, answers)?;
        titles.ask(desk.prints, answers)
    }

    /// Two entries of one listing have this guid, and not one URL.
    fn is_shared(&self, guid: u64) -> bool {
        self.shared.get(&guid) == Some(&0)
    }

    /// Whether guids say of too many entries that they are stories which nothing else takes them for.
    fn are_guids_bad(&self, polls: &Polls, read: &FeedRead) -> bool {
        let only_guid = |at: usize| {
            self.guids.is_known(at)
                && !self.urls.is_known(at)
                && !self.titles.is_known(at)
                && !self.is_shared(self.guids.prints[at])
        };
        let count = (0..read.entries.len()).filter(|&at| only_guid(at)).count() as u32;
        count > 0 && count + u32::from(polls.guid_only) >= GUID_ONLY_MAX
    }
}

/// Reads something of all that entries say. Another thread wrote it, and so all of it is on its way at once, where one text
/// after the other would be waited for.
fn touch(read: &FeedRead) {
    let touched = |text: &str| {
        let bytes = text.as_bytes();
        bytes.first().copied().unwrap_or(0) ^ bytes.last().copied().unwrap_or(0)
    };
    let of = |entry: &EntryRead| touched(&entry.url) ^ touched(&entry.guid) ^ touched(&entry.title);
    black_box(read.entries.iter().fold(0, |seen, entry| seen ^ of(entry)));
}

fn redundant(polls: &Polls, read: &FeedRead) -> Option<Redundant> {
    match polls {
        _ if polls.polls == 0 || polls.checksum == 0 => None,
        polls if polls.digest == read.digest && read.digest != 0 => Some(Redundant::Digest),
        polls if polls.checksum == read.checksum => Some(Redundant::Checksum),
        _ => None,
    }
}

/// What a feed says of itself; and whether it says something new. Its title stays if it has one: people give them.
fn take_facts(feed: &mut Feed, read: &FeedRead) -> bool {
    let facts = &read.facts;
    let format = feed.format.replace(facts.format);
    feed.polls.take_hints(&facts.hints);
    let title = Some(facts.title.as_str()).filter(|_| feed.title().is_empty());
    let hub = facts.hub.as_deref().unwrap_or("");
    feed.set_texts([None, title, Some(language_of(&facts.language)), Some(hub)]) || format != feed.format
}

fn language_of(language: &Option<String>) -> &str {
    cut(language.as_deref().unwrap_or(""), 35)
}

/// Whether its guid was taken as something that a story is known by.
pub(super) fn is_known_by_guid(story: &StoryEntry<'_>) -> bool {
    story.by_guid
}

/// When an entry was published, by its feed. Dates before 1970 and far ahead are none.
pub(super) fn published(entry: &EntryRead, now_s: u32) -> Option<u32> {
    let at_s = entry.published_s.filter(|&at_s| at_s > 0 && at_s <= i64::from(now_s) + AHEAD_MAX_S)?;
    u32::try_from(at_s).ok()
}

/// Whether a URL is the front page of its host: what a feed lists without a story behind it.
pub fn is_home_page(url: &str) -> bool {
    let Some(at) = url.as_bytes().windows(3).position(|three| three == b"://") else { return false };
    let rest = &url[at + 3..];
    let Some(at) = memchr::memchr(b'/', rest.as_bytes()) else { return true };
    let path = rest[at + 1..].trim_end_matches('/');
    path.is_empty() || FRONT_PAGES.iter().any(|name| path.eq_ignore_ascii_case(name))
}

/// Paths that servers have for their front page.
const FRONT_PAGES: [&str; 6] = ["index.html", "index.htm", "index.php", "home", "home.html", "default.aspx"];

/// What is kept of the print of a URL to know it in the next listing. With 16 bits, one listing of a hundred entries in 160
/// would share one with the listing before by chance, and a gap go unseen.
fn hash_of(print: u64) -> u32 {
    (print as u32).max(1)
}

/// Of the entries that stay longest: the newest by their dates; without them the first and last two, as nobody knows in
/// which order they are.
fn newest(entries: &[EntryRead], prints: &[u64]) -> [u32; NEWEST] {
    let mut newest: Vec<usize> = Vec::with_capacity(NEWEST + 1);
    match entries.iter().any(|entry| entry.published_s.is_some()) {
        true => {
            for at in 0..entries.len() {
                let is_older = |&&other: &&usize| entries[other].published_s >= entries[at].published_s;
                let place = newest.iter().take_while(is_older).count();
                if place < NEWEST {
                    newest.insert(place, at);
                    newest.truncate(NEWEST);
                }
            }
        }
        false => {
            let ends = entries.len().saturating_sub(NEWEST / 2).max(NEWEST / 2);
            newest.extend((0..entries.len()).filter(|&at| at < NEWEST / 2 || at >= ends));
        }
    }
    let mut hashes = [0; NEWEST];
    hashes.iter_mut().zip(newest).for_each(|(hash, at)| *hash = hash_of(prints[at]));
    hashes
}

fn shares(newest: &[u32; NEWEST], prints: &[u64]) -> bool {
    prints.iter().any(|&print| newest.contains(&hash_of(print)))
}

/// The mean time between entries, by their dates.
fn mean_gap(entries: &[EntryRead], now_s: u32) -> Option<u32> {
    let dates = entries.iter().filter_map(|entry| published(entry, now_s));
    let (mut first, mut last, mut count) = (u32::MAX, 0, 0);
    for at_s in dates {
        (first, last, count) = (first.min(at_s), last.max(at_s), count + 1);
    }
    (count > 1).then(|| (last - first) / (count - 1)).filter(|&gap_s| gap_s > 0)
}
