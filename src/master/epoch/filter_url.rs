use super::job::JoinRules;
use super::row::{CurrentRow, TagMark};

/// What the lines of a URL say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    pub id: u64,
    /// The last time.
    pub at_s: u32,
    pub hits: u64,
    pub tag: TagMark,
}

/// What becomes of a URL that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is sent with this many hits and this tag.
    Sent { next: CurrentRow, hits: u64, tag: TagMark },
    /// It was sent lately: its hits wait. As many as this were too many for a row.
    Kept { next: CurrentRow, capped: u64 },
}

impl Incoming {
    /// filter_url: a URL that is new is sent; one that was sent before only if that is long ago, or if its tag has changed.
    pub fn fate(&self, row: Option<&CurrentRow>, rules: &JoinRules) -> Fate {
        let &Incoming { id, at_s, hits, tag } = self;
        let Some(row) = row else {
            return Fate::Sent {
                next: CurrentRow { id, sent_s: at_s, seen_s: at_s, hits: 0, tag },
                hits,
                tag,
            };
        };
        let is_due = at_s.saturating_sub(row.sent_s) > rules.resend_after_s;
        let waiting = hits + u64::from(row.hits);
        if is_due || tag.differs(row.tag) {
            let tag = tag.or(row.tag);
            let next = CurrentRow { id, sent_s: at_s, seen_s: at_s, hits: 0, tag };
            return Fate::Sent { next, hits: waiting, tag };
        }
        let kept = u32::try_from(waiting).unwrap_or(u32::MAX);
        let next = CurrentRow { seen_s: row.seen_s.max(at_s), hits: kept, tag: row.tag.or(tag), ..*row };
        Fate::Kept { next, capped: waiting - u64::from(kept) }
    }
}

/// Whether a row stays of which nothing came: as long as its URL is not to be sent again, or as long as its hits wait.
pub(super) fn stays(row: &CurrentRow, horizon_s: u32, rules: &JoinRules) -> bool {
    match row.hits {
        0 => horizon_s.saturating_sub(row.sent_s) <= rules.resend_after_s.saturating_add(rules.late_s),
        _ => horizon_s.saturating_sub(row.seen_s) <= rules.keep_repeats_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: u32 = 1_800_000_000;

    fn row(hits: u32, tag: &str) -> CurrentRow {
        CurrentRow { id: 5, sent_s: T, seen_s: T + 9, hits, tag: TagMark::of(tag.as_bytes()) }
    }

    fn incoming(at_s: u32, tag: &str) -> Incoming {
        Incoming { id: 5, at_s, hits: 10, tag: TagMark::of(tag.as_bytes()) }
    }

    fn is_sent(at_s: u32, tag: &str, before: &str) -> bool {
        let fate = incoming(at_s, tag).fate(Some(&row(3, before)), &JoinRules::default());
        matches!(fate, Fate::Sent { hits: 13, .. })
    }

    #[test]
    fn a_url_is_sent_again_after_an_hour_to_the_second_or_with_another_tag() {
        assert!(!is_sent(T + 3_600, "1", "1") && is_sent(T + 3_601, "1", "1"));
        assert!(is_sent(T, "2", "1") && is_sent(T - 5, "2", "1"), "another tag");
        for (tag, before) in [("", "1"), ("1", ""), ("", "")] {
            assert!(!is_sent(T + 3_600, tag, before), "an empty tag says nothing: {tag:?} {before:?}");
        }
        assert!(!is_sent(T - 9_999, "1", "1"), "a late line");
        let rules = JoinRules { resend_after_s: 60, ..JoinRules::default() };
        assert!(matches!(incoming(T + 61, "").fate(Some(&row(0, "")), &rules), Fate::Sent { .. }));
    }

    #[test]
    fn what_is_sent_goes_out_with_all_its_hits_and_what_waits_keeps_the_time_of_sending() {
        let rules = JoinRules::default();
        let tag = TagMark::of(b"1");
        let next = CurrentRow { id: 5, sent_s: T + 4_000, seen_s: T + 4_000, hits: 0, tag };
        assert_eq!(
            incoming(T + 4_000, "").fate(Some(&row(3, "1")), &rules),
            Fate::Sent { next, hits: 13, tag }
        );
        assert_eq!(incoming(T + 4_000, "1").fate(None, &rules), Fate::Sent { next, hits: 10, tag });
        let next = CurrentRow { id: 5, sent_s: T, seen_s: T + 9, hits: 13, tag };
        assert_eq!(incoming(T + 8, "1").fate(Some(&row(3, "")), &rules), Fate::Kept { next, capped: 0 });
        let next = CurrentRow { hits: u32::MAX, ..next };
        let full = row(u32::MAX - 1, "");
        assert_eq!(incoming(T + 8, "1").fate(Some(&full), &rules), Fate::Kept { next, capped: 9 });
    }

    #[test]
    fn a_row_leaves_after_an_hour_or_with_hits_after_ten_to_the_second() {
        let rules = JoinRules::default();
        let stays_until = |hits, until_s| {
            stays(&row(hits, "1"), until_s, &rules) && !stays(&row(hits, "1"), until_s + 1, &rules)
        };
        assert!(stays_until(0, T + 3_600) && stays_until(1, T + 9 + 36_000));
        assert!(stays(&row(0, ""), T - 1_000, &rules), "a clock that went back");
        // A clock that was a year ahead, and is right again.
        for hits in [0, 1] {
            let row = row(hits, "").believed(T - 31_536_000, rules.ahead_s);
            assert_eq!((row.sent_s, row.seen_s), (T - 31_536_000, T - 31_536_000));
            assert!(!stays(&row, T - 31_536_000 + 36_001, &rules));
        }
        assert_eq!(row(0, "").believed(T - 60, 60).sent_s, T, "clocks that are a little apart");
        let rules = JoinRules { late_s: 600, ..rules };
        assert!(
            stays(&row(0, ""), T + 4_200, &rules) && !stays(&row(0, ""), T + 4_201, &rules),
            "late lines"
        );
    }
}
