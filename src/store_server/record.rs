use super::layout::*;
use crate::base::{u16_at, u32_at, u64_at};
use crate::proto::http1::Flags;
use crate::proto::record::{HttpCode, ResultCode};
use std::net::{IpAddr, Ipv6Addr};

/// A fetch as it is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    pub doc_id: u32,
    pub url: &'a str,
    pub new_url: Option<&'a str>,
    pub success: bool,
    pub result: ResultCode,
    pub http_code: HttpCode,
    /// 0 without a response.
    pub status: u16,
    pub flags: u32,
    pub took_ms: u32,
    pub fetched_unix_ms: u64,
    pub ip: IpAddr,
    pub port: u16,
    /// Response head as received, then the document.
    pub bytes: &'a [u8],
    pub head_len: usize,
}

#[cfg(test)]
impl<'a> NewRecord<'a> {
    /// A page that was fetched, for tests.
    pub fn sample(url: &'a str, bytes: &'a [u8]) -> NewRecord<'a> {
        NewRecord {
            doc_id: 7,
            url,
            new_url: None,
            success: true,
            result: ResultCode::Ok,
            http_code: HttpCode::of(200),
            status: 200,
            flags: 0,
            took_ms: 12,
            fetched_unix_ms: 1_700_000_000_000,
            ip: "127.0.0.1".parse().unwrap(),
            port: 8080,
            bytes,
            head_len: 0,
        }
    }
}

/// A record as read, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub doc_id: u32,
    pub url: String,
    pub new_url: Option<String>,
    pub success: bool,
    pub result: ResultCode,
    pub http_code: HttpCode,
    pub status: u16,
    pub flags: u32,
    pub took_ms: u32,
    pub fetched_unix_ms: u64,
    pub ip: IpAddr,
    pub port: u16,
    pub sequence: u64,
    pub head_len: u32,
    pub document_len: u32,
    /// Bytes of the whole record on disk.
    pub record_bytes: u32,
    /// Of the document; 0 without one.
    pub digest: u128,
    /// The document is another record's with the same digest.
    pub is_reference: bool,
    pub(super) codec: u8,
    pub(super) block_len: u32,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

/// The facts of a record that an index needs, from a header that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSummary {
    pub doc_id: u32,
    pub digest: u128,
    pub is_reference: bool,
    pub is_unchanged: bool,
    pub is_imported: bool,
}

impl RecordSummary {
    pub fn of(header: &[u8]) -> RecordSummary {
        RecordSummary {
            doc_id: u32_at(header, DOC_ID),
            digest: u128::from(u64_at(header, DIGEST)) | u128::from(u64_at(header, DIGEST + 8)) << 64,
            is_reference: header[KIND] == KIND_REFERENCE,
            is_unchanged: is_unchanged(header[RESULT], u32_at(header, FLAGS)),
            is_imported: is_imported(u32_at(header, DOC_ID), u32_at(header, TOOK_MS)),
        }
    }
}

fn is_unchanged(result: u8, flags: u32) -> bool {
    let flags = Flags::from_bits(flags);
    result == ResultCode::NotModified as u8
        || flags.contains(Flags::HEAD_ONLY)
        || flags.contains(Flags::HEAD_BY_GET)
}

/// An import has neither a document number nor a duration.
fn is_imported(doc_id: u32, took_ms: u32) -> bool {
    doc_id == 0 && took_ms == 0
}

impl NewRecord<'_> {
    pub(super) fn is_unchanged(&self) -> bool {
        is_unchanged(self.result as u8, self.flags)
    }
}

impl Record {
    pub(super) fn summary(&self) -> RecordSummary {
        RecordSummary {
            doc_id: self.doc_id,
            digest: self.digest,
            is_reference: self.is_reference,
            is_unchanged: self.is_unchanged(),
            is_imported: self.is_imported(),
        }
    }

    /// Came out of an archive: it is as old as its fetch, whenever it was written.
    pub fn is_imported(&self) -> bool {
        is_imported(self.doc_id, self.took_ms)
    }

