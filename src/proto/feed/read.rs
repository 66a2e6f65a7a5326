use super::decode::decode;
use super::facts::{FeedEntry, FeedError, FeedFacts, FeedLimits, FeedSource};
use super::{json, xml};
use crate::limits::SITEMAP_BYTES_MAX;
use crate::proto::coding::{CodingLimits, ContentDecoder, Decoded};

/// What a file of gzip begins with, whatever its headers say.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Tells `entry` the entries of a feed in its order, and returns what the feed says of itself.
pub fn read(
    bytes: &[u8],
    about: &FeedSource<'_>,
    limits: &FeedLimits,
    entry: impl FnMut(FeedEntry<'_>),
) -> Result<FeedFacts, FeedError> {
    if !bytes.starts_with(&GZIP) {
        return read_plain(bytes, about, limits, entry);
    }
    let mut unzipped = Vec::new();
    let coding = CodingLimits { layers_max: 1, ..CodingLimits::new(SITEMAP_BYTES_MAX) };
    let damage = match ContentDecoder::new().decode(b"gzip", bytes, &coding, &mut unzipped) {
        Decoded::Whole => None,
        Decoded::TooLarge => Some("it is too large"),
        Decoded::Broken if !unzipped.is_empty() => Some("its gzip coding is broken"),
        _ => return Err(FeedError::Coding),
    };
    let facts = read_plain(&unzipped, about, limits, entry)?;
    Ok(FeedFacts { damage: damage.or(facts.damage), ..facts })
}

fn read_plain(
    bytes: &[u8],
    about: &FeedSource<'_>,
    limits: &FeedLimits,
    entry: impl FnMut(FeedEntry<'_>),
) -> Result<FeedFacts, FeedError> {
    let (text, damage) = decode(bytes, about.content_type);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\0'));
    if text.is_empty() {
        return Err(FeedError::Empty);
    }
    let facts = match text.starts_with('{') {
        true => json::read(text, about, limits, entry)?,
        false => xml::read(text, about, limits, entry)?,
    };
    Ok(FeedFacts { damage: damage.or(facts.damage), ..facts })
}
