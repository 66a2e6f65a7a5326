use super::capture::{FLAGS_FIELD, RESULT_FIELD, is_body_fault};
use super::export::ArchiveError;
use crate::handler::redirect_target;
use crate::proto::coding::{CodingLimits, ContentDecoder, Decoded, header_of};
use crate::proto::http1::{
    BodyDecoder, BodyEnd, BodyLimits, BodyStep, Flags, Framing, Head, HeadLimits, HeadParser, HeadStep,
    Method,
};
use crate::proto::record::{HttpCode, ResultCode, StatusAction};
use crate::proto::url::{CrawlUrl, UrlError};
use crate::proto::warc::{WarcHead, read_date};
use crate::store_server::{NewRecord, Record};
use std::net::{IpAddr, Ipv4Addr};

/// A WARC record as a record of the store.
#[derive(Debug)]
pub(super) struct DecodedRecord {
    url: CrawlUrl,
    new_url: Option<CrawlUrl>,
    result: ResultCode,
    status: u16,
    flags: Flags,
    unix_ms: u64,
    ip: IpAddr,
    /// Response head, then the document.
    bytes: Vec<u8>,
    head_len: usize,
}

/// Why a record is not stored.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is sound, and of a kind that a store does not hold.
    NotOurs,
    /// It refers to a document that was not read yet.
    Missing,
    Bad(String),
    /// The import itself cannot go on.
    Failed(ArchiveError),
}

impl From<ArchiveError> for Refusal {
    fn from(error: ArchiveError) -> Refusal {
        Refusal::Failed(error)
    }
}

/// The block of a record, as far as it was kept.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub bytes: &'a [u8],
    /// There was more of it.
    pub cut: bool,
}

/// Turns records into what a fetch would have stored.
pub(super) struct WarcDecoder {
    doc_bytes_max: u64,
    decoder: ContentDecoder,
}

impl DecodedRecord {
    pub fn record(&self) -> NewRecord<'_> {
        NewRecord {
            doc_id: 0,
            url: self.url.as_str(),
            new_url: self.new_url.as_ref().map(CrawlUrl::as_str),
            success: self.result.is_success(),
            result: self.result,
            http_code: HttpCode::of(self.status),
            status: self.status,
            flags: self.flags.bits(),
            took_ms: 0,
            fetched_unix_ms: self.unix_ms,
            ip: self.ip,
            port: self.url.port(),
            bytes: &self.bytes,
            head_len: self.head_len,
        }
    }

    /// It says that the document of before still holds, and needs none of its own.
    pub fn is_unchanged(&self) -> bool {
        self.result == ResultCode::NotModified
    }

    /// The same with the document of another record.
    pub fn with_document_of(mut self, original: &Record, document: &[u8]) -> DecodedRecord {
        self.bytes.truncate(self.head_len);
        self.bytes.extend_from_slice(document);
        self.flags.insert(Flags::from_bits(original.flags & Flags::DECODED.bits()));
        if original.result == ResultCode::TooLarge && self.result == ResultCode::Ok {
            self.result = ResultCode::TooLarge;
            self.flags.insert(Flags::CUT);
        }
        self
    }
}

impl WarcDecoder {
    pub fn new(doc_bytes_max: u64) -> WarcDecoder {
        WarcDecoder { doc_bytes_max, decoder: ContentDecoder::new() }
    }

    /// How much of a block is of use: a head, and a document in chunks.
    pub fn block_bytes_max(&self) -> usize {
        let head = u64::from(HeadLimits::default().head_bytes_max);
        usize::try_from(head + self.doc_bytes_max + self.doc_bytes_max / 4 + 65_536).unwrap_or(usize::MAX)
    }

    /// A document without a response.
    pub fn resource(&self, head: &WarcHead, block: Block<'_>) -> Result<DecodedRecord, Refusal> {
        let mut decoded = bare(head)?;
        let kept = block.bytes.len().min(usize::try_from(self.doc_bytes_max).unwrap_or(usize::MAX));
        decoded.bytes = block.bytes[..kept].to_vec();
        decoded.result = ResultCode::Ok;
        if block.cut || kept < block.bytes.len() {
            decoded.flags.insert(Flags::CUT);
        }
        self.cut_by_writer(head, &mut decoded);
        Ok(decoded)
    }

