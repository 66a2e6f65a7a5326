use super::reason::PollReason;
use crate::proto::feed::FeedHints;

const HOUR_S: u32 = 3_600;
const DAY_S: u32 = 86_400;
const ALL_HOURS: u32 = (1 << 24) - 1;
const ALL_DAYS: u8 = (1 << 7) - 1;

/// The first time from `at_s` on that is in none of the hours (UTC) and days that a feed wants to be spared in, and which
/// of the two moved it last. A feed that names all of them names none.
pub(super) fn outside(at_s: u32, hints: &FeedHints) -> (u32, Option<PollReason>) {
    let hours = Some(hints.skip_hours & ALL_HOURS).filter(|&hours| hours != ALL_HOURS).unwrap_or(0);
    let days = Some(hints.skip_days & ALL_DAYS).filter(|&days| days != ALL_DAYS).unwrap_or(0);
    let (mut at_s, mut why) = (at_s, None);
    // An hour of a day that is left is at most a week away.
    for _ in 0..32 {
        let (weekday, hour) = ((at_s / DAY_S + 3) % 7, at_s % DAY_S / HOUR_S);
        let (unit_s, reason) = if days >> weekday & 1 == 1 {
            (DAY_S, PollReason::SkipDays)
        } else if hours >> hour & 1 == 1 {
            (HOUR_S, PollReason::SkipHours)
        } else {
            break;
        };
        let Some(next_s) = (at_s / unit_s + 1).checked_mul(unit_s) else { break };
        (at_s, why) = (next_s, Some(reason));
    }
    (at_s, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16, a Monday, 13:37.
    const MONDAY: u32 = 1_794_787_200 + 13 * HOUR_S + 37 * 60;

    fn hints(hours: &[u32], days: &[u8]) -> FeedHints {
        FeedHints {
            skip_hours: hours.iter().fold(0, |bits, hour| bits | 1 << hour),
            skip_days: days.iter().fold(0, |bits, day| bits | 1 << day),
            ..FeedHints::default()
        }
    }

    #[test]
    fn a_poll_moves_to_the_end_of_its_window() {
        let midnight = MONDAY / DAY_S * DAY_S;
        assert_eq!(outside(MONDAY, &hints(&[12, 14], &[1])), (MONDAY, None));
        assert_eq!(
            outside(MONDAY, &hints(&[13], &[])),
            (midnight + 14 * HOUR_S, Some(PollReason::SkipHours))
        );
        let night: Vec<u32> = (13..24).collect();
        assert_eq!(outside(MONDAY, &hints(&night, &[])).0, midnight + DAY_S);
        assert_eq!(outside(MONDAY, &hints(&[], &[0])), (midnight + DAY_S, Some(PollReason::SkipDays)));
        assert_eq!(outside(MONDAY, &hints(&[0], &[0, 1])).0, midnight + 2 * DAY_S + HOUR_S);
    }

    #[test]
    fn who_names_all_hours_or_days_names_none_and_the_worst_is_a_week() {
        let every: Vec<u32> = (0..24).collect();
        assert_eq!(outside(MONDAY, &hints(&every, &[])), (MONDAY, None));
        assert_eq!(outside(MONDAY, &hints(&every, &[0])).0, MONDAY / DAY_S * DAY_S + DAY_S);
        assert_eq!(outside(MONDAY, &hints(&[], &[0, 1, 2, 3, 4, 5, 6])), (MONDAY, None));
        let odd: Vec<u32> = (0..23).collect();
        for at_s in (MONDAY..MONDAY + 8 * DAY_S).step_by(1_801) {
            let (moved_s, _) = outside(at_s, &hints(&odd, &[0, 1, 2, 3, 4, 5]));
            assert_eq!((moved_s / DAY_S + 3) % 7, 6, "a Sunday");
            assert_eq!(moved_s % DAY_S / HOUR_S, 23);
            assert!(moved_s >= at_s && moved_s - at_s <= 7 * DAY_S);
        }
        assert!(outside(u32::MAX, &hints(&odd, &[0])).0 >= u32::MAX - 1, "the end of time is no overflow");
    }
}
