use super::hands::Hands;
use super::job::{Job, failed_text};
use super::waiting::{FetchedStory, Ledger, Pages, StoryWork};
use crate::base::{Now, SortedSet};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::groups::Group;
use crate::extractor::{StoryText, Texts};
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Makes the texts of stories, on the thread that waits for those who do it.
pub(crate) struct Extraction<L, P, H> {
    ledger: L,
    pages: P,
    hands: H,
    texts: Texts,
    /// Texts of older rules are made again.
    rules_min: u16,
    /// All stories before it have what they will have.
    low: u32,
    /// Where the ledger is looked at next; up to here it was in this round.
    at: u32,
    /// Whether all that were looked at in this round are settled.
    is_run: bool,
    waiting: VecDeque<FetchedStory>,
    /// Given, and not back yet.
    open: SortedSet<u32>,
    unsynced: u32,
    sync_at: Option<Now>,
    look_at: Now,
    /// Stories that were passed over in this round.
    passed: u64,
    /// When the ledger is looked at from its beginning again.
    whole_at: Now,
    /// Nothing was found in the last round.
    is_idle: bool,
    refusal: Option<io::Error>,
    /// What could not be written.
    unwritten: Option<StoryText>,
    is_ending: bool,
    counters: Arc<Counters>,
}

/// Stories that are read ahead of the hands.
const AHEAD_MAX: usize = 256;
/// Stories that one look at the ledger passes over.
const LOOK_MAX: u32 = 65_536;
const LOOK_US: u64 = 2_000_000;
const LOOK_STORY_US: u64 = 100;
const WHOLE_US: u64 = 3_600_000_000;
const SYNC_US: u64 = 1_000_000;
const SYNC_TEXTS: u32 = 256;

impl<L: Ledger, P: Pages, H: Hands> Extraction<L, P, H> {
    pub fn new(ledger: L, pages: P, hands: H, texts: Texts) -> Extraction<L, P, H> {
        Extraction {
            ledger,
            pages,
            hands,
            texts,
            rules_min: 0,
            low: 0,
            at: 0,
            is_run: true,
            waiting: VecDeque::new(),
            open: SortedSet::new(),
            unsynced: 0,
            sync_at: None,
            look_at: Now::ZERO,
            passed: 0,
            whole_at: Now::from_us(WHOLE_US),
            is_idle: false,
            refusal: None,
            unwritten: None,
            is_ending: false,
            counters: Arc::default(),
        }
    }

    /// Makes texts of rules before these again.
    pub fn redo_before(mut self, rules: u16) -> Self {
        self.rules_min = rules;
        self
    }

    /// Whether no story was waiting when they were last looked at, and none is open.
    pub fn is_done(&self) -> bool {
        self.is_idle && self.waiting.is_empty() && self.open.is_empty() && self.unwritten.is_none()
    }

    /// Whether there is nobody left to do anything: too many threads did not come back.
    pub fn is_stuck(&self) -> bool {
        self.hands.left().1 && self.hands.free() == 0 && self.open.is_empty()
    }

    /// Why it was last refused something.
    pub fn take_refusal(&mut self) -> io::Error {
        self.refusal.take().unwrap_or_else(|| io::Error::other("nobody knows why"))
    }

    /// Counts in the table of its thread.
    pub fn counting_in(mut self, counters: Arc<Counters>) -> Self {
        self.counters = counters;
        self
    }

    /// Texts made, and stories that have none for a reason.
    pub fn made(&self) -> (u64, u64) {
        let figures = self.counters.figures();
        let texts = figures.all(Group::Texts);
        (texts[0], texts[1])
    }

    /// Looks at the ledger or the store that failed.
    pub fn refused(&self) -> u64 {
        self.counters.get(Counter::ExtractionRefused)
    }

    /// Takes what the hands have made.
    fn take(&mut self, now: Now) -> io::Result<u64> {
        let mut taken = 0;
        while let Some(text) = self.unwritten.take().or_else(|| self.hands.take(now)) {
            self.open.remove(&text.story);
            self.keep(text, now)?;
            taken += 1;
        }
        self.counters.set(Counter::ExtractorsLeft, self.hands.left().0 as u64);
        Ok(taken)
    }