    /// A response with its document.
    pub fn response(&mut self, head: &WarcHead, block: Block<'_>) -> Result<DecodedRecord, Refusal> {
        let mut decoded = bare(head)?;
        let parsed = response_head(&mut decoded, block.bytes)?;
        self.read_body(&parsed, block, &mut decoded);
        self.cut_by_writer(head, &mut decoded);
        self.undo_coding(&parsed, &mut decoded);
        as_told(head, &mut decoded);
        Ok(decoded)
    }

    /// A response whose document is in another record, or has not changed.
    pub fn revisit(&mut self, head: &WarcHead, block: Block<'_>) -> Result<DecodedRecord, Refusal> {
        let mut decoded = bare(head)?;
        if block.bytes.is_empty() {
            // A head is not required; a revisit implies a good answer.
            decoded.status = if is_not_modified(head) { 304 } else { 200 };
            decoded.result = StatusAction::of(decoded.status).result();
            return Ok(decoded);
        }
        response_head(&mut decoded, block.bytes)?;
        if is_not_modified(head) {
            decoded.result = ResultCode::NotModified;
        }
        as_told(head, &mut decoded);
        Ok(decoded)
    }

    fn read_body(&self, head: &Head, block: Block<'_>, decoded: &mut DecodedRecord) {
        let rest = &block.bytes[decoded.head_len..];
        let limits = BodyLimits { doc_bytes_max: self.doc_bytes_max, ..BodyLimits::default() };
        let mut body = BodyDecoder::new(head.framing, limits);
        let is_cut = match body.push(rest, &mut decoded.bytes) {
            Ok(BodyStep::Done { .. }) => false,
            Ok(BodyStep::TooLarge) => true,
            Ok(BodyStep::NeedMore) => {
                if !block.cut && body.end() == BodyEnd::Truncated {
                    decoded.result = ResultCode::Truncated;
                }
                block.cut
            }
            // Some crawlers keep the header and remove the chunks.
            Err(_) if head.framing == Framing::Chunked && decoded.bytes.len() == decoded.head_len => {
                let kept = rest.len().min(usize::try_from(self.doc_bytes_max).unwrap_or(usize::MAX));
                decoded.bytes.extend_from_slice(&rest[..kept]);
                block.cut || kept < rest.len()
            }
            Err(_) => {
                decoded.result = ResultCode::Malformed;
                false
            }
        };
        decoded.flags.insert(body.flags());
        if is_cut {
            decoded.flags.insert(Flags::CUT);
        }
        too_large(decoded);
    }

    /// Notes what is missing according to the writer of the file.
    fn cut_by_writer(&self, head: &WarcHead, decoded: &mut DecodedRecord) {
        match head.get("WARC-Truncated").map(|reason| reason.trim().to_ascii_lowercase()).as_deref() {
            None | Some("") => {}
            Some("length") => decoded.flags.insert(Flags::CUT),
            Some("time") => decoded.result = ResultCode::TotalTimeout,
            Some(_) if decoded.result != ResultCode::Malformed => decoded.result = ResultCode::Truncated,
            Some(_) => {}
        }
        too_large(decoded);
    }

    /// Removes the content coding, as the spider does.
    fn undo_coding(&mut self, head: &Head, decoded: &mut DecodedRecord) {
        let codings = header_of(head, &decoded.bytes).into_owned();
        if codings.is_empty() || decoded.bytes.len() == decoded.head_len {
            return;
        }
        let mut plain = decoded.bytes[..decoded.head_len].to_vec();
        let limits = CodingLimits::new(self.doc_bytes_max);
        let coded = &decoded.bytes[decoded.head_len..];
        let whole = decoded.result == ResultCode::Ok;
        match self.decoder.decode(&codings, coded, &limits, &mut plain) {
            Decoded::Plain => return,
            Decoded::Whole => {}
            Decoded::TooLarge => decoded.flags.insert(Flags::CUT),
            Decoded::Broken | Decoded::Bomb | Decoded::Unknown => {
                // A document that the writer decoded without saying so is not in the coding at all.
                if plain.len() == decoded.head_len {
                    if !whole || !looks_coded(coded) {
                        return;
                    }
                } else if decoded.result == ResultCode::Truncated || decoded.flags.contains(Flags::CUT) {
                    decoded.flags.insert(Flags::DECODED);
                    decoded.bytes = plain;
                    return;
                }
                decoded.flags.insert(Flags::CONTENT_CODING_BROKEN);
                if whole {
                    decoded.result = ResultCode::DecodeFailed;
                }
                if plain.len() == decoded.head_len {
                    return;
                }
            }
        }
        decoded.flags.insert(Flags::DECODED);
        decoded.bytes = plain;
        too_large(decoded);
    }
}

