use super::book::{Added, Book, NewFeed, Source};
use super::entries::{Desk, Entries};
use super::feed::{Feed, FeedState};
use super::ids::{FeedId, SourceId, StoryId};
use super::journal::{Journal, Record};
use super::ledger::Ledger;
use super::outcome::{Effect, PollOutcome, interval_s, mend, note};
use super::prints::Prints;
use super::read::{FeedRead, NewStory, ReadTold};
use super::reason::{NextPoll, PollReason};
use super::rows::{Row, RowState, Rows};
use super::rules::FeedRules;
use super::waiting::Waiting;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::storage::Bytes;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::io;

/// The role: see the folder's docs.
pub struct Feeds {
    pub(super) rules: FeedRules,
    pub(super) book: Book,
    pub(super) prints: Prints,
    pub(super) ledger: Ledger,
    pub(super) rows: Rows,
    /// None in memory alone.
    pub(super) journal: Option<Journal>,
    /// Only the book was opened: nothing is known of stories.
    pub(super) is_book_alone: bool,
    entries: Entries,
    /// What listings were, until their poll is noted.
    reads: RapidHashMap<FeedId, ReadTold>,
    /// Documents of stories that are not fetched yet.
    waiting: Waiting,
    /// Feeds that the journal is to be told of: all of them, or what came of their polls.
    pub(super) changed: RapidHashSet<FeedId>,
    pub(super) polled: RapidHashSet<FeedId>,
    pub(super) records: Vec<Record>,
    /// Feeds whose next poll was changed by other than a poll.
    moved_due: Vec<FeedId>,
}

impl Feeds {
    /// Without files: for simulations.
    pub fn in_memory(rules: FeedRules, seed: u64) -> io::Result<Feeds> {
        let ledger = Ledger::begin(Bytes::Memory(Vec::new()), seed)?;
        let rows = Rows::new(Bytes::Memory(Vec::new()));
        Ok(Feeds::of_parts(rules, Book::default(), Prints::in_memory(seed), ledger, rows, None))
    }

    pub(super) fn of_parts(
        rules: FeedRules,
        book: Book,
        prints: Prints,
        ledger: Ledger,
        rows: Rows,
        journal: Option<Journal>,
    ) -> Feeds {
        Feeds {
            rules,
            book,
            prints,
            ledger,
            rows,
            journal,
            is_book_alone: false,
            entries: Entries::default(),
            reads: RapidHashMap::default(),
            waiting: Waiting::default(),
            changed: RapidHashSet::default(),
            polled: RapidHashSet::default(),
            records: Vec::new(),
            moved_due: Vec::new(),
        }
    }

    /// Puts a feed into the book; it is due at once. A paused one stays paused, one that was gone gets another chance.
    pub fn add(&mut self, new: &NewFeed<'_>, now_s: u32) -> io::Result<Added> {
        if let Some(feed) = self.book.by_url(new.url) {
            if self.book.feed(feed).is_some_and(|known| known.state == FeedState::Gone) {
                self.wake(feed, PollReason::Asked, now_s);
            }
            return Ok(Added { feed, is_new: false });
        }
        let named = CrawlUrl::from_normal(new.url);
        let host = named.as_ref().map_or("unknown", |url| url.host_bare());
        let source =
            if new.source.trim().is_empty() { host.trim_start_matches("www.") } else { new.source.trim() };
        let (source, is_new_source) = self.book.take_source(source)?;
        if is_new_source && let Some(source) = self.book.source(source) {
            self.records.push(Record::Source(source.clone()));
        }
        let id = self.book.next_id();
        let feed = Feed::new(id, source, new.url, new.title, now_s);
        self.records.push(Record::of(&feed));
        self.book.put(feed)?;
        self.moved_due.push(id);
        Ok(Added { feed: id, is_new: true })
    }

    /// The feed that a document is.
    pub fn at(&self, doc_id: u32) -> Option<FeedId> {
        self.book.by_doc(doc_id)
    }

