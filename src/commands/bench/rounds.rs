//! The same work done by two in one round, round after round: a machine that is slow for a while is slow for both.

use crate::commands::shared::Failure;

/// Runs side 0 and side 1. What goes first in one round goes last in the next: a machine that gets slower favours
/// neither.
pub(super) fn in_turns<T>(
    round: usize,
    mut run: impl FnMut(usize) -> Result<T, Failure>,
) -> Result<(T, T), Failure> {
    if round.is_multiple_of(2) {
        let first = run(0)?;
        return Ok((first, run(1)?));
    }
    let second = run(1)?;
    Ok((run(0)?, second))
}

/// The value in the middle, by a figure; `None` of none.
pub(super) fn median_by<T>(values: impl IntoIterator<Item = T>, figure: impl Fn(&T) -> f64) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let middle = values.len() / 2;
    values.into_iter().nth(middle)
}

/// The number in the middle; of none it is no number.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    median_by(values, |value| *value).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_goes_first_changes_from_round_to_round() {
        let mut order = Vec::new();
        for round in 0..2 {
            let sides = in_turns(round, |side| {
                order.push(side);
                Ok(side)
            });
            assert_eq!(sides.unwrap(), (0, 1), "round {round}");
        }
        assert_eq!(order, [0, 1, 1, 0]);
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([1.0, 2.0]), 2.0, "of two the upper");
        assert_eq!(median_by(["ccc", "a", "bb"], |word| word.len() as f64), Some("bb"));
        assert!(median([]).is_nan() && median_by([0.0; 0], |value| *value).is_none());
    }
}
