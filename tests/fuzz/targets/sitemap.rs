use nephila::limits::URL_BYTES_MAX;
use nephila::proto::sitemap::{
    SitemapEntry, SitemapError, SitemapFormat, SitemapLimits, SitemapSummary, read,
};

const LIMITS: SitemapLimits = SitemapLimits { entries_max: 20, bytes_max: 1 << 16, elements_deep_max: 8 };

type Entries = Vec<(bool, String, Option<u32>)>;

fn entries(bytes: &[u8]) -> (Entries, Result<SitemapSummary, SitemapError>) {
    let mut found = Vec::new();
    let summary = read(bytes, &LIMITS, |entry| {
        found.push(match entry {
            SitemapEntry::Page { loc, lastmod } => (false, loc.to_string(), lastmod),
            SitemapEntry::Sitemap { loc, lastmod } => (true, loc.to_string(), lastmod),
        })
    });
    (found, summary)
}

pub fn run(bytes: &[u8]) {
    let (whole, summary) = entries(bytes);
    match &summary {
        Ok(summary) => assert_eq!(summary.entries, whole.len()),
        // Pages may have been told before the document came to what makes it none, but no more than these.
        Err(_) => assert!(whole.len() <= LIMITS.entries_max),
    }
    assert!(whole.len() <= LIMITS.entries_max);
    for (_, loc, _) in &whole {
        assert!(!loc.is_empty() && loc.len() <= URL_BYTES_MAX && loc.trim() == loc, "{loc:?}");
    }
    // Whatever is cut off at the end takes entries away from there. In other encodings, and in gzip, a cut may change
    // more than that.
    if !bytes.is_ascii() || bytes.windows(8).any(|word| word.eq_ignore_ascii_case(b"encoding")) {
        return;
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 24 + 1) {
        let (mut part, summary) = entries(&bytes[..at]);
        if summary.is_ok_and(|summary| summary.format == SitemapFormat::Text) {
            // The last line may be cut itself.
            part.pop();
        }
        assert!(whole.starts_with(&part), "{part:?} of the first {at} bytes, {whole:?} of all");
    }
}
