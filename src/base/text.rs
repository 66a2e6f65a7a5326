/// Text from the network, made safe for a terminal or a log line: control characters, terminal escapes and
/// bidirectional marks become `\u{…}`, and at most `chars_max` characters are shown.
pub fn shown(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max) + 1);
    for (count, c) in text.chars().enumerate() {
        if count == chars_max {
            out.push('…');
            break;
        }
        if steers(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters, ends of lines, marks that turn text around, and those that cannot be seen.
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A number in decimal, without the formatting machinery: for what is written with every page.
pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A number with a comma at every thousand.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and what it counts: `1 URL`, `2 URLs`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}

/// A noun as it stands behind a number.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_string() } else { format!("{noun}s") }
}

/// A length of time in the largest unit of which it is two or more, or in seconds.
pub fn span(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2 * size).unwrap_or((1, "s"));
    format!("{} {unit}", seconds / size)
}

/// Counts the letters to change, add or drop to turn one word into the other.
pub fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, grouped, shown};

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(shown("a\x1b[31mb\u{202e}c", 80), "a\\u{1b}[31mb\\u{202e}c");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("grün", 80), "grün");
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!(
            [0, 999, 1_000, 22_050, 1_234_567].map(grouped),
            ["0", "999", "1,000", "22,050", "1,234,567"]
        );
    }

    #[test]
    fn words_differ_by_the_letters_between_them() {
        assert_eq!(edits("store", "store"), 0);
        assert_eq!(edits("stroe", "store"), 2);
        assert_eq!(edits("", "index"), 5);
    }
}
