use super::text::steers;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Writes a value as JSON that is safe to look at: what would steer a terminal or turn text around is escaped, and reads
/// back as it was.
pub(crate) fn write_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, PlainText))?)
}

/// JSON on one line, in which only text is text.
struct PlainText;

impl Formatter for PlainText {
    /// Quotes, backslashes and the controls of ASCII but DEL come in other ways.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| steers(c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::write_json;

    #[test]
    fn what_steers_is_escaped_and_reads_back() {
        let text = "a\u{7f}b\u{9b}\u{2028}\u{202e}\u{feff}\"\\\n\u{1f577}grün";
        let mut out = Vec::new();
        write_json(&mut out, &[text]).unwrap();
        let json = String::from_utf8(out).unwrap();
        assert_eq!(json, "[\"a\\u007fb\\u009b\\u2028\\u202e\\ufeff\\\"\\\\\\n\u{1f577}grün\"]");
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
    }
}
