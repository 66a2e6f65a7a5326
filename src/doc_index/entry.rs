use super::varint::{put, take, take_bytes, take_u32};
use crate::proto::job::DocKind;

/// Where a URL was come by, and what it is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The document that named it; 0 for a seed.
    pub via: u32,
    /// Links followed from a seed; redirects do not count.
    pub depth: u16,
    /// Redirects followed from the first URL of this chain.
    pub hops: u8,
    /// A seed, or reached from one by redirects alone.
    pub seed_chain: bool,
    /// Whether it is there and has changed is all that is asked.
    pub head_only: bool,
    pub kind: DocKind,
    /// The higher, the sooner; [`PRIORITY_USUAL`] if nobody said anything.
    pub priority: u8,
    /// How often it was asked for elsewhere, as far as anybody told.
    pub hits: u32,
}

/// The priority of what nobody said anything about; the highest is [`PRIORITY_MAX`].
pub const PRIORITY_USUAL: u8 = 5;
pub const PRIORITY_MAX: u8 = 15;

impl Origin {
    pub const SEED: Origin = Origin {
        via: 0,
        depth: 0,
        hops: 0,
        seed_chain: true,
        head_only: false,
        kind: DocKind::Content,
        priority: PRIORITY_USUAL,
        hits: 0,
    };

    /// Of a link on a page.
    pub const fn link(via: u32, depth: u16) -> Origin {
        Origin { via, depth, seed_chain: false, ..Origin::SEED }
    }

    /// What comes first: the more urgent, then the nearer to a seed, then what is asked for most. Lower is sooner.
    pub(super) fn rank(&self) -> u16 {
        let priority = u16::from(PRIORITY_MAX - self.priority.min(PRIORITY_MAX));
        let hits = 15 - (32 - self.hits.leading_zeros()).min(15) as u16;
        priority << 12 | self.depth.min(0xff) << 4 | hits
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, tag: u8) {
        let extra = self.priority != PRIORITY_USUAL || self.hits != 0;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = bit(self.seed_chain, SEED_CHAIN) | bit(self.head_only, HEAD_ONLY) | bit(extra, EXTRA);
        out.push(tag | (self.kind as u8) << KIND_SHIFT | flags);
        put(out, u64::from(self.via));
        put(out, u64::from(self.depth));
        out.push(self.hops);
        if extra {
            out.push(self.priority);
            put(out, u64::from(self.hits));
        }
    }

    /// What stands after the first byte, which is given.
    pub(super) fn read(first: u8, bytes: &mut &[u8]) -> Option<Origin> {
        let via = take_u32(bytes)?;
        let depth = take(bytes)?.try_into().ok()?;
        let hops = take_bytes(bytes, 1)?[0];
        let (mut priority, mut hits) = (PRIORITY_USUAL, 0);
        if first & EXTRA != 0 {
            priority = take_bytes(bytes, 1)?[0];
            hits = take_u32(bytes)?;
        }
        let (seed_chain, head_only) = (first & SEED_CHAIN != 0, first & HEAD_ONLY != 0);
        let kind = DocKind::from_bits(first >> KIND_SHIFT);
        Some(Origin { via, depth, hops, seed_chain, head_only, kind, priority, hits })
    }
}

