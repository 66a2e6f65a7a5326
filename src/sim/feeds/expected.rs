use super::listing::Hints;
use super::story_book::Brought;

/// Where a feed is, or where a server leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place of the feed itself, by its number; 0 is where it was added.
    Own(u32),
    /// Where another feed is.
    Of(u32),
}

/// What a server gives to ask with the next time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    pub etag: String,
    pub modified: String,
}

impl Validators {
    pub fn is_empty(&self) -> bool {
        self.etag.is_empty() && self.modified.is_empty()
    }
}

/// How a server answered a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A feed, with its hints.
    Listing(Validators, Hints),
    /// Nothing has changed.
    Same(Validators),
    /// Something else than a feed.
    Page,
    Failed,
    Gone,
    Leads {
        to: Place,
        for_good: bool,
    },
}

/// An answer, and what its head says of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub said: Said,
    pub max_age_s: Option<u32>,
    pub retry_after_s: Option<u32>,
}

/// What polls go by.
#[derive(Clone, Copy, Debug)]
pub struct PollRules {
    pub by_rate: bool,
    pub min_s: u32,
    pub max_s: u32,
    pub plain_s: u32,
    pub hint_max_s: u32,
}

/// What a node that has heard every answer must hold of a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Where it is asked.
    pub place: u32,
    /// Where a poll that is under way leads, by how many steps, and whether all were for good.
    pub hop: Option<(u32, u32, bool)>,
    /// Not before.
    pub due_s: u32,
    pub is_gone: bool,
    pub has_304: bool,
    pub lies: bool,
    /// It is asked, or was, without conditions to see whether 304 is true.
    in_doubt: bool,
    same_run: u32,
    /// The last new story, or the first poll.
    since_s: u32,
    success_s: u32,
    halvings: u32,
    /// Redirects for good in a row, and where to.
    moves: u32,
    moves_to: Option<Place>,
    held: Vec<(u32, Validators)>,
    hints: Hints,
    /// A process was killed over a poll that was led elsewhere: what it brought there may be lost, and is asked for whole.
    is_cut: bool,
    /// A listing with news was heard, and its process killed before it was noted how the poll ended.
    pub has_news: bool,
}

const DAY_S: u32 = 86_400;
/// Retry-After counts up to a day.
const RETRY_AFTER_S_MAX: u32 = DAY_S;
/// After so many 304s in a row one question without conditions is fair.
const SAME_RUN_MIN: u32 = 10;
const HALVINGS_MAX: u32 = 4;

impl Expected {
    pub fn new(now_s: u32) -> Expected {
        Expected {
            place: 0,
            hop: None,
            due_s: now_s,
            is_gone: false,
            has_304: false,
            lies: false,
            in_doubt: false,
            same_run: 0,
            since_s: 0,
            success_s: 0,
            halvings: 0,
            moves: 0,
            moves_to: None,
            held: Vec::new(),
            hints: Hints::default(),
            is_cut: false,
            has_news: false,
        }
    }

    /// What it is to be asked with at a place.
    pub fn held(&self, place: u32) -> Validators {
        let held = self.held.iter().find(|(of, _)| *of == place);
        held.map(|(_, validators)| validators.clone()).unwrap_or_default()
    }

    fn hold(&mut self, place: u32, validators: &Validators) {
        self.held.retain(|(of, _)| *of != place);
        if !validators.is_empty() {
            self.held.push((place, validators.clone()));
        }
    }

    /// The same after a question at this place and time; or what is wrong with it.
    pub fn asked(&self, place: u32, with: &Validators, now_s: u32) -> Result<Expected, String> {
        let mut next = self.clone();
        if self.is_gone {
            return Err("it is gone for good".to_string());
        }
        let at = self.hop.map_or(self.place, |(hop, _, _)| hop);
        if place != at {
            return Err(format!("asked at place {place}, and it is at {at}"));
        }
        if self.hop.is_none() && now_s < self.due_s {
            return Err(format!("{} s too early", self.due_s - now_s));
        }
        let held = self.held(place);
        if *with != held {
            if !with.is_empty() {
                return Err(format!("asked with {with:?}, and it has {held:?}"));
            }
            if self.is_cut && self.hop.is_some() {
                next.is_cut = false;
            } else if self.same_run >= SAME_RUN_MIN && !self.lies {
                (next.in_doubt, next.same_run) = (true, 0);
            } else if !self.lies && !self.in_doubt {
                return Err(format!("asked without {held:?}"));
            }
        } else if self.lies && !held.is_empty() {
            return Err("asked with conditions, and its 304s are known to lie".to_string());
        }
        Ok(next)
    }

