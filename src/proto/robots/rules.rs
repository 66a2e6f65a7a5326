//! The rules that apply to one agent, and their verdicts.

use super::{parse, pattern};

/// What one robots.txt asks of one agent.
///
/// Patterns and sitemap addresses lie end to end in `arena`, in the order of `entries`: rules first,
/// the longest pattern first and an allow before a disallow of the same length, then sitemaps. An entry's
/// text starts where the one before it ends. A file without rules for us owns no heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    arena: Box<[u8]>,
    entries: Box<[Entry]>,
    crawl_delay_ms: Option<u32>,
}

/// The answer for one path, with the rule that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    pub allowed: bool,
    /// The pattern that decided, in canonical escapes. None if no rule matched.
    pub rule: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Where the text ends in the arena.
    end: u32,
    kind: EntryKind,
    /// The pattern has `*` or `$` operators; without, it is a prefix.
    operators: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Allow,
    Disallow,
    Sitemap,
}

const _: () = assert!(size_of::<Entry>() == 8);
// Canonical escapes write at most three octets for one.
const _: () = assert!(parse::ROBOTS_BYTES_MAX * 3 < u32::MAX as usize);

impl Robots {
    /// No rules: what a missing file means.
    pub fn allow_all() -> Robots {
        Robots::default()
    }

    /// Reads a file for the agent called `product_token`.
    ///
    /// The first [`ROBOTS_BYTES_MAX`](super::ROBOTS_BYTES_MAX) bytes are read. Of a longer file the line cut
    /// by that limit is dropped; so hand over at least one byte past it if there is one.
    pub fn parse(bytes: &[u8], product_token: &str) -> Robots {
        let parse::Choice { rules, sitemaps, crawl_delay_ms } = parse::read(bytes, product_token);

        let mut canonical = Vec::new();
        let mut patterns = Vec::with_capacity(rules.len());
        for (kind, text) in rules {
            let start = canonical.len();
            pattern::push_canonical_pattern(text, &mut canonical);
            patterns.push((kind, start..canonical.len()));
        }
        patterns.sort_unstable_by(|(a_kind, a), (b_kind, b)| {
            let by_text = || canonical[a.clone()].cmp(&canonical[b.clone()]);
            b.len().cmp(&a.len()).then_with(by_text).then((*a_kind as u8).cmp(&(*b_kind as u8)))
        });
        // Of one pattern both allowed and disallowed, the allow comes first and stays.
        patterns.dedup_by(|later, first| canonical[later.1.clone()] == canonical[first.1.clone()]);
        // Among patterns of one length a matching allow must be met before a matching disallow.
        patterns.sort_by_key(|(kind, range)| (std::cmp::Reverse(range.len()), *kind as u8));

        let texts = patterns
            .iter()
            .map(|(kind, range)| (*kind, &canonical[range.clone()]))
            .chain(sitemaps.into_iter().map(|sitemap| (EntryKind::Sitemap, sitemap.as_bytes())));
        let mut arena = Vec::new();
        let mut entries = Vec::with_capacity(patterns.len());
        for (kind, text) in texts {
            arena.extend_from_slice(text);
            let operators = kind != EntryKind::Sitemap && pattern::has_operators(text);
            entries.push(Entry { end: arena.len() as u32, kind, operators });
        }
        let robots =
            Robots { arena: arena.into_boxed_slice(), entries: entries.into_boxed_slice(), crawl_delay_ms };
        debug_assert!(robots.invariants());
        robots
    }

    /// Whether the agent may fetch this path and query, written from its `/`.
    pub fn allows(&self, path_and_query: &[u8]) -> bool {
        self.verdict(path_and_query).allowed
    }

    /// As [`allows`](Robots::allows), and by which rule: the longest pattern that matches; a tie allows.
    pub fn verdict(&self, path_and_query: &[u8]) -> Verdict<'_> {
        if self.entries.is_empty() {
            return Verdict { allowed: true, rule: None };
        }
        let path = if path_and_query.is_empty() { b"/" } else { path_and_query };
        let path = pattern::canonical_path(path);
        if *path == *b"/robots.txt" {
            return Verdict { allowed: true, rule: None };
        }
        for (entry, text) in self.texts() {
            let allowed = match entry.kind {
                EntryKind::Allow => true,
                EntryKind::Disallow => false,
                EntryKind::Sitemap => break,
            };
            let matched =
                if entry.operators { pattern::matches(text, &path) } else { path.starts_with(text) };
            if matched {
                return Verdict { allowed, rule: str::from_utf8(text).ok() };
            }
        }
        Verdict { allowed: true, rule: None }
    }

    /// The Crawl-delay of our groups, as the file has it. The cap is the caller's.
    pub fn crawl_delay_ms(&self) -> Option<u32> {
        self.crawl_delay_ms
    }

    /// Sitemap addresses, in the order of the file. They belong to no group.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.texts()
            .filter(|(entry, _)| entry.kind == EntryKind::Sitemap)
            .filter_map(|(_, text)| str::from_utf8(text).ok())
    }

    /// Takes the sitemap addresses out; only the rules stay.
    pub fn take_sitemaps(&mut self) -> Vec<Box<str>> {
        let sitemaps: Vec<Box<str>> = self.sitemaps().map(Box::from).collect();
        if !sitemaps.is_empty() {
            let rules = self.entries.iter().filter(|entry| entry.kind != EntryKind::Sitemap).count();
            self.entries = self.entries[..rules].into();
            self.arena = self.arena[..self.entries.last().map_or(0, |entry| entry.end as usize)].into();
        }
        sitemaps
    }

    /// The rules in canonical escapes: whether each allows, and its pattern.
    pub fn patterns(&self) -> impl Iterator<Item = (bool, &str)> {
        self.texts()
            .filter(|(entry, _)| entry.kind != EntryKind::Sitemap)
            .filter_map(|(entry, text)| Some((entry.kind == EntryKind::Allow, str::from_utf8(text).ok()?)))
    }

    /// Bytes of heap behind this value.
    pub fn heap_bytes(&self) -> usize {
        self.arena.len() + size_of_val(&*self.entries)
    }

    fn texts(&self) -> impl Iterator<Item = (&Entry, &[u8])> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let end = entry.end as usize;
            let text = &self.arena[start..end];
            start = end;
            (entry, text)
        })
    }

    /// Ends ascend to the arena's end; rules precede sitemaps, the longest first.
    fn invariants(&self) -> bool {
        let ends_ascend = self.entries.is_sorted_by_key(|entry| entry.end);
        let arena_is_used = self.entries.last().map_or(0, |entry| entry.end as usize) == self.arena.len();
        let in_order = self.texts().is_sorted_by_key(|(entry, text)| match entry.kind {
            EntryKind::Sitemap => (1, 0, 0),
            kind => (0, -(text.len() as i64), kind as u8),
        });
        ends_ascend && arena_is_used && in_order
    }
}
