use crate::base::rfc3339;
use std::fmt::Write as _;

/// An entry of a feed, as whoever reads it is to understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub url: String,
    pub guid: String,
    pub title: String,
    pub at_s: Option<u32>,
}

/// What a feed says of when it wants to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub ttl_s: Option<u32>,
    pub period_s: Option<u32>,
    /// A bit for each hour of the day, UTC.
    pub skip_hours: u32,
    /// A bit for each day, from Monday on.
    pub skip_days: u8,
}

const HOUR_S: u32 = 3_600;
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl Hints {
    /// The first moment from then on at which nobody wants to be spared. Who names all hours, or days, names none.
    pub fn outside(&self, mut at_s: u32) -> u32 {
        let hours = if self.skip_hours.count_ones() == 24 { 0 } else { self.skip_hours };
        let days = if self.skip_days.count_ones() == 7 { 0 } else { self.skip_days };
        loop {
            let (hour, day) = (at_s / HOUR_S % 24, (at_s / (24 * HOUR_S) + 3) % 7);
            if hours >> hour & 1 == 0 && days >> day & 1 == 0 {
                return at_s;
            }
            at_s = (at_s / HOUR_S + 1) * HOUR_S;
        }
    }

    fn write(&self, out: &mut String) {
        if let Some(seconds) = self.ttl_s {
            let _ = writeln!(out, "<ttl>{}</ttl>", seconds / 60);
        }
        if let Some(seconds) = self.period_s {
            let often = 86_400 / seconds.max(1);
            let _ = writeln!(
                out,
                "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>{often}</sy:updateFrequency>"
            );
        }
        let named = |bits: u32, count: usize| (0..count).filter(move |at| bits >> at & 1 == 1);
        if self.skip_hours != 0 {
            let hours: String =
                named(self.skip_hours, 24).map(|hour| format!("<hour>{hour}</hour>")).collect();
            let _ = writeln!(out, "<skipHours>{hours}</skipHours>");
        }
        if self.skip_days != 0 {
            let days = named(u32::from(self.skip_days), 7).map(|day| format!("<day>{}</day>", DAYS[day]));
            let _ = writeln!(out, "<skipDays>{}</skipDays>", days.collect::<String>());
        }
    }
}

/// The text of a feed.
pub fn rss(name: &str, hints: &Hints, entries: &[Entry]) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\" xmlns:sy=\"http://purl.org/rss/1.0/modules/syndication/\">\n\
         <channel>\n<title>{name}</title>\n"
    );
    hints.write(&mut out);
    for Entry { url, guid, title, at_s } in entries {
        let _ = write!(out, "<item><title>{title}</title><link>{url}</link>");
        if !guid.is_empty() {
            let _ = write!(out, "<guid isPermaLink=\"false\">{guid}</guid>");
        }
        if let Some(at_s) = at_s {
            let _ = write!(out, "<pubDate>{}</pubDate>", rfc3339(u64::from(*at_s) * 1_000));
        }
        out.push_str("</item>\n");
    }
    out.push_str("</channel>\n</rss>\n");
    out
}
