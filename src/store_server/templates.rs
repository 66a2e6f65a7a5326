use super::dedup::url_hash;
use std::ops::RangeInclusive;

/// Earlier pages of hosts, against which their next ones are compressed: pages of one host have their frame in common.
///
/// ```text
///   root ◄── page ◄── page ◄── page          each against the page before it in its folder, up to DEPTH_MAX in a row
///     ▲
///     └───── page ◄── …                      then, and in another folder, against the host's root again
/// ```
///
/// All of them are of one segment, so that a segment can be read, copied and dropped by itself. Some pages are compressed in both
/// ways, to compare: a host whose pages have little in common is left alone, each time for longer. So is one of which nothing was
/// seen yet, as many hosts have one page and no more.
pub(super) struct Templates {
    segment: u64,
    roots: Vec<Root>,
    recent: Vec<Base>,
    /// Bytes of pages in both.
    held: usize,
    /// The next place that is emptied when there are too many.
    hand: usize,
    page: Option<Page>,
}

/// A page that others may be compressed against, as far as the dictionary goes.
#[derive(Clone, Default)]
struct Base {
    /// Of the host or the folder; 0 in an empty place.
    key: u64,
    name: BaseName,
    /// So many bases are below it.
    depth: u8,
    bytes: Vec<u8>,
}

/// Where a base is, and what it must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BaseName {
    /// Offset in its segment; 0 for none.
    pub offset: u64,
    /// Checksum of what follows its header.
    pub payload_crc: u32,
}

/// A page of a host that was compressed by itself, and how the host does.
#[derive(Clone, Default)]
struct Root {
    base: Base,
    uses: u8,
    /// Roots of the host since pages were compressed in both ways.
    roots: u8,
    trial: Trial,
    /// So many pages more are compressed by themselves; after the next trial in vain it is more.
    rests: u32,
    rests_next: u32,
}

/// Pages that are compressed in both ways.
#[derive(Clone, Default)]
struct Trial {
    is_on: bool,
    pages: usize,
    /// What they took, in hundredths of what they take by themselves.
    hundredths: usize,
}

/// What a page is compressed against.
pub(super) struct Against<'a> {
    pub name: BaseName,
    pub bytes: &'a [u8],
    /// What it takes by itself is to be told, too.
    pub is_trial: bool,
}

/// The page that is being written.
struct Page {
    root: usize,
    recent: usize,
    folder: u64,
    /// Nothing below it: it is the root from now on.
    is_root: bool,
    depth: u8,
}

/// Bytes of a page that others are compressed against. With a page of the usual size behind it, that is in the reach of LZ4.
pub(super) const BASE_BYTES_MAX: usize = 48 << 10;
/// Bases in a row. Whoever reads a page reads them, too.
pub(super) const DEPTH_MAX: u8 = 4;
/// A root that is damaged takes the pages of this many rows with it.
const USES_MAX: u8 = 16;
/// A shorter page has no frame to speak of, and a longer one has it out of reach for the most part.
const PAGE_BYTES: RangeInclusive<usize> = 1 << 10..=128 << 10;
/// Pages of a host that are compressed in both ways, with its first root and every so many.
const TRIALS: usize = 3;
const ROOTS_PER_TRIAL: u8 = 4;
/// So many of them must take no more than so many hundredths, together, of what one takes by itself, or the host rests for so many
/// pages: four times as many each time that it is in vain again. One alone may be unlike the root by chance.
const HUNDREDTHS_MAX: [usize; TRIALS] = [78, 148, 210];
const RESTS: u32 = 64;
const RESTS_MAX: u32 = 16_384;
/// Places of roots, and of the last pages of folders.
const PLACES: usize = 1 << 10;
/// Bytes that are kept of pages.
const HELD_BYTES_MAX: usize = 24 << 20;

impl Templates {
    pub fn new() -> Templates {
        Templates { segment: 0, roots: Vec::new(), recent: Vec::new(), held: 0, hand: 0, page: None }
    }

