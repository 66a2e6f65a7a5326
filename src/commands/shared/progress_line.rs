//! The line that tells how a crawl goes: made of snapshots and a width, and of nothing else.

use crate::base::{grouped, plural, span};
use crate::engine::{Snapshot, waits};
use std::collections::VecDeque;
use std::time::Duration;

/// What was seen in the last ten seconds, oldest first.
pub(super) struct Recent(VecDeque<(Duration, Snapshot)>);

/// Rates are means over this long.
const MEAN_OVER: Duration = Duration::from_secs(10);
/// Less than this says little about when a crawl ends, and more than this is said by nobody.
const END_SEEN_MIN: Duration = Duration::from_secs(5);
const END_SECONDS_MAX: f64 = 30.0 * 86_400.0;

impl Default for Recent {
    fn default() -> Recent {
        Recent(VecDeque::from([(Duration::ZERO, Snapshot::default())]))
    }
}

impl Recent {
    pub fn push(&mut self, at: Duration, snapshot: Snapshot) {
        self.0.push_back((at, snapshot));
        // One as old as that stays, to compare with.
        while self.0.get(1).is_some_and(|(second, _)| *second + MEAN_OVER <= at) {
            self.0.pop_front();
        }
    }

    /// What matters most of it, in fewer characters than `width`.
    pub fn line(&self, width: usize, is_stopping: bool) -> String {
        let (Some((then, before)), Some((at, now))) = (self.0.front(), self.0.back()) else {
            return String::new();
        };
        let seconds = (*at - *then).as_secs_f64().max(1e-3);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let pages_s = self.pages_per_second();
        let some = |count: u64, text: String| (count > 0).then_some(text);
        let end = match is_stopping {
            true => Some("stopping".to_string()),
            false => self.seconds_left().map(|left| format!("done in {}", span(left))),
        };
        // In the order of the line; the number is the order in which they are let in.
        let parts = [
            (5, Some(format!("{} s", at.as_secs()))),
            (0, Some(format!("{} {}", grouped(now.pages), plural(now.pages, "page")))),
            (2, Some(if pages_s < 9.95 { format!("{pages_s:.1}/s") } else { format!("{pages_s:.0}/s") })),
            (8, Some(format!("{:.1} MB/s", per_second(now.bytes, before.bytes) / 1e6))),
            (1, Some(format!("{} pending", grouped(now.pending)))),
            (4, end),
            (9, some(now.waiting, format!("{} due later", grouped(now.waiting)))),
            (3, waits(now)),
            (7, some(now.open, format!("{} open", grouped(now.open)))),
            (6, some(now.errors, format!("{} {}", grouped(now.errors), plural(now.errors, "error")))),
            (10, Some(format!("{} known", grouped(now.known)))),
        ];
        let mut let_in: Vec<&(u8, Option<String>)> =
            parts.iter().filter(|(_, part)| part.is_some()).collect();
        let_in.sort_by_key(|(rank, _)| *rank);
        let (mut used, mut ranks) = (0, Vec::new());
        for (rank, part) in let_in {
            let gap = if ranks.is_empty() { 0 } else { GAP.len() };
            let more = gap + part.as_ref().map_or(0, String::len);
            if used + more < width {
                used += more;
                ranks.push(*rank);
            }
        }
        let shown = parts.into_iter().filter(|(rank, _)| ranks.contains(rank));
        shown.filter_map(|(_, part)| part).collect::<Vec<_>>().join(GAP)
    }

    pub fn pages_per_second(&self) -> f64 {
        let (Some((then, before)), Some((at, now))) = (self.0.front(), self.0.back()) else { return 0.0 };
        now.pages.saturating_sub(before.pages) as f64 / (*at - *then).as_secs_f64().max(1e-3)
    }

    /// Until nothing will be pending, if it gets less: at the pace of the last seconds.
    pub fn seconds_left(&self) -> Option<u64> {
        // What was seen before the crawl had begun says nothing.
        let (then, before) = self.0.iter().find(|(_, snapshot)| snapshot.pending > 0)?;
        let (at, now) = self.0.back()?;
        let gone = before.pending.checked_sub(now.pending).filter(|gone| *gone > 0)?;
        let seen = (*at - *then).max(Duration::ZERO);
        let seconds = now.pending as f64 * seen.as_secs_f64() / gone as f64;
        (seen >= END_SEEN_MIN && now.pending > 0 && seconds <= END_SECONDS_MAX)
            .then_some(seconds.ceil() as u64)
    }
}

const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url_server::WaitsFor;

    fn snapshot(pages: u64, pending: u64) -> Snapshot {
        let waits = vec![(WaitsFor::Robots, 3), (WaitsFor::Rate, 912)];
        let (bytes, known) = (pages * 10_000, pages + pending);
        Snapshot {
            pages,
            pending,
            bytes,
            known,
            open: 88,
            hosts: 1_000,
            errors: 12,
            waits,
            ..Snapshot::default()
        }
    }

    /// A crawl that fetches a hundred pages a second, looked at five times a second for so long.
    fn seen(seconds: u64) -> Recent {
        let mut recent = Recent::default();
        for tick in 1..=seconds * 5 {
            recent.push(Duration::from_millis(tick * 200), snapshot(tick * 20, 60_000 - tick * 20));
        }
        recent
    }

    #[test]
    fn lines_of_all_widths() {
        let recent = seen(60);
        for (width, line) in [
            (40, "6,000 pages  100/s  54,000 pending"),
            (60, "60 s  6,000 pages  100/s  54,000 pending  done in 9 min"),
            (80, "6,000 pages  100/s  54,000 pending  912 of 1,000 hosts wait for their rate"),
            (
                120,
                "60 s  6,000 pages  100/s  54,000 pending  done in 9 min  912 of 1,000 hosts wait for their rate  88 open  12 errors",
            ),
        ] {
            let made = recent.line(width, false);
            assert!(made.len() < width, "{width}: {made:?}");
            assert_eq!(made, line, "{width}");
        }
        let stopping = recent.line(120, true);
        assert!(stopping.contains("  stopping  ") && !stopping.contains("done in"), "{stopping}");
        for width in 0..200 {
            let made = recent.line(width, false);
            assert!(made.len() < width.max(1), "{width}: {made:?}");
        }
    }

    #[test]
    fn rates_are_means_of_ten_seconds() {
        let mut recent = Recent::default();
        // A thousand at once, then nothing for a while.
        recent.push(Duration::from_secs(20), snapshot(0, 10));
        recent.push(Duration::from_secs(21), snapshot(1_000, 10));
        recent.push(Duration::from_secs(30), snapshot(1_000, 10));
        assert!(recent.line(80, false).contains("  100/s  "), "{}", recent.line(80, false));
        recent.push(Duration::from_secs(41), snapshot(1_000, 10));
        assert!(recent.line(80, false).contains("  0.0/s  "), "{}", recent.line(80, false));
        assert!(recent.0.len() <= 3);
    }

    #[test]
    fn the_end_is_said_when_it_can_be() {
        assert_eq!(seen(60).seconds_left(), Some(540));
        assert_eq!(seen(2).seconds_left(), None, "too early");
        let mut grows = Recent::default();
        for second in 1..30 {
            grows.push(Duration::from_secs(second), snapshot(second * 10, second * 100));
        }
        assert_eq!(grows.seconds_left(), None, "more is found than is fetched");
    }
}
