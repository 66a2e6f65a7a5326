use super::entry::{SitemapEnd, SitemapEntry, SitemapError, SitemapFormat, SitemapLimits, SitemapSummary};
use super::xml;
use crate::limits::URL_BYTES_MAX;
use crate::proto::charset::CharsetReader;
use crate::proto::coding::{CodingLimits, ContentDecoder, Decoded};

/// What a file of gzip begins with, whatever its headers say.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Tells `each` the URLs of a sitemap in its order.
pub fn read(
    bytes: &[u8],
    limits: &SitemapLimits,
    each: impl FnMut(SitemapEntry<'_>),
) -> Result<SitemapSummary, SitemapError> {
    let mut unzipped = Vec::new();
    let (mut document, mut end) = (bytes, SitemapEnd::Whole);
    if bytes.starts_with(&GZIP) {
        let coding = CodingLimits { layers_max: 1, ..CodingLimits::new(limits.bytes_max) };
        end = match ContentDecoder::new().decode(b"gzip", bytes, &coding, &mut unzipped) {
            Decoded::Whole => SitemapEnd::Whole,
            Decoded::TooLarge => SitemapEnd::Limit,
            Decoded::Broken if !unzipped.is_empty() => SitemapEnd::Broken,
            Decoded::Broken | Decoded::Bomb | Decoded::Plain | Decoded::Unknown => {
                return Err(SitemapError::Coding);
            }
        };
        document = &unzipped;
    }
    let bytes_max = usize::try_from(limits.bytes_max).unwrap_or(usize::MAX);
    if document.len() > bytes_max {
        (document, end) = (&document[..bytes_max], SitemapEnd::Limit);
    }
    let mut charsets = CharsetReader::new();
    let text = String::from_utf8_lossy(charsets.read(document, b"", None).bytes);
    let text = text.trim_start();
    let summary = match text.starts_with('<') {
        true => xml::read(text, limits, each)?,
        false => read_lines(text, limits, each)?,
    };
    // A document that was cut is not well-formed for that alone.
    let end = if end == SitemapEnd::Whole { summary.end } else { end };
    Ok(SitemapSummary { end, ..summary })
}

/// A URL a line. Anything else on a line is passed over, but a document must have one URL at least.
fn read_lines(
    text: &str,
    limits: &SitemapLimits,
    mut each: impl FnMut(SitemapEntry<'_>),
) -> Result<SitemapSummary, SitemapError> {
    let (mut entries, mut skipped, mut end) = (0, 0, SitemapEnd::Whole);
    for line in text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()) {
        if line.len() > URL_BYTES_MAX || !begins_as_url(line) {
            skipped += 1;
            continue;
        }
        if entries == limits.entries_max {
            end = SitemapEnd::Limit;
            break;
        }
        entries += 1;
        each(SitemapEntry::Page { loc: line, lastmod: None });
    }
    match entries {
        0 => Err(SitemapError::Unknown),
        _ => Ok(SitemapSummary { format: SitemapFormat::Text, entries, skipped, end }),
    }
}

fn begins_as_url(line: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| line.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}
