use crate::base::Civil;
use std::fmt;

/// A week of the calendar (ISO 8601, UTC), Monday to Sunday, counted from the one that has 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Week(pub u16);

impl Week {
    pub fn of(at_s: u32) -> Week {
        Week(((at_s / 86_400 + 3) / 7) as u16)
    }
}

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The year of a week is that of its Thursday.
        let thursday = u32::from(self.0) * 7;
        let year = Civil::from_days(thursday).year;
        let first = Civil { year, month: 1, day: 1 }.days();
        write!(f, "{year}-W{:02}", (thursday - first) / 7 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_are_those_of_the_calendar() {
        let week =
            |year, month, day| Week::of(Civil { year, month, day }.days() * 86_400 + 86_399).to_string();
        assert_eq!(week(1970, 1, 1), "1970-W01");
        assert_eq!(week(2026, 11, 15), "2026-W46");
        assert_eq!(week(2026, 11, 16), "2026-W47");
        assert_eq!(week(2021, 1, 3), "2020-W53");
        assert_eq!(week(2024, 12, 30), "2025-W01");
        assert_eq!(week(2022, 1, 1), "2021-W52");
    }
}