    /// Repeats the document that was stored for its URL before: it has none of its own.
    pub fn is_unchanged(&self) -> bool {
        is_unchanged(self.result as u8, self.flags)
    }

    /// Bytes of its URLs, between its header and its block.
    pub(super) fn names_len(&self) -> usize {
        self.url.len() + self.new_url.as_ref().map_or(0, String::len)
    }

    /// Bytes that its block unpacks to.
    pub(super) fn plain_len(&self) -> usize {
        let document_len = if self.is_reference { 0 } else { self.document_len as usize };
        self.head_len as usize + document_len
    }

    /// Has a document in its own block.
    pub fn has_document(&self) -> bool {
        !self.is_reference && !self.is_unchanged()
    }
}

/// The lengths a header promises, once its checksum holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub record: usize,
    pub url: usize,
    pub new_url: usize,
    pub block: usize,
}

impl Lengths {
    /// Bytes after the header, padding aside.
    pub fn payload(&self) -> usize {
        self.url + self.new_url + self.block
    }
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotARecord {
    /// Nothing was ever written here.
    Empty,
    Header,
    Payload,
}

/// What a record's header holds beside the facts of the fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub sequence: u64,
    pub segment: u64,
    pub codec: u8,
    pub kind: u8,
    pub digest: u128,
    pub lengths: Lengths,
}

/// Writes the header of a record whose payload is already in place.
pub(super) fn write_header(record: &mut [u8], new: &NewRecord<'_>, stamp: Stamp) {
    let lengths = stamp.lengths;
    let payload_crc = crc32c::crc32c(&record[HEADER_BYTES..HEADER_BYTES + lengths.payload()]);
    let ip = match new.ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let header = &mut record[..HEADER_BYTES];
    header.fill(0);
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, RECORD_MAGIC);
    put(PAYLOAD_CRC, &payload_crc.to_le_bytes());
    put(RECORD_BYTES, &(lengths.record as u32).to_le_bytes());
    put(SEQUENCE, &stamp.sequence.to_le_bytes());
    put(RECORD_SEGMENT, &stamp.segment.to_le_bytes());
    put(FETCHED_AT, &new.fetched_unix_ms.to_le_bytes());
    put(DOC_ID, &new.doc_id.to_le_bytes());
    put(TOOK_MS, &new.took_ms.to_le_bytes());
    put(SUCCESS, &[u8::from(new.success)]);
    put(RESULT, &[new.result as u8]);
    put(HTTP_CODE, &[new.http_code.as_u8()]);
    put(CODEC, &[stamp.codec]);
    put(KIND, &[stamp.kind]);
    put(DIGEST, &stamp.digest.to_le_bytes());
    put(HTTP_STATUS, &new.status.to_le_bytes());
    put(FLAGS, &new.flags.to_le_bytes());
    put(ADDRESS, &ip.octets());
    put(PORT, &new.port.to_le_bytes());
    put(URL_LEN, &(lengths.url as u16).to_le_bytes());
    put(NEW_URL_LEN, &(lengths.new_url as u16).to_le_bytes());
    put(HEAD_LEN, &(new.head_len as u32).to_le_bytes());
    put(DOCUMENT_LEN, &((new.bytes.len() - new.head_len) as u32).to_le_bytes());
    put(BLOCK_LEN, &(lengths.block as u32).to_le_bytes());
    seal_header(header);
}

