use super::http_head;
use super::originals::Original;
use crate::proto::http1::{Flags, Method};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::proto::warc::{
    PROFILE_NOT_MODIFIED, PROFILE_SAME_PAYLOAD, record_id, sha1_label, warc_date, write_record,
};
use crate::spider::plain_request;
use crate::store_server::{Document, Located, Record};
use sha1::{Digest, Sha1};

/// A stored record, and what is needed beside it to archive it.
pub(super) struct Capture<'a> {
    pub located: &'a Located,
    /// Its own head, and the document unless another record has it.
    pub document: &'a Document,
    /// The record that has the document, if that is another one.
    pub original: Option<&'a Original>,
    /// The user agent of the request.
    pub agent: Option<&'a str>,
    /// The id of the file's first record.
    pub warcinfo: &'a str,
}

/// What a stored record became in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Response,
    Revisit,
    Resource,
    /// There was no response.
    Nothing,
}

/// Whether a record has anything to archive.
pub(super) fn has_response(record: &Record) -> bool {
    record.status != 0 || record.head_len > 0 || record.document_len > 0
}

impl Capture<'_> {
    /// Writes the record into `main`, and the request that it answers, as far as it is known, into `request`.
    pub fn write(&self, main: &mut Vec<u8>, request: &mut Vec<u8>) -> Became {
        let record = &self.located.record;
        if !has_response(record) {
            return Became::Nothing;
        }
        let flags = Flags::from_bits(record.flags);
        let body = &self.document.body[..];
        let is_revisit = self.original.is_some() || record.result == ResultCode::NotModified;
        let shown_bytes = if self.original.is_some() { record.document_len as usize } else { body.len() };
        let head = match http_head::archived(&self.document.head, flags, shown_bytes) {
            Some(head) => head,
            None if record.status != 0 => http_head::made_up(record.status, shown_bytes),
            None => {
                self.write_resource(main);
                return Became::Resource;
            }
        };
        let id = self.id("main");
        let asked = self.request(flags);
        let request_id = self.id("request");
        if let Some(asked) = &asked {
            let fields = [
                ("WARC-Type", "request"),
                ("WARC-Target-URI", &record.url),
                ("WARC-Date", &warc_date(record.fetched_unix_ms)),
                ("WARC-Record-ID", &request_id),
                ("WARC-Warcinfo-ID", self.warcinfo),
                ("WARC-Concurrent-To", &id),
                ("Content-Type", "application/http;msgtype=request"),
                ("WARC-Block-Digest", &digest(&[asked])),
            ];
            write_record(request, &fields, &[asked]);
        }
        let mut fields = self.fields(if is_revisit { "revisit" } else { "response" }, &id);
        fields.push(("Content-Type", "application/http;msgtype=response".to_string()));
        if asked.is_some() {
            fields.push(("WARC-Concurrent-To", request_id));
        }
        if let Some(original) = self.original {
            fields.push(("WARC-Profile", PROFILE_SAME_PAYLOAD.to_string()));
            fields.push(("WARC-Refers-To-Target-URI", original.url.to_string()));
            fields.push(("WARC-Refers-To-Date", warc_date(original.unix_ms)));
            fields.push(("WARC-Payload-Digest", original.payload_digest()));
        } else if is_revisit {
            fields.push(("WARC-Profile", PROFILE_NOT_MODIFIED.to_string()));
        }
        let body = if is_revisit { &[][..] } else { body };
        if !is_revisit {
            fields.push(("WARC-Payload-Digest", digest(&[body])));
        }
        fields.push(("WARC-Block-Digest", digest(&[&head, body])));
        if let Some(reason) = truncated(record.result, flags) {
            fields.push(("WARC-Truncated", reason.to_string()));
        }
        if is_body_fault(record.result) {
            fields.push((RESULT_FIELD, record.result.name().to_string()));
        }
        write_record(main, &fields, &[&head, body]);
        if is_revisit { Became::Revisit } else { Became::Response }
    }

    /// A document of which only the URL is known.
    fn write_resource(&self, main: &mut Vec<u8>) {
        let body = &self.document.body[..];
        let mut fields = self.fields("resource", &self.id("main"));
        fields.push(("Content-Type", "application/octet-stream".to_string()));
        fields.push(("WARC-Payload-Digest", digest(&[body])));
        fields.push(("WARC-Block-Digest", digest(&[body])));
        write_record(main, &fields, &[body]);
    }

    fn fields(&self, kind: &str, id: &str) -> Vec<(&'static str, String)> {
        let record = &self.located.record;
        let mut fields = vec![
            ("WARC-Type", kind.to_string()),
            ("WARC-Target-URI", record.url.clone()),
            ("WARC-Date", warc_date(record.fetched_unix_ms)),
            ("WARC-Record-ID", id.to_string()),
            ("WARC-Warcinfo-ID", self.warcinfo.to_string()),
        ];
        if !record.ip.is_unspecified() {
            fields.push(("WARC-IP-Address", record.ip.to_string()));
        }
        let flags: Vec<&str> = Flags::from_bits(record.flags).names().collect();
        if !flags.is_empty() {
            fields.push((FLAGS_FIELD, flags.join(",")));
        }
        fields
    }

    /// The request, without validators of earlier answers and without secrets.
    fn request(&self, flags: Flags) -> Option<Vec<u8>> {
        let agent = self.agent?;
        let url = CrawlUrl::parse(&self.located.record.url).ok()?;
        let method = if flags.contains(Flags::HEAD_ONLY) { Method::Head } else { Method::Get };
        Some(plain_request(method, &url, flags.contains(Flags::HEAD_BY_GET), agent))
    }

    fn id(&self, part: &str) -> String {
        let Located { record, segment, offset } = self.located;
        record_id(&[
            part.as_bytes(),
            record.url.as_bytes(),
            &record.fetched_unix_ms.to_le_bytes(),
            &record.digest.to_le_bytes(),
            &segment.to_le_bytes(),
            &offset.to_le_bytes(),
        ])
    }
}

/// A field of our own: the names of a record's flags, with commas between.
pub(super) const FLAGS_FIELD: &str = "Nephila-Flags";

/// A field of our own: the name of a record's result, where neither status nor `WARC-Truncated` say it.
pub(super) const RESULT_FIELD: &str = "Nephila-Result";

/// What may go wrong with a response after its head.
pub(super) fn is_body_fault(result: ResultCode) -> bool {
    use ResultCode as R;
    matches!(
        result,
        R::Truncated
            | R::Malformed
            | R::DecodeFailed
            | R::Empty
            | R::ReadTimeout
            | R::TotalTimeout
            | R::Reset
            | R::TooSlow
    )
}

/// Why a document is not whole, in the words of the standard.
fn truncated(result: ResultCode, flags: Flags) -> Option<&'static str> {
    match result {
        _ if flags.contains(Flags::CUT) => Some("length"),
        ResultCode::TooLarge => Some("length"),
        _ if flags.contains(Flags::REDUNDANT_FEED) => Some("unspecified"),
        ResultCode::Truncated | ResultCode::Reset | ResultCode::Empty => Some("disconnect"),
        ResultCode::ReadTimeout | ResultCode::TotalTimeout | ResultCode::TooSlow => Some("time"),
        ResultCode::Malformed => Some("unspecified"),
        _ => None,
    }
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    sha1_label(hash)
}
