//! Lines into groups, and the choice of the groups that are ours.

use super::agent::{Addressee, product_token};
use super::rules::EntryKind;

/// How much of a file is read: 500 KiB, which is what RFC 9309 asks at least.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;
/// How many rules are kept: as many as the part of a file that is read can hold, so that none is dropped and
/// we are let in where we were told not to go.
pub const RULES_MAX: usize = ROBOTS_BYTES_MAX / SHORTEST_RULE.len();
const SHORTEST_RULE: &str = "allow:/\n";
/// How many sitemap addresses are kept.
pub const SITEMAPS_MAX: usize = 64;
/// The longest sitemap address kept; longer ones are ignored.
pub const SITEMAP_BYTES_MAX: usize = 2_048;

/// What a file says to us, as slices of it.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    /// Patterns as written, in file order.
    pub rules: Vec<(EntryKind, &'a [u8])>,
    pub sitemaps: Vec<&'a str>,
    pub crawl_delay_ms: Option<u32>,
}

/// All groups of one addressee, merged.
#[derive(Debug, Default)]
struct Merged<'a> {
    /// Some `User-agent` line named this addressee.
    named: bool,
    rules: Vec<(EntryKind, &'a [u8])>,
    /// The longest of the delays, if groups differ.
    crawl_delay_ms: Option<u32>,
}

/// The group that lines belong to while the file is read.
#[derive(Debug, Default)]
struct Group {
    /// A `User-agent` line has come. What stands before the first one is said to nobody.
    open: bool,
    for_us: bool,
    for_anyone: bool,
    /// Rules have come: the next `User-agent` line opens another group.
    has_rules: bool,
    crawl_delay_ms: Option<u32>,
}

pub(super) fn read<'a>(bytes: &'a [u8], token: &str) -> Choice<'a> {
    let token = product_token(token).as_bytes();
    let mut us = Merged::default();
    let mut anyone = Merged::default();
    let mut sitemaps = Vec::new();
    let mut group = Group::default();

    for (key, value) in
        whole_lines(bytes).split(|octet| matches!(octet, b'\r' | b'\n')).filter_map(key_and_value)
    {
        if key.eq_ignore_ascii_case(b"user-agent") {
            if group.has_rules {
                group = Group::default();
            }
            group.open = true;
            let merged = match Addressee::of(value, token) {
                Addressee::Us => {
                    group.for_us = true;
                    &mut us
                }
                Addressee::Anyone => {
                    group.for_anyone = true;
                    &mut anyone
                }
                Addressee::Other => continue,
            };
            merged.named = true;
            // A delay does not end the list of agents, so it holds for those named after it as well.
            merged.crawl_delay_ms = merged.crawl_delay_ms.max(group.crawl_delay_ms);
        } else if key.eq_ignore_ascii_case(b"disallow") {
            group.rule(EntryKind::Disallow, value, &mut us, &mut anyone);
        } else if key.eq_ignore_ascii_case(b"allow") {
            group.rule(EntryKind::Allow, value, &mut us, &mut anyone);
        } else if key.eq_ignore_ascii_case(b"crawl-delay") {
            group.crawl_delay(delay_ms(value), &mut us, &mut anyone);
        } else if key.eq_ignore_ascii_case(b"sitemap") && sitemaps.len() < SITEMAPS_MAX {
            sitemaps.extend(sitemap(value));
        }
    }

    let Merged { rules, crawl_delay_ms, .. } = if us.named { us } else { anyone };
    Choice { rules, sitemaps, crawl_delay_ms }
}

impl Group {
    fn rule<'a>(&mut self, kind: EntryKind, pattern: &'a [u8], us: &mut Merged<'a>, anyone: &mut Merged<'a>) {
        self.has_rules = true;
        // An empty pattern matches nothing.
        if pattern.is_empty() {
            return;
        }
        for (ours, merged) in [(self.for_us, us), (self.for_anyone, anyone)] {
            if ours && merged.rules.len() < RULES_MAX {
                merged.rules.push((kind, pattern));
            }
        }
    }

    fn crawl_delay<'a>(&mut self, delay_ms: Option<u32>, us: &mut Merged<'a>, anyone: &mut Merged<'a>) {
        if !self.open {
            return;
        }
        self.crawl_delay_ms = self.crawl_delay_ms.max(delay_ms);
        for (ours, merged) in [(self.for_us, us), (self.for_anyone, anyone)] {
            if ours {
                merged.crawl_delay_ms = merged.crawl_delay_ms.max(delay_ms);
            }
        }
    }
}

/// The bytes that are read: no byte order mark, at most the limit, no line that the limit cuts.
pub(super) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let mut kept = &bytes[..bytes.len().min(ROBOTS_BYTES_MAX)];
    if let Some(next) = bytes.get(kept.len())
        && !matches!(next, b'\r' | b'\n')
    {
        let end = memchr::memrchr2(b'\r', b'\n', kept).unwrap_or(0);
        kept = &kept[..end];
    }
    kept.strip_prefix(b"\xef\xbb\xbf").unwrap_or(kept)
}

pub(super) fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = &line[..memchr::memchr(b'#', line).unwrap_or(line.len())];
    let colon = memchr::memchr(b':', line)?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// Seconds with an optional fraction, in milliseconds; what is finer is cut off, what is too large is the
/// largest. Anything else is no delay.
fn delay_ms(value: &[u8]) -> Option<u32> {
    let (whole, fraction) = match memchr::memchr(b'.', value) {
        Some(point) => (&value[..point], &value[point + 1..]),
        None => (value, &b""[..]),
    };
    if whole.is_empty() && fraction.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let digits = whole.iter().chain(fraction.iter().chain(b"000").take(3));
    Some(digits.fold(0u32, |ms, digit| ms.saturating_mul(10).saturating_add(u32::from(digit - b'0'))))
}

/// An absolute address on the web, as text fit to be logged.
fn sitemap(value: &[u8]) -> Option<&str> {
    let text = str::from_utf8(value).ok()?;
    let opens_with =
        |scheme: &[u8]| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let absolute = opens_with(b"http://") || opens_with(b"https://");
    (absolute && text.len() <= SITEMAP_BYTES_MAX && !text.chars().any(char::is_control)).then_some(text)
}
