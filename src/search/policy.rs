use std::ops::Range;

/// Segments of about one size that are merged.
const FAN: usize = 8;
/// What is merged is no larger, so that what a segment says of a word's bytes fits in 32 bits, and what is held of it in memory
/// has a bound.
const MERGED_BYTES_MAX: u64 = 2 << 30;

/// A segment as it is to be merged, or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub stories: u32,
    pub gone: u32,
    pub bytes: u64,
}

/// Which segments are to be merged next, of those from the oldest to the youngest: always such that follow each other, so that
/// stories stay in the order in which they came. A story is written anew as often as segments become eight times as large, and
/// once a quarter of a segment is gone.
pub(super) fn next_merge(sizes: &[Size]) -> Option<Range<usize>> {
    let level = |size: &Size| size.stories.max(1).ilog2() / FAN.ilog2();
    for highest in 0..=u32::BITS / FAN.ilog2() {
        let run = sizes.iter().rev().take_while(|size| level(size) <= highest).count();
        let mut from = sizes.len() - run;
        let mut bytes: u64 = sizes[from..].iter().map(|size| size.bytes).sum();
        while bytes > MERGED_BYTES_MAX && from < sizes.len() {
            bytes -= sizes[from].bytes;
            from += 1;
        }
        // Larger ones are not written anew for the sake of a few small ones.
        let of_that_size = sizes[from..].iter().filter(|size| level(size) == highest).count();
        if of_that_size >= FAN {
            return Some(from..sizes.len());
        }
    }
    let is_holey = |size: &Size| size.gone > 0 && size.gone >= size.stories / 4;
    sizes.iter().position(is_holey).map(|at| at..at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn segments_stay_few_and_stories_are_seldom_written_anew() {
        let mut rng = Rng::new(4);
        let (mut sizes, mut stories, mut written): (Vec<Size>, u64, u64) = (vec![], 0, 0);
        for _ in 0..20_000 {
            let new = 1 + rng.below(200) as u32;
            sizes.push(Size { stories: new, gone: 0, bytes: u64::from(new) * 1_500 });
            stories += u64::from(new);
            while let Some(range) = next_merge(&sizes) {
                let merged: u32 = sizes[range.clone()].iter().map(|size| size.stories).sum();
                written += u64::from(merged);
                let bytes = u64::from(merged) * 1_500;
                sizes.splice(range, [Size { stories: merged, gone: 0, bytes }]);
            }
            assert!(sizes.len() < 8 * 8, "{sizes:?}");
        }
        assert!(written < 7 * stories, "{written} of {stories}");
    }

    #[test]
    fn what_is_too_large_stays_and_what_has_holes_is_written_anew() {
        let size = |stories, gone, bytes| Size { stories, gone, bytes };
        let large = vec![size(1_000_000, 0, 3 << 30); 20];
        assert_eq!(next_merge(&large), None);
        let mut mixed = vec![size(1_000, 0, 3 << 30)];
        mixed.extend(vec![size(1_000, 0, 200 << 20); 8]);
        assert_eq!(next_merge(&mixed), Some(1..9));
        assert_eq!(next_merge(&[size(100, 24, 9), size(100, 25, 9)]), Some(1..2));
        assert_eq!(next_merge(&[size(1, 0, 9)]), None);
        assert_eq!(next_merge(&[]), None);
    }
}
