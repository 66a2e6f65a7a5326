use crate::base::front_code::{put_text, take_text};
use crate::base::varint::{put, take, take_bytes, take_u32};
use crate::limits::{REDIRECTS_MAX, URL_BYTES_MAX};
use crate::proto::job::{DocKind, Provenance};
use crate::proto::partition::Partition;

/// One URL of a batch, in normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlItem<'a> {
    pub partition: Partition,
    pub url: &'a str,
    pub news: UrlNews,
}

/// What is told of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlNews {
    /// It was found, and is its owner's to fetch.
    Found(Found),
    /// Its host is in scope from now on; nothing is to be fetched.
    Scope,
}

/// How a URL was found, and how much it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub provenance: Provenance,
    pub priority: u8,
    /// How often it was asked for elsewhere.
    pub hits: u32,
}

/// In the first byte of an item. Bits without a name are 0, and so are all but the two of a URL in scope.
const SCOPE: u8 = 1 << 0;
const KIND_SHIFT: u32 = 1;
const KIND: u8 = 3 << KIND_SHIFT;
const SEED_CHAIN: u8 = 1 << 3;
const HEAD_ONLY: u8 = 1 << 4;
/// Hits follow; without them there are none.
const HITS: u8 = 1 << 5;
/// The partition is that of the item before; without it, it follows.
const SAME_PARTITION: u8 = 1 << 6;

/// Bytes of the longest item beside its URL: the first byte, partition, two lengths, depth, hops, priority, hits.
pub(super) const ITEM_BYTES_BESIDE_URL: usize = 1 + 2 + 2 * 2 + 3 + 1 + 1 + 5;

/// The item before, which the next one is told by.
#[derive(Clone, Debug, Default)]
pub(super) struct LastItem {
    partition: Option<Partition>,
    url: String,
}

impl LastItem {
    pub fn clear(&mut self) {
        self.partition = None;
        self.url.clear();
    }
}

impl UrlItem<'_> {
    /// Why another node would not take it.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let is_http = self.url.starts_with("http://") || self.url.starts_with("https://");
        if self.url.len() > URL_BYTES_MAX {
            return Some("with a URL over its bound");
        }
        if !is_http || !self.url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some("with a URL that is not in normal form");
        }
        match self.news {
            UrlNews::Found(found) if found.provenance.hops > REDIRECTS_MAX => {
                Some("with a URL behind too many redirects")
            }
            _ => None,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, last: &mut LastItem) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let same = last.partition.replace(self.partition) == Some(self.partition);
        let first = bit(same, SAME_PARTITION)
            | match self.news {
                UrlNews::Scope => SCOPE,
                UrlNews::Found(Found { provenance, hits, .. }) => {
                    (provenance.kind as u8) << KIND_SHIFT
                        | bit(provenance.seed_chain, SEED_CHAIN)
                        | bit(provenance.head_only, HEAD_ONLY)
                        | bit(hits != 0, HITS)
                }
            };
        out.push(first);
        if !same {
            put(out, u64::from(self.partition.get()));
        }
        put_text(out, self.url, &mut last.url);
        if let UrlNews::Found(Found { provenance, priority, hits }) = self.news {
            put(out, u64::from(provenance.depth));
            out.extend_from_slice(&[provenance.hops, priority]);
            if hits != 0 {
                put(out, u64::from(hits));
            }
        }
    }

    /// Takes an item off the front, or says why it is none.
    pub(super) fn read<'l>(bytes: &mut &[u8], last: &'l mut LastItem) -> Result<UrlItem<'l>, &'static str> {
        const CUT: &str = "that ends within an item, or with one out of range";
        let first = take_bytes(bytes, 1).ok_or(CUT)?[0];
        let (is_scope, same) = (first & SCOPE != 0, first & SAME_PARTITION != 0);
        let known = if is_scope { SCOPE } else { KIND | SEED_CHAIN | HEAD_ONLY | HITS } | SAME_PARTITION;
        if first & !known != 0 {
            return Err("with an item that this version does not know");
        }
        if !same {
            let number = take(bytes).and_then(|number| u16::try_from(number).ok()).ok_or(CUT)?;
            last.partition = Some(Partition::new(number).ok_or("with a partition out of range")?);
        }
        let partition = last.partition.ok_or("with an item whose partition is not told")?;
        let url = take_text(bytes, &mut last.url).ok_or(CUT)?;
        let news = if is_scope {
            UrlNews::Scope
        } else {
            let depth = take(bytes).and_then(|depth| u16::try_from(depth).ok()).ok_or(CUT)?;
            let &[hops, priority] = take_bytes(bytes, 2).ok_or(CUT)? else { return Err(CUT) };
            let hits = if first & HITS != 0 { take_u32(bytes).ok_or(CUT)? } else { 0 };
            let kind = DocKind::from_bits(first >> KIND_SHIFT);
            let (seed_chain, head_only) = (first & SEED_CHAIN != 0, first & HEAD_ONLY != 0);
            let provenance = Provenance { kind, depth, hops, seed_chain, head_only };
            UrlNews::Found(Found { provenance, priority, hits })
        };
        let item = UrlItem { partition, url, news };
        match item.fault() {
            Some(fault) => Err(fault),
            None => Ok(item),
        }
    }
}

const _: () = assert!(URL_BYTES_MAX < 1 << 14, "a length has two bytes");
