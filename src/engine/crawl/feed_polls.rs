use crate::doc_index::{DocIndex, DocState, NEVER_S, Named, Origin, Outcome, PRIORITY_USUAL};
use crate::engine::crawl::feed_counts::FeedCounts;
use crate::engine::crawl::messages::{Found, NewUrl};
use crate::engine::inspect::feed_words::{FeedWord, FeedsTold, NamedFeed};
use crate::engine::runtime::counters::Counters;
use crate::feeds::{EntryRead, FeedId, FeedRead, FeedRules, Feeds, NewFeed, NextPoll, PollOutcome, StoryId};
use crate::handler::{FeedAnswer, FeedLink, FeedListing};
use crate::limits::REDIRECTS_MAX;
use crate::proto::job::{Candidate, Chain, DocKind, Poll, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::io;

/// The feeds of a crawl, between the role that knows them and the doc index that has them asked for.
///
/// ```text
///   begin: every feed is a document, due when the role says        admit: not before, with what it was last time
///   heard: what a poll brought; a download for every new story     record: how it ended; the row is due when the role says
/// ```
///
/// A poll that is redirected goes on with the document that it leads to, and ends with that one's answer.
pub(crate) struct FeedPolls {
    feeds: Feeds,
    /// By document.
    open: RapidHashMap<u32, OpenPoll>,
    counts: FeedCounts,
    /// The role has something for the disk.
    is_dirty: bool,
    /// What the disk refused.
    trouble: Option<io::Error>,
    /// Feeds whose listing the disk did not let us look up.
    unread: RapidHashSet<FeedId>,
    /// Kept for its memory.
    scratch: Vec<(StoryId, Named)>,
}

/// A document that a poll is at.
#[derive(Default)]
struct OpenPoll {
    /// Whether it was asked with conditions, if this process asked.
    asked: Option<bool>,
    hop: Option<Hop>,
    answer: Option<Box<FeedAnswer>>,
    /// Where it leads, if that is to be asked.
    leads_to: Option<NewUrl>,
    /// Feeds that it names, being a page.
    named: Vec<FeedLink>,
}

/// A poll that came to a document by redirects.
#[derive(Clone)]
struct Hop {
    feed: FeedId,
    /// The document of the feed itself.
    doc_id: u32,
    /// The URLs that led here.
    chain: Chain,
    /// All of them were for good.
    for_good: bool,
}

impl Hop {
    fn hops(&self) -> u8 {
        self.chain.0.len().min(usize::from(u8::MAX)) as u8
    }
}

/// Stories go before what links lead to, and feeds before them.
const PRIORITY_STORY: u8 = PRIORITY_USUAL + 1;
const PRIORITY_FEED: u8 = PRIORITY_USUAL + 2;

impl FeedPolls {
    /// Gives every feed of the book its document, due when the role says.
    pub fn begin(feeds: Feeds, index: &mut DocIndex, now_s: u32) -> FeedPolls {
        let mut polls = FeedPolls {
            feeds,
            open: RapidHashMap::default(),
            counts: FeedCounts::default(),
            is_dirty: true,
            trouble: None,
            unread: RapidHashSet::default(),
            scratch: Vec::new(),
        };
        polls.feeds.take_moved_due();
        polls.feeds.mend(now_s);
        let all: Vec<FeedId> = polls.feeds.feeds().map(|feed| feed.id()).collect();
        all.into_iter().for_each(|feed| polls.place(feed, index, now_s));
        polls.take_up_stories(index, now_s);
        polls
    }

    /// Stories that a process was killed over have a download from now on. Also those that have one: a loss of power may have
    /// left them with the number of a document that the index does not know as theirs.
    fn take_up_stories(&mut self, index: &mut DocIndex, now_s: u32) {
        let mut pending = Vec::new();
        let read = self.feeds.pending(|story, url, _| {
            pending.extend(CrawlUrl::from_normal(url).ok().map(|url| (story, url)));
        });
        self.noted(read);
        for (story, url) in pending {
            let origin = Origin { priority: PRIORITY_STORY, ..Origin::new(0, Provenance::link(0)) };
            if let Some(named) = index.name(&url, origin, now_s) {
                self.downloads(story, named, index);
            }
        }
    }

    fn downloads(&mut self, story: StoryId, Named { doc_id, had, .. }: Named, index: &DocIndex) {
        let downloads = self.feeds.downloads(story, doc_id);
        self.noted(downloads);
        if had.is_some() {
            self.follow(doc_id, index);
        }
    }

    /// Stories whose download was answered before go where it was led, and end as that did.
    fn follow(&mut self, mut doc_id: u32, index: &DocIndex) {
        for _ in 0..=REDIRECTS_MAX {
            let Some(found) = self.noted(index.document(doc_id)).flatten() else { return };
            let Some((row, result)) = found.row.and_then(|row| Some((row, row.result?))) else { return };
            // What is asked for tells by itself how it ends.
            if !matches!(row.state, DocState::Success | DocState::Error) {
                return;
            }
            let led_to = found.note.new_url.filter(|_| result == ResultCode::Redirect);
            let there = led_to.and_then(|url| self.noted(index.look(&url)).flatten());
            let Some(there) = there else { return self.fetched(doc_id, result, row.fetched_s) };
            let follows = self.feeds.follows(doc_id, there.doc_id);
            self.noted(follows);
            doc_id = there.doc_id;
        }
        self.fetched(doc_id, ResultCode::RedirectLoop, 0);
    }

    /// Files are not asked for it, but every feed is looked at: not too often.
    pub fn publish(&self, counters: &Counters) {
        self.counts.publish(&self.feeds, counters);
    }

    pub fn is_dirty(&self) -> bool {
        self.is_dirty || self.trouble.is_some()
    }

    pub fn flush(&mut self, sync: bool) -> io::Result<()> {
        self.trouble.take().map_or(Ok(()), Err)?;
        self.feeds.flush(sync)?;
        self.is_dirty = false;
        Ok(())
    }

    pub fn close(&mut self) -> io::Result<()> {
        self.feeds.close()
    }

    pub fn set_rules(&mut self, rules: FeedRules) {
        self.feeds.set_rules(rules);
    }

    /// Feeds that the book has or had.
    pub fn count(&self) -> usize {
        self.feeds.count()
    }

    /// Takes in a feed; it is due at once if it is new.
    pub fn add(&mut self, new: &NamedFeed, index: &mut DocIndex, now_s: u32) -> Option<(FeedId, bool)> {
        self.is_dirty = true;
        let new = NewFeed { url: new.url.as_str(), source: &new.source, title: &new.title };
        let added = self.feeds.add(&new, now_s);
        let added = self.noted(added)?;
        self.settle(index, now_s);
        Some((added.feed, added.is_new))
    }

    /// A list or a page names a feed. One that is known stays as it is: what is gone is not asked again at every start.
    pub fn learn(&mut self, new: &NamedFeed, index: &mut DocIndex, now_s: u32) {
        if self.feeds.by_url(new.url.as_str()).is_none() {
            self.add(new, index, now_s);
        }
    }

    /// Does what somebody asks of a feed.
    pub fn obey(&mut self, word: &FeedWord, index: &mut DocIndex, now_s: u32) -> FeedsTold {
        self.is_dirty = true;
        let mut told = FeedsTold::default();
        let each = |polls: &mut FeedPolls, ids: &[u32], act: &dyn Fn(&mut Feeds, FeedId) -> bool| {
            let mut told = FeedsTold::default();
            for &id in ids {
                match act(&mut polls.feeds, FeedId(id)) {
                    true => told.done.push(id),
                    false => told.unknown.push(id),
                }
            }
            told
        };
        match word {
            FeedWord::Add { feeds } => {
                for new in feeds {
                    match self.add(new, index, now_s) {
                        Some((feed, true)) => told.done.push(feed.0),
                        Some((feed, false)) => told.known.push(feed.0),
                        None => told.refused += 1,
                    }
                }
            }
            FeedWord::Rm { ids } => told = each(self, ids, &|feeds, feed| feeds.remove(feed)),
            FeedWord::Pause { ids } => told = each(self, ids, &|feeds, feed| feeds.pause(feed)),
            FeedWord::Resume { ids } => told = each(self, ids, &|feeds, feed| feeds.resume(feed, now_s)),
            FeedWord::Poll { ids } => told = each(self, ids, &|feeds, feed| feeds.poll(feed, now_s)),
        }
        self.settle(index, now_s);
        told
    }

    /// The doc index follows what was changed in the book.
    fn settle(&mut self, index: &mut DocIndex, now_s: u32) {
        for feed in self.feeds.take_moved_due() {
            self.place(feed, index, now_s);
        }
    }

    /// Gives a feed its document, due when the role says.
    fn place(&mut self, feed: FeedId, index: &mut DocIndex, now_s: u32) {
        let Some(next) = self.feeds.next(feed, now_s) else { return };
        let known = self.feeds.feed(feed).and_then(|known| {
            let doc_id = known
                .doc_id()
                .filter(|&doc_id| index.url(doc_id).is_some_and(|url| url.as_str() == known.url()));
            Some((doc_id, CrawlUrl::from_normal(known.url()).ok()?))
        });
        // What was removed is let go when its turn comes.
        let Some((doc_id, url)) = known else { return };
        let doc_id = doc_id.or_else(|| {
            let provenance = Provenance { kind: DocKind::Feed, ..Provenance::SEED };
            let origin = Origin { priority: PRIORITY_FEED, ..Origin::new(0, provenance) };
            let named = index.name(&url, origin, now_s)?;
            self.feeds.bind(feed, named.doc_id);
            self.is_dirty = true;
            Some(named.doc_id)
        });
        if let Some(doc_id) = doc_id {
            index.set_due(doc_id, due_of(next));
        }
    }

    /// The feed that a document is, or that a poll led from to it.
    fn feed_of(&self, doc_id: u32) -> Option<FeedId> {
        let hop = || self.open.get(&doc_id)?.hop.as_ref().map(|hop| hop.feed);
        self.feeds.at(doc_id).or_else(hop)
    }

    /// A document of a feed is one, however it was discovered.
    pub fn mark(&self, candidate: &mut Candidate) {
        if self.feed_of(candidate.doc_id).is_some() {
            candidate.provenance.kind = DocKind::Feed;
        }
    }

    /// Whether a candidate may be asked for; a feed not before it is due. It goes with what it was the last time.
    pub fn admit(&mut self, candidate: &mut Candidate, index: &mut DocIndex, now_s: u32) -> bool {
        let doc_id = candidate.doc_id;
        let Some(feed) = self.feed_of(doc_id) else {
            // A feed that was removed, or where one led once.
            let is_left = candidate.provenance.kind == DocKind::Feed;
            if is_left {
                index.defer(doc_id, NEVER_S);
            }
            return !is_left;
        };
        let next = self.feeds.next(feed, now_s).map(|next| (due_of(next), next));
        let known = self.feeds.feed(feed).zip(next).filter(|(_, (due_s, _))| *due_s <= now_s);
        let Some((known, (due_s, next))) = known else {
            index.defer(doc_id, next.map_or(NEVER_S, |(due_s, _)| due_s));
            return false;
        };
        let polls = known.polls();
        // What the index was told of later was lost by the role with the end of its files; what a wrong clock dates after now
        // says nothing of that.
        let answered_s = index.answered_s(doc_id);
        let is_lost = answered_s > polls.attempt_s() && answered_s <= now_s;
        if is_lost || next.unconditional {
            candidate.held = None;
        }
        let why = next.why.name().into();
        candidate.poll =
            Some(Box::new(Poll { due_s, why, digest: polls.digest(), checksum: polls.checksum() }));
        (candidate.provenance.kind, candidate.provenance.head_only) = (DocKind::Feed, false);
        // How it was found once is no part of this poll.
        let open = self.open.entry(doc_id).or_default();
        candidate.provenance.hops = open.hop.as_ref().map_or(0, Hop::hops);
        candidate.chain = open.hop.as_ref().map(|hop| Box::new(hop.chain.clone()));
        open.asked = Some(candidate.held.is_some());
        true
    }

    /// Notes what an answer brought: its new stories are downloads from now on.
    pub fn heard(&mut self, found: &mut Found, index: &mut DocIndex, now_s: u32) {
        let Some(mut answer) = found.feed.take() else { return };
        let Some(feed) = self.feed_of(found.doc_id) else { return };
        self.is_dirty = true;
        if let Some(listing) = answer.listing.take() {
            self.read(feed, found.doc_id, listing, answer.digest, index, now_s);
        }
        let named = match answer.fault.is_some() && self.feeds.may_be_page(feed) {
            true => std::mem::take(&mut found.feeds),
            false => Vec::new(),
        };
        let open = self.open.entry(found.doc_id).or_default();
        (open.answer, open.leads_to, open.named) = (Some(answer), found.new_url.take(), named);
    }

    fn read(
        &mut self,
        feed: FeedId,
        via: u32,
        listing: FeedListing,
        digest: u64,
        index: &mut DocIndex,
        now_s: u32,
    ) {
        let read = feed_read(listing, digest);
        let provenance = Provenance::link(0);
        let origin = Origin { priority: PRIORITY_STORY, ..Origin::new(via, provenance) };
        let mut named = std::mem::take(&mut self.scratch);
        let told = self.feeds.read(feed, &read, now_s, |new| {
            let url = CrawlUrl::from_normal(new.url).ok();
            named.extend(url.and_then(|url| Some((new.story, index.name(&url, origin, now_s)?))));
        });
        match self.noted(told) {
            Some(told) => self.counts.read(&told),
            None => drop(self.unread.insert(feed)),
        }
        named.drain(..).for_each(|(story, named)| self.downloads(story, named, index));
        self.scratch = named;
    }

    /// Takes the outcome of a poll; false if it is of anything else.
    pub fn record(&mut self, outcome: &Outcome, index: &mut DocIndex, now_s: u32) -> bool {
        let doc_id = outcome.doc_id;
        let Some(feed) = self.feed_of(doc_id) else { return false };
        let OpenPoll { asked, hop, answer, leads_to, named } = self.open.remove(&doc_id).unwrap_or_default();
        if !index.is_open(doc_id) {
            return true;
        }
        self.is_dirty = true;
        let answer = answer.unwrap_or_default();
        let for_good = hop.as_ref().is_none_or(|hop| hop.for_good) && answer.has_moved;
        let hops = hop.as_ref().map_or(0, Hop::hops);
        if let Some(new) = leads_to.filter(|_| hops < REDIRECTS_MAX) {
            let origin = Origin { priority: PRIORITY_FEED, ..Origin::new(doc_id, new.provenance) };
            let named = index.name(&new.url, origin, now_s);
            // Where another feed is, that one is asked when it is due; and where another poll was led, that one has it.
            let is_free = |named: &Named| {
                self.feeds.at(named.doc_id).is_none()
                    && !self.open.contains_key(&named.doc_id)
                    && !is_page_to_be(named, index)
            };
            if let Some(named) = named.filter(is_free) {
                let url = index.url(doc_id);
                index.record_poll(outcome, NEVER_S);
                index.set_due(named.doc_id, now_s);
                let (origin, mut chain) =
                    hop.map_or((doc_id, Chain::default()), |hop| (hop.doc_id, hop.chain));
                chain.0.push(url.map_or(0, |url| url.fingerprint()));
                let hop = Hop { feed, doc_id: origin, chain, for_good };
                self.open.entry(named.doc_id).or_default().hop = Some(hop);
                return true;
            }
        }
        // The rules of this crawl are no fault of a feed.
        if outcome.result == ResultCode::BlockedAddress {
            let due_s = match hop {
                None => self.feeds.refused_until(feed, now_s),
                Some(_) => 0,
            };
            let reason = outcome.note.as_ref().and_then(|note| note.reason.as_deref());
            index.exclude_until(doc_id, reason.unwrap_or("its address is not allowed"), now_s, due_s);
            if let Some(hop) = hop {
                self.refused(&hop, outcome.result, index, now_s);
            }
            return true;
        }
        let told_s = self.feeds.feed(feed).map_or(0, |feed| feed.polls().attempt_s());
        // A second that has begun counts whole: what is asked for in seconds is kept to the last of them.
        let at_s = outcome.at_s.saturating_add(1);
        let next = match asked.is_none() && told_s == at_s {
            // A process that was killed told the role, and not the index.
            true => self.feeds.next(feed, now_s),
            false => {
                let moved_to =
                    moved_to(outcome, hop.as_ref().is_some_and(|hop| hop.for_good), for_good, index);
                let ended = PollOutcome {
                    digest: answer.digest,
                    max_age_s: answer.max_age_s,
                    retry_after_s: answer.retry_after_s,
                    moved_to: moved_to.as_deref(),
                    had_validators: asked.unwrap_or_else(|| index.is_noted_as_held(doc_id)),
                    not_a_feed: answer.fault.is_some(),
                    ..PollOutcome::new(outcome.result, outcome.status, at_s)
                };
                self.counts.polled(&ended, answer.is_redundant);
                let mut next = self.feeds.polled(feed, &ended, now_s);
                if self.unread.remove(&feed) {
                    self.feeds.read_again(feed);
                    next = self.feeds.next(feed, now_s).unwrap_or(next);
                }
                match named.is_empty() {
                    true => Some(next),
                    false => self.take_page(feed, &named, index, now_s),
                }
            }
        };
        let due_s = next.map_or(NEVER_S, due_of);
        match &hop {
            None => drop(index.record_poll(outcome, due_s)),
            Some(hop) => {
                index.record_poll(outcome, NEVER_S);
                index.set_due(hop.doc_id, due_s);
            }
        }
        // It has moved: from now on it is another document.
        if self.feeds.feed(feed).is_some_and(|known| known.doc_id().is_none()) {
            index.set_due(hop.as_ref().map_or(doc_id, |hop| hop.doc_id), NEVER_S);
            self.place(feed, index, now_s);
        }
        true
    }

    /// What was added as a feed is a page: its feeds are asked from now on.
    fn take_page(
        &mut self,
        page: FeedId,
        named: &[FeedLink],
        index: &mut DocIndex,
        now_s: u32,
    ) -> Option<NextPoll> {
        let named = named.iter().map(|link| (link.url.as_str(), &*link.title));
        let taken = self.feeds.is_page(page, named, now_s);
        self.noted(taken);
        self.settle(index, now_s);
        self.feeds.next(page, now_s)
    }

    /// A download of a story ended, if it is one; where it leads is its download then.
    pub fn story_ended(&mut self, outcome: &Outcome, index: &mut DocIndex) {
        if !self.feeds.awaits(outcome.doc_id) {
            return;
        }
        self.is_dirty = true;
        let new_url = outcome.note.as_ref().and_then(|note| note.new_url.as_deref());
        let there = new_url.filter(|_| outcome.result == ResultCode::Redirect);
        let there = there.and_then(|url| self.noted(index.look(url)).flatten());
        let Some(there) = there else { return self.fetched(outcome.doc_id, outcome.result, outcome.at_s) };
        let follows = self.feeds.follows(outcome.doc_id, there.doc_id);
        self.noted(follows);
        self.follow(there.doc_id, index);
    }

    fn fetched(&mut self, doc_id: u32, result: ResultCode, at_s: u32) {
        let fetched = self.feeds.fetched(doc_id, result, at_s);
        self.noted(fetched);
    }

    /// The rules of this crawl keep a story out, or the place that a poll was led to.
    pub fn left_out(&mut self, doc_id: u32, index: &mut DocIndex, now_s: u32) {
        if let Some(hop) = self.open.get_mut(&doc_id).and_then(|open| open.hop.take()) {
            self.open.remove(&doc_id);
            self.refused(&hop, ResultCode::Other, index, now_s);
        }
        if self.feeds.awaits(doc_id) {
            self.is_dirty = true;
            self.fetched(doc_id, ResultCode::Other, now_s);
        }
    }

    /// The rules of this crawl keep out the place that a poll was led to.
    fn refused(&mut self, hop: &Hop, result: ResultCode, index: &mut DocIndex, now_s: u32) {
        self.is_dirty = true;
        let ended = PollOutcome { is_refused: true, ..PollOutcome::new(result, 0, now_s) };
        let next = self.feeds.polled(hop.feed, &ended, now_s);
        index.set_due(hop.doc_id, due_of(next));
    }

    fn noted<T>(&mut self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.trouble.get_or_insert(error);
                None
            }
        }
    }
}

