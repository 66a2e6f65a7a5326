use super::date::timestamp;
use super::head::{Kind, WarcHead, is_space, text, trim, trim_end, trim_start};
use super::surt::surt;
use memchr::memchr;
use std::fmt::Write;

/// Where a record lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    pub file: &'a str,
    pub offset: u64,
    /// Compressed bytes of its member; of a plain record without the line ends behind it.
    pub length: u64,
}

/// What an index says of a record. Gathered while the block goes by: of it only the head of a response is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdxjLine {
    url: Option<String>,
    date: String,
    mime: Option<String>,
    status: Option<String>,
    digest: Option<String>,
}

/// Whether a record is one that an index lists, and what has to be known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    No,
    /// Its fields say everything, or the head of the response that its block begins with.
    Yes {
        http: bool,
    },
}

impl Indexed {
    pub fn of(head: &WarcHead) -> Indexed {
        let is_fields = head.get("Content-Type") == Some("application/warc-fields");
        let has_http = head.length() > 0
            && head.target().is_some_and(|url| url.starts_with("http:") || url.starts_with("https:"));
        match head.kind() {
            Kind::Response | Kind::Revisit => Indexed::Yes { http: has_http },
            Kind::Resource | Kind::Metadata if !is_fields => Indexed::Yes { http: false },
            _ => Indexed::No,
        }
    }
}

impl CdxjLine {
    /// `response` is the head of the response in the block, if it has one; `digest` is that of the payload, for a record
    /// that does not tell it.
    pub fn of(head: &WarcHead, response: Option<&[u8]>, digest: impl FnOnce() -> String) -> Option<CdxjLine> {
        let (mut status, mut http_type) = (None, None);
        if let Some(response) = response {
            (status, http_type) = response_facts(response);
        }
        let kind = head.kind();
        let mime = match kind {
            Kind::Revisit => Some("warc/revisit".to_string()),
            Kind::Response => http_type,
            _ => head.get("Content-Type").map(str::to_string),
        };
        let mime = mime.map(|mime| {
            let end = mime.find(|c: char| c == ';' || is_space(c)).unwrap_or(mime.len());
            mime[..end].to_string()
        });
        let told = head.get("WARC-Payload-Digest").map(str::to_string);
        let digest = match told {
            Some(told) if !told.is_empty() => Some(told),
            _ => (kind != Kind::Revisit).then(digest),
        };
        let date = timestamp(head.get("WARC-Date")?)?;
        let url = head.target().map(|url| url.into_owned());
        Some(CdxjLine { url, date, mime, status, digest })
    }

    /// A page that somebody would look at first: HTML that was there.
    pub fn is_page(&self) -> bool {
        let is_html =
            |mime: &str| ["text/html", "application/xhtml+xml"].contains(&mime.to_ascii_lowercase().as_str());
        self.status.as_deref() == Some("200") && self.mime.as_deref().is_some_and(is_html)
    }

    /// Appends the line, with its LF.
    pub fn write(&self, place: &Place<'_>, out: &mut String) {
        let url = self.url.as_deref();
        out.push_str(&surt(url.unwrap_or_default()));
        out.push(' ');
        out.push_str(&self.date);
        out.push_str(" {");
        let (length, offset) = (place.length.to_string(), place.offset.to_string());
        let fields = [
            ("url", url),
            ("mime", self.mime.as_deref()),
            ("status", self.status.as_deref()),
            ("digest", self.digest.as_deref()),
            ("length", Some(length.as_str())),
            ("offset", Some(offset.as_str())),
            ("filename", Some(place.file)),
        ];
        let told = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (index, (name, value)) in told.enumerate() {
            out.push_str(if index == 0 { "\"" } else { ", \"" });
            out.push_str(name);
            out.push_str("\": ");
            write_json(value, out);
        }
        out.push_str("}\n");
    }
}

/// Status and Content-Type of a response, as a loose reader takes them: any first word is a protocol, and what follows
/// it up to a space or a tab is the status.
fn response_facts(response: &[u8]) -> (Option<String>, Option<String>) {
    let mut rest = response;
    let mut lines = std::iter::from_fn(|| {
        let end = memchr(b'\n', rest).map_or(rest.len(), |lf| lf + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then(|| trim_end(&text(line)).to_string())
    });
    let Some(first) = lines.next() else { return (None, None) };
    if first.is_empty() {
        return (None, None);
    }
    let status = first.split_once([' ', '\t']).map_or("", |(_, status)| trim(status));
    let status = status.split([' ', '\t']).next().unwrap_or_default().to_string();
    let mut mime: Option<String> = None;
    let mut is_open = false;
    for line in lines.take_while(|line| !line.is_empty()) {
        if line.starts_with([' ', '\t']) {
            if let (true, Some(mime)) = (is_open, &mut mime) {
                mime.push_str(&line);
            }
            continue;
        }
        is_open = false;
        if let Some((name, value)) = line.split_once(':')
            && mime.is_none()
            && name.trim_end_matches([' ', '\t']).eq_ignore_ascii_case("content-type")
        {
            mime = Some(trim_start(value).to_string());
            is_open = true;
        }
    }
    (Some(status), mime)
}

/// A JSON string in ASCII.
fn write_json(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known_and_no_more() {
        let head = WarcHead::read(
            b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.test/\xc3\xbc\r\nWARC-Date: 2020-01-02T03:04:05.678Z\r\nContent-Length: 9\r\n\r\n",
        )
        .unwrap();
        assert_eq!(Indexed::of(&head), Indexed::Yes { http: true });
        let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n\r\n";
        let line = CdxjLine::of(&head, Some(response), || "sha1:X".to_string()).unwrap();
        let mut out = String::new();
        line.write(&Place { file: "a.warc.gz", offset: 5, length: 6 }, &mut out);
        assert_eq!(
            out,
            "test,h)/%c3%bc 20200102030405 {\"url\": \"http://h.test/\\u00fc\", \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"sha1:X\", \"length\": \"6\", \"offset\": \"5\", \"filename\": \"a.warc.gz\"}\n"
        );
        let bare = CdxjLine::of(&head, None, || "sha1:X".to_string()).unwrap();
        out.clear();
        bare.write(&Place { file: "a", offset: 0, length: 1 }, &mut out);
        assert!(!out.contains("mime") && !out.contains("status"), "{out}");
    }

    #[test]
    fn requests_and_fields_are_not_listed() {
        let head = |kind: &str, content: &str| {
            let text = format!(
                "WARC/1.1\r\nWARC-Type: {kind}\r\nContent-Type: {content}\r\nContent-Length: 0\r\n\r\n"
            );
            Indexed::of(&WarcHead::read(text.as_bytes()).unwrap())
        };
        assert_eq!(head("request", "application/http"), Indexed::No);
        assert_eq!(head("warcinfo", "application/warc-fields"), Indexed::No);
        assert_eq!(head("metadata", "application/warc-fields"), Indexed::No);
        assert_eq!(head("metadata", "text/plain"), Indexed::Yes { http: false });
        assert_eq!(head("response", "application/http"), Indexed::Yes { http: false }, "an empty block");
    }

    #[test]
    fn json_is_ascii() {
        let mut out = String::new();
        write_json("a\"\\\n\x7f\u{e9}\u{1f600}", &mut out);
        assert_eq!(out, "\"a\\\"\\\\\\n\\u007f\\u00e9\\ud83d\\ude00\"");
    }
}
