//! Moments as text: RFC 3339 for people, digits alone for sorting.

use super::digits::{padded, read};
use crate::base::Civil;

const DAY_US: u64 = 86_400_000_000;

/// `2026-11-15T05:10:27.125Z`.
pub(super) const RFC3339_BYTES: usize = 24;
/// `20261115051027125018`.
pub(super) const COMPACT_BYTES: usize = 20;

/// A moment taken apart.
struct Parts {
    date: Civil,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

impl Parts {
    fn of(unix_us: u64) -> Parts {
        let date = Civil::from_days(u32::try_from(unix_us / DAY_US).unwrap_or(u32::MAX));
        let (seconds, micros) = ((unix_us % DAY_US / 1_000_000) as u32, (unix_us % 1_000_000) as u32);
        Parts { date, hour: seconds / 3_600, minute: seconds / 60 % 60, second: seconds % 60, micros }
    }

    fn unix_us(&self) -> Option<u64> {
        if self.hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let seconds = u64::from(self.hour * 3_600 + self.minute * 60 + self.second);
        Some(u64::from(self.date.days()) * DAY_US + seconds * 1_000_000 + u64::from(self.micros))
    }
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn push_rfc3339(out: &mut Vec<u8>, unix_us: u64) {
    let Parts { date, hour, minute, second, micros } = Parts::of(unix_us);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    text[0..4].copy_from_slice(&padded::<4>(date.year));
    text[5..7].copy_from_slice(&padded::<2>(date.month));
    text[8..10].copy_from_slice(&padded::<2>(date.day));
    text[11..13].copy_from_slice(&padded::<2>(hour));
    text[14..16].copy_from_slice(&padded::<2>(minute));
    text[17..19].copy_from_slice(&padded::<2>(second));
    text[20..23].copy_from_slice(&padded::<3>(micros / 1_000));
    out.extend_from_slice(&text);
}

pub(super) fn read_rfc3339(text: &[u8]) -> Option<u64> {
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if text.len() != RFC3339_BYTES || marks.iter().any(|&(at, mark)| text[at] != mark) {
        return None;
    }
    Parts {
        date: Civil::checked(read(&text[0..4])?, read(&text[5..7])?, read(&text[8..10])?)?,
        hour: read(&text[11..13])?,
        minute: read(&text[14..16])?,
        second: read(&text[17..19])?,
        micros: read::<u32>(&text[20..23])? * 1_000,
    }
    .unix_us()
}

/// Year to microsecond in digits.
pub(super) fn push_compact(out: &mut Vec<u8>, unix_us: u64) {
    let Parts { date, hour, minute, second, micros } = Parts::of(unix_us);
    let mut text = [b'0'; COMPACT_BYTES];
    text[0..4].copy_from_slice(&padded::<4>(date.year));
    text[4..6].copy_from_slice(&padded::<2>(date.month));
    text[6..8].copy_from_slice(&padded::<2>(date.day));
    text[8..10].copy_from_slice(&padded::<2>(hour));
    text[10..12].copy_from_slice(&padded::<2>(minute));
    text[12..14].copy_from_slice(&padded::<2>(second));
    text[14..20].copy_from_slice(&padded::<6>(micros));
    out.extend_from_slice(&text);
}

pub(super) fn read_compact(text: &[u8]) -> Option<u64> {
    if text.len() != COMPACT_BYTES {
        return None;
    }
    Parts {
        date: Civil::checked(read(&text[0..4])?, read(&text[4..6])?, read(&text[6..8])?)?,
        hour: read(&text[8..10])?,
        minute: read(&text[10..12])?,
        second: read(&text[12..14])?,
        micros: read(&text[14..20])?,
    }
    .unix_us()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_back() {
        for unix_us in [0, 1_709_251_199_999_999, 4_102_444_800_000_001, 253_402_300_799_999_999] {
            let mut out = Vec::new();
            push_compact(&mut out, unix_us);
            assert_eq!(read_compact(&out), Some(unix_us));
            out.clear();
            push_rfc3339(&mut out, unix_us);
            assert_eq!(read_rfc3339(&out), Some(unix_us / 1_000 * 1_000));
            assert_eq!(str::from_utf8(&out), Ok(&*crate::base::rfc3339(unix_us / 1_000)));
        }
        for text in ["2026-02-30T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01 00:00:00.000Z"] {
            assert_eq!(read_rfc3339(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read_compact(b"20260101000060000000"), None);
    }
}
