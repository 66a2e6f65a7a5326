use super::{HttpCode, ResultCode};
use thiserror::Error;

/// A record on its way from a spider to a store server. A header of 20 bytes, network byte order, then the URL, the
/// URL to use in its place, and the document:
///
/// | offset | bytes | field                                    |
/// |--------|-------|------------------------------------------|
/// | 0      | 4     | doc_id                                   |
/// | 4      | 1     | success, 0 or 1                          |
/// | 5      | 1     | result code                              |
/// | 6      | 1     | http code                                |
/// | 7      | 1     | unused: written as 0, not looked at      |
/// | 8      | 4     | milliseconds that the request took       |
/// | 12     | 2     | bytes of the URL                         |
/// | 14     | 2     | bytes of the new URL; 0 without one      |
/// | 16     | 4     | bytes of the document                    |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireRecord<'a> {
    pub doc_id: u32,
    pub success: bool,
    pub result: ResultCode,
    pub http_code: HttpCode,
    pub took_ms: u32,
    pub url: &'a str,
    /// One to use in place of `url`.
    pub new_url: Option<&'a str>,
    pub document: &'a [u8],
}

const DOC_ID: usize = 0;
const SUCCESS: usize = 4;
const RESULT: usize = 5;
const HTTP_CODE: usize = 6;
const TOOK_MS: usize = 8;
const URL_LEN: usize = 12;
const NEW_URL_LEN: usize = 14;
const DOCUMENT_LEN: usize = 16;
pub const WIRE_HEADER_BYTES: usize = 20;

const _: () = assert!(DOCUMENT_LEN + 4 == WIRE_HEADER_BYTES);

/// Why bytes are no record. Where the next one would begin is nobody's to guess, so that it is for good.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadRecord {
    #[error("success is {0}, neither 0 nor 1")]
    Success(u8),
    #[error("a document of {bytes} bytes, over max_doc_size ({bytes_max})")]
    TooLarge { bytes: u32, bytes_max: u64 },
    #[error("a URL that is not UTF-8")]
    UrlText,
    #[error("a new URL that is not UTF-8")]
    NewUrlText,
}

/// The lengths that a header promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WireLengths {
    url: usize,
    new_url: usize,
    document: usize,
}

impl WireLengths {
    /// Looks at a header alone, before anything of what it promises has come.
    pub fn of(header: &[u8; WIRE_HEADER_BYTES], doc_bytes_max: u64) -> Result<WireLengths, BadRecord> {
        if header[SUCCESS] > 1 {
            return Err(BadRecord::Success(header[SUCCESS]));
        }
        let document = u32_at(header, DOCUMENT_LEN);
        if u64::from(document) > doc_bytes_max {
            return Err(BadRecord::TooLarge { bytes: document, bytes_max: doc_bytes_max });
        }
        Ok(WireLengths {
            url: usize::from(u16_at(header, URL_LEN)),
            new_url: usize::from(u16_at(header, NEW_URL_LEN)),
            document: document as usize,
        })
    }

    /// Bytes of the whole record.
    pub fn record(self) -> usize {
        WIRE_HEADER_BYTES + self.url + self.new_url + self.document
    }
}

impl<'a> WireRecord<'a> {
    /// Bytes that it takes on the wire.
    pub fn wire_bytes(&self) -> usize {
        WIRE_HEADER_BYTES + self.url.len() + self.new_url.map_or(0, str::len) + self.document.len()
    }

    /// Appends it to `out`.
    ///
    /// # Panics
    ///
    /// If a length does not fit into its field: a spider's URLs and documents have bounds far below.
    pub fn write(&self, out: &mut Vec<u8>) {
        let new_url = self.new_url.unwrap_or("");
        let url_len = u16::try_from(self.url.len()).expect("a URL has a bound");
        let new_url_len = u16::try_from(new_url.len()).expect("a URL has a bound");
        let document_len = u32::try_from(self.document.len()).expect("a document has a bound");
        let mut header = [0; WIRE_HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(DOC_ID, &self.doc_id.to_be_bytes());
        put(SUCCESS, &[u8::from(self.success)]);
        put(RESULT, &[self.result as u8]);
        put(HTTP_CODE, &[self.http_code.as_u8()]);
        put(TOOK_MS, &self.took_ms.to_be_bytes());
        put(URL_LEN, &url_len.to_be_bytes());
        put(NEW_URL_LEN, &new_url_len.to_be_bytes());
        put(DOCUMENT_LEN, &document_len.to_be_bytes());
        out.reserve(self.wire_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(self.url.as_bytes());
        out.extend_from_slice(new_url.as_bytes());
        out.extend_from_slice(self.document);
    }

    /// Reads a whole record whose header was looked at.
    pub(super) fn read(bytes: &'a [u8], lengths: WireLengths) -> Result<WireRecord<'a>, BadRecord> {
        let (header, rest) = bytes.split_at(WIRE_HEADER_BYTES);
        let (url, rest) = rest.split_at(lengths.url);
        let (new_url, document) = rest.split_at(lengths.new_url);
        let new_url = str::from_utf8(new_url).map_err(|_| BadRecord::NewUrlText)?;
        Ok(WireRecord {
            doc_id: u32_at(header, DOC_ID),
            success: header[SUCCESS] == 1,
            result: ResultCode::from_u8(header[RESULT]).unwrap_or(ResultCode::Other),
            http_code: HttpCode::from(header[HTTP_CODE]),
            took_ms: u32_at(header, TOOK_MS),
            url: str::from_utf8(url).map_err(|_| BadRecord::UrlText)?,
            new_url: (!new_url.is_empty()).then_some(new_url),
            document,
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_these_bytes() {
        let record = WireRecord {
            doc_id: 0x0102_0304,
            success: true,
            result: ResultCode::Redirect,
            http_code: HttpCode::from_status(301),
            took_ms: 0x0a0b_0c0d,
            url: "http://a.test/",
            new_url: Some("http://b.test/x"),
            document: b"moved",
        };
        let mut out = b"before".to_vec();
        record.write(&mut out);
        let expected = [
            &b"before"[..],
            &[1, 2, 3, 4, 1, 2, 16, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0, 14, 0, 15, 0, 0, 0, 5],
            b"http://a.test/http://b.test/xmoved",
        ]
        .concat();
        assert_eq!(out, expected);
        assert_eq!(record.wire_bytes(), out.len() - b"before".len());
    }
}
