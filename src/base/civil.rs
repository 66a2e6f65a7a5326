/// A day of the Gregorian calendar. Days are counted from 1970-01-01, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: u32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

impl Civil {
    pub const YEAR_MAX: u32 = 9_999;

    /// The date of a day. Years have four digits: what lies later is shown as the last day that has a date.
    pub const fn from_days(days: u32) -> Civil {
        const LAST: u32 = Civil { year: Civil::YEAR_MAX, month: 12, day: 31 }.days();
        let days = if days < LAST { days } else { LAST };
        // Eras of 400 years that begin on 1 March, so that the leap day comes last.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Civil { year: year_of_era + era * 400 + (month <= 2) as u32, month, day }
    }

    /// A date as it was read; `None` if there is no such day, or not since 1970.
    pub const fn checked(year: u32, month: u32, day: u32) -> Option<Civil> {
        if year < 1_970 || year > Civil::YEAR_MAX || month < 1 || month > 12 || day < 1 || day > 31 {
            return None;
        }
        let civil = Civil { year, month, day };
        // 31 April is 1 May: only a day that there is comes back as it went.
        let back = Civil::from_days(civil.days());
        if back.month == month && back.day == day { Some(civil) } else { None }
    }

    /// Days since 1970-01-01.
    pub const fn days(self) -> u32 {
        let year = self.year - (self.month <= 2) as u32;
        let (era, year_of_era) = (year / 400, year % 400);
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_comes_back() {
        let mut before = Civil { year: 1_969, month: 12, day: 31 };
        for days in 0..=2_932_896 {
            let civil = Civil::from_days(days);
            assert_eq!(civil.days(), days);
            assert_eq!(Civil::checked(civil.year, civil.month, civil.day), Some(civil));
            let follows = civil.day == before.day + 1 && civil.month == before.month;
            assert!(follows || (civil.day == 1 && before.day >= 28), "{civil:?} after {before:?}");
            before = civil;
        }
        assert_eq!(before, Civil { year: 9_999, month: 12, day: 31 });
        assert_eq!(Civil::from_days(u32::MAX), before, "later than four digits can say");
    }

    #[test]
    fn days_that_there_are_not() {
        for (year, month, day) in [
            (2023, 2, 29),
            (2100, 2, 29),
            (2024, 4, 31),
            (2024, 0, 1),
            (2024, 13, 1),
            (2024, 1, 0),
            (1969, 12, 31),
        ] {
            assert_eq!(Civil::checked(year, month, day), None, "{year}-{month}-{day}");
        }
        assert!(Civil::checked(2024, 2, 29).is_some());
    }
}
