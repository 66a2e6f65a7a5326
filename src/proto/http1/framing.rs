//! Where the body ends and whether the connection lives on: Content-Length, Transfer-Encoding, Connection.

use super::flags::Flags;
use super::head::HeadError;
use super::headers::{spelt, trim};
use super::method::Method;

/// Lengths are signed 64-bit numbers to half of the web; 2^63 and more is an attack or a fault.
pub(super) const LENGTH_MAX: u64 = i64::MAX as u64;

/// How the end of the body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body: HEAD, 204, 304.
    None,
    /// Exactly so many bytes.
    Length(u64),
    /// Chunks, up to the last one and its trailers.
    Chunked,
    /// Everything up to the end of the connection.
    Close,
}

/// What the status line says about framing.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub method: Method,
    pub status: u16,
    pub version_minor: u8,
}

/// What the framing headers said so far, in whatever order and number they came.
#[derive(Clone, Copy, Default)]
pub(super) struct FramingFacts {
    length: Option<u64>,
    last_coding: LastCoding,
    coding_left: bool,
    close: bool,
    keep_alive: bool,
}

/// The transfer coding applied last.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LastCoding {
    /// No Transfer-Encoding header came.
    #[default]
    Absent,
    Chunked,
    /// Another coding, or a header that names none.
    Other,
}