    /// What a page is to be compressed against, if anything. What becomes of it is to be told.
    pub fn base_for(&mut self, url: &str, bytes: usize, segment: u64) -> Option<Against<'_>> {
        self.page = None;
        if !PAGE_BYTES.contains(&bytes) {
            return None;
        }
        self.begin(segment);
        let (host, folder) = keys_of(url);
        let root = host as usize % PLACES;
        let recent = folder as usize % PLACES;
        let known = &mut self.roots[root];
        if known.base.key != host {
            self.held -= known.base.bytes.len();
            *known = Root { base: Base::empty(host), ..Root::default() };
            return None;
        }
        if known.rests > 0 {
            known.rests -= 1;
            return None;
        }
        let last = &self.recent[recent];
        // What is left of a host that has no root any more is of no use.
        let has_root = known.base.is_for(host);
        let (depth, base) = if has_root && last.is_for(folder) && last.depth < DEPTH_MAX {
            (last.depth + 1, Some(last))
        } else if has_root && known.uses < USES_MAX {
            known.uses += 1;
            (1, Some(&known.base))
        } else {
            (0, None)
        };
        self.page = Some(Page { root, recent, folder, is_root: depth == 0, depth });
        let is_trial = known.trial.is_on;
        base.map(|base| Against { name: base.name, bytes: &base.bytes, is_trial })
    }

    /// The page takes so many bytes by itself, and so many against its base.
    pub fn tried(&mut self, alone: usize, based: usize) {
        let Some(page) = &self.page else { return };
        let root = &mut self.roots[page.root];
        match root.trial.note(alone, based) {
            Some(true) => root.rests_next = 0,
            Some(false) => {
                self.held -= root.base.bytes.len();
                root.rest();
                self.page = None;
            }
            None => {}
        }
    }

    /// The page is a record by this name.
    pub fn note(&mut self, name: BaseName, plain: &[u8]) {
        let Some(Page { root, recent, folder, is_root, depth }) = self.page.take() else { return };
        let base = if is_root {
            let root = &mut self.roots[root];
            root.begins();
            &mut root.base
        } else {
            let base = &mut self.recent[recent];
            base.key = folder;
            base
        };
        self.held -= base.bytes.len();
        (base.name, base.depth) = (name, depth);
        base.bytes.clear();
        base.bytes.extend_from_slice(dictionary(plain));
        self.held += base.bytes.len();
        self.make_room();
    }

    /// Bases are of one segment.
    fn begin(&mut self, segment: u64) {
        if self.segment == segment {
            return;
        }
        self.segment = segment;
        self.roots.resize_with(PLACES, Root::default);
        self.recent.resize_with(PLACES, Base::default);
        let roots = self.roots.iter_mut().map(|root| &mut root.base);
        for base in roots.chain(&mut self.recent) {
            *base = Base::empty(base.key);
        }
        self.held = 0;
    }

    /// Pages go, whichever comes next, until few enough are held.
    fn make_room(&mut self) {
        while self.held > HELD_BYTES_MAX {
            let base = match self.hand % (2 * PLACES) {
                root @ ..PLACES => &mut self.roots[root].base,
                recent => &mut self.recent[recent - PLACES],
            };
            self.held -= base.bytes.len();
            *base = Base::empty(base.key);
            self.hand += 1;
        }
    }
}

impl Root {
    /// Another page is the root from now on.
    fn begins(&mut self) {
        if self.roots.is_multiple_of(ROOTS_PER_TRIAL) {
            self.trial = Trial { is_on: true, ..Trial::default() };
        }
        (self.uses, self.roots) = (0, (self.roots + 1) % ROOTS_PER_TRIAL);
    }

    fn rest(&mut self) {
        let rests = self.rests_next.max(RESTS);
        let rests_next = (4 * rests).min(RESTS_MAX);
        *self = Root { base: Base::empty(self.base.key), rests, rests_next, ..Root::default() };
    }
}

impl Trial {
    /// Whether it has paid, once it is over. It is over as soon as it is in vain.
    fn note(&mut self, alone: usize, based: usize) -> Option<bool> {
        self.hundredths += 100 * based / alone.max(1);
        let hundredths_max = HUNDREDTHS_MAX.get(self.pages).copied().unwrap_or(0);
        self.pages += 1;
        let has_paid = self.hundredths <= hundredths_max;
        self.is_on = has_paid && self.pages < TRIALS;
        (!self.is_on).then_some(has_paid)
    }
}

impl Base {
    fn is_for(&self, key: u64) -> bool {
        self.key == key && self.name.offset != 0
    }

    fn empty(key: u64) -> Base {
        Base { key, ..Base::default() }
    }
}

/// The part of a page that others are compressed against.
pub(super) fn dictionary(plain: &[u8]) -> &[u8] {
    &plain[..plain.len().min(BASE_BYTES_MAX)]
}

/// Hashes of the host of a URL, and of its folder.
fn keys_of(url: &str) -> (u64, u64) {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let host_from = url.find("://").map_or(0, |at| at + 3);
    let host_to = url[host_from..].find('/').map_or(url.len(), |at| host_from + at);
    let folder_to = url.rfind('/').filter(|at| *at > host_to).unwrap_or(host_to);
    let key = |to: usize, salt: u64| (url_hash(&url.as_bytes()[..to]) ^ salt).max(1);
    // The folder of a page at the top has the text of its host.
    (key(host_to, 0), key(folder_to, FOLDER))
}

