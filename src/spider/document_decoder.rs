use super::buffers::Buffers;
use super::fetched::Fetched;
use crate::proto::coding::{CodingLimits, ContentDecoder, Decoded, header_of};
use crate::proto::http1::Flags;
use crate::proto::record::ResultCode;
use crate::proto::robots::ROBOTS_BYTES_MAX;

/// Removes the content coding of whole documents. An open connection holds no decoder, which is larger than most pages.
pub(super) struct DocumentDecoder {
    decoder: ContentDecoder,
    limits: CodingLimits,
}

/// Of robots.txt. One byte more than is read of it, so that a reader knows that its last line is cut.
const ROBOTS_LIMITS: CodingLimits = CodingLimits::new(ROBOTS_BYTES_MAX as u64 + 1);

impl DocumentDecoder {
    pub fn new(doc_bytes_max: u64) -> DocumentDecoder {
        DocumentDecoder { decoder: ContentDecoder::new(), limits: CodingLimits::new(doc_bytes_max) }
    }

    /// Documents may be this long from now on.
    pub fn set_max(&mut self, doc_bytes_max: u64) {
        self.limits = CodingLimits::new(doc_bytes_max);
    }

    pub fn decode(&mut self, fetched: &mut Fetched, is_robots: bool, buffers: &mut Buffers) {
        let Some(head) = &fetched.head else { return };
        let head_len = head.head_bytes as usize;
        if head.content_encoding.of(&fetched.bytes).is_empty() || fetched.bytes.len() == head_len {
            return;
        }
        let codings = header_of(head, &fetched.bytes);
        let mut plain = buffers.document();
        plain.extend_from_slice(&fetched.bytes[..head_len]);
        let limits = if is_robots { &ROBOTS_LIMITS } else { &self.limits };
        let decoded = self.decoder.decode(&codings, &fetched.bytes[head_len..], limits, &mut plain);
        let whole = fetched.result == ResultCode::Ok;
        match decoded {
            Decoded::Plain => {}
            Decoded::Whole => fetched.flags.insert(Flags::DECODED),
            Decoded::TooLarge => {
                fetched.flags.insert(Flags::DECODED | Flags::CUT);
                if whole {
                    fetched.result = ResultCode::TooLarge;
                }
            }
            // A document cut short in transfer is cut short in its coding, too, which is no fault of the coding.
            Decoded::Broken | Decoded::Bomb | Decoded::Unknown => {
                if fetched.result != ResultCode::Truncated && !fetched.flags.contains(Flags::CUT) {
                    fetched.flags.insert(Flags::CONTENT_CODING_BROKEN);
                }
                if plain.len() > head_len {
                    fetched.flags.insert(Flags::DECODED);
                }
                if whole {
                    fetched.result = ResultCode::DecodeFailed;
                } else if is_robots && plain.len() - head_len < ROBOTS_BYTES_MAX {
                    // Padding used up what may come over the wire: who knows which rules are behind it.
                    fetched.result = ResultCode::Truncated;
                }
            }
        }
        if fetched.flags.contains(Flags::DECODED) {
            std::mem::swap(&mut fetched.bytes, &mut plain);
        }
        buffers.keep_document(plain);
    }
}