/// Reads the fields that every record has; status and result follow.
fn bare(head: &WarcHead) -> Result<DecodedRecord, Refusal> {
    let target = head.target().ok_or_else(|| Refusal::Bad("a record without WARC-Target-URI".to_string()))?;
    let url = match CrawlUrl::parse(&target) {
        Ok(url) => url,
        Err(UrlError::Scheme(_)) => return Err(Refusal::NotOurs),
        Err(error) => return Err(Refusal::Bad(format!("WARC-Target-URI: {error}"))),
    };
    let date = head.get("WARC-Date").and_then(read_date);
    let unix_ms = date.ok_or_else(|| Refusal::Bad("a record without a good WARC-Date".to_string()))?;
    let ip = head.get("WARC-IP-Address").and_then(|ip| ip.trim().parse().ok());
    let flags = head.get(FLAGS_FIELD).unwrap_or_default().split(',').filter_map(Flags::from_name);
    Ok(DecodedRecord {
        url,
        new_url: None,
        result: ResultCode::Other,
        status: 0,
        flags: flags.fold(Flags::NONE, |all, flag| all | flag),
        unix_ms,
        ip: ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        bytes: Vec::new(),
        head_len: 0,
    })
}

/// Reads the response head that a block begins with.
fn response_head(decoded: &mut DecodedRecord, block: &[u8]) -> Result<Head, Refusal> {
    let method = if decoded.flags.contains(Flags::HEAD_ONLY) { Method::Head } else { Method::Get };
    let head = match HeadParser::new(HeadLimits::default(), method).parse(block) {
        Ok(HeadStep::Done(head)) => head,
        Ok(HeadStep::NeedMore) => return Err(Refusal::Bad("the response head has no end".to_string())),
        Err(error) => return Err(Refusal::Bad(format!("the response: {error}"))),
    };
    decoded.head_len = head.head_bytes as usize;
    decoded.bytes = block[..decoded.head_len].to_vec();
    decoded.status = head.status;
    decoded.result = StatusAction::of(head.status).result();
    decoded.flags.insert(head.flags);
    if decoded.result == ResultCode::Redirect {
        decoded.new_url = redirect_target(&decoded.url, &head, block);
    }
    Ok(head)
}

fn is_not_modified(head: &WarcHead) -> bool {
    head.get("WARC-Profile").is_some_and(|profile| profile.trim().ends_with("/server-not-modified"))
}

/// A fault that a file of our own tells of; one that it does not know of is no reason to call a record better than it is.
fn as_told(head: &WarcHead, decoded: &mut DecodedRecord) {
    let told = head.get(RESULT_FIELD).map(str::trim);
    let told = ResultCode::ALL.iter().find(|code| is_body_fault(**code) && Some(code.name()) == told);
    let is_broken = decoded.flags.contains(Flags::CONTENT_CODING_BROKEN) && decoded.result == ResultCode::Ok;
    if let Some(told) = told.copied().or(is_broken.then_some(ResultCode::DecodeFailed)) {
        decoded.result = told;
    }
}

/// An error page is one however long it is.
fn too_large(decoded: &mut DecodedRecord) {
    if decoded.flags.contains(Flags::CUT) && decoded.result == ResultCode::Ok {
        decoded.result = ResultCode::TooLarge;
    }
}

/// Bytes that are no text: text in place of a coded document was decoded by the writer of the file.
fn looks_coded(bytes: &[u8]) -> bool {
    bytes.iter().take(64).any(|&byte| byte < b'\t' || (b'\x0e'..b' ').contains(&byte))
}
