use super::super::ServerId;
use crate::base::SortedMap;
use crate::proto::reflog::Stamp;

/// How many URLs an hour go to each server: averages in which what was sent half a day ago counts half.
///
/// A URL that is sent later weighs more, instead of all others being made lighter as time goes by: a weight is 2 to the
/// power of half days since `base_s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loads {
    pub(super) base_s: u32,
    pub(super) totals: SortedMap<ServerId, f64>,
}

const HALF_S: f64 = 43_200.0;
/// A weight of 32 bits has room for that, and for as many URLs as there may be.
const REBASE_S: u32 = 30 * 86_400;
/// URLs an hour that come to a sum of 1.
const PER_HOUR: f64 = std::f64::consts::LN_2 * 3_600.0 / HALF_S;

impl Loads {
    /// What a URL weighs.
    pub(super) fn weight(&self, now_s: u32) -> f64 {
        (f64::from(now_s.saturating_sub(self.base_s)) / HALF_S).exp2()
    }

    /// Sets the base if there is none or it is long ago; says by how much all weights are to be multiplied.
    pub(super) fn rebase(&mut self, now_s: u32) -> Option<f64> {
        let is_ahead = !Stamp::from_s(self.base_s).is_credible(now_s);
        if self.base_s != 0 && !is_ahead && now_s.saturating_sub(self.base_s) <= REBASE_S {
            return None;
        }
        // After a clock that was ahead, everything counts as sent now.
        let factor = if self.base_s == 0 || is_ahead { 1.0 } else { 1.0 / self.weight(now_s) };
        self.base_s = now_s;
        self.totals.values_mut().for_each(|total| *total *= factor);
        Some(factor)
    }

    pub(super) fn add(&mut self, server: ServerId, weight: f64) {
        *self.totals.entry(server).or_default() += weight;
    }

    /// URLs an hour.
    pub fn per_hour(&self, server: ServerId, now_s: u32) -> f64 {
        self.of_weight(self.totals.get(&server).copied().unwrap_or(0.0), now_s)
    }

    pub(super) fn of_weight(&self, weight: f64, now_s: u32) -> f64 {
        (weight / self.weight(now_s) * PER_HOUR).max(0.0)
    }

    /// URLs an hour that URLs sent now add.
    pub fn of_urls(urls: u32) -> f64 {
        f64::from(urls) * PER_HOUR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_half_a_day_ago_counts_half() {
        let mut loads = Loads::default();
        loads.rebase(1_000);
        loads.add(ServerId(1), 100.0 * loads.weight(1_000));
        let first = loads.per_hour(ServerId(1), 1_000);
        assert!((loads.per_hour(ServerId(1), 1_000 + 43_200) / first - 0.5).abs() < 1e-9);
        let later = 1_000 + 40 * 86_400;
        let before = loads.per_hour(ServerId(1), later);
        assert!(loads.rebase(later).is_some());
        assert!((loads.per_hour(ServerId(1), later) / before - 1.0).abs() < 1e-9);
        // The clock is right again.
        assert_eq!(loads.rebase(1_000), Some(1.0));
        let right = loads.per_hour(ServerId(1), 1_000);
        assert!((loads.per_hour(ServerId(1), 1_000 + 43_200) / right - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_steady_stream_is_its_urls_an_hour() {
        let mut loads = Loads::default();
        loads.rebase(1);
        for minute in 0..10 * 24 * 60 {
            loads.add(ServerId(1), 10.0 * loads.weight(1 + minute * 60));
        }
        let load = loads.per_hour(ServerId(1), 1 + 10 * 24 * 3_600);
        assert!((594.0..606.0).contains(&load), "{load}");
    }
}
