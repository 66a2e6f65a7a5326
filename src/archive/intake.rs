use super::capture::FLAGS_FIELD;
use crate::handler::redirect_target;
use crate::proto::coding::{CodingLimits, ContentDecoder, Decoded, header_of};
use crate::proto::http1::{
    BodyDecoder, BodyEnd, BodyLimits, BodyStep, Flags, Framing, Head, HeadLimits, HeadParser, HeadStep,
    Method,
};
use crate::proto::record::{HttpCode, ResultCode, StatusAction};
use crate::proto::url::{CrawlUrl, UrlError};
use crate::proto::warc::{WarcHead, read_date};
use crate::store_server::NewRecord;
use std::net::{IpAddr, Ipv4Addr};

/// What a WARC record is to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
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

/// Why a record is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is of no use to this store, and sound.
    NotOurs,
    /// It refers to a document that was not seen.
    Missing,
    Bad(String),
}

/// The block of a record, as far as it was kept.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub bytes: &'a [u8],
    /// There was more of it.
    pub cut: bool,
}

/// Turns records into what a fetch would have stored.
pub(super) struct Intake {
    doc_bytes_max: u64,
    decoder: ContentDecoder,
}

impl Taken {
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

    /// It says that what was had before is still true, and needs no document.
    pub fn is_unchanged(&self) -> bool {
        self.result == ResultCode::NotModified
    }

    /// The same with the document of another.
    pub fn with_document_of(mut self, original: &Taken) -> Taken {
        self.bytes.truncate(self.head_len);
        self.bytes.extend_from_slice(&original.bytes[original.head_len..]);
        self.flags.insert(Flags::from_bits(original.flags.bits() & Flags::DECODED.bits()));
        if original.result == ResultCode::TooLarge && self.result == ResultCode::Ok {
            self.result = ResultCode::TooLarge;
            self.flags.insert(Flags::CUT);
        }
        self
    }
}

impl Intake {
    pub fn new(doc_bytes_max: u64) -> Intake {
        Intake { doc_bytes_max, decoder: ContentDecoder::new() }
    }

    /// How much of a block is of use: a head, and a document in chunks.
    pub fn block_bytes_max(&self) -> usize {
        let head = u64::from(HeadLimits::default().head_bytes_max);
        usize::try_from(head + self.doc_bytes_max + self.doc_bytes_max / 4 + 65_536).unwrap_or(usize::MAX)
    }

    /// A document without a response.
    pub fn resource(&self, head: &WarcHead, block: Block<'_>) -> Result<Taken, Refused> {
        let mut taken = bare(head)?;
        let kept = block.bytes.len().min(usize::try_from(self.doc_bytes_max).unwrap_or(usize::MAX));
        taken.bytes = block.bytes[..kept].to_vec();
        taken.result = ResultCode::Ok;
        if block.cut || kept < block.bytes.len() {
            taken.flags.insert(Flags::CUT);
        }
        self.cut_by_writer(head, &mut taken);
        Ok(taken)
    }

    /// A response with its document.
    pub fn response(&mut self, head: &WarcHead, block: Block<'_>) -> Result<Taken, Refused> {
        let mut taken = bare(head)?;
        let parsed = response_head(&mut taken, block.bytes)?;
        self.read_body(&parsed, block, &mut taken);
        self.cut_by_writer(head, &mut taken);
        self.undo_coding(&parsed, &mut taken);
        Ok(taken)
    }

    /// A response whose document is elsewhere, or still the one of before.
    pub fn revisit(&mut self, head: &WarcHead, block: Block<'_>) -> Result<Taken, Refused> {
        let mut taken = bare(head)?;
        if block.bytes.is_empty() {
            // A head is not required; that it answered well is the point of a revisit.
            taken.status = if is_not_modified(head) { 304 } else { 200 };
            taken.result = complete(taken.status);
            return Ok(taken);
        }
        response_head(&mut taken, block.bytes)?;
        if is_not_modified(head) {
            taken.result = ResultCode::NotModified;
        }
        Ok(taken)
    }

    fn read_body(&self, head: &Head, block: Block<'_>, taken: &mut Taken) {
        let rest = &block.bytes[taken.head_len..];
        let limits = BodyLimits { doc_bytes_max: self.doc_bytes_max, ..BodyLimits::default() };
        let mut body = BodyDecoder::new(head.framing, limits);
        let is_cut = match body.push(rest, &mut taken.bytes) {
            Ok(BodyStep::Done { .. }) => false,
            Ok(BodyStep::TooLarge) => true,
            Ok(BodyStep::NeedMore) => {
                if !block.cut && body.end() == BodyEnd::Truncated {
                    taken.result = ResultCode::Truncated;
                }
                block.cut
            }
            // Many a crawler leaves the header and takes the chunks away.
            Err(_) if head.framing == Framing::Chunked && taken.bytes.len() == taken.head_len => {
                let kept = rest.len().min(usize::try_from(self.doc_bytes_max).unwrap_or(usize::MAX));
                taken.bytes.extend_from_slice(&rest[..kept]);
                block.cut || kept < rest.len()
            }
            Err(_) => {
                taken.result = ResultCode::Malformed;
                false
            }
        };
        taken.flags.insert(body.flags());
        if is_cut {
            taken.flags.insert(Flags::CUT);
        }
        too_large(taken);
    }

