//! A notice as people, programs and systemd's journal read it. All text in it is escaped by [`shown`], whoever wrote it.

use crate::base::{rfc3339, shown, write_json};
use crate::engine::{Event, Fields, Level, Notice, Value};
use serde::{Serialize, Serializer};

/// Of a line of text, and of a field.
const LINE_CHARS_MAX: usize = 4_000;
const FIELD_CHARS_MAX: usize = 1_000;

/// A notice that steers nothing and has a bound.
pub(super) struct Plain {
    event: Event,
    fields: Fields,
    pub text: String,
}

#[derive(Serialize)]
struct Line<'a> {
    at: &'a str,
    level: &'static str,
    event: &'static str,
    #[serde(serialize_with = "map")]
    fields: &'a Fields,
    text: &'a str,
}

fn map<S: Serializer>(fields: &&Fields, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

impl Plain {
    pub fn new(notice: Notice) -> Plain {
        let Notice { event, mut fields, text } = notice;
        for (_, value) in &mut fields {
            if let Value::Text(text) = value {
                *text = shown(text, FIELD_CHARS_MAX);
            }
        }
        let lines: Vec<String> = text.lines().map(|line| shown(line, LINE_CHARS_MAX)).collect();
        Plain { event, fields, text: lines.join("\n") }
    }

    /// What stands for lines of an event that were held back.
    pub fn more(event: Event, count: u64, names_event: bool) -> Plain {
        let text = match names_event {
            true => format!("and {count} more ({})", event.name()),
            false => format!("and {count} more"),
        };
        Plain { event, fields: vec![("more", count.into())], text }
    }

    pub fn json(&self, unix_ms: u64) -> String {
        let line = Line {
            at: &rfc3339(unix_ms),
            level: self.event.level().name(),
            event: self.event.name(),
            fields: &self.fields,
            text: &self.text,
        };
        let mut out = Vec::new();
        // A vector takes everything, and these values are text and numbers.
        let _ = write_json(&mut out, &line);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Lines by which systemd knows the level of what a service writes to its stderr.
    pub fn prefixed(&self) -> String {
        let priority = self.priority();
        let lines: Vec<String> = self.text.lines().map(|line| format!("<{priority}>{line}")).collect();
        lines.join("\n")
    }

    /// The native protocol of systemd's journal.
    pub fn datagram(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, "MESSAGE", &self.text);
        push(&mut out, "PRIORITY", &self.priority().to_string());
        push(&mut out, "SYSLOG_IDENTIFIER", "nephila");
        push(&mut out, "NEPHILA_EVENT", self.event.name());
        for (name, value) in &self.fields {
            push(&mut out, &format!("NEPHILA_{}", name.to_ascii_uppercase()), &value.to_string());
        }
        out
    }

    /// As syslog counts.
    fn priority(&self) -> u8 {
        match self.event.level() {
            Level::Error => 3,
            Level::Warn => 4,
            Level::Info => 6,
            Level::Debug => 7,
        }
    }
}

/// `KEY=value` on a line; a value of several lines is preceded by its length instead.
fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    match value.contains('\n') {
        false => out.push(b'='),
        true => {
            out.push(b'\n');
            out.extend_from_slice(&(value.len() as u64).to_le_bytes());
        }
    }
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, origin: &str) -> Plain {
        let fields = vec![("origin", origin.into()), ("failures", 12u64.into())];
        Plain::new(Notice::new(Event::HostSetAside, fields, text))
    }

    #[test]
    fn json_has_name_level_and_fields() {
        let line = plain("http://a.test: set aside", "http://a.test").json(1_794_744_001_000);
        assert_eq!(
            line,
            r#"{"at":"2026-11-15T12:00:01.000Z","level":"warn","event":"host_set_aside","fields":{"origin":"http://a.test","failures":12},"text":"http://a.test: set aside"}"#
        );
    }

    #[test]
    fn nothing_steers_in_any_form() {
        let hostile = "x\u{1b}[31m\nPRIORITY=0\u{202e}\u{2028}";
        let plain = plain("a\u{1b}b\nc\u{9b}d", hostile);
        for text in [plain.text.clone(), plain.json(0), plain.prefixed()] {
            assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}']), "{text:?}");
        }
        assert_eq!(plain.json(0).lines().count(), 1);
        assert_eq!(plain.prefixed(), "<4>a\\u{1b}b\n<4>c\\u{9b}d");
        let datagram = plain.datagram();
        // The text has two lines: its length goes first.
        let text = "a\\u{1b}b\nc\\u{9b}d";
        let mut begin = b"MESSAGE\n".to_vec();
        begin.extend_from_slice(&(text.len() as u64).to_le_bytes());
        begin.extend_from_slice(text.as_bytes());
        begin.extend_from_slice(b"\nPRIORITY=4\nSYSLOG_IDENTIFIER=nephila\nNEPHILA_EVENT=host_set_aside\nNEPHILA_ORIGIN=x\\u{1b}[31m\\u{a}PRIORITY=0\\u{202e}\\u{2028}\nNEPHILA_FAILURES=12\n");
        assert_eq!(String::from_utf8_lossy(&datagram), String::from_utf8_lossy(&begin));
    }

    #[test]
    fn everything_has_a_bound() {
        let plain = plain(&"x".repeat(1 << 20), &"\u{1b}".repeat(1 << 20));
        assert!(plain.datagram().len() < 16 * 1_024, "{}", plain.datagram().len());
    }
}
