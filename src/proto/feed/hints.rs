//! When a feed wants to be asked, by its own words.

use super::facts::FeedHints;

/// What is gathered of `sy:update*` until both are known.
#[derive(Default)]
pub(super) struct Hints {
    ttl_s: Option<u32>,
    period_s: Option<f64>,
    frequency: Option<f64>,
    skip_hours: u32,
    skip_days: u8,
}

const ALL_HOURS: u32 = (1 << 24) - 1;
const ALL_DAYS: u8 = (1 << 7) - 1;

impl Hints {
    /// Minutes.
    pub fn ttl(&mut self, text: &str) {
        self.ttl_s = number(text).filter(|minutes| *minutes > 0.0).map(|minutes| (minutes * 60.0) as u32);
    }

    /// A word; `always` asks for nothing.
    pub fn period(&mut self, text: &str) {
        let word = text.trim().to_ascii_lowercase();
        self.period_s = Some(match word.get(..3).unwrap_or("") {
            "hou" => 3_600.0,
            "dai" | "day" => 86_400.0,
            "wee" => 604_800.0,
            "mon" => 2_592_000.0,
            "yea" => 31_536_000.0,
            _ => return,
        });
    }

    /// How often in a period.
    pub fn frequency(&mut self, text: &str) {
        self.frequency = number(text).filter(|times| *times > 0.0);
    }

    /// An hour; the 24th is the first of a day.
    pub fn skip_hour(&mut self, text: &str) {
        if let Some(hour) = number(text).filter(|hour| (0.0..=24.0).contains(hour)) {
            self.skip_hours |= 1 << (hour as u32 % 24);
        }
    }

    pub fn skip_day(&mut self, text: &str) {
        let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let word = text.trim().to_ascii_lowercase();
        if let Some(day) = days.iter().position(|day| word.starts_with(day)) {
            self.skip_days |= 1 << day;
        }
    }

    /// Who wants never to be asked has not understood the question: all hours, or all days, are none.
    pub fn told(&self) -> FeedHints {
        let has_sy = self.period_s.is_some() || self.frequency.is_some();
        // Without a word the period is a day, by the module's own text.
        let period_s = self.period_s.unwrap_or(86_400.0) / self.frequency.unwrap_or(1.0);
        FeedHints {
            ttl_s: self.ttl_s,
            period_s: has_sy.then_some(period_s as u32).filter(|period_s| *period_s > 0),
            skip_hours: if self.skip_hours == ALL_HOURS { 0 } else { self.skip_hours },
            skip_days: if self.skip_days == ALL_DAYS { 0 } else { self.skip_days },
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tell: impl Fn(&mut Hints)) -> FeedHints {
        let mut hints = Hints::default();
        tell(&mut hints);
        hints.told()
    }

    #[test]
    fn minutes_to_live() {
        for (text, expected) in [
            ("60", Some(3_600)),
            (" 5\n", Some(300)),
            ("0.5", Some(30)),
            ("1000000000", Some(u32::MAX)),
            ("-1", None),
            ("0", None),
            ("NaN", None),
            ("inf", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(told(|hints| hints.ttl(text)).ttl_s, expected, "{text}");
        }
    }

    #[test]
    fn periods_and_frequencies() {
        for (period, frequency, expected) in [
            ("hourly", "1", Some(3_600)),
            ("Daily", "", Some(86_400)),
            ("dayly", "2", Some(43_200)),
            ("weekly", "7", Some(86_400)),
            ("monthly", "1", Some(2_592_000)),
            ("yearly", "1", Some(31_536_000)),
            ("hourly", "0.1", Some(36_000)),
            ("hourly", "0", Some(3_600)),
            ("hourly", "-3", Some(3_600)),
            ("hourly", "1e300", None),
            ("yearly", "1e-300", Some(u32::MAX)),
            ("always", "", None),
            ("", "4", Some(21_600)),
            ("", "", None),
        ] {
            let found = told(|hints| {
                hints.period(period);
                hints.frequency(frequency);
            });
            assert_eq!(found.period_s, expected, "{period} {frequency}");
        }
    }

    #[test]
    fn hours_and_days_to_leave_out() {
        let found = told(|hints| {
            ["0", "1", " 23 ", "24", "25", "-1", "noon", ""].iter().for_each(|hour| hints.skip_hour(hour));
            ["Monday", "sunday", "Caturday", ""].iter().for_each(|day| hints.skip_day(day));
        });
        assert_eq!((found.skip_hours, found.skip_days), (1 | 1 << 1 | 1 << 23, 1 | 1 << 6));
        let never = told(|hints| {
            (0..24).for_each(|hour| hints.skip_hour(&hour.to_string()));
            ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].iter().for_each(|day| hints.skip_day(day));
        });
        assert_eq!((never.skip_hours, never.skip_days), (0, 0));
    }
}
