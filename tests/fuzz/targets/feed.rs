use nephila::limits::URL_BYTES_MAX;
use nephila::proto::feed::{FeedError, FeedFacts, FeedLimits, FeedSource, discovery, read};
use nephila::proto::url::CrawlUrl;

const LIMITS: FeedLimits = FeedLimits { entries_max: 20, text_bytes_max: 64 };
const URL: &str = "http://h.test/feeds/all.xml";

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    texts: [Option<String>; 5],
    dates: [Option<i64>; 2],
}

fn entries(bytes: &[u8]) -> (Vec<Entry>, Result<FeedFacts, FeedError>) {
    let mut found = Vec::new();
    let facts = read(bytes, &FeedSource { url: URL, content_type: None }, &LIMITS, |entry| {
        let texts = [entry.url, entry.guid, Some(entry.title), entry.author, entry.language];
        found.push(Entry {
            texts: texts.map(|text| text.map(Into::into)),
            dates: [entry.published_s, entry.updated_s],
        });
    });
    (found, facts)
}

pub fn run(bytes: &[u8]) {
    let base = CrawlUrl::parse(URL).expect("a constant");
    discovery::find(bytes, &base, |found| assert!(CrawlUrl::parse(found.url).is_ok(), "{}", found.url));
    discovery::find_in_header(bytes, &base, |found| assert!(CrawlUrl::parse(found.url).is_ok()));
    let (whole, facts) = entries(bytes);
    assert!(whole.len() <= LIMITS.entries_max);
    if let Ok(facts) = &facts {
        assert_eq!(facts.entries as usize, whole.len());
    }
    for entry in &whole {
        let [url, guid, title, author, _] = &entry.texts;
        assert!(
            url.as_ref().is_none_or(|url| !url.is_empty() && url.len() <= URL_BYTES_MAX && url.contains(':'))
        );
        // A text is bounded by its bytes before references, which are never shorter than what they stand for, and by as
        // much again for the last piece.
        let texts = [guid, title, author];
        assert!(texts.into_iter().flatten().all(|text| text.len() <= 2 * LIMITS.text_bytes_max), "{entry:?}");
        let title = title.as_deref().unwrap_or("");
        assert!(title.trim() == title && !title.contains(|c: char| c.is_control()), "{title:?}");
    }
    // Whatever is cut off at the end takes entries away from there. In other encodings, and in gzip, a cut may change more
    // than that.
    if !bytes.is_ascii()
        || bytes.windows(8).any(|word| word.eq_ignore_ascii_case(b"encoding"))
        || bytes.contains(&0)
    {
        return;
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 24 + 1) {
        let (part, _) = entries(&bytes[..at]);
        assert!(whole.starts_with(&part), "{part:?} of the first {at} bytes, {whole:?} of all");
    }
}
