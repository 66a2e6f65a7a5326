//! ZIP archives whose entries are stored as they are: the bytes around them.
//!
//! ```text
//!   local header · entry · local header · entry · … · directory · (64-bit end, locator) · end
//! ```
//!
//! Whoever writes the file writes an entry's header, its bytes, and then the header again in its place, because only then
//! its length and sum are known. Every local header has room for lengths of 64 bits; the directory has them where they
//! are needed.

use crate::base::Civil;

/// An entry that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZipEntry {
    pub name: String,
    /// Where its local header begins.
    pub offset: u64,
    pub bytes: u64,
    pub crc32: u32,
    pub unix_ms: u64,
}

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Version 4.5 of the format has lengths of 64 bits.
const VERSION: u16 = 45;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// In place of a number that stands in the extra field.
const ELSEWHERE: u32 = u32::MAX;
const EXTRA_64: u16 = 1;

impl ZipEntry {
    /// The header before the entry; as long whatever the length is.
    pub fn local_header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(50 + self.name.len());
        put32(&mut out, LOCAL);
        self.put_common(&mut out, ELSEWHERE, ELSEWHERE, 20);
        out.extend_from_slice(self.name.as_bytes());
        put_extra(&mut out, &[self.bytes, self.bytes]);
        out
    }

    fn put_common(&self, out: &mut Vec<u8>, packed: u32, plain: u32, extra_bytes: u16) {
        put16(out, VERSION);
        put16(out, FLAGS);
        // Stored.
        put16(out, 0);
        let (time, date) = dos_time(self.unix_ms);
        put16(out, time);
        put16(out, date);
        put32(out, self.crc32);
        put32(out, packed);
        put32(out, plain);
        put16(out, self.name.len() as u16);
        put16(out, extra_bytes);
    }

    fn put_central(&self, out: &mut Vec<u8>) {
        let short = |number: u64| u32::try_from(number).unwrap_or(ELSEWHERE);
        let is_long = |number: &u64| short(*number) == ELSEWHERE;
        let lengths = [self.bytes, self.bytes, self.offset];
        let long: Vec<u64> = lengths.into_iter().filter(is_long).collect();
        put32(out, CENTRAL);
        // Made by a Unix.
        put16(out, 3 << 8 | VERSION);
        let extra_bytes = if long.is_empty() { 0 } else { 4 + 8 * long.len() as u16 };
        self.put_common(out, short(self.bytes), short(self.bytes), extra_bytes);
        // No comment, the first disk, no inner attributes.
        out.extend_from_slice(&[0; 6]);
        put32(out, 0o100_644 << 16);
        put32(out, short(self.offset));
        out.extend_from_slice(self.name.as_bytes());
        if !long.is_empty() {
            put_extra(out, &long);
        }
    }
}

/// What follows the last entry; `start` is where it begins.
pub fn directory(entries: &[ZipEntry], start: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        entry.put_central(&mut out);
    }
    let bytes = out.len() as u64;
    let count = entries.len() as u64;
    let is_long = count >= u64::from(u16::MAX) || start + bytes >= u64::from(ELSEWHERE);
    if is_long {
        put32(&mut out, END_64);
        put64(&mut out, 44);
        put16(&mut out, 3 << 8 | VERSION);
        put16(&mut out, VERSION);
        out.extend_from_slice(&[0; 8]);
        for number in [count, count, bytes, start] {
            put64(&mut out, number);
        }
        put32(&mut out, LOCATOR_64);
        put32(&mut out, 0);
        put64(&mut out, start + bytes);
        put32(&mut out, 1);
    }
    put32(&mut out, END);
    out.extend_from_slice(&[0; 4]);
    let short_count = if is_long { u16::MAX } else { count as u16 };
    put16(&mut out, short_count);
    put16(&mut out, short_count);
    put32(&mut out, if is_long { ELSEWHERE } else { bytes as u32 });
    put32(&mut out, if is_long { ELSEWHERE } else { start as u32 });
    put16(&mut out, 0);
    out
}

fn put_extra(out: &mut Vec<u8>, numbers: &[u64]) {
    put16(out, EXTRA_64);
    put16(out, 8 * numbers.len() as u16);
    for &number in numbers {
        put64(out, number);
    }
}

/// Time and date as DOS had them: two seconds a step, from 1980 to 2107.
fn dos_time(unix_ms: u64) -> (u16, u16) {
    let days = u32::try_from(unix_ms / 86_400_000).unwrap_or(u32::MAX);
    let Civil { year, month, day } = Civil::from_days(days);
    let seconds = (unix_ms / 1_000 % 86_400) as u32;
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    match year {
        ..1_980 => (0, 1 << 5 | 1),
        1_980..=2_107 => {
            let time = hour << 11 | minute << 5 | (seconds % 60 / 2);
            (time as u16, ((year - 1_980) << 9 | month << 5 | day) as u16)
        }
        _ => (0, 127 << 9 | 12 << 5 | 31),
    }
}

fn put16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: u64, offset: u64) -> ZipEntry {
        ZipEntry { name: "a/b".to_string(), offset, bytes, crc32: 7, unix_ms: 1_709_251_199_999 }
    }

    #[test]
    fn a_local_header_is_as_long_before_as_after() {
        assert_eq!(entry(0, 0).local_header().len(), entry(u64::MAX, 0).local_header().len());
        let header = entry(5, 0).local_header();
        assert_eq!(header[..4], *b"PK\x03\x04");
        assert_eq!(&header[30..33], b"a/b");
        assert_eq!(header[33 + 4..33 + 12], 5_u64.to_le_bytes());
    }

    #[test]
    fn large_numbers_go_to_the_64_bit_fields_and_small_ones_do_not() {
        let small = directory(&[entry(5, 0)], 100);
        assert_eq!(small.len(), 46 + 3 + 22);
        let large = directory(&[entry(5 << 30, 0), entry(1, 5 << 30)], 6 << 30);
        // Two lengths of the first, one offset of the second; the 64-bit end and its locator.
        assert_eq!(large.len(), 46 + 3 + 4 + 16 + 46 + 3 + 4 + 8 + 56 + 20 + 22);
        let at = 46 + 3;
        assert_eq!(large[at..at + 4], [1, 0, 16, 0]);
        assert_eq!(large[at + 4..at + 12], (5_u64 << 30).to_le_bytes());
        let end = &large[large.len() - 22..];
        assert_eq!(end[..4], *b"PK\x05\x06");
        assert_eq!(end[16..20], [0xff; 4]);
    }

    #[test]
    fn dates_are_within_what_dos_knew() {
        assert_eq!(dos_time(0), (0, 33));
        assert_eq!(dos_time(1_709_251_199_999), (23 << 11 | 59 << 5 | 29, 44 << 9 | 2 << 5 | 29));
        assert_eq!(dos_time(u64::MAX), (0, 127 << 9 | 12 << 5 | 31));
    }
}