    /// Which document the doc index has a feed as. It is called again when the feed has moved.
    pub fn bind(&mut self, feed: FeedId, doc_id: u32) {
        if self.book.feed(feed).is_some_and(|known| known.doc_id != doc_id) {
            self.book.change(feed, |feed| feed.doc_id = doc_id);
            self.changed.insert(feed);
        }
    }

    pub fn feed(&self, feed: FeedId) -> Option<&Feed> {
        self.book.feed(feed).filter(|feed| feed.state != FeedState::Removed)
    }

    /// By its URL, or one that it has moved from.
    pub fn by_url(&self, url: &str) -> Option<FeedId> {
        self.book.by_url(url)
    }

    /// All feeds that were not removed, by number.
    pub fn feeds(&self) -> impl Iterator<Item = &Feed> {
        self.book.feeds()
    }

    /// Feeds that there are or were.
    pub fn count(&self) -> usize {
        self.book.all().len()
    }

    pub fn source(&self, source: SourceId) -> Option<&Source> {
        self.book.source(source)
    }

    pub fn sources(&self) -> &[Source] {
        self.book.sources()
    }

    /// When a feed is asked next. One that was put off by a clock that was wrong waits no longer than it would from now on.
    pub fn next(&mut self, feed: FeedId, now_s: u32) -> Option<NextPoll> {
        let known = self.book.feed_mut(feed)?;
        if mend(&mut known.polls, now_s, &self.rules) {
            self.polled.insert(feed);
        }
        Some(known.polls.next())
    }

    /// Mends what a clock that was ahead has written of any feed.
    pub fn mend(&mut self, now_s: u32) {
        for feed in 1..=self.book.all().len() as u32 {
            self.next(FeedId(feed), now_s);
        }
    }

    /// When a feed that the rules of this crawl do not let be asked is looked at again: as far from now as its polls are from
    /// one another. Nothing was asked, and nothing is noted: with other rules it is due as it was.
    pub fn refused_until(&self, feed: FeedId, now_s: u32) -> u32 {
        let wait_s = self.book.feed(feed).map_or(0, |feed| interval_s(&feed.polls, &self.rules));
        now_s.saturating_add(wait_s.max(1))
    }

    /// Feeds whose next poll was changed by other than a poll since this was asked last: the doc index is to be told.
    pub fn take_moved_due(&mut self) -> Vec<FeedId> {
        std::mem::take(&mut self.moved_due)
    }

