use super::target::{SendError, Target};
use super::walk::{Walk, WalkError};
use crate::base::{Now, counted, shown};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::Counters;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::groups::{FOLLOWERS, Group};
use crate::engine::runtime::health::Health;
use crate::engine::runtime::notices::Notice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies the documents of a store to one target, batch by batch.
pub(super) struct Follower {
    walk: Walk,
    target: Box<dyn Target>,
    /// What is to be told, oldest first.
    notices: Vec<Notice>,
    /// The cursor could not be written, which was told.
    is_unsaved: bool,
    /// A walk needs to look before it finds more.
    has_looked: bool,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many documents are there.
    Copied(u64),
    /// There is nothing to copy before something is sealed.
    AllThere,
}

impl Follower {
    pub fn new(walk: Walk, target: Box<dyn Target>) -> Follower {
        Follower { walk, target, notices: Vec::new(), is_unsaved: false, has_looked: false }
    }

    pub fn name(&self) -> &'static str {
        self.target.name()
    }

    pub fn walk(&self) -> &Walk {
        &self.walk
    }

    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Looks which segments there are.
    pub fn look(&mut self) -> Result<(), WalkError> {
        let gone = self.walk.look()?;
        self.has_looked = true;
        if gone > 0 {
            let (name, segments) = (self.name(), counted(gone, "segment"));
            let text = format!(
                "content: {segments} went, or lost records, before {name} had them: what the store let go is missing there, \
                 and what it packed follows (see bytes_max and history of [store], and why {name} is behind)"
            );
            self.tell(Event::ContentGone, vec![("segments", gone.into())], text);
        }
        self.save();
        Ok(())
    }

    /// Copies one batch.
    pub fn step(&mut self) -> Result<Step, SendError> {
        if !self.has_looked {
            return Ok(Step::AllThere);
        }
        let batch = self.walk.next();
        for cause in self.walk.troubles() {
            let text = format!("content: {}: {cause}", self.name());
            self.tell(Event::ContentTrouble, vec![("cause", cause.into())], text);
        }
        let Some(batch) = batch else {
            self.save();
            return Ok(Step::AllThere);
        };
        let sent = self.target.send(&batch)?;
        for (at, cause) in &sent.refused {
            let url = &batch.documents[*at].located.record.url;
            let text = format!("content: {} refuses {}: {cause}", self.name(), shown(url, 200));
            self.tell(Event::ContentRefused, vec![("url", url.into()), ("cause", cause.into())], text);
        }
        self.walk.confirm(&batch, sent.refused.len());
        self.save();
        Ok(Step::Copied((batch.documents.len() - sent.refused.len()) as u64))
    }

    /// Whether the segments have to be looked at again before more can be found.
    pub fn must_look(&self) -> bool {
        !self.has_looked || self.walk.is_lost()
    }

    fn save(&mut self) {
        match self.walk.save() {
            Ok(()) => self.is_unsaved = false,
            Err(cause) if !std::mem::replace(&mut self.is_unsaved, true) => {
                let cause = format!("the cursor of {} cannot be written: {cause}", self.name());
                let text =
                    format!("content: {cause} (what is copied meanwhile is copied again by the next run)");
                self.tell(Event::ContentTrouble, vec![("cause", cause.into())], text);
            }
            Err(_) => {}
        }
    }

    fn tell(&mut self, event: Event, mut fields: crate::engine::runtime::notices::Fields, text: String) {
        fields.insert(0, ("follower", self.name().into()));
        self.notices.push(Notice::new(event, fields, text));
    }
}

/// How often it is looked for more.
const LOOK_MS: u64 = 1_000;
/// And at how many segments in a millisecond of it; a look takes some microseconds for each.
const LOOKED_AT_PER_MS: u64 = 10;
/// Pauses after the other side took nothing.
const BACK_OFF_MIN_MS: u64 = 250;
const BACK_OFF_MAX_MS: u64 = 30_000;

/// A follower on a thread of its own, which nobody waits for but the end of a crawl.
pub(crate) struct FollowerActor {
    follower: Follower,
    health: Arc<Health>,
    counters: Arc<Counters>,
    look_at: Now,
    retry_at: Option<Now>,
    back_off_ms: u64,
    /// That it does not go on was told, and it did not since.
    is_away: bool,
    is_ending: bool,
}

