//! Texts one after the other, each told by how much of it is as in the one before, and the rest.

use super::varint::{put, take, take_bytes};

/// Writes a text. `last` is the text before, and becomes this one.
pub fn put_text(out: &mut Vec<u8>, text: &str, last: &mut String) {
    let same = text.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    // A URL in normal form is ASCII; of any other text the cut must not fall into a character.
    let same = (0..=same).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    put(out, same as u64);
    put(out, (text.len() - same) as u64);
    out.extend_from_slice(&text.as_bytes()[same..]);
    last.truncate(same);
    last.push_str(&text[same..]);
}

/// Takes a text off the front. `last` is the text before, and becomes this one; it grows by bytes that are there only.
pub fn take_text<'l>(bytes: &mut &[u8], last: &'l mut String) -> Option<&'l str> {
    let same = take(bytes)? as usize;
    let count = take(bytes)? as usize;
    let rest = str::from_utf8(take_bytes(bytes, count)?).ok()?;
    if !last.is_char_boundary(same) {
        return None;
    }
    last.truncate(same);
    last.push_str(rest);
    Some(last.as_str())
}
