//! Feeds as files list them, to begin a crawl with.

use super::list::{Listed, listed};
use crate::base::{bytes_without_mark, shown};
use crate::commands::shared::{Failure, tell_event};
use crate::engine::{Event, NamedFeed};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::path::Path;

/// The feeds of a file, each once: URLs one a line, CSV if its name or its first line says so, or OPML, whose folders are
/// sources. What is bad is named and skipped.
pub(in crate::commands) fn read_feeds(path: &Path, flag: &str) -> Result<Vec<NamedFeed>, Failure> {
    let shown_path = path.display();
    let text = std::fs::read(path).map_err(|e| {
        let mend = format!("name a list of feeds, CSV or OPML with {flag}");
        Failure::Usage(format!("cannot read {shown_path}: {e} ({mend})"))
    })?;
    let bytes = bytes_without_mark(&text);
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"))
        || bytes.split_at_checked(4).is_some_and(|(head, _)| head.eq_ignore_ascii_case(b"url,"));
    let (mut feeds, mut seen) = (Vec::new(), RapidHashSet::default());
    let skip = |line: u32, what: &str, why: &str| {
        let said =
            format!("nephila: skipped: {shown_path} line {line}: {}: {}", shown(what, 200), shown(why, 200));
        let fields = vec![("path", path.display().into()), ("line", u64::from(line).into())];
        tell_event(Event::UrlSkipped, fields, said);
    };
    let read = listed(bytes, is_csv, |Listed { line, url, source, title }| match CrawlUrl::parse(&url) {
        Ok(parsed) if seen.insert(parsed.fingerprint()) => {
            feeds.push(NamedFeed { url: parsed, source, title })
        }
        Ok(_) => {}
        Err(error) => skip(line, &url, &error.to_string()),
    });
    if let Some(damage) = read.map_err(|cause| Failure::Usage(format!("{shown_path}: {cause}")))? {
        skip(0, "what comes after", damage);
    }
    match feeds.is_empty() {
        true => Err(Failure::Usage(format!("{shown_path} names no feed"))),
        false => Ok(feeds),
    }
}