    /// What a poll brought. `new` is told every story that was not known, in the order of the listing. If the disk does
    /// not answer, the listing is to be read again with the next poll.
    pub fn read(
        &mut self,
        feed: FeedId,
        read: &FeedRead,
        now_s: u32,
        mut new: impl FnMut(NewStory<'_>),
    ) -> io::Result<ReadTold> {
        let mut desk = Desk {
            prints: &mut self.prints,
            ledger: &mut self.ledger,
            rows: &mut self.rows,
            rules: &self.rules,
            now_s,
        };
        let told = self.entries.read(&mut self.book, feed, read, &mut desk, &mut new)?;
        self.reads.insert(feed, told);
        self.polled.insert(feed);
        if told.has_changed {
            self.changed.insert(feed);
        }
        Ok(told)
    }

    /// Notes how a poll ended, after what it brought was read, and says when the next one is.
    pub fn polled(&mut self, feed: FeedId, outcome: &PollOutcome<'_>, now_s: u32) -> NextPoll {
        let read = self.reads.remove(&feed);
        let never = |why| NextPoll { due_s: 0, why, unconditional: false };
        let Some(known) = self.book.feed_mut(feed) else { return never(PollReason::Gone) };
        let outcome = PollOutcome { at_s: if outcome.at_s == 0 { now_s } else { outcome.at_s }, ..*outcome };
        let effect = note(&mut known.polls, &outcome, read.as_ref(), &self.rules);
        self.polled.insert(feed);
        match (effect, known.state) {
            (_, FeedState::Removed) => return never(PollReason::Gone),
            (Effect::Ends, _) => {
                known.state = FeedState::Gone;
                self.changed.insert(feed);
            }
            (Effect::Moves, _) => self.moves(feed, outcome.moved_to.unwrap_or_default()),
            _ => {}
        }
        match self.book.feed_mut(feed) {
            Some(known) if known.state == FeedState::Paused => {
                (known.polls.due_s, known.polls.why) = (0, PollReason::Paused);
                known.polls.next()
            }
            Some(known) => known.polls.next(),
            None => never(PollReason::Gone),
        }
    }

    /// A feed is where its redirection leads from now on; if another one is there, the two become one.
    fn moves(&mut self, feed: FeedId, to: &str) {
        let Some(from) = self.book.feed(feed).map(|feed| Box::<str>::from(feed.url())) else { return };
        self.changed.insert(feed);
        match self.book.by_url(to) {
            Some(other) if other == feed || !self.is_asked(other) => {}
            Some(other) => {
                self.book.change(feed, |feed| {
                    (feed.state, feed.merged, feed.doc_id) = (FeedState::Gone, other, 0);
                    (feed.polls.due_s, feed.polls.why) = (0, PollReason::Merged);
                });
                for url in self.book.retarget(feed, other).iter().chain([&from]) {
                    self.alias(url, other);
                }
            }
            None => {
                self.book.change(feed, |feed| {
                    feed.set_texts([Some(to), None, None, None]);
                    feed.doc_id = 0;
                });
                self.alias(&from, feed);
            }
        }
    }

    /// Whether something that is no feed may be a page that was added for the feeds that it names. What was a feed once is
    /// one that is broken; and what a page named leads no further, as nobody asked for that.
    pub fn may_be_page(&self, feed: FeedId) -> bool {
        self.book.feed(feed).is_some_and(|feed| feed.polls.success_s == 0 && feed.named_by.0 == 0)
    }

    /// Takes the feeds that a page names in its place, as feeds of its source.
    pub fn is_page<'a>(
        &mut self,
        page: FeedId,
        named: impl Iterator<Item = (&'a str, &'a str)>,
        now_s: u32,
    ) -> io::Result<()> {
        let Some(source) = self.book.feed(page).and_then(|page| self.book.source(page.source)) else {
            return Ok(());
        };
        let source = source.name.clone();
        let mut is_one = false;
        for (url, title) in named {
            let added = self.add(&NewFeed { url, source: &source, title }, now_s)?;
            is_one |= added.feed != page;
            if added.is_new
                && let Some(feed) = self.book.feed_mut(added.feed)
            {
                feed.named_by = page;
                self.changed.insert(added.feed);
            }
        }
        if is_one && let Some(page) = self.book.feed_mut(page) {
            page.state = FeedState::Gone;
            (page.polls.due_s, page.polls.why) = (0, PollReason::Page);
            self.changed.insert(page.id);
        }
        Ok(())
    }

    /// Whether a feed can stand for another: it does not fail, and somebody asks it, or will. Servers in trouble send
    /// everybody to their front page.
    fn is_asked(&self, feed: FeedId) -> bool {
        self.book.feed(feed).is_some_and(|feed| {
            matches!(feed.state, FeedState::Active | FeedState::Paused) && feed.polls.failures == 0
        })
    }

    fn alias(&mut self, url: &str, feed: FeedId) {
        self.book.add_alias(url, feed);
        self.records.push(Record::Alias { url: url.into(), feed });
    }

    /// Takes a feed out of the book. Its stories stay.
    pub fn remove(&mut self, feed: FeedId) -> bool {
        if self.feed(feed).is_none() {
            return false;
        }
        self.book.drop_aliases(feed);
        self.book.change(feed, |feed| {
            feed.state = FeedState::Removed;
            (feed.polls.due_s, feed.polls.why) = (0, PollReason::Gone);
        });
        self.changed.insert(feed);
        self.moved_due.push(feed);
        true
    }

    /// It is not asked until it is resumed.
    pub fn pause(&mut self, feed: FeedId) -> bool {
        let Some(known) = self.book.feed_mut(feed).filter(|feed| feed.state == FeedState::Active) else {
            return self.feed(feed).is_some_and(|feed| feed.state == FeedState::Paused);
        };
        known.state = FeedState::Paused;
        (known.polls.due_s, known.polls.why) = (0, PollReason::Paused);
        self.changed.insert(feed);
        self.moved_due.push(feed);
        true
    }

