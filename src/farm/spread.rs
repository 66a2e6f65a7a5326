//! What is not alike everywhere: lengths of documents and latencies of hosts, drawn around their medians.

use super::rng::{Purpose, Rng};
use super::site::Site;

/// No draw is more than so many times its median, or less than that part of it.
pub(super) const SPREAD_MAX: u32 = 32;

impl Site {
    /// The length that the body of a document should have.
    pub fn document_bytes(&self, host: u32, page: u32) -> u32 {
        let draw = || Rng::of_page(self.spec.seed, Purpose::Length, host, page);
        around(self.spec.page_bytes, self.spec.page_sigma, draw)
    }

    /// How long a host holds every answer back.
    pub fn latency_ms(&self, host: u32) -> u32 {
        let draw = || Rng::of_page(self.spec.seed, Purpose::Latency, host, 0);
        around(self.spec.latency_ms, self.spec.latency_sigma, draw)
    }
}

/// A log-normal draw: as many above the median as below, and a few far above. Without a sigma nothing is drawn.
fn around(median: u32, sigma: f64, draw: impl FnOnce() -> Rng) -> u32 {
    if sigma == 0.0 || median == 0 {
        return median;
    }
    let most = f64::from(SPREAD_MAX);
    let factor = (sigma * normal(&mut draw())).exp().clamp(1.0 / most, most);
    (f64::from(median) * factor).round() as u32
}

/// A draw of mean 0 and deviation 1, by the method of Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    // A logarithm of 0 there is none of.
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::super::site_spec::SiteSpec;
    use super::*;

    /// The values below which a share of them are.
    fn parts<const N: usize>(mut all: Vec<u32>, shares: [f64; N]) -> [u32; N] {
        all.sort();
        shares.map(|share| all[((all.len() - 1) as f64 * share) as usize])
    }

    #[test]
    fn lengths_are_log_normal_around_their_median() {
        let site =
            Site::new(SiteSpec { page_bytes: 30_000, page_sigma: 1.0, ..SiteSpec::default() }).unwrap();
        let all = (0..1000).flat_map(|host| (0..20).map(move |page| (host, page)));
        let all: Vec<u32> = all.map(|(host, page)| site.document_bytes(host, page)).collect();
        assert!(all.iter().all(|bytes| (30_000 / 32..=30_000 * 32).contains(bytes)));
        // One sigma up and down is a factor of e, and 16 % of the draws are beyond it on each side.
        for (found, expected) in
            parts(all, [0.1587, 0.5, 0.8413, 0.9772]).into_iter().zip([11_036, 30_000, 81_548, 221_672])
        {
            let ratio = f64::from(found) / f64::from(expected);
            assert!((0.95..1.05).contains(&ratio), "{found} for {expected}");
        }
    }

    #[test]
    fn a_document_has_the_length_drawn_for_it_in_any_order() {
        let spec = SiteSpec { page_bytes: 30_000, page_sigma: 1.0, links: 4, ..SiteSpec::default() };
        let (one, two) = (Site::new(spec.clone()).unwrap(), Site::new(spec).unwrap());
        let pages = [(0, 0), (7, 3), (7, 4), (999, 19)];
        let forth: Vec<_> = pages.iter().map(|&(host, page)| one.document(host, page, 80)).collect();
        let back: Vec<_> = pages.iter().rev().map(|&(host, page)| two.document(host, page, 80)).collect();
        assert!(forth.iter().eq(back.iter().rev()));
        for (document, (host, page)) in forth.iter().zip(pages) {
            let shortest = 1_500;
            assert_eq!(document.len().max(shortest), one.document_bytes(host, page).max(1_500) as usize);
        }
        let lengths: crate::base::SortedSet<usize> = forth.iter().map(Vec::len).collect();
        assert_eq!(lengths.len(), 4, "no two alike");
    }

    #[test]
    fn a_latency_is_a_host_s_own() {
        let site = Site::new(SiteSpec { latency_ms: 60, latency_sigma: 1.0, ..SiteSpec::default() }).unwrap();
        let all: Vec<u32> = (0..1000).map(|host| site.latency_ms(host)).collect();
        assert_eq!(all, (0..1000).map(|host| site.latency_ms(host)).collect::<Vec<_>>());
        assert!(all.iter().all(|ms| (2..=1920).contains(ms)));
        let [low, median, high] = parts(all, [0.1, 0.5, 0.9]);
        assert!((12..22).contains(&low) && (55..66).contains(&median) && (180..260).contains(&high));
        let alike = Site::new(SiteSpec { latency_ms: 60, ..SiteSpec::default() }).unwrap();
        assert!((0..1000).all(|host| alike.latency_ms(host) == 60));
    }
}