    /// What the writer of the file says that is missing.
    fn cut_by_writer(&self, head: &WarcHead, taken: &mut Taken) {
        match head.get("WARC-Truncated").map(|reason| reason.trim().to_ascii_lowercase()).as_deref() {
            None | Some("") => {}
            Some("length") => taken.flags.insert(Flags::CUT),
            Some("time") => taken.result = ResultCode::TotalTimeout,
            Some(_) if taken.result != ResultCode::Malformed => taken.result = ResultCode::Truncated,
            Some(_) => {}
        }
        too_large(taken);
    }

    /// As a fetch does it, see `spider`.
    fn undo_coding(&mut self, head: &Head, taken: &mut Taken) {
        let codings = header_of(head, &taken.bytes).into_owned();
        if codings.is_empty() || taken.bytes.len() == taken.head_len {
            return;
        }
        let mut plain = taken.bytes[..taken.head_len].to_vec();
        let limits = CodingLimits::new(self.doc_bytes_max);
        let coded = &taken.bytes[taken.head_len..];
        let whole = taken.result == ResultCode::Ok;
        match self.decoder.decode(&codings, coded, &limits, &mut plain) {
            Decoded::Plain => return,
            Decoded::Whole => {}
            Decoded::TooLarge => taken.flags.insert(Flags::CUT),
            Decoded::Broken | Decoded::Bomb | Decoded::Unknown => {
                // What a writer has decoded and not said so is not in the coding at all.
                if plain.len() == taken.head_len {
                    if !whole || !looks_coded(coded) {
                        return;
                    }
                } else if taken.result == ResultCode::Truncated || taken.flags.contains(Flags::CUT) {
                    taken.flags.insert(Flags::DECODED);
                    taken.bytes = plain;
                    return;
                }
                taken.flags.insert(Flags::CONTENT_CODING_BROKEN);
                if whole {
                    taken.result = ResultCode::DecodeFailed;
                }
                if plain.len() == taken.head_len {
                    return;
                }
            }
        }
        taken.flags.insert(Flags::DECODED);
        taken.bytes = plain;
        too_large(taken);
    }
}

/// What every record has; status and result are still to be found out.
fn bare(head: &WarcHead) -> Result<Taken, Refused> {
    let target = head.target().ok_or_else(|| Refused::Bad("a record without WARC-Target-URI".to_string()))?;
    let url = match CrawlUrl::parse(&target) {
        Ok(url) => url,
        Err(UrlError::Scheme(_)) => return Err(Refused::NotOurs),
        Err(error) => return Err(Refused::Bad(format!("WARC-Target-URI: {error}"))),
    };
    let date = head.get("WARC-Date").and_then(read_date);
    let unix_ms = date.ok_or_else(|| Refused::Bad("a record without a good WARC-Date".to_string()))?;
    let ip = head.get("WARC-IP-Address").and_then(|ip| ip.trim().parse().ok());
    let flags = head.get(FLAGS_FIELD).unwrap_or_default().split(',').filter_map(Flags::from_name);
    Ok(Taken {
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
fn response_head(taken: &mut Taken, block: &[u8]) -> Result<Head, Refused> {
    let method = if taken.flags.contains(Flags::HEAD_ONLY) { Method::Head } else { Method::Get };
    let head = match HeadParser::new(HeadLimits::default(), method).parse(block) {
        Ok(HeadStep::Done(head)) => head,
        Ok(HeadStep::NeedMore) => return Err(Refused::Bad("the response head has no end".to_string())),
        Err(error) => return Err(Refused::Bad(format!("the response: {error}"))),
    };
    taken.head_len = head.head_bytes as usize;
    taken.bytes = block[..taken.head_len].to_vec();
    taken.status = head.status;
    taken.result = complete(head.status);
    taken.flags.insert(head.flags);
    if taken.result == ResultCode::Redirect {
        taken.new_url = redirect_target(&taken.url, &head, block);
    }
    Ok(head)
}

fn is_not_modified(head: &WarcHead) -> bool {
    head.get("WARC-Profile").is_some_and(|profile| profile.trim().ends_with("/server-not-modified"))
}

/// What a whole response means by its status.
fn complete(status: u16) -> ResultCode {
    match StatusAction::of(status) {
        StatusAction::Document => ResultCode::Ok,
        StatusAction::Unchanged => ResultCode::NotModified,
        StatusAction::Follow => ResultCode::Redirect,
        StatusAction::Retry | StatusAction::Drop | StatusAction::BackOff => ResultCode::HttpError,
    }
}

/// An error page is one however long it is.
fn too_large(taken: &mut Taken) {
    if taken.flags.contains(Flags::CUT) && taken.result == ResultCode::Ok {
        taken.result = ResultCode::TooLarge;
    }
}

/// Bytes that are no text: text in place of a coded document was decoded by somebody before.
fn looks_coded(bytes: &[u8]) -> bool {
    bytes.iter().take(64).any(|&byte| byte < b'\t' || (b'\x0e'..b' ').contains(&byte))
}