/// Writes the checksum of a header that is otherwise complete.
fn seal_header(header: &mut [u8]) {
    let crc = crc32c::crc32c(&header[PAYLOAD_CRC..HEADER_BYTES]);
    header[HEADER_CRC..HEADER_CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Gives a record, moved to another segment, another block. Its names are taken from `bytes`, which are the whole record as it was.
pub(super) fn with_block(
    record: &Record,
    bytes: &[u8],
    segment: u64,
    (codec, block): (u8, &[u8]),
) -> Vec<u8> {
    let block_at = HEADER_BYTES + record.names_len();
    let used = block_at + block.len();
    let mut out = Vec::with_capacity(aligned(used));
    out.extend_from_slice(&bytes[..block_at]);
    out.extend_from_slice(block);
    let payload_crc = crc32c::crc32c(&out[HEADER_BYTES..]);
    out.resize(aligned(used), 0);
    let record_bytes = out.len() as u32;
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(PAYLOAD_CRC, &payload_crc.to_le_bytes());
    put(RECORD_BYTES, &record_bytes.to_le_bytes());
    put(BLOCK_LEN, &(block.len() as u32).to_le_bytes());
    put(CODEC, &[codec]);
    move_to(&mut out, segment);
    out
}

/// Moves a whole record to another segment: its header names the segment.
pub(super) fn move_to(record: &mut [u8], segment: u64) {
    record[RECORD_SEGMENT..RECORD_SEGMENT + 8].copy_from_slice(&segment.to_le_bytes());
    seal_header(&mut record[..HEADER_BYTES]);
}

/// Checks a header and says how long its record is.
pub(super) fn check_header(header: &[u8], segment: u64) -> Result<Lengths, NotARecord> {
    if header.len() < HEADER_BYTES || header[..HEADER_BYTES].iter().all(|&b| b == 0) {
        return Err(NotARecord::Empty);
    }
    let header = &header[..HEADER_BYTES];
    let lengths = Lengths {
        record: u32_at(header, RECORD_BYTES) as usize,
        url: usize::from(u16_at(header, URL_LEN)),
        new_url: usize::from(u16_at(header, NEW_URL_LEN)),
        block: u32_at(header, BLOCK_LEN) as usize,
    };
    let sound = header[..4] == *RECORD_MAGIC
        && crc32c::crc32c(&header[PAYLOAD_CRC..]) == u32_at(header, HEADER_CRC)
        && u64_at(header, RECORD_SEGMENT) == segment
        && lengths.record == aligned(HEADER_BYTES + lengths.payload());
    if sound { Ok(lengths) } else { Err(NotARecord::Header) }
}

/// Reads a whole record that begins at the start of `bytes`.
pub(super) fn parse(bytes: &[u8], segment: u64) -> Result<Record, NotARecord> {
    let lengths = check_header(bytes, segment)?;
    let (header, rest) = bytes.split_at(HEADER_BYTES);
    let payload = rest.get(..lengths.payload()).ok_or(NotARecord::Payload)?;
    if crc32c::crc32c(payload) != u32_at(header, PAYLOAD_CRC) {
        return Err(NotARecord::Payload);
    }
    // Only UTF-8 is ever written. A lossy conversion would change the lengths.
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| NotARecord::Payload);
    let new_url = &payload[lengths.url..lengths.url + lengths.new_url];
    let mut address = [0; 16];
    address.copy_from_slice(&header[ADDRESS..ADDRESS + 16]);
    let v6 = Ipv6Addr::from(address);
    let summary = RecordSummary::of(header);
    Ok(Record {
        doc_id: u32_at(header, DOC_ID),
        url: text(&payload[..lengths.url])?,
        new_url: if new_url.is_empty() { None } else { Some(text(new_url)?) },
        success: header[SUCCESS] == 1,
        result: ResultCode::from_u8(header[RESULT]).ok_or(NotARecord::Header)?,
        http_code: HttpCode::from(header[HTTP_CODE]),
        status: u16_at(header, HTTP_STATUS),
        flags: u32_at(header, FLAGS),
        took_ms: u32_at(header, TOOK_MS),
        fetched_unix_ms: u64_at(header, FETCHED_AT),
        ip: v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4),
        port: u16_at(header, PORT),
        sequence: u64_at(header, SEQUENCE),
        head_len: u32_at(header, HEAD_LEN),
        document_len: u32_at(header, DOCUMENT_LEN),
        record_bytes: lengths.record as u32,
        digest: summary.digest,
        is_reference: summary.is_reference,
        codec: header[CODEC],
        block_len: lengths.block as u32,
    })
}
