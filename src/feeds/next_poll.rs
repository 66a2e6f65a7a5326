use super::polls::Polls;
use super::reason::PollReason;
use super::rules::{FeedRules, FeedSchedule};
use super::windows::outside;

/// What one answer says of the next poll, beside what is known of the feed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub failed: bool,
    pub max_age_s: Option<u32>,
    pub retry_after_s: Option<u32>,
}

/// Retry-After is obeyed up to a day.
const RETRY_AFTER_MAX_S: u32 = 86_400;
/// What a silence counts against the mean time between two stories: with all of it, the stories that follow come late.
const SILENCE_EIGHTHS: u32 = 7;
/// Intervals are halved no more often.
pub(super) const HALVINGS_MAX: u8 = 4;

/// When a feed is asked after the poll that is noted in its figures, and which rule held.
pub(super) fn next_poll(polls: &Polls, said: &Said, rules: &FeedRules) -> (u32, PollReason) {
    let (mut wait_s, mut why) = policy(polls, said.failed, rules);
    let capped = |seconds: Option<u32>, max_s: u32| seconds.map(|seconds| seconds.min(max_s));
    let hints = polls.hints();
    for (seconds, reason) in [
        (Some(rules.poll_min_s), PollReason::PollMin),
        (capped(hints.ttl_s, rules.hint_max_s), PollReason::Ttl),
        (capped(hints.period_s, rules.hint_max_s), PollReason::Period),
        (capped(said.max_age_s, rules.hint_max_s), PollReason::MaxAge),
        (capped(said.retry_after_s, RETRY_AFTER_MAX_S), PollReason::RetryAfter),
        (plain_s(polls, rules), PollReason::PollMinPlain),
    ] {
        if let Some(seconds) = seconds.filter(|&seconds| seconds > wait_s) {
            (wait_s, why) = (seconds, reason);
        }
    }
    let due_s = polls.attempt_s.saturating_add(wait_s);
    let (due_s, moved) = outside(due_s, &hints);
    (due_s, moved.unwrap_or(why))
}

/// Servers that do not say when nothing has changed send everything each time.
pub(super) fn plain_s(polls: &Polls, rules: &FeedRules) -> Option<u32> {
    (polls.not_modified == 0 || polls.lies).then_some(rules.poll_min_plain_s)
}

fn policy(polls: &Polls, failed: bool, rules: &FeedRules) -> (u32, PollReason) {
    // A clock that was set back makes no silence.
    let silence_s = polls.attempt_s.saturating_sub(polls.since_s);
    let backoff_s = silence_s.saturating_add(rules.poll_min_s);
    let (wait_s, why) = match rules.schedule {
        _ if failed => (backoff_s, PollReason::Failed),
        FeedSchedule::Rate if polls.mean_gap_s > 0 => {
            // A silence that is longer than the mean says that the mean is over.
            (polls.mean_gap_s.max(silence_s / 8 * SILENCE_EIGHTHS) / 2, PollReason::Rate)
        }
        _ => (backoff_s, PollReason::Backoff),
    };
    let wait_s = wait_s >> polls.halvings.min(HALVINGS_MAX);
    match wait_s > rules.poll_max_s {
        // The reason of a failure is the failure, however long it waits.
        true => (rules.poll_max_s, if failed { why } else { PollReason::PollMax }),
        false => (wait_s, why),
    }
}