/// Whether a document is to be fetched as a page, whose links would not be read if it were asked for as a feed.
fn is_page_to_be(named: &Named, index: &DocIndex) -> bool {
    let found = if named.is_new { None } else { index.document(named.doc_id).ok().flatten() };
    found.is_some_and(|found| {
        let is_waiting =
            found.row.is_none_or(|row| matches!(row.state, DocState::Pending | DocState::HandedOut));
        is_waiting && found.discovered.origin.provenance.kind != DocKind::Feed
    })
}

fn due_of(next: NextPoll) -> u32 {
    if next.due_s == 0 { NEVER_S } else { next.due_s }
}

/// Where redirects for good led a poll: all of them, up to this document, or from it to where nobody follows.
fn moved_to(outcome: &Outcome, led_for_good: bool, for_good: bool, index: &mut DocIndex) -> Option<String> {
    let new_url = outcome.note.as_ref().and_then(|note| note.new_url.as_deref());
    match (outcome.result, new_url) {
        (ResultCode::Redirect, Some(new_url)) => for_good.then(|| new_url.to_string()),
        _ if led_for_good => index.url(outcome.doc_id).map(|url| url.to_string()),
        _ => None,
    }
}

/// What a handler read, as the role takes it.
pub(crate) fn feed_read(listing: FeedListing, digest: u64) -> FeedRead {
    let FeedListing { facts, items, checksum, skipped } = listing;
    let entry = |item: crate::handler::FeedItem| EntryRead {
        url: item.url,
        guid: item.guid,
        title: item.title,
        published_s: item.published_s,
    };
    FeedRead { facts, entries: items.into_iter().map(entry).collect(), checksum, digest, skipped }
}
