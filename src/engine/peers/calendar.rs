use crate::base::{Now, Wall};

/// The calendar of this node. Those of other nodes say something else, so that times of the journal of hosts travel as from
/// now on.
#[derive(Clone, Copy)]
pub(super) struct Calendar(Wall);

impl Calendar {
    pub fn new(wall: Wall) -> Calendar {
        Calendar(wall)
    }

    fn us(self, now: Now) -> u64 {
        self.0.unix_ms_at_zero * 1_000 + now.us()
    }

    /// Lines of the journal for another node.
    pub fn to_travel(self, lines: &str, now: Now) -> String {
        let now_us = self.us(now);
        shifted(lines, |at_us| at_us.saturating_sub(now_us))
    }

    /// Lines of another node, for the journal.
    pub fn to_be_read(self, lines: &str, now: Now) -> String {
        let now_us = self.us(now);
        shifted(lines, |in_us| in_us.saturating_add(now_us))
    }
}

/// Lines with their times changed: those behind `due=` and `at=`.
fn shifted(lines: &str, time: impl Fn(u64) -> u64) -> String {
    let word = |word: &str| {
        let (name, digits) = word.split_once('=').filter(|(name, _)| ["due", "at"].contains(name))?;
        Some(format!("{name}={}", time(digits.parse().ok()?)))
    };
    let line = |line: &str| {
        let words = line.split(' ').map(|text| word(text).unwrap_or_else(|| text.to_string()));
        words.collect::<Vec<_>>().join(" ")
    };
    lines.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_travel_as_from_now_on() {
        let line = "address 192.0.2.7 due=1800000005000000 penalty_us=7 response_us=0 delay_ms=0 failures=2 at=1800000000000000";
        let now = 1_800_000_000_000_000;
        let told = shifted(line, |at| at.saturating_sub(now));
        assert_eq!(
            told,
            "address 192.0.2.7 due=5000000 penalty_us=7 response_us=0 delay_ms=0 failures=2 at=0"
        );
        assert_eq!(shifted(&told, |after| after + now), line);
        assert_eq!(shifted("", |_| 1), "");
        assert_eq!(shifted("a due=1\nb at=2 due=3\n", |at| at + 1), "a due=2\nb at=3 due=4\n");
        assert_eq!(shifted("nonsense due=x at", |_| 1), "nonsense due=x at");
    }
}
