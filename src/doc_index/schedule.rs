use super::documents::{DocState, Row};
use super::outcome::Outcome;
use crate::base::CLOCK_SET_S;
use crate::proto::record::{Fault, ResultCode, StatusAction};

/// When a document is asked for again, by what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Seconds until the first retry; every further one takes twice as long.
    pub retry_first_s: u32,
    pub retries_max: u8,
    /// `None`: what was fetched is not asked for again.
    pub recrawl: Option<Recrawl>,
    /// The longest interval that a rule gives.
    pub fixed_s_max: u32,
}

/// Bounds of the interval in which documents are looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recrawl {
    pub min_s: u32,
    pub start_s: u32,
    pub max_s: u32,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { retry_first_s: 3_600, retries_max: 5, recrawl: None, fixed_s_max: 0 }
    }
}

impl Schedule {
    /// When a document is due whose row was written by a clock that was wrong: it is dated after now, and would perhaps
    /// not be seen again for years. It waits for no longer than it would from now on. A row of an earlier time is left
    /// alone, whatever the intervals of today are, and so is any by a clock that was never set.
    pub fn mended_due_s(&self, row: &Row, now_s: u32) -> u32 {
        match row.fetched_s > now_s && u64::from(now_s) >= CLOCK_SET_S {
            true => row.due_s.min(self.latest_s(row, now_s)),
            false => row.due_s,
        }
    }

    /// The latest that a document can be due, by a clock that says `now_s`.
    fn latest_s(&self, row: &Row, now_s: u32) -> u32 {
        let recrawl_s = |recrawl: &Recrawl| recrawl.max_s.max(recrawl.start_s).max(self.fixed_s_max);
        let wait_s = match row.state {
            DocState::Pending => self.retry_s(row.retries.saturating_sub(1)),
            _ => row.interval_s.min(self.recrawl.as_ref().map_or(u32::MAX, recrawl_s)),
        };
        now_s.saturating_add(wait_s.max(1))
    }

    /// The wait after a failure that this many came before.
    fn retry_s(&self, retries: u8) -> u32 {
        self.retry_first_s.saturating_mul(1 << retries.min(self.retries_max).min(20))
    }

    /// Notes the answer to a poll, and when the next is due, which others decide: a poll that failed is not tried again
    /// before it.
    pub fn polled(row: &mut Row, outcome: &Outcome, due_s: u32) {
        let once = Schedule { retries_max: 0, ..Schedule::default() };
        once.answered(row, outcome, None);
        (row.retries, row.due_s) = (0, due_s);
        // By a clock that is wrong it waits for no longer than this from now on.
        row.interval_s = due_s.saturating_sub(outcome.at_s).max(1);
    }

    /// Notes an answer in a document's row, and decides when it is due again. `fixed_s` is an interval that a rule
    /// gives it.
    pub fn answered(&self, row: &mut Row, outcome: &Outcome, fixed_s: Option<u32>) {
        let now_s = outcome.at_s;
        let unchanged = outcome.result == ResultCode::NotModified
            || (outcome.digest != 0 && outcome.digest == row.digest);
        let first = row.fetched_s == 0 || row.digest == 0;
        row.result = Some(outcome.result);
        row.status = outcome.status;
        row.fetched_s = now_s;
        row.fetches = row.fetches.saturating_add(1);
        if is_worth_another_try(outcome) {
            row.state = DocState::Pending;
            if row.retries < self.retries_max {
                row.due_s = now_s.saturating_add(self.retry_s(row.retries).max(1));
                row.retries += 1;
                return;
            }
        } else {
            row.retries = 0;
        }
        let had = outcome.result.is_success() || outcome.result == ResultCode::Redirect;
        row.state = if had { DocState::Success } else { DocState::Error };
        // A head alone does not tell.
        let has_document = outcome.digest != 0 || outcome.result == ResultCode::Redirect;
        if had && !unchanged && has_document {
            row.changes = row.changes.saturating_add(u16::from(!first));
            row.changed_s = now_s;
            row.digest = if outcome.digest == 0 { row.digest } else { outcome.digest };
        }
        row.due_s = 0;
        let Some(recrawl) = &self.recrawl else { return };
        row.interval_s = match fixed_s {
            Some(fixed_s) => fixed_s.max(1),
            // What is not there may come back, but there is no hurry.
            None if !had => recrawl.max_s,
            None if row.interval_s == 0 || first => recrawl.start_s,
            // What changed is looked at sooner, what did not later.
            None if unchanged => (row.interval_s / 2).saturating_mul(3).clamp(recrawl.min_s, recrawl.max_s),
            None => (row.interval_s / 2).clamp(recrawl.min_s, recrawl.max_s),
        };
        row.due_s = now_s.saturating_add(row.interval_s.max(1));
    }
}