    /// The same without a poll that was under way: nobody knows of it any more.
    pub fn without_hop(&self) -> Expected {
        Expected { hop: None, is_cut: true, ..self.clone() }
    }

    /// The answer to a question at `place` has come.
    pub fn answered(
        &mut self,
        place: u32,
        answer: &Answer,
        brought: &Brought,
        was_conditional: bool,
        at_s: u32,
        rules: &PollRules,
    ) {
        let hop = self.hop.take();
        let (hops, for_good) = hop.map_or((0, true), |(_, hops, for_good)| (hops, for_good));
        let mut leads_to = None;
        let (mut is_same, mut has_listing, mut is_led) = (false, false, false);
        match &answer.said {
            Said::Listing(validators, hints) => {
                self.hold(place, validators);
                self.hints = *hints;
                has_listing = true;
            }
            Said::Same(validators) => {
                let mut held = self.held(place);
                if !validators.etag.is_empty() {
                    held.etag.clone_from(&validators.etag);
                }
                if !validators.modified.is_empty() {
                    held.modified.clone_from(&validators.modified);
                }
                self.hold(place, &held);
                is_same = was_conditional;
            }
            Said::Page => self.hold(place, &Validators::default()),
            Said::Failed | Said::Gone => {}
            Said::Leads { to: Place::Own(to), for_good: step } => {
                // Back to where it came from is no way.
                if *to != self.place && *to != place {
                    self.hop = Some((*to, hops + 1, for_good && *step));
                    return;
                }
            }
            Said::Leads { to, for_good: step } => {
                is_led = true;
                leads_to = Some(*to).filter(|_| for_good && *step);
            }
        }
        self.is_cut = false;
        let had = is_same || has_listing;
        if hop.is_some() && for_good && had {
            leads_to = Some(Place::Own(place));
        }
        self.note(is_same, has_listing, brought, was_conditional, at_s);
        let failed = !had && !is_led;
        self.in_doubt &= failed;
        self.due_s = self.next(answer, failed, at_s, rules);
        self.count_moves(leads_to);
        self.is_gone |= answer.said == Said::Gone;
    }

    fn note(&mut self, is_same: bool, has_listing: bool, brought: &Brought, conditional: bool, at_s: u32) {
        if self.since_s == 0 {
            self.since_s = at_s;
        }
        if is_same {
            (self.has_304, self.same_run) = (true, self.same_run + 1);
        } else if has_listing {
            let is_late = brought.oldest_s.is_some_and(|oldest_s| oldest_s < self.success_s);
            self.lies |= self.in_doubt && !conditional && is_late;
            self.same_run = 0;
        }
        if is_same || has_listing {
            self.success_s = at_s;
        }
        let had = is_same || has_listing;
        if brought.new > 0 || (had && std::mem::take(&mut self.has_news)) {
            self.has_news = false;
            self.since_s = at_s;
            self.halvings = match brought.gap {
                true => (self.halvings + 1).min(HALVINGS_MAX),
                false => self.halvings.saturating_sub(1),
            };
        }
    }

    fn count_moves(&mut self, leads_to: Option<Place>) {
        self.moves = if leads_to.is_some() && self.moves_to == leads_to { self.moves + 1 } else { 1 };
        self.moves_to = leads_to;
        if leads_to.is_none() || self.moves < 2 {
            return;
        }
        (self.moves, self.moves_to) = (0, None);
        match leads_to {
            Some(Place::Own(place)) => self.place = place,
            // The two are one from now on.
            _ => self.is_gone = true,
        }
    }

    /// due = last attempt + (last attempt − last new story) + 5 min, at most a week; then hints and floors.
    fn next(&self, answer: &Answer, failed: bool, at_s: u32, rules: &PollRules) -> u32 {
        let silence_s = at_s.saturating_sub(self.since_s);
        // By its rate nobody but the role knows when; the bounds hold.
        let policy_s = if rules.by_rate && !failed { 0 } else { silence_s + rules.min_s };
        let mut wait_s = (policy_s >> self.halvings).min(rules.max_s).max(rules.min_s);
        for hint_s in [self.hints.ttl_s, self.hints.period_s, answer.max_age_s].into_iter().flatten() {
            wait_s = wait_s.max(hint_s.min(rules.hint_max_s));
        }
        wait_s = wait_s.max(answer.retry_after_s.unwrap_or(0).min(RETRY_AFTER_S_MAX));
        if !self.has_304 || self.lies {
            wait_s = wait_s.max(rules.plain_s);
        }
        self.hints.outside(at_s + wait_s)
    }
}