/// One thing that the ledger tells. The first byte of each has a tag in its three lowest bits, and for URLs the kind
/// and flags above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// A URL that was new; its number is the next.
    Doc { origin: Origin, url: &'a str },
    /// A URL of which only the disk could tell whether it is known. It counts unless a `Settled` follows.
    Doubt { origin: Origin, url: &'a str },
    /// All doubts up to here were settled.
    Settled,
    /// Where a seed's redirects ended: in scope.
    Scope { url: &'a str },
    /// A process began to work on this, by these rules.
    Run { rules: u64 },
}

const TAG: u8 = 7;
pub(super) const DOC: u8 = 0;
const DOUBT: u8 = 1;
const SETTLED: u8 = 2;
const SCOPE: u8 = 3;
const RUN: u8 = 4;
const KIND_SHIFT: u8 = 3;
const SEED_CHAIN: u8 = 1 << 5;
const HEAD_ONLY: u8 = 1 << 6;
const EXTRA: u8 = 1 << 7;

impl Entry<'_> {
    /// Writes an entry. A URL is told by how much of it is as in the one before, `last`, and the rest.
    pub fn write(&self, out: &mut Vec<u8>, last: &mut String) {
        match self {
            Entry::Doc { origin, url } => {
                origin.write(out, DOC);
                write_url(out, url, last);
            }
            Entry::Doubt { origin, url } => {
                origin.write(out, DOUBT);
                write_url(out, url, last);
            }
            Entry::Settled => out.push(SETTLED),
            Entry::Scope { url } => {
                out.push(SCOPE);
                write_url(out, url, last);
            }
            Entry::Run { rules } => {
                out.push(RUN);
                out.extend_from_slice(&rules.to_le_bytes());
            }
        }
    }

    /// Takes an entry off the front. `last` is the URL before, and becomes this one.
    pub fn read<'a>(bytes: &mut &[u8], last: &'a mut String) -> Option<Entry<'a>> {
        let first = take_bytes(bytes, 1)?[0];
        Some(match first & TAG {
            tag @ (DOC | DOUBT) => {
                let origin = Origin::read(first, bytes)?;
                let url = read_url(bytes, last)?;
                if tag == DOC { Entry::Doc { origin, url } } else { Entry::Doubt { origin, url } }
            }
            SETTLED => Entry::Settled,
            SCOPE => Entry::Scope { url: read_url(bytes, last)? },
            RUN => Entry::Run { rules: u64::from_le_bytes(take_bytes(bytes, 8)?.try_into().ok()?) },
            _ => return None,
        })
    }
}

fn write_url(out: &mut Vec<u8>, url: &str, last: &mut String) {
    let same = url.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    // A URL in normal form is ASCII; of any other the cut must not fall into a character.
    let same = (0..=same).rev().find(|&at| url.is_char_boundary(at)).unwrap_or(0);
    put(out, same as u64);
    put(out, (url.len() - same) as u64);
    out.extend_from_slice(&url.as_bytes()[same..]);
    last.truncate(same);
    last.push_str(&url[same..]);
}

fn read_url<'a>(bytes: &mut &[u8], last: &'a mut String) -> Option<&'a str> {
    let same = take(bytes)? as usize;
    let count = take(bytes)? as usize;
    let rest = str::from_utf8(take_bytes(bytes, count)?).ok()?;
    if !last.is_char_boundary(same) {
        return None;
    }
    last.truncate(same);
    last.push_str(rest);
    Some(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_went() {
        let odd = Origin {
            via: u32::MAX,
            depth: u16::MAX,
            hops: 10,
            seed_chain: false,
            head_only: true,
            kind: DocKind::Sitemap,
            priority: 15,
            hits: u32::MAX,
        };
        let entries = [
            Entry::Run { rules: u64::MAX },
            Entry::Doc { origin: Origin::SEED, url: "http://a.test/one" },
            Entry::Doc { origin: odd, url: "http://a.test/one/two" },
            Entry::Scope { url: "http://a.test/" },
            Entry::Doubt { origin: Origin::link(7, 2), url: "http://ä.test/ö" },
            Entry::Doubt { origin: Origin::link(7, 2), url: "http://ä.test/õ" },
            Entry::Settled,
        ];
        let (mut out, mut last) = (Vec::new(), String::new());
        entries.iter().for_each(|entry| entry.write(&mut out, &mut last));
        let (mut rest, mut last) = (&out[..], String::new());
        for entry in &entries {
            assert_eq!(Entry::read(&mut rest, &mut last).as_ref(), Some(entry));
        }
        assert!(rest.is_empty());
        // Cut anywhere, it is never taken for something else.
        for cut in 0..out.len() {
            let (mut rest, mut last) = (&out[..cut], String::new());
            for entry in &entries {
                match Entry::read(&mut rest, &mut last) {
                    Some(read) => assert_eq!(&read, entry),
                    None => break,
                }
            }
        }
    }

    #[test]
    fn rank_is_priority_then_depth_then_hits() {
        let rank = |priority, depth, hits| Origin { priority, depth, hits, ..Origin::SEED }.rank();
        assert!(rank(6, 9, 0) < rank(5, 0, 9), "the more urgent first");
        assert!(rank(5, 1, 0) < rank(5, 2, 999), "then the nearer");
        assert!(rank(5, 1, 9) < rank(5, 1, 1), "then the more wanted");
        assert_eq!(rank(5, 255, 0), rank(5, 999, 0));
        assert_eq!(rank(15, 0, u32::MAX), 0);
    }
}
