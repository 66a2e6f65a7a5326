use crate::base::Now;
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::search::{SearchError, SearchSource, StoryIndex};
use std::path::PathBuf;
use std::sync::Arc;

/// Stories of one turn, and of one commit.
const TURN_STORIES: u64 = 200;
const COMMIT_STORIES: u64 = 20_000;
/// A story is found this long after its text was there, or sooner.
const COMMIT_MS: u64 = 5_000;
/// How often it is looked for more.
const LOOK_MS: u64 = 1_000;
/// And after what may pass by itself.
const RETRY_MS: u64 = 30_000;
/// A process that ends takes so many more; the next one goes on with the rest.
const LAST_STORIES: u64 = 10_000;

/// Indexes what a source has, as it comes. Nothing waits for it, and what it cannot do harms nobody else: whatever it did not
/// commit it reads again.
pub struct IndexingActor<S> {
    path: PathBuf,
    source: S,
    index: Option<StoryIndex>,
    look_at: Now,
    /// By when what was added is to be committed, and how much it is.
    commit_at: Option<Now>,
    uncommitted: u64,
    /// Nothing is merged before then.
    merge_at: Now,
    /// An error was told, and nothing worked since.
    is_told: bool,
    /// The index is of no use until somebody makes it anew.
    is_over: bool,
    /// Stories that may still be taken once the end has come.
    last: Option<u64>,
    health: Arc<Health>,
}

impl<S: SearchSource> IndexingActor<S> {
    pub fn new(path: PathBuf, source: S, health: Arc<Health>) -> IndexingActor<S> {
        IndexingActor {
            path,
            source,
            index: None,
            look_at: Now::ZERO,
            commit_at: None,
            uncommitted: 0,
            merge_at: Now::ZERO,
            is_told: false,
            is_over: false,
            last: None,
            health,
        }
    }

    /// Takes some, commits if it is time, merges a part of what is to be merged, and says how many were taken and whether more
    /// is to be merged. What ends merges nothing.
    fn work(&mut self, now: Now) -> Result<(u64, bool), SearchError> {
        let mut index = match self.index.take() {
            Some(index) => index,
            None => StoryIndex::open(&self.path)?,
        };
        let taken = index.take(&mut self.source, TURN_STORIES.min(self.last.unwrap_or(u64::MAX)))?;
        self.uncommitted += taken;
        if taken > 0 {
            self.commit_at.get_or_insert(now.plus_ms(COMMIT_MS));
        }
        let is_last = self.last.is_some_and(|last| taken < TURN_STORIES || last <= taken);
        if is_last || self.uncommitted >= COMMIT_STORIES || self.commit_at.is_some_and(|at| at <= now) {
            index.commit()?;
            (self.commit_at, self.uncommitted) = (None, 0);
        }
        let may_merge = self.last.is_none() && self.merge_at <= now;
        let merges = match may_merge.then(|| index.tend()) {
            // What comes is indexed all the same.
            Some(Err(error)) if error.is_passing() => {
                self.merge_at = now.plus_ms(RETRY_MS);
                false
            }
            tended => tended.transpose()?.unwrap_or(false),
        };
        self.index = Some(index);
        Ok((taken, merges))
    }

    fn failed(&mut self, now: Now, error: &SearchError) {
        // What was not committed is read again.
        (self.index, self.commit_at, self.uncommitted) = (None, None, 0);
        self.is_over = !error.is_passing();
        self.look_at = now.plus_ms(RETRY_MS);
        if !std::mem::replace(&mut self.is_told, true) {
            let cause = error.to_string();
            let text = format!("search: stories are not indexed: {cause}");
            self.health.tell(Event::SearchFails, vec![("cause", (&cause).into())], text);
        }
    }
}

impl<S: SearchSource> Actor for IndexingActor<S> {
    fn turn(&mut self, now: Now) -> Turned {
        let is_ending = self.last.is_some();
        if self.is_over || (!is_ending && self.look_at > now) {
            return Turned::finished_if(is_ending);
        }
        match self.work(now) {
            Ok((taken, merges)) => {
                if std::mem::replace(&mut self.is_told, false) {
                    self.health.tell(Event::SearchGoesOn, vec![], "search: stories are indexed again");
                }
                let has_more = taken == TURN_STORIES || merges;
                self.look_at = if has_more { now } else { now.plus_ms(LOOK_MS) };
                if let Some(last) = &mut self.last {
                    *last -= taken;
                    return if has_more && *last > 0 { Turned::Busy } else { Turned::Finished };
                }
                Turned::busy_if(has_more)
            }
            Err(error) => {
                self.failed(now, &error);
                Turned::finished_if(is_ending)
            }
        }
    }

    fn next_due(&self) -> Option<Now> {
        (!self.is_over).then_some(self.look_at)
    }

    fn has_messages(&self) -> bool {
        false
    }

    fn end(&mut self, _: Now) {
        self.last = Some(LAST_STORIES);
    }
}