    /// It is due at once. So is one that was gone, unless it has become one with another.
    pub fn resume(&mut self, feed: FeedId, now_s: u32) -> bool {
        self.wake(feed, PollReason::Asked, now_s)
    }

    /// It is due at once, if it is asked at all.
    pub fn poll(&mut self, feed: FeedId, now_s: u32) -> bool {
        self.feed(feed).is_some_and(|feed| feed.state == FeedState::Active)
            && self.wake(feed, PollReason::Asked, now_s)
    }

    fn wake(&mut self, feed: FeedId, why: PollReason, now_s: u32) -> bool {
        let may = |feed: &&mut Feed| feed.state != FeedState::Removed && feed.merged.0 == 0;
        let Some(known) = self.book.feed_mut(feed).filter(may) else { return false };
        known.state = FeedState::Active;
        (known.polls.due_s, known.polls.why) = (now_s.max(1), why);
        self.changed.insert(feed);
        self.moved_due.push(feed);
        true
    }

    /// The ledger has lost stories that it brought: it is asked at once, and without conditions.
    pub fn read_again(&mut self, feed: FeedId) {
        let Some(known) = self.book.feed_mut(feed) else { return };
        let polls = &mut known.polls;
        (polls.checksum, polls.digest, polls.in_doubt) = (0, 0, true);
        if known.state == FeedState::Active {
            (polls.due_s, polls.why) = (1, PollReason::Again);
            self.moved_due.push(feed);
        }
        self.polled.insert(feed);
    }

    /// The doc index has the download of a story as this document. If it is there already, say `fetched` as well.
    pub fn downloads(&mut self, story: StoryId, doc_id: u32) -> io::Result<()> {
        let row = self.rows.get(story.0)?.unwrap_or_default();
        if row.state == RowState::Duplicate {
            return Ok(());
        }
        self.rows.set(story.0, Row { doc_id, ..row });
        self.wait_for(doc_id, story);
        Ok(())
    }

    pub(super) fn wait_for(&mut self, doc_id: u32, story: StoryId) {
        self.waiting.insert(doc_id, story);
    }

    /// A download ended; what it was the download of, if anything, follows. One that failed may still succeed.
    pub fn fetched(&mut self, doc_id: u32, result: ResultCode, at_s: u32) -> io::Result<()> {
        for story in self.waiting.of(doc_id) {
            let row = self.rows.get(story.0)?.unwrap_or_default();
            let state = if result.is_success() { RowState::Fetched } else { RowState::Failed };
            self.rows.set(story.0, Row { doc_id, state, at_s, result: Some(result), ..row });
            if result.is_success() {
                self.waiting.remove(doc_id, story);
            }
        }
        Ok(())
    }

    /// Where a download is led to is the download of its stories from now on.
    pub fn follows(&mut self, doc_id: u32, there: u32) -> io::Result<()> {
        for story in self.waiting.of(doc_id) {
            self.waiting.remove(doc_id, story);
            self.downloads(story, there)?;
        }
        Ok(())
    }

    /// What polls go by from now on; where a story may be once stays as it was.
    pub fn set_rules(&mut self, rules: FeedRules) {
        self.rules = FeedRules { scope: self.rules.scope, memory_bytes: self.rules.memory_bytes, ..rules };
    }

    /// Whether a document is the download of a story that is not fetched yet.
    pub fn awaits(&self, doc_id: u32) -> bool {
        self.waiting.has(doc_id)
    }

    /// Stories found, duplicates included.
    pub fn last_number(&self) -> u32 {
        self.ledger.next_number() - 1
    }

    /// Memory of feeds, and of stories.
    pub fn ram_bytes(&self) -> (usize, usize) {
        (self.book.ram_bytes(), self.prints.ram_bytes() + self.waiting.ram_bytes())
    }
}