    fn keep(&mut self, text: StoryText, now: Now) -> io::Result<()> {
        if let Err(cause) = self.texts.append(&text) {
            self.unwritten = Some(text);
            return Err(cause);
        }
        self.counters.add_one(Group::Texts, usize::from(text.failed.is_some()));
        self.unsynced += 1;
        self.sync_at.get_or_insert(now.plus_us(SYNC_US));
        Ok(())
    }

    fn sync(&mut self, now: Now) -> io::Result<()> {
        let is_due = self.sync_at.is_some_and(|due| now >= due) || self.unsynced >= SYNC_TEXTS;
        if self.unsynced > 0 && (is_due || self.is_ending) {
            self.texts.sync()?;
            (self.unsynced, self.sync_at) = (0, None);
        }
        Ok(())
    }

    /// Looks for stories that wait; from the first that may, once the end was reached.
    fn look(&mut self, now: Now) -> io::Result<()> {
        if !self.waiting.is_empty() || now < self.look_at {
            return Ok(());
        }
        let Extraction { ledger, texts, waiting, open, low, at, is_run, rules_min, .. } = self;
        let (mut passed, mut failed, mut is_whole) = (0, None, true);
        ledger.each(*at, &mut |story, work| {
            passed += 1;
            let is_settled = match work {
                StoryWork::Settled => true,
                StoryWork::Pending => false,
                StoryWork::Fetched(_) if open.contains(&story) => false,
                StoryWork::Fetched(fetched) => match texts.has(story, *rules_min) {
                    Ok(true) => true,
                    Ok(false) => {
                        waiting.push_back(fetched);
                        false
                    }
                    Err(cause) => {
                        failed = Some(cause);
                        false
                    }
                },
            };
            *at = story.saturating_add(1);
            *is_run &= is_settled;
            if *is_run {
                *low = *at;
            }
            if waiting.len() >= AHEAD_MAX || passed >= LOOK_MAX || failed.is_some() {
                is_whole = false;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.passed += u64::from(passed);
        if is_whole {
            if now >= self.whole_at {
                (self.low, self.whole_at) = (0, now.plus_us(WHOLE_US));
            }
            (self.at, self.is_run) = (self.low, true);
            self.is_idle = self.waiting.is_empty();
            if self.is_idle {
                // A long round is not begun again as soon as a short one.
                self.look_at = now.plus_us(LOOK_US + self.passed * LOOK_STORY_US);
            }
            self.passed = 0;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Reads pages of stories that wait, as many as there are hands.
    fn give(&mut self, now: Now) -> io::Result<bool> {
        let count = self.hands.free().min(self.waiting.len());
        if count == 0 {
            return Ok(false);
        }
        let stories: Vec<FetchedStory> = self.waiting.drain(..count).collect();
        let Extraction { pages, hands, open, .. } = self;
        let mut missing = Vec::new();
        let read = pages.read(&stories, &mut |index, page| {
            let story = stories[index].clone();
            match page {
                Some(page) => {
                    open.insert(story.story);
                    hands.give(Job { story, page }, now);
                }
                None => missing.push(failed_text(&story, "its page is not in the store")),
            }
        });
        for text in missing {
            self.keep(text, now)?;
        }
        // The ledger has those that were not shown, for the next round.
        read?;
        Ok(true)
    }

    fn worked(&mut self, now: Now) -> io::Result<Turned> {
        let taken = self.take(now)?;
        if self.is_ending {
            self.sync(now)?;
            return Ok(Turned::Finished);
        }
        self.look(now)?;
        let given = self.give(now)?;
        self.sync(now)?;
        Ok(Turned::busy_if(given || taken > 0))
    }
}

impl<L: Ledger, P: Pages, H: Hands> Actor for Extraction<L, P, H> {
    fn turn(&mut self, now: Now) -> Turned {
        match self.worked(now) {
            Ok(turned) => turned,
            // What is not written is made again by the next process.
            Err(_) if self.is_ending => Turned::Finished,
            Err(cause) => {
                self.refusal = Some(cause);
                self.counters.add(Counter::ExtractionRefused, 1);
                self.look_at = self.look_at.max(now.plus_us(LOOK_US));
                Turned::Stuck
            }
        }
    }

    fn next_due(&self) -> Option<Now> {
        let look = self.waiting.is_empty().then_some(self.look_at);
        [look, self.sync_at, self.hands.next_due()].into_iter().flatten().min()
    }

    /// Whoever is done rings; what is there is found by a turn.
    fn has_messages(&self) -> bool {
        false
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}