const FOLDER: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(offset: u64) -> BaseName {
        BaseName { offset, payload_crc: offset as u32 }
    }

    /// Writes a page of 4,096 bytes that takes 1,000 by itself and `based` with a base, and says with which one.
    fn wrote(templates: &mut Templates, url: &str, offset: u64, based: usize) -> Option<u64> {
        let against =
            templates.base_for(url, 4_096, 1).map(|against| (against.name.offset, against.is_trial));
        if let Some((_, true)) = against {
            templates.tried(1_000, based);
        }
        templates.note(name(offset), &[b'a'; 4_096]);
        against.map(|(base, _)| base)
    }

    #[test]
    fn pages_follow_each_other_in_their_folder_and_rows_begin_at_the_root() {
        let mut templates = Templates::new();
        let mut wrote = |url: &str, offset| wrote(&mut templates, url, offset, 300);
        assert_eq!(wrote("http://h/", 8), None, "the first of its host, of which there may be no other");
        assert_eq!(wrote("http://h/0", 16), None, "the root");
        assert_eq!(wrote("http://h/a/1", 24), Some(16));
        assert_eq!(wrote("http://h/a/2?x=/b/", 32), Some(24));
        assert_eq!(wrote("http://h/b/1", 40), Some(16), "another folder");
        assert_eq!(wrote("http://h/a/3", 48), Some(32));
        assert_eq!(wrote("http://h/a/4", 56), Some(48));
        assert_eq!(wrote("http://h/a/5", 64), Some(16), "four in a row are enough");
        assert_eq!(wrote("http://i/a/1", 72), None, "another host");
        assert_eq!(wrote("http://h/a/6", 80), Some(64));
    }

    #[test]
    fn a_root_is_not_used_for_ever() {
        let mut templates = Templates::new();
        let is_root = |n: &u64| wrote(&mut templates, &format!("http://h/{n}/"), 8 * n, 300).is_none();
        let roots: Vec<u64> = (1..200).filter(is_root).skip(1).collect();
        assert_eq!(roots, (2..200).step_by(17).collect::<Vec<u64>>());
    }

    #[test]
    fn a_host_that_does_not_gain_is_left_alone_for_longer_and_longer() {
        // The fewer pages were tried, the less they must have gained.
        for (based, pages) in [(790, 1), (760, 2), (720, 3)] {
            let mut templates = Templates::new();
            let is_tried = |n: &u64| wrote(&mut templates, &format!("http://h/{n}"), 8 * n, based).is_some();
            let tried: Vec<u64> = (1..=1_400).filter(is_tried).collect();
            let rests = [64, 64 + 256, 64 + 256 + 1_024];
            let after = |trial: u64, rests: u64| (3..3 + pages).map(move |n| n + (pages + 1) * trial + rests);
            let expected =
                after(0, 0).chain((1..4).zip(rests).flat_map(|(trial, rests)| after(trial, rests)));
            assert_eq!(tried, expected.collect::<Vec<u64>>(), "{based}");
        }
        // What counts is what pages gain together.
        let mut templates = Templates::new();
        let is_tried = |n: &u64| {
            let based = if n.is_multiple_of(3) { 300 } else { 900 };
            wrote(&mut templates, &format!("http://h/{n}"), 8 * n, based).is_some()
        };
        assert_eq!((1..60).filter(is_tried).count(), 57);
    }

    #[test]
    fn a_host_that_gains_is_tried_again_now_and_then() {
        let mut templates = Templates::new();
        let mut trials = Vec::new();
        for n in 1..200 {
            // Each page is in a folder of its own, and against the root.
            let against = templates.base_for(&format!("http://h/{n}/"), 4_096, 1);
            if against.is_some_and(|against| against.is_trial) {
                trials.push(n);
                templates.tried(1_000, 300);
            }
            templates.note(name(8 * n), &[b'a'; 4_096]);
        }
        assert_eq!(trials, [3, 4, 5, 71, 72, 73, 139, 140, 141]);
    }

    #[test]
    fn another_segment_has_no_bases_and_a_host_rests_on() {
        let mut templates = Templates::new();
        for n in 1..=5 {
            wrote(&mut templates, &format!("http://h/{n}"), 8 * n, 1_000);
            wrote(&mut templates, &format!("http://i/{n}"), 800 * n, 300);
        }
        assert!(templates.base_for("http://i/9", 4_096, 1).is_some());
        assert!(templates.base_for("http://i/9", 4_096, 2).is_none());
        assert!(templates.page.is_some(), "a root");
        assert!(templates.base_for("http://h/9", 4_096, 2).is_none());
        assert!(templates.page.is_none(), "it rests");
        assert_eq!(templates.held, 0);
    }

    #[test]
    fn what_is_held_has_a_bound() {
        let mut templates = Templates::new();
        let page = vec![b'a'; 60 << 10];
        for n in 1..3_000_u64 {
            for _ in 0..2 {
                assert!(templates.base_for(&format!("http://h{n}/"), page.len(), 1).is_none());
            }
            templates.note(name(8 * n), &page);
            assert!(templates.held <= HELD_BYTES_MAX);
        }
        let held: usize = templates.roots.iter().map(|root| root.base.bytes.len()).sum();
        assert_eq!(held, templates.held);
        let kept: usize = templates.roots.iter().map(|root| root.base.bytes.capacity()).sum();
        assert!(kept <= HELD_BYTES_MAX + (8 << 20), "{kept}");
        assert!(held > HELD_BYTES_MAX / 2);
    }

    #[test]
    fn what_is_small_has_no_frame() {
        let mut templates = Templates::new();
        wrote(&mut templates, "http://h/0", 8, 900);
        wrote(&mut templates, "http://h/1", 16, 900);
        assert!(templates.base_for("http://h/2", 1_023, 1).is_none());
        assert!(templates.page.is_none());
        assert!(templates.base_for("http://h/2", 1_024, 1).is_some());
    }
}
