//! What a crawl asks of its index, made up from numbers: the links of page after page.
//!
//! A page brings [`LINKS_PER_PAGE`] links of which [`NEW_PER_PAGE`] were never seen, so a crawl that finds N URLs reads
//! N / 2 pages. URLs are numbered as they are found. A link to a known one goes, half of the time, to one of the latest
//! [`RECENT`], as menus and neighbours do, and else to any. Nothing is stored and nothing depends on the machine: the
//! same count gives the same links everywhere.
//!
//! ```text
//!   let mut load = Workload::new(1_000_000);
//!   while let Some(page) = load.next_page() {
//!       for number in page.links { load.url_into(number, &mut url); /* ask the index */ }
//!   }
//! ```

pub const LINKS_PER_PAGE: usize = 20;
pub const NEW_PER_PAGE: u64 = 2;
/// What "the latest" URLs are.
pub const RECENT: u64 = 10_000;
/// URLs of a host, on average.
pub const URLS_PER_HOST: u64 = 100;

const SEED: u64 = 42;

const _: () = assert!(LINKS_PER_PAGE.is_multiple_of(NEW_PER_PAGE as usize));

/// The pages of one crawl, in order.
#[derive(Clone)]
pub struct Workload {
    urls: u64,
    hosts: u64,
    /// Numbers below this have been handed out.
    found: u64,
    pages: u64,
    rng: u64,
}

/// The links of one page, by number.
pub struct Page {
    /// Pages count from 0.
    pub number: u64,
    pub links: [u64; LINKS_PER_PAGE],
}

impl Workload {
    /// A crawl that finds `urls` URLs, rounded down to whole pages.
    pub fn new(urls: u64) -> Workload {
        let urls = urls / NEW_PER_PAGE * NEW_PER_PAGE;
        Workload { urls, hosts: (urls / URLS_PER_HOST).max(1), found: 0, pages: 0, rng: SEED }
    }

    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// Hosts are numbered from 0.
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    pub fn pages(&self) -> u64 {
        self.urls / NEW_PER_PAGE
    }

    pub fn links(&self) -> u64 {
        self.pages() * LINKS_PER_PAGE as u64
    }

    /// `None` when every URL has been found.
    pub fn next_page(&mut self) -> Option<Page> {
        if self.found == self.urls {
            return None;
        }
        let number = self.pages;
        self.pages += 1;
        // New ones stand at even distances, the first of them first: so there is always a known one to repeat.
        let every = LINKS_PER_PAGE / NEW_PER_PAGE as usize;
        let links = std::array::from_fn(|place| match place % every {
            0 => {
                self.found += 1;
                self.found - 1
            }
            _ => self.known(),
        });
        Some(Page { number, links })
    }

    fn known(&mut self) -> u64 {
        let draw = splitmix64(&mut self.rng);
        let span = if draw & 1 == 0 { self.found.min(RECENT) } else { self.found };
        self.found - 1 - (draw >> 1) % span
    }

    /// Links to URLs that were found before, as on a page that brings nothing new.
    pub fn known_links(&mut self) -> [u64; LINKS_PER_PAGE] {
        std::array::from_fn(|_| self.known())
    }

    /// The host of a URL: below [`hosts`](Workload::hosts). Seven links of eight stay on the host of the page that they
    /// are found on, and others go anywhere.
    pub fn host_of(&self, number: u64) -> u64 {
        let mut number = number;
        // The pages are read in the order they were found, and each brings some new ones.
        while number >= self.hosts / 8 && !hash(number).is_multiple_of(8) {
            number /= NEW_PER_PAGE;
        }
        (hash(number) >> 8) % self.hosts
    }

    /// Links followed from a seed to it.
    pub fn depth_of(&self, number: u64) -> u16 {
        (64 - number.leading_zeros()) as u16
    }

    /// Writes the URL of a number, and nothing else, into `url`: around 55 bytes, a different one for each number.
    pub fn url_into(&self, number: u64, url: &mut Vec<u8>) {
        let hash = hash(number);
        url.clear();
        url.extend_from_slice(b"http://h");
        push_decimal(url, self.host_of(number));
        url.extend_from_slice(b".bench.test/section-");
        push_decimal(url, 10 + (hash >> 32) % 90);
        url.push(b'/');
        push_decimal(url, number);
        url.push(b'-');
        for shift in (0..8).rev() {
            url.push(b"0123456789abcdef"[(hash >> (32 + 4 * shift)) as usize & 15]);
        }
        url.extend_from_slice(b".html");
    }
}

/// The hash of a number: the step of the generator with that number as its state.
fn hash(number: u64) -> u64 {
    splitmix64(&mut { number })
}

/// SplitMix64: small, good enough, and the same everywhere.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `write!` would take longer than the lookup that is measured.
fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_url_is_new_once_and_nine_links_in_ten_are_known() {
        let mut load = Workload::new(30_001);
        let (mut seen, mut links, mut recent) = (HashSet::new(), 0, 0);
        let mut url = Vec::new();
        let (pages, all) = (load.pages(), load.links());
        let mut read = 0;
        while let Some(page) = load.next_page() {
            assert_eq!(page.number, read);
            read += 1;
            for number in page.links {
                load.url_into(number, &mut url);
                let found = seen.len() as u64;
                assert_eq!(seen.insert(url.clone()), number == found, "{number} of {found}");
                recent += u64::from(number < found && found - number <= RECENT);
                links += 1;
            }
        }
        assert_eq!((read, seen.len() as u64, links), (pages, 30_000, all));
        assert_eq!(links, 10 * 30_000);
        // All of the first third, and of the rest a half and what hits them by chance.
        let share = recent as f64 / (links * 9 / 10) as f64;
        assert!((0.80..0.88).contains(&share), "{share}");
    }

    #[test]
    fn urls_are_alike_in_length_and_spread_over_hosts() {
        let load = Workload::new(1_000_000);
        let mut counts = vec![0_u32; load.hosts() as usize];
        let mut url = Vec::new();
        for number in 0..load.urls() {
            counts[load.host_of(number) as usize] += 1;
            if number % 1_000 == 0 {
                load.url_into(number, &mut url);
                assert!((45..=60).contains(&url.len()), "{}", String::from_utf8_lossy(&url));
                let host = format!("http://h{}.bench.test/", load.host_of(number));
                assert!(url.starts_with(host.as_bytes()));
            }
        }
        let (used, most) = (counts.iter().filter(|&&count| count > 0).count(), *counts.iter().max().unwrap());
        assert!(used * 10 > counts.len() * 9, "{used} of {} hosts", counts.len());
        assert!(u64::from(most) < load.urls() / 100, "{most} URLs of one host");
    }

    #[test]
    fn the_load_is_the_same_everywhere() {
        let mut load = Workload::new(1_000);
        load.next_page();
        let page = load.next_page().unwrap();
        assert_eq!(page.links[..6], [2, 1, 2, 2, 2, 1]);
        let mut url = Vec::new();
        load.url_into(7, &mut url);
        assert_eq!(String::from_utf8_lossy(&url), "http://h5.bench.test/section-30/7-63cbe1e4.html");
    }
}
