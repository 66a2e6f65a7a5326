//! Files that list feeds.

use crate::proto::feed::opml;

/// A feed, as a file lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub line: u32,
    pub url: String,
    pub source: String,
    pub title: String,
}

/// Tells every feed of a file: OPML if it looks like markup, else CSV or a URL a line. What is wrong with it is said, if
/// some of it could be read.
pub(super) fn listed(
    bytes: &[u8],
    is_csv: bool,
    mut each: impl FnMut(Listed),
) -> Result<Option<&'static str>, String> {
    let begin = bytes.iter().position(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte));
    let is_markup = begin.is_some_and(|at| {
        bytes[at] == b'<' || bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
    });
    if is_markup {
        let read = opml::read(bytes, |feed| {
            each(Listed {
                line: feed.line,
                url: feed.url.trim().to_string(),
                source: feed.folder.into_owned(),
                title: feed.title.into_owned(),
            });
        });
        return read.map(|read| read.damage).map_err(|e| e.to_string());
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    match is_csv {
        true => csv(text, each),
        false => {
            for (number, line) in text.lines().enumerate() {
                let url = line.trim();
                if !url.is_empty() && !url.starts_with('#') {
                    let url = url.split_whitespace().next().unwrap_or(url).to_string();
                    each(Listed {
                        line: number as u32 + 1,
                        url,
                        source: String::new(),
                        title: String::new(),
                    });
                }
            }
        }
    }
    Ok(None)
}

/// Columns are url, source, title, unless a first line names them otherwise.
fn csv(text: &str, mut each: impl FnMut(Listed)) {
    let mut columns = [Some(0), Some(1), Some(2)];
    let mut is_first = true;
    for (line, fields) in records(text) {
        let names: Vec<String> = fields.iter().map(|field| field.trim().to_ascii_lowercase()).collect();
        if std::mem::take(&mut is_first) && names.iter().any(|name| name == "url") {
            columns = ["url", "source", "title"].map(|name| names.iter().position(|found| found == name));
            continue;
        }
        let field = |column: Option<usize>| {
            column
                .and_then(|column| fields.get(column))
                .map_or(String::new(), |field| field.trim().to_string())
        };
        let [url, source, title] = columns.map(field);
        if fields.iter().any(|field| !field.trim().is_empty()) {
            each(Listed { line, url, source, title });
        }
    }
}

/// Records of CSV (RFC 4180) with the lines that they begin at.
fn records(text: &str) -> Vec<(u32, Vec<String>)> {
    let (mut all, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begun, mut is_quoted) = (1, 1, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            '\n' => {
                line += 1;
                if is_quoted {
                    field.push(c);
                    continue;
                }
                fields.push(std::mem::take(&mut field));
                all.push((begun, std::mem::take(&mut fields)));
                begun = line;
            }
            '\r' if !is_quoted => {}
            c => field.push(c),
        }
    }
    if !field.is_empty() || !fields.is_empty() {
        fields.push(field);
        all.push((begun, fields));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, is_csv: bool) -> Vec<(u32, String, String, String)> {
        let mut found = Vec::new();
        let told = |Listed { line, url, source, title }| found.push((line, url, source, title));
        listed(text.as_bytes(), is_csv, told).unwrap();
        found
    }

    #[test]
    fn feeds_are_listed_in_three_ways() {
        let row = |line, url: &str, source: &str, title: &str| {
            (line, url.to_string(), source.to_string(), title.to_string())
        };
        assert_eq!(
            all("\u{feff}http://a/\n\n# no\nhttp://b/ B\n", false),
            [row(1, "http://a/", "", ""), row(4, "http://b/", "", "")]
        );
        assert_eq!(
            all("source,URL\n\"A, \"\"the\"\" one\nof two\",http://a/\r\nB,http://b/", true),
            [row(2, "http://a/", "A, \"the\" one\nof two", ""), row(4, "http://b/", "B", "")]
        );
        assert_eq!(all("http://a/,A,T", true), [row(1, "http://a/", "A", "T")]);
        let opml = " <opml><body><outline text='F'><outline text='T' xmlUrl='http://a/'/></outline>";
        assert_eq!(all(opml, false), [row(1, "http://a/", "F", "T")]);
        assert!(listed(b"<html></html>", false, |_| {}).is_err());
    }
}