impl FramingFacts {
    /// A list of equal lengths, on one line or several, is one length.
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        // Nearly all are one number.
        if let (Some(length), None) = (decimal(value), self.length) {
            self.length = Some(length);
            return Ok(());
        }
        for item in value.split(|&byte| byte == b',') {
            let length = decimal(trim(item)).ok_or(HeadError::BadContentLength)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(HeadError::UnequalContentLength);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// Codings are listed in the order they were applied, over all lines. A parameter does not change the name.
    pub fn transfer_encoding(&mut self, value: &[u8]) {
        // Nearly all say just this.
        if spelt(value, b"chunked") {
            self.last_coding = LastCoding::Chunked;
            return;
        }
        if self.last_coding == LastCoding::Absent {
            self.last_coding = LastCoding::Other;
        }
        for item in value.split(|&byte| byte == b',') {
            let name = trim(item.split(|&byte| byte == b';').next().unwrap_or(item));
            if spelt(name, b"chunked") {
                self.last_coding = LastCoding::Chunked;
            } else if !name.is_empty() {
                self.last_coding = LastCoding::Other;
                self.coding_left |= !spelt(name, b"identity");
            }
        }
    }

    pub fn connection(&mut self, value: &[u8]) {
        // Nearly all say just this.
        if spelt(value, b"keep-alive") {
            self.keep_alive = true;
            return;
        }
        for item in value.split(|&byte| byte == b',') {
            let token = trim(item);
            self.close |= spelt(token, b"close");
            self.keep_alive |= spelt(token, b"keep-alive");
        }
    }

    pub fn framing(&self, answer: Answer) -> Framing {
        if answer.method == Method::Head || matches!(answer.status, 204 | 304) {
            return Framing::None;
        }
        match (self.last_coding, self.length) {
            (LastCoding::Absent, Some(length)) => Framing::Length(length),
            (LastCoding::Absent, None) => Framing::Close,
            // Chunked is unknown to HTTP/1.0: whoever sent this did not mean it, or sits behind one who did not.
            (LastCoding::Chunked, _) if answer.version_minor >= 1 => Framing::Chunked,
            (LastCoding::Chunked | LastCoding::Other, _) => Framing::Close,
        }
    }

    pub fn flags(&self, answer: Answer) -> Flags {
        let mut flags = Flags::NONE;
        if self.last_coding == LastCoding::Absent {
            return flags;
        }
        if self.length.is_some() {
            flags.insert(Flags::TE_AND_CL);
        }
        if answer.version_minor == 0 {
            flags.insert(Flags::TE_IN_HTTP10);
        }
        if self.coding_left {
            flags.insert(Flags::TE_CODING_LEFT);
        }
        flags
    }

    pub fn keep_alive(&self, answer: Answer) -> bool {
        let wanted = !self.close && (answer.version_minor >= 1 || self.keep_alive);
        // Two framings, or one the version does not know: someone on the path may have read the other one.
        let flags = self.flags(answer);
        let mut doubtful = flags.contains(Flags::TE_AND_CL) || flags.contains(Flags::TE_IN_HTTP10);
        // A 204 has no body, and whoever announces one may well send it.
        let announced =
            self.length.is_some_and(|length| length > 0) || self.last_coding != LastCoding::Absent;
        doubtful |= answer.status == 204 && announced;
        wanted && !doubtful && self.framing(answer) != Framing::Close
    }
}

/// Digits only: no sign, no space, no fraction.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    // Eighteen digits fit whatever they are.
    if digits.len() <= 18 {
        let digits_only = digits.iter().all(u8::is_ascii_digit);
        return digits_only
            .then(|| digits.iter().fold(0, |number, byte| number * 10 + u64::from(byte - b'0')));
    }
    let mut number: u64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    (number <= LENGTH_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Answer = Answer { method: Method::Get, status: 200, version_minor: 1 };

    fn lengths(values: &[&str]) -> Result<Option<u64>, HeadError> {
        let mut facts = FramingFacts::default();
        for value in values {
            facts.content_length(value.as_bytes())?;
        }
        Ok(facts.length)
    }

    fn codings(values: &[&str]) -> FramingFacts {
        let mut facts = FramingFacts::default();
        values.iter().for_each(|value| facts.transfer_encoding(value.as_bytes()));
        facts
    }

    fn connection(value: &str, version_minor: u8) -> bool {
        let mut facts = FramingFacts { length: Some(1), ..FramingFacts::default() };
        facts.connection(value.as_bytes());
        facts.keep_alive(Answer { version_minor, ..GET })
    }

    #[test]
    fn equal_lengths_are_one() {
        assert_eq!(lengths(&["7"]), Ok(Some(7)));
        assert_eq!(lengths(&["7, 7", "07"]), Ok(Some(7)));
        assert_eq!(lengths(&["7,\r\n 7"]), Ok(Some(7)));
        assert_eq!(lengths(&["7, 8"]), Err(HeadError::UnequalContentLength));
        assert_eq!(lengths(&["7", "8"]), Err(HeadError::UnequalContentLength));
    }

    #[test]
    fn rubbish_lengths_are_refused() {
        for value in ["", ",", "7,", "+7", "-7", "7 7", "0x7", "7.0", "seven", "7\r\n 7", "\u{0667}"] {
            assert_eq!(lengths(&[value]), Err(HeadError::BadContentLength), "{value:?}");
        }
        assert_eq!(lengths(&["9223372036854775807"]), Ok(Some(LENGTH_MAX)));
        for value in ["9223372036854775808", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(lengths(&[value]), Err(HeadError::BadContentLength), "{value:?}");
        }
    }

    #[test]
    fn the_last_coding_decides() {
        for values in
            [&["chunked"][..], &["CHUNKED"], &["gzip, chunked"], &["gzip", "chunked"], &["chunked;a=b, ,"]]
        {
            assert_eq!(codings(values).framing(GET), Framing::Chunked, "{values:?}");
        }
        for values in
            [&["gzip"][..], &["chunked, gzip"], &["chunked", "gzip"], &["identity"], &[""], &["xchunked"]]
        {
            assert_eq!(codings(values).framing(GET), Framing::Close, "{values:?}");
        }
        assert!(codings(&["gzip, chunked"]).flags(GET).contains(Flags::TE_CODING_LEFT));
        assert_eq!(codings(&["identity, chunked"]).flags(GET), Flags::NONE);
    }

    #[test]
    fn connection_is_a_list_of_tokens() {
        assert!(connection("", 1));
        assert!(connection("upgrade", 1));
        assert!(!connection("Upgrade , CLOSE", 1));
        assert!(connection("closed", 1));
        assert!(!connection("", 0));
        assert!(connection("Keep-Alive", 0));
        assert!(!connection("keep-alive, close", 0));
    }
}