/// Time-outs, connection failures and servers that say so: another time may be better.
fn is_worth_another_try(outcome: &Outcome) -> bool {
    match outcome.result {
        ResultCode::HttpError => {
            matches!(StatusAction::of(outcome.status), StatusAction::Retry | StatusAction::BackOff)
        }
        ResultCode::HostSetAside => true,
        // The rules themselves said no, or they could not be had.
        ResultCode::RobotsDenied => outcome.unreachable,
        result => result.fault() == Fault::Network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Schedule {
        Schedule {
            recrawl: Some(Recrawl { min_s: 100, start_s: 1_000, max_s: 10_000 }),
            ..Schedule::default()
        }
    }

    fn answer(row: &mut Row, result: ResultCode, status: u16, digest: u64) -> u32 {
        let at_s = row.due_s.max(1_000);
        let outcome = Outcome { status, digest, ..Outcome::new(1, result, at_s) };
        schedule().answered(row, &outcome, None);
        row.due_s.saturating_sub(at_s)
    }

    #[test]
    fn failures_are_tried_again_five_times_at_growing_distance() {
        for (result, status) in [
            (ResultCode::HttpError, 503),
            (ResultCode::ReadTimeout, 0),
            (ResultCode::ConnectRefused, 0),
            (ResultCode::HttpError, 429),
        ] {
            let mut row = Row::default();
            for wait_s in [3_600, 7_200, 14_400, 28_800, 57_600] {
                assert_eq!(answer(&mut row, result, status, 0), wait_s);
                assert_eq!(row.state, DocState::Pending);
            }
            assert_eq!(answer(&mut row, result, status, 0), 10_000, "as any error");
            assert_eq!(row.state, DocState::Error);
        }
    }

    #[test]
    fn other_errors_are_errors_at_once() {
        for (result, status) in [
            (ResultCode::HttpError, 404),
            (ResultCode::RobotsDenied, 0),
            (ResultCode::Malformed, 200),
            (ResultCode::BlockedAddress, 0),
        ] {
            let mut row = Row::default();
            answer(&mut row, result, status, 0);
            assert_eq!((row.state, row.retries), (DocState::Error, 0), "{result}");
        }
        let mut row = Row::default();
        let outcome = Outcome { unreachable: true, ..Outcome::new(1, ResultCode::RobotsDenied, 5) };
        schedule().answered(&mut row, &outcome, None);
        assert_eq!((row.state, row.due_s), (DocState::Pending, 3_605));
    }

    #[test]
    fn a_success_ends_the_row_of_failures() {
        let mut row = Row::default();
        answer(&mut row, ResultCode::Reset, 0, 0);
        assert_eq!(row.retries, 1);
        answer(&mut row, ResultCode::Ok, 200, 7);
        assert_eq!((row.retries, row.state, row.changes), (0, DocState::Success, 0));
    }

    #[test]
    fn what_changes_is_looked_at_sooner_within_bounds() {
        let mut row = Row::default();
        assert_eq!(answer(&mut row, ResultCode::Ok, 200, 7), 1_000);
        assert_eq!(answer(&mut row, ResultCode::Ok, 200, 8), 500);
        assert_eq!(answer(&mut row, ResultCode::NotModified, 304, 0), 750);
        assert_eq!(answer(&mut row, ResultCode::Ok, 200, 8), 1_125, "the same bytes");
        let times: Vec<u32> = (0..9).map(|n| answer(&mut row, ResultCode::Ok, 200, 100 + n)).collect();
        assert_eq!(*times.last().unwrap(), 100);
        let times: Vec<u32> = (0..30).map(|_| answer(&mut row, ResultCode::NotModified, 304, 0)).collect();
        assert_eq!(*times.last().unwrap(), 10_000);
        assert_eq!((row.changes, row.state), (10, DocState::Success));
    }

    #[test]
    fn a_rule_fixes_the_interval_and_without_recrawl_there_is_none() {
        let mut row = Row::default();
        let outcome = Outcome { digest: 5, ..Outcome::new(1, ResultCode::Ok, 50) };
        schedule().answered(&mut row, &outcome, Some(60));
        assert_eq!(row.due_s, 110);
        Schedule::default().answered(&mut row, &outcome, Some(60));
        assert_eq!(row.due_s, 0);
    }
}