impl FollowerActor {
    pub fn new(follower: Follower, health: Arc<Health>, counters: Arc<Counters>) -> FollowerActor {
        FollowerActor {
            follower,
            health,
            counters,
            look_at: Now::ZERO,
            retry_at: None,
            back_off_ms: BACK_OFF_MIN_MS,
            is_away: false,
            is_ending: false,
        }
    }

    fn work(&mut self, now: Now) -> Result<Step, String> {
        // Also while the other side is away: what goes meanwhile is seen to go.
        if self.look_at <= now || self.is_ending && self.follower.must_look() {
            let segments = self.follower.walk().cursor().segments();
            self.look_at = now.plus_ms(LOOK_MS.max(segments / LOOKED_AT_PER_MS));
            self.follower.look().map_err(|error| error.to_string())?;
        }
        if !self.is_ending && self.retry_at.is_some_and(|at| at > now) {
            return Ok(Step::AllThere);
        }
        self.follower.step().map_err(|SendError(cause)| cause)
    }

    fn failed(&mut self, now: Now, cause: &str) {
        self.retry_at = Some(now.plus_ms(self.back_off_ms));
        self.back_off_ms = (self.back_off_ms * 2).min(BACK_OFF_MAX_MS);
        if !std::mem::replace(&mut self.is_away, true) {
            let name = self.follower.name();
            let text = format!(
                "content: nothing goes to {name}: {cause} (the store has it all, and it is tried again)"
            );
            self.health.tell(
                Event::ContentAway,
                vec![("follower", name.into()), ("cause", cause.into())],
                text,
            );
        }
    }

    fn went(&mut self) {
        (self.retry_at, self.back_off_ms) = (None, BACK_OFF_MIN_MS);
        if std::mem::replace(&mut self.is_away, false) {
            let name = self.follower.name();
            let text = format!("content: documents go to {name} again");
            self.health.tell(Event::ContentBack, vec![("follower", name.into())], text);
        }
    }

    fn publish(&mut self) {
        self.follower.notices().into_iter().for_each(|notice| self.health.notices.put(notice));
        let cursor = self.follower.walk().cursor();
        let Some(at) = FOLLOWERS.iter().position(|name| *name == self.follower.name()) else { return };
        self.counters.set_one(Group::ContentCopied, at, cursor.sent);
        self.counters.set_one(Group::ContentRefused, at, cursor.refused);
        self.counters.set_one(Group::ContentWaiting, at, cursor.waiting());
        self.counters.set_one(Group::ContentGone, at, cursor.gone);
    }

    /// The process ends.
    fn finished(&mut self) -> Turned {
        let (name, waiting) = (self.follower.name(), self.follower.walk().cursor().waiting());
        if waiting > 0 {
            let segments = counted(waiting, "segment");
            let text = format!(
                "content: {segments} wait for {name} (the next run goes on, or nephila store follow)"
            );
            let fields = vec![("follower", name.into()), ("segments", waiting.into())];
            self.health.tell(Event::ContentBehind, fields, text);
        }
        Turned::Finished
    }
}

impl Actor for FollowerActor {
    fn turn(&mut self, now: Now) -> Turned {
        let is_over = self.is_ending && self.health.in_haste.load(Ordering::Acquire);
        if is_over {
            // What was sealed at the end is told to wait, too.
            let _ = self.follower.look();
            self.publish();
            return self.finished();
        }
        let worked = self.work(now);
        let turned = match &worked {
            Ok(Step::Copied(_)) => {
                self.went();
                Turned::Busy
            }
            Ok(Step::AllThere) if self.is_ending && self.follower.must_look() => Turned::Busy,
            Ok(Step::AllThere) if self.is_ending => self.finished(),
            Ok(Step::AllThere) => {
                self.retry_at.take_if(|at| *at <= now);
                Turned::IDLE
            }
            Err(cause) => {
                self.failed(now, cause);
                if self.is_ending { self.finished() } else { Turned::IDLE }
            }
        };
        self.publish();
        turned
    }

    fn next_due(&self) -> Option<Now> {
        Some(self.retry_at.map_or(self.look_at, |at| at.min(self.look_at)))
    }

    fn has_messages(&self) -> bool {
        false
    }

    /// What was sealed until now is looked at once more.
    fn end(&mut self, now: Now) {
        self.is_ending = true;
        self.look_at = now;
    }
}
