/// Text from the network, made safe for a terminal or a log line: control characters, terminal escapes and
/// bidirectional marks become `\u{…}`, and at most `chars_max` characters are shown.
pub fn shown(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max) + 1);
    for (count, c) in text.chars().enumerate() {
        if count == chars_max {
            out.push('…');
            break;
        }
        let steers = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || steers {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(shown("a\x1b[31mb\u{202e}c", 80), "a\\u{1b}[31mb\\u{202e}c");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("grün", 80), "grün");
    }
}
