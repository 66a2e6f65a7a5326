//! URLs as users type them and as files list them.

use super::{Failure, say};
use crate::base::shown;
use crate::proto::url::CrawlUrl;
use std::path::Path;

/// A URL as it was typed.
pub(crate) fn parse_url(text: &str) -> Result<CrawlUrl, Failure> {
    CrawlUrl::parse(text).map_err(|e| Failure::Usage(format!("{}: {e}", shown(text, 200))))
}

/// The URLs of a file, one a line. A bad line is named and skipped.
pub(crate) fn read_urls(path: &Path, flag: &str, urls: &mut Vec<CrawlUrl>) -> Result<(), Failure> {
    let text = std::fs::read(path).map_err(|e| {
        Failure::Usage(format!("cannot read {}: {e} (name a file of URLs with {flag})", path.display()))
    })?;
    for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match CrawlUrl::parse(line) {
            Ok(url) => urls.push(url),
            Err(e) => {
                let (path, number, line) = (path.display(), number + 1, shown(line, 200));
                say(format_args!("nephila: {path}:{number}: skipped: {line}: {e}"));
            }
        }
    }
    Ok(())
}
