//! Where everything is in a segment file. All numbers are little-endian.
//!
//! ```text
//!   0      segment header, 4,096 bytes, zero where nothing is said
//!          0   8  magic "NEPHSEG2"
//!          8   8  segment number
//!          16  4  shard
//!          20  4  crc32c of bytes 0..20 and 24..4096
//!          24  8  made at, milliseconds since 1970
//!          32  2  bytes of the user agent, 0 where it is not known
//!          34  …  user agent that the documents were asked for with
//!          1060 4 how often it was packed: a file of another number is another
//!   4096   records, each aligned to 8 bytes, until the first that does not check
//! ```
//!
//! A record:
//!
//! ```text
//!   offset  bytes  field
//!   0       4      magic "NREC"
//!   4       4      crc32c of the header from 8 to its end
//!   8       4      crc32c of everything after the header, padding aside
//!   12      4      bytes of the whole record, padding included
//!   16      8      sequence number: grows by one from record to record of a shard
//!   24      8      segment number
//!   32      8      fetched at, milliseconds since 1970
//!   40      4      doc_id
//!   44      4      milliseconds the request took
//!   48      1      success, 0 or 1
//!   49      1      result code
//!   50      1      http code
//!   51      1      codec of the block: 0 as it is, 1 LZ4 block, 2 LZ4 block with another record of this segment as its base
//!   52      2      HTTP status as received, 0 without a response
//!   54      1      kind: 0 the document is in the block, 1 a reference, whose document another record has
//!   55      1      0
//!   56      16     address, IPv4 as mapped IPv6
//!   72      2      port
//!   74      2      url_len
//!   76      2      new_url_len
//!   78      2      0
//!   80      4      bytes of the response head
//!   84      4      bytes of the document
//!   88      4      bytes of the block
//!   92      4      flags
//!   96      16     digest of the document, 0 without one
//!   112     …      url, new url, block (response head and document together), padding
//! ```
//!
//! A block with a base:
//!
//! ```text
//!   0       4      offset of the base in this segment, in units of 8 bytes: an earlier record
//!   4       4      crc32c of everything after the base's header, as in it
//!   8       …      LZ4 block, whose dictionary is what the base's block unpacks to, its first 48 KiB
//! ```
//!
//! A base may have one itself, up to four in a row. The block of a reference, which has no base, has the response head alone. Its document is that of any other record with the same digest:
//! references name no place, so records may move.
//!
//! A digest is the XXH3 of 128 bits under the store's own key, which no server knows: a server cannot make a page
//! that is taken for another's.

use crate::limits::{RECORD_ALIGN, SEGMENT_HEADER_BYTES};

pub(super) const SEGMENT_MAGIC: &[u8; 8] = b"NEPHSEG2";
pub(super) const SEGMENT_NUMBER: usize = 8;
pub(super) const SEGMENT_SHARD: usize = 16;
pub(super) const SEGMENT_CRC: usize = 20;
pub(super) const SEGMENT_MADE_AT: usize = 24;
pub(super) const SEGMENT_AGENT_LEN: usize = 32;
pub(super) const SEGMENT_AGENT: usize = 34;
/// A longer user agent is cut.
pub(super) const SEGMENT_AGENT_MAX: usize = 1_024;
pub(super) const SEGMENT_PACKED: usize = 1_060;

pub(super) const RECORD_MAGIC: &[u8; 4] = b"NREC";
pub(super) const HEADER_CRC: usize = 4;
pub(super) const PAYLOAD_CRC: usize = 8;
pub(super) const RECORD_BYTES: usize = 12;
pub(super) const SEQUENCE: usize = 16;
pub(super) const RECORD_SEGMENT: usize = 24;
pub(super) const FETCHED_AT: usize = 32;
pub(super) const DOC_ID: usize = 40;
pub(super) const TOOK_MS: usize = 44;
pub(super) const SUCCESS: usize = 48;
pub(super) const RESULT: usize = 49;
pub(super) const HTTP_CODE: usize = 50;
pub(super) const CODEC: usize = 51;
pub(super) const HTTP_STATUS: usize = 52;
pub(super) const KIND: usize = 54;
pub(super) const ADDRESS: usize = 56;
pub(super) const PORT: usize = 72;
pub(super) const URL_LEN: usize = 74;
pub(super) const NEW_URL_LEN: usize = 76;
pub(super) const HEAD_LEN: usize = 80;
pub(super) const DOCUMENT_LEN: usize = 84;
pub(super) const BLOCK_LEN: usize = 88;
pub(super) const FLAGS: usize = 92;
pub(super) const DIGEST: usize = 96;
pub(crate) const HEADER_BYTES: usize = 112;

pub(super) const CODEC_PLAIN: u8 = 0;
pub(super) const CODEC_LZ4: u8 = 1;
pub(super) const CODEC_TEMPLATE: u8 = 2;

pub(super) const KIND_WHOLE: u8 = 0;
pub(super) const KIND_REFERENCE: u8 = 1;

/// Records begin on multiples of this.
pub(super) fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(RECORD_ALIGN)
}

const _: () = assert!(HEADER_BYTES.is_multiple_of(RECORD_ALIGN) && DIGEST + 16 == HEADER_BYTES);
const _: () = assert!(SEGMENT_AGENT + SEGMENT_AGENT_MAX <= SEGMENT_PACKED);
const _: () = assert!(SEGMENT_PACKED + 4 <= SEGMENT_HEADER_BYTES);
