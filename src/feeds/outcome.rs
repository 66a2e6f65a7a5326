use super::next_poll::{HALVINGS_MAX, Said, next_poll, plain_s};
use super::polls::Polls;
use super::read::{ReadTold, Redundant};
use super::reason::PollReason;
use super::rules::FeedRules;
use super::windows::outside;
use crate::base::CLOCK_SET_S;
use crate::proto::record::ResultCode;

/// How a poll ended.
#[derive(Clone, Copy, Debug)]
pub struct PollOutcome<'a> {
    pub result: ResultCode,
    /// 0 if there was no answer.
    pub status: u16,
    pub at_s: u32,
    /// Of the body; 0 if there was none.
    pub digest: u64,
    /// Of Cache-Control, or what Expires comes to.
    pub max_age_s: Option<u32>,
    pub retry_after_s: Option<u32>,
    /// Where a redirection for good (301, 308) leads, in normal form.
    pub moved_to: Option<&'a str>,
    /// It was asked with conditions (If-None-Match, If-Modified-Since).
    pub had_validators: bool,
    /// A document came, and it is no feed.
    pub not_a_feed: bool,
    /// The rules of this crawl keep out the place that it led to: no fault of the feed.
    pub is_refused: bool,
}

impl PollOutcome<'_> {
    pub fn new(result: ResultCode, status: u16, at_s: u32) -> PollOutcome<'static> {
        PollOutcome {
            result,
            status,
            at_s,
            digest: 0,
            max_age_s: None,
            retry_after_s: None,
            moved_to: None,
            had_validators: false,
            not_a_feed: false,
            is_refused: false,
        }
    }
}

/// 304s in a row after which a silence that is long for the feed is doubted.
const DOUBT_RUN: u16 = 10;
/// How long, in mean times between two stories.
const DOUBT_GAPS: u32 = 8;
/// How much a new story counts in the mean time between two, in parts of 16.
const MEAN_WEIGHT: u64 = 1;
/// Redirections for good, to the same place in a row, that move a feed.
const MOVES_MIN: u8 = 2;

/// What a poll does to a feed, beside its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// It is gone for good.
    Ends,
    /// It has moved to where the redirection leads.
    Moves,
}

/// Notes how a poll ended, and when the next one is. `read` is what its listing was, if one was read.
pub(super) fn note(
    polls: &mut Polls,
    outcome: &PollOutcome<'_>,
    read: Option<&ReadTold>,
    rules: &FeedRules,
) -> Effect {
    if outcome.is_refused {
        return note_refused(polls, outcome, rules);
    }
    let at_s = outcome.at_s;
    let was_in_doubt = std::mem::take(&mut polls.in_doubt);
    // Nobody asked whether something had changed: such a 304 says nothing.
    let is_same = outcome.result == ResultCode::NotModified && outcome.had_validators;
    let has_listing = matches!(outcome.result, ResultCode::Ok | ResultCode::TooLarge) && !outcome.not_a_feed;
    let had = is_same || has_listing;
    let moved = outcome.moved_to.filter(|_| outcome.result == ResultCode::Redirect || had);
    if polls.since_s == 0 || polls.since_s > at_s {
        polls.since_s = at_s;
    }
    let silence_s = at_s - polls.since_s;
    polls.attempt_s = at_s;
    polls.result = outcome.result as u8;
    polls.status = outcome.status;
    polls.polls = polls.polls.saturating_add(1);
    polls.max_age_s = outcome.max_age_s.unwrap_or(0).min(rules.hint_max_s);
    let failed = !had && outcome.result != ResultCode::Redirect;
    match failed {
        true => {
            polls.failed = polls.failed.saturating_add(1);
            polls.failures = polls.failures.saturating_add(1);
            polls.failing_s = if polls.failing_s == 0 { at_s } else { polls.failing_s };
            polls.in_doubt = was_in_doubt;
        }
        false => (polls.failures, polls.failing_s) = (0, 0),
    }
    let told = read.copied().unwrap_or_default();
    if is_same {
        polls.not_modified = polls.not_modified.saturating_add(1);
        polls.same_run = polls.same_run.saturating_add(1);
    } else if has_listing {
        if told.new > 0 && was_in_doubt && !outcome.had_validators && told.is_late_news {
            polls.lies = true;
        }
        polls.same_run = 0;
        let is_known = outcome.digest != 0 && outcome.digest == polls.digest && read.is_none();
        if is_known || told.redundant.is_some() {
            polls.redundant = polls.redundant.saturating_add(1);
        }
        if outcome.digest != 0 {
            polls.digest = outcome.digest;
        }
    }
    if had {
        polls.success_s = at_s;
    }
    if had && std::mem::take(&mut polls.has_news) {
        learn_rate(polls, &told, silence_s);
        polls.since_s = at_s;
        match told.gap {
            true => polls.halvings = (polls.halvings + 1).min(HALVINGS_MAX),
            false => polls.halvings = polls.halvings.saturating_sub(1),
        }
    }
    let silence_s = at_s - polls.since_s;
    if polls.same_run >= DOUBT_RUN
        && polls.mean_gap_s > 0
        && silence_s > polls.mean_gap_s.saturating_mul(DOUBT_GAPS)
    {
        (polls.in_doubt, polls.same_run) = (true, 0);
    }
    let said = Said { failed, max_age_s: outcome.max_age_s, retry_after_s: outcome.retry_after_s };
    (polls.due_s, polls.why) = next_poll(polls, &said, rules);
    if outcome.status == 410 && failed {
        (polls.due_s, polls.why) = (0, PollReason::Gone);
        return Effect::Ends;
    }
    moves(polls, moved)
}

