use std::borrow::Cow;

/// Version and named fields of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarcHead {
    fields: Vec<(String, String)>,
    length: u64,
}

/// What a record is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Response,
    Resource,
    Revisit,
    Metadata,
    /// Requests, warcinfo, conversions, and whatever may come.
    Other,
}

/// Versions that are read.
const VERSIONS: [&str; 4] = ["WARC/1.1", "WARC/1.0", "WARC/0.18", "WARC/0.17"];

impl WarcHead {
    /// Reads a whole head, its blank line included. `None` for what is none, or does not say how long its block is.
    pub(super) fn read(bytes: &[u8]) -> Option<WarcHead> {
        let mut lines = bytes.split(|&byte| byte == b'\n').map(text);
        let version = lines.next()?;
        if !VERSIONS.contains(&trim(&version)) {
            return None;
        }
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines {
            let line = trim_end(&line);
            if line.starts_with([' ', '\t']) {
                // A field may go on in the next line.
                if let Some((_, value)) = fields.last_mut() {
                    value.push_str(line);
                }
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push((name.trim_end_matches([' ', '\t']).to_string(), trim_start(value).to_string()));
            }
        }
        let mut head = WarcHead { fields, length: 0 };
        let length = head.get("Content-Length")?;
        if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        head.length = length.parse().ok()?;
        Some(head)
    }

    /// The first field of that name, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Bytes of the block.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn kind(&self) -> Kind {
        match self.get("WARC-Type") {
            Some("response") => Kind::Response,
            Some("resource") => Kind::Resource,
            Some("revisit") => Kind::Revisit,
            Some("metadata") => Kind::Metadata,
            _ => Kind::Other,
        }
    }

    /// The URL that a record is about. Some writers put it in angle brackets, as the first standards had it, and some
    /// leave spaces in it.
    pub fn target(&self) -> Option<Cow<'_, str>> {
        let target = self.get("WARC-Target-URI")?;
        let bare = target.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(target);
        Some(if bare.contains(' ') { bare.replace(' ', "%20").into() } else { bare.into() })
    }
}

/// A line as text: UTF-8, or else every byte a character.
pub(super) fn text(line: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(line.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// White space as readers of indexes see it: that of Unicode, and the four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

pub(super) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Option<WarcHead> {
        WarcHead::read(text.as_bytes())
    }

    #[test]
    fn fields_are_found_in_any_case_and_folded_ones_go_on() {
        let head = head(
            "WARC/1.0\r\nwarc-TYPE: revisit\r\nWARC-Target-URI : <http://h/a b>\r\nX: one\r\n\ttwo\r\nContent-Length: 7\r\n\r\n",
        )
        .unwrap();
        assert_eq!(head.kind(), Kind::Revisit);
        assert_eq!(head.target().as_deref(), Some("http://h/a%20b"));
        assert_eq!(head.get("x"), Some("one\ttwo"));
        assert_eq!(head.length(), 7);
    }

    #[test]
    fn what_has_no_length_or_another_version_is_none() {
        assert!(head("WARC/1.1\r\nContent-Length: 0\r\n\r\n").is_some());
        for text in [
            "",
            "WARC/2.0\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "WARC/1.1\r\n\r\n",
            "WARC/1.1\r\nContent-Length: -1\r\n\r\n",
            "WARC/1.1\r\nContent-Length: 1x\r\n\r\n",
            "WARC/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        ] {
            assert_eq!(head(text), None, "{text:?}");
        }
    }
}
