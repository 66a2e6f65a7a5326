//! Small files of text that are replaced whole: a line that says what they are, with a version at its end; then what they say;
//! then a line that checks it.

use std::str::Lines;

/// What is to be written, with the line that checks it.
pub(crate) fn checked(mut text: String) -> String {
    let crc = crc32c::crc32c(text.as_bytes());
    text.push_str(&format!("{MARK}{crc:08x}\n"));
    text
}

/// What was written, behind its first line, or what is wrong with it.
pub(crate) fn checked_lines<'t>(text: &'t [u8], head: &str) -> Result<Lines<'t>, &'static str> {
    let text = str::from_utf8(text).map_err(|_| "it is no text")?;
    let end = text.rfind(MARK).ok_or("its end is missing")?;
    let (said, crc) = text.split_at(end);
    let crc = crc.strip_prefix(MARK).and_then(|crc| crc.strip_suffix('\n'));
    let crc = crc.and_then(|crc| u32::from_str_radix(crc, 16).ok()).ok_or("its end is missing")?;
    let name = head.rsplit_once(' ').map_or(head, |(name, _)| name);
    let mut lines = said.lines();
    match lines.next() {
        Some(first) if first == head => {}
        Some(first) if first.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')) => {
            return Err("it is of another version of nephila");
        }
        _ => return Err("it is another file"),
    }
    match crc32c::crc32c(said.as_bytes()) == crc {
        true => Ok(lines),
        false => Err("its checksum does not match"),
    }
}

const MARK: &str = "crc32c ";