/// Counts redirections for good to one place.
fn moves(polls: &mut Polls, moved_to: Option<&str>) -> Effect {
    let Some(to) = moved_to else {
        (polls.moves, polls.moves_to) = (0, 0);
        return Effect::None;
    };
    let to = xxhash_rust::xxh3::xxh3_64(to.as_bytes()) as u32;
    polls.moves = if polls.moves_to == to { polls.moves.saturating_add(1) } else { 1 };
    polls.moves_to = to;
    match polls.moves >= MOVES_MIN {
        true => {
            (polls.moves, polls.moves_to) = (0, 0);
            polls.why = PollReason::Moved;
            Effect::Moves
        }
        false => Effect::None,
    }
}

/// The mean time between two stories, the later ones counting more.
fn learn_rate(polls: &mut Polls, told: &ReadTold, silence_s: u32) {
    let sample_s = match polls.mean_gap_s {
        // The first listing was not waited for.
        0 if silence_s == 0 => told.mean_gap_s.unwrap_or(0),
        _ => silence_s / told.new.max(1),
    };
    if polls.mean_gap_s == 0 {
        polls.mean_gap_s = sample_s;
        return;
    }
    let mut mean = u64::from(polls.mean_gap_s);
    for _ in 0..told.new.min(16) {
        mean = (mean * (16 - MEAN_WEIGHT) + u64::from(sample_s) * MEAN_WEIGHT) / 16;
    }
    polls.mean_gap_s = (mean as u32).max(1);
}

/// Notes a poll that the rules of this crawl ended. It neither failed nor succeeded, and the next one is as far away as this
/// one was.
fn note_refused(polls: &mut Polls, outcome: &PollOutcome<'_>, rules: &FeedRules) -> Effect {
    let wait_s = interval_s(polls, rules);
    polls.attempt_s = outcome.at_s;
    (polls.result, polls.status) = (outcome.result as u8, outcome.status);
    polls.polls = polls.polls.saturating_add(1);
    (polls.moves, polls.moves_to) = (0, 0);
    let (due_s, _) = outside(outcome.at_s.saturating_add(wait_s), &polls.hints());
    (polls.due_s, polls.why) = (due_s, PollReason::Refused);
    Effect::None
}

/// The time between the last poll and the next, within the bounds of today.
pub(super) fn interval_s(polls: &Polls, rules: &FeedRules) -> u32 {
    let interval_s = match polls.attempt_s {
        0 => 0,
        attempt_s => polls.due_s.saturating_sub(attempt_s),
    };
    let least_s = rules.poll_min_s.max(plain_s(polls, rules).unwrap_or(0));
    interval_s.min(rules.poll_max_s).max(least_s)
}

/// Mends what a clock that was ahead has written: nothing is dated after now, and no poll is further away than it would be
/// by the figures of today. False if there is nothing to mend, or the clock was never set.
pub(super) fn mend(polls: &mut Polls, now_s: u32, rules: &FeedRules) -> bool {
    // The second in which a poll ended counts whole: the next one, at the latest, is not the future.
    let is_ahead = |at_s: u32| at_s > now_s.saturating_add(1);
    if u64::from(now_s) < CLOCK_SET_S {
        return false;
    }
    // These are due from the moment that they are told.
    let is_at_once = matches!(polls.why, PollReason::New | PollReason::Asked | PollReason::Again);
    let is_wrong = is_at_once && is_ahead(polls.due_s);
    if is_wrong {
        polls.due_s = now_s;
    }
    if !is_ahead(polls.attempt_s) {
        return is_wrong;
    }
    let interval_s = polls.due_s.saturating_sub(polls.attempt_s);
    if is_ahead(polls.since_s) {
        // By one clock, right or wrong, a silence is as long as it is.
        polls.since_s = now_s.saturating_sub(polls.attempt_s.saturating_sub(polls.since_s));
    }
    polls.attempt_s = now_s;
    polls.success_s = polls.success_s.min(now_s);
    polls.failing_s = polls.failing_s.min(now_s);
    // What is never due stays so.
    if polls.due_s > 0 && !is_at_once {
        let said = Said {
            failed: polls.failures > 0,
            max_age_s: Some(polls.max_age_s),
            retry_after_s: Some(interval_s).filter(|_| polls.why == PollReason::RetryAfter),
        };
        let (latest_s, _) = next_poll(polls, &said, rules);
        polls.due_s = now_s.saturating_add(interval_s).min(latest_s);
        polls.why = PollReason::Clock;
    }
    true
}

impl ReadTold {
    pub(super) fn redundant(by: Redundant, entries: u32, skipped: u32) -> ReadTold {
        ReadTold { redundant: Some(by), entries, skipped, ..ReadTold::default() }
    }
}
