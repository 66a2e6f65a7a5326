//! A guard against URLs that differ only in what their parameters say.

use crate::base::fingerprint;

/// Counts the URLs that were taken in of one host, path and set of parameter names, and says when there are too many: a
/// calendar, a filter that combines with all others, a search that answers to anything.
///
/// The order of parameters does not matter, nor how often one is repeated. The counts live in a table of fixed size,
/// two places for each hash; the smaller count makes room. What is pushed out begins again from one, so a trap that is
/// one of very many may get further than it should, and no honest path is ever counted for another but by a clash of 49
/// bits.
pub struct QueryVariants {
    /// 0 = no guard, and no table.
    max: u32,
    sets: Box<[[Place; WAYS]]>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    /// Half of the hash; 0 marks an empty place.
    tag: u32,
    count: u32,
}

const WAYS: usize = 2;
/// 2^18 places of 8 bytes: 2 MiB.
const SETS: usize = 1 << 17;
const _: () = assert!(size_of::<Place>() == 8 && SETS.is_power_of_two());

/// Names that are told apart. All URLs of a path with more of them are of one kind.
const NAMES_MAX: usize = 32;

impl QueryVariants {
    pub fn new(max: u32) -> QueryVariants {
        let sets = if max == 0 { 0 } else { SETS };
        QueryVariants { max, sets: vec![[Place::default(); WAYS]; sets].into() }
    }

    pub fn ram_bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// How many were counted of the kind of a URL. What was pushed out is not.
    pub fn count(&self, url: &str) -> u32 {
        let place = self.place_of(url);
        place
            .and_then(|(set, tag)| self.sets[set].iter().find(|place| place.tag == tag))
            .map_or(0, |place| place.count)
    }

    /// The set and the tag of a URL; `None` of one that is not counted.
    fn place_of(&self, url: &str) -> Option<(usize, u32)> {
        let url = url.as_bytes();
        let mark = memchr::memchr(b'?', url).filter(|_| self.max > 0)?;
        let kind = kind_of(&url[..mark], &url[mark + 1..]);
        Some((kind as usize & (SETS - 1), ((kind >> 32) as u32).max(1)))
    }

    /// Whether a URL, in normal form and known to be new, may be taken in. If it may, it is counted.
    pub fn admit(&mut self, url: &str) -> bool {
        let Some((set, tag)) = self.place_of(url) else { return true };
        let set = &mut self.sets[set];
        if let Some(place) = set.iter_mut().find(|place| place.tag == tag) {
            let admitted = place.count < self.max;
            place.count += u32::from(admitted);
            return admitted;
        }
        let smaller = usize::from(set[1].count < set[0].count);
        set[smaller] = Place { tag, count: 1 };
        true
    }
}

/// One number for the host, the path and the set of names of a URL.
fn kind_of(before: &[u8], query: &[u8]) -> u64 {
    // http and https are one host.
    let start = memchr::memmem::find(before, b"://").map_or(0, |at| at + 3);
    let mut kind = fingerprint(&before[start..]);
    let mut names = [0; NAMES_MAX];
    let mut count = 0;
    for part in query.split(|&octet| octet == b'&').filter(|part| !part.is_empty()) {
        let name = &part[..memchr::memchr(b'=', part).unwrap_or(part.len())];
        let name = fingerprint(name);
        if names[..count].contains(&name) {
            continue;
        }
        if count == NAMES_MAX {
            return mixed(kind, u64::MAX);
        }
        names[count] = name;
        count += 1;
    }
    let names = &mut names[..count];
    names.sort_unstable();
    for name in names {
        kind = mixed(kind, *name);
    }
    mixed(kind, count as u64)
}

/// Both halves of a product: every bit of either number counts for every bit of the result.
fn mixed(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xc2b2_ae3d_27d4_eb4f);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(guard: &mut QueryVariants, urls: impl IntoIterator<Item = String>) -> usize {
        urls.into_iter().filter(|url| guard.admit(url)).count()
    }

    #[test]
    fn values_are_counted_and_names_are_told_apart() {
        let mut guard = QueryVariants::new(100);
        assert_eq!(guard.count("http://h/p?page=1"), 0);
        assert_eq!(admitted(&mut guard, (0..500).map(|n| format!("http://h/p?page={n}"))), 100);
        assert_eq!((guard.count("http://h/p?page=x"), guard.count("http://h/p?other")), (100, 0));
        assert_eq!(guard.count("http://h/p"), 0);
        assert_eq!(admitted(&mut guard, (0..500).map(|n| format!("https://h/p?page={n}x"))), 0, "one host");
        assert_eq!(admitted(&mut guard, (0..50).map(|n| format!("http://h/p?page={n}&sort=a"))), 50);
        assert_eq!(admitted(&mut guard, (0..50).map(|n| format!("http://h/q?page={n}"))), 50);
        assert_eq!(admitted(&mut guard, (0..50).map(|n| format!("http://g/p?page={n}"))), 50);
        assert_eq!(admitted(&mut guard, (0..500).map(|n| format!("http://h/p/{n}"))), 500, "no query");
    }

    #[test]
    fn order_and_repetition_make_no_difference() {
        let mut guard = QueryVariants::new(3);
        for url in ["http://h/?a=1&b=2", "http://h/?b=1&a=2", "http://h/?a&a=3&&b&a"] {
            assert!(guard.admit(url), "{url}");
        }
        assert!(!guard.admit("http://h/?b&a"));
        assert!(guard.admit("http://h/?a") && guard.admit("http://h/?") && guard.admit("http://h/?ab"));
        let many = |n: usize| (0..NAMES_MAX + 1 + n).map(|name| format!("f{name}&")).collect::<String>();
        let facets = (0..50).map(|n| format!("http://h/?{}", many(n)));
        assert_eq!(admitted(&mut guard, facets), 3, "past the names told apart, all are one kind");
    }

    #[test]
    fn no_guard_costs_nothing() {
        let mut guard = QueryVariants::new(0);
        assert!(guard.sets.is_empty());
        assert_eq!(admitted(&mut guard, (0..999).map(|n| format!("http://h/?a={n}"))), 999);
    }

    #[test]
    fn a_busy_path_keeps_its_count_among_many_small_ones() {
        let mut guard = QueryVariants::new(1_000);
        assert_eq!(admitted(&mut guard, (0..1_000).map(|n| format!("http://trap/?day={n}"))), 1_000);
        let honest = (0..2 * SETS * WAYS).map(|n| format!("http://h/{n}?id=1"));
        assert_eq!(admitted(&mut guard, honest), 2 * SETS * WAYS);
        assert_eq!(admitted(&mut guard, (0..9).map(|n| format!("http://trap/?day={n}x"))), 0);
    }

    #[test]
    fn kinds_are_spread_over_the_table() {
        let mut counts = vec![0_u32; 256];
        for n in 0..65_536 {
            counts[kind_of(format!("http://h/{n}").as_bytes(), b"a=1&b=2") as usize & 255] += 1;
        }
        assert!(counts.iter().all(|&count| (150..380).contains(&count)), "{counts:?}");
    }
}
