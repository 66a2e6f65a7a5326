use super::digits::{read, read_decimal, read_hex};
use super::line::{LINE_BYTES_MAX, LogLine, Path, PollNote, Rules, Timing, is_plain, push_origin};
use super::stamp::{COMPACT_BYTES, read_compact, read_rfc3339};
use super::{LogError, PATH_LETTERS_MAX};
use crate::proto::record::ResultCode;
use std::borrow::Cow;
use std::net::SocketAddr;

const FIELDS: usize = 11;

impl<'a> LogLine<'a> {
    /// Reads one line, with or without its line end.
    pub fn parse(line: &'a [u8]) -> Result<LogLine<'a>, LogError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() > LINE_BYTES_MAX {
            return Err(LogError::TooLong);
        }
        if !line.iter().all(|&octet| is_plain(octet) || octet == b' ') {
            return Err(LogError::NotText);
        }
        let line = str::from_utf8(line).map_err(|_| LogError::NotText)?;
        let mut fields = [""; FIELDS];
        let mut count = 0;
        for field in line.split(' ') {
            if let Some(place) = fields.get_mut(count) {
                *place = field;
            }
            count += 1;
        }
        if count != FIELDS {
            return Err(LogError::Fields(count));
        }
        let [made, status, size, url, path, via, media_type, shard, timings, digest, notes] = fields;
        let status = status_of(status).ok_or(LogError::Field("status"))?;
        if url.is_empty() {
            return Err(LogError::Field("url"));
        }
        let mut timing = timing_of(timings).ok_or(LogError::Field("timings"))?;
        let notes = Notes::parse(notes)?;
        if let Some(timing) = &mut timing {
            timing.wait_us = notes.wait_us;
        }
        Ok(LogLine {
            made_us: read_rfc3339(made.as_bytes()).ok_or(LogError::Field("time"))?,
            status,
            result: notes.result,
            document_bytes: read_decimal(size.as_bytes()).ok_or(LogError::Field("size"))?,
            url,
            path: match path {
                "P" => Path::Robots {
                    origin: notes.origin.ok_or(LogError::Note("for"))?,
                    rules: notes.rules.ok_or(LogError::Note("rules"))?,
                    crawl_delay_ms: notes.crawl_delay_ms,
                },
                letters => page_of(letters).ok_or(LogError::Field("path"))?,
            },
            via: said(via).ok_or(LogError::Field("via"))?,
            media_type: said(media_type).ok_or(LogError::Field("type"))?.unwrap_or_default().as_bytes(),
            shard: shard
                .strip_prefix('#')
                .and_then(|digits| read(digits.as_bytes()))
                .ok_or(LogError::Field("shard"))?,
            timing,
            digest: digest_of(digest).ok_or(LogError::Field("digest"))?,
            addr: notes.addr,
            doc_id: notes.doc_id,
            retry_after_s: notes.retry_after_s,
            poll: notes.due_s.map(|due_s| PollNote { due_s, why: notes.why.unwrap_or("-") }),
        })
    }

    /// Scheme and authority of the URL, spelt as in `for=`; `None` if it has none.
    pub fn origin(&self) -> Option<Cow<'a, str>> {
        let authority = self.url.find("://")? + 3;
        let path = self.url[authority..].find('/').map_or(self.url.len(), |at| authority + at);
        let origin = &self.url[..path];
        if path == authority {
            return None;
        }
        if !origin.contains(',') {
            return Some(Cow::Borrowed(origin));
        }
        let mut escaped = Vec::with_capacity(origin.len() + 2);
        push_origin(&mut escaped, origin);
        String::from_utf8(escaped).ok().map(Cow::Owned)
    }
}

/// A field that is never empty, and `-` where there is nothing to say.
fn said(field: &str) -> Option<Option<&str>> {
    match field {
        "" => None,
        "-" => Some(None),
        field => Some(Some(field)),
    }
}

/// An HTTP status, or a code that stands for none. What it stood for is among the notes.
fn status_of(field: &str) -> Option<Option<u16>> {
    match field.strip_prefix('-') {
        Some(code) => read::<u16>(code.as_bytes()).map(|_| None),
        None => match read::<u16>(field.as_bytes())? {
            0 => Some(None),
            status @ 1..1_000 => Some(Some(status)),
            _ => None,
        },
    }
}

fn page_of(field: &str) -> Option<Path<'static>> {
    if field == "-" {
        return Some(Path::Page { links: 0, redirects: 0 });
    }
    let (left_out, letters) = match field.split_once('+') {
        Some((left_out, letters)) => (read::<u16>(left_out.as_bytes())?, letters),
        None => (0, field),
    };
    if letters.is_empty() || letters.len() > PATH_LETTERS_MAX as usize {
        return None;
    }
    let count = |letter: u8| letters.bytes().filter(|&other| other == letter).count();
    let (links, redirects) = (count(b'L'), count(b'R'));
    if links + redirects != letters.len() {
        return None;
    }
    // What was left out came first, and redirects come last.
    Some(Path::Page { links: left_out.checked_add(links as u16)?, redirects: redirects as u8 })
}

fn timing_of(field: &str) -> Option<Option<Timing>> {
    if field == "-" {
        return Some(None);
    }
    let (sent, took) = field.as_bytes().split_at_checked(COMPACT_BYTES)?;
    let took_us = read_decimal(took.strip_prefix(b"+")?)?;
    Some(Some(Timing { sent_us: read_compact(sent)?, took_us, wait_us: None }))
}

fn digest_of(field: &str) -> Option<Option<u128>> {
    match field {
        "-" => Some(None),
        field => read_hex(field.strip_prefix("xxh3:")?.as_bytes()).map(Some),
    }
}

struct Notes<'a> {
    addr: Option<SocketAddr>,
    result: ResultCode,
    doc_id: Option<u32>,
    wait_us: Option<u32>,
    retry_after_s: Option<u32>,
    due_s: Option<u32>,
    why: Option<&'a str>,
    origin: Option<&'a str>,
    rules: Option<Rules>,
    crawl_delay_ms: Option<u32>,
}

impl<'a> Notes<'a> {
    fn parse(text: &'a str) -> Result<Notes<'a>, LogError> {
        let mut words = text.split(',');
        let addr = match said(words.next().unwrap_or_default()).ok_or(LogError::Note("address"))? {
            Some(addr) => Some(addr.parse().map_err(|_| LogError::Note("address"))?),
            None => None,
        };
        let name = words.next().unwrap_or_default();
        let result = ResultCode::ALL.iter().find(|code| code.name() == name).copied();
        let mut notes = Notes {
            addr,
            result: result.ok_or(LogError::Note("result"))?,
            doc_id: None,
            wait_us: None,
            retry_after_s: None,
            due_s: None,
            why: None,
            origin: None,
            rules: None,
            crawl_delay_ms: None,
        };
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let number = |name| read(value.as_bytes()).ok_or(LogError::Note(name)).map(Some);
            match name {
                "doc" => notes.doc_id = number("doc")?,
                "wait" => notes.wait_us = number("wait")?,
                "retry-after" => notes.retry_after_s = number("retry-after")?,
                "due" => notes.due_s = number("due")?,
                "why" => notes.why = Some(value),
                "crawl-delay" => notes.crawl_delay_ms = number("crawl-delay")?,
                "for" => notes.origin = Some(value),
                "rules" => {
                    let rules = Rules::ALL.into_iter().find(|rules| rules.name() == value);
                    notes.rules = Some(rules.ok_or(LogError::Note("rules"))?);
                }
                _ => {}
            }
        }
        Ok(notes)
    }
}
