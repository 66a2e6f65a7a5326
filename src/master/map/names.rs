use super::super::{By, MapRow};

/// Domains and what is seldom asked of them, packed one behind the other: length, name, flags, page, since, fence.
#[derive(Default)]
pub(super) struct Names {
    chunks: Vec<Vec<u8>>,
}

/// What is kept of a row beside its servers.
#[derive(PartialEq)]
pub(super) struct Cold<'a> {
    pub domain: &'a str,
    pub page: u64,
    pub since_s: u32,
    pub by: By,
    pub fence: u32,
}

const CHUNK_BITS: u32 = 20;
const CHUNK_BYTES: usize = 1 << CHUNK_BITS;
pub(super) const DOMAIN_BYTES_MAX: usize = 253;
const RECORD_BYTES_MAX: usize = 1 + DOMAIN_BYTES_MAX + 1 + 8 + 4 + 4;

const PAGE_BYTES: u8 = 0x0f;
const BY_SHIFT: u8 = 4;
const HAS_FENCE: u8 = 0x40;

impl Names {
    /// Puts a row at the end, and says where it is.
    pub fn push(&mut self, row: &Cold<'_>) -> u32 {
        debug_assert!(row.domain.len() <= DOMAIN_BYTES_MAX);
        if self.chunks.last().is_none_or(|chunk| chunk.len() + RECORD_BYTES_MAX > CHUNK_BYTES) {
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let place = (number as u32) << CHUNK_BITS | chunk.len() as u32;
        let page = row.page.to_le_bytes();
        let page = &page[..8 - row.page.leading_zeros() as usize / 8];
        let fence = if row.fence > 0 { HAS_FENCE } else { 0 };
        chunk.push(row.domain.len() as u8);
        chunk.extend_from_slice(row.domain.as_bytes());
        chunk.push(page.len() as u8 | (row.by as u8) << BY_SHIFT | fence);
        chunk.extend_from_slice(page);
        chunk.extend_from_slice(&row.since_s.to_le_bytes());
        if row.fence > 0 {
            chunk.extend_from_slice(&row.fence.to_le_bytes());
        }
        place
    }

    fn bytes(&self, place: u32) -> &[u8] {
        &self.chunks[(place >> CHUNK_BITS) as usize][place as usize & (CHUNK_BYTES - 1)..]
    }

    pub fn domain(&self, place: u32) -> &[u8] {
        let bytes = self.bytes(place);
        &bytes[1..1 + usize::from(bytes[0])]
    }

    pub fn get(&self, place: u32) -> Cold<'_> {
        let domain = self.domain(place);
        let rest = &self.bytes(place)[1 + domain.len()..];
        let (flags, rest) = (rest[0], &rest[1..]);
        let (page, rest) = rest.split_at(usize::from(flags & PAGE_BYTES));
        let word = |at: usize| crate::base::u32_at(rest, at);
        let by = match flags >> BY_SHIFT & 3 {
            0 => By::Rule,
            1 => By::Person,
            _ => By::Import,
        };
        Cold {
            domain: std::str::from_utf8(domain).unwrap_or_default(),
            page: page.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            since_s: word(0),
            by,
            fence: if flags & HAS_FENCE != 0 { word(4) } else { 0 },
        }
    }

    /// Forgets what was put at the end, from a place on.
    pub fn truncate(&mut self, place: u32) {
        self.chunks.truncate((place >> CHUNK_BITS) as usize + 1);
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.truncate(place as usize & (CHUNK_BYTES - 1));
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }
}

impl<'a> From<&'a MapRow> for Cold<'a> {
    fn from(row: &'a MapRow) -> Cold<'a> {
        let MapRow { domain, page, since_s, by, fence, .. } = row;
        Cold { domain: key(domain), page: *page, since_s: *since_s, by: *by, fence: *fence }
    }
}

/// A domain as the map has it: one that is longer than names can be goes by its end.
pub(super) fn key(domain: &str) -> &str {
    let from = domain.len().saturating_sub(DOMAIN_BYTES_MAX);
    let from = (from..domain.len()).find(|at| domain.is_char_boundary(*at)).unwrap_or(from);
    &domain[from..]
}
