//! One line of a reflog: what it is by its shape, and a record out of its fields.

use super::record::{DIGITS_MAX, ReflogRecord, TAG_BYTES_MAX};
use super::reject::{Reject, RejectReason, TEXT_BYTES_MAX};
use super::stamp::{Stamp, StampReader};
use crate::limits::URL_BYTES_MAX;
use memchr::{memchr, memchr_iter};
use std::slice;

/// The fields of a record up to its page, as they were written.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    batch: &'a [u8],
    priority: &'a [u8],
    time: &'a [u8],
    page: &'a [u8],
}

/// A record whose end has not come yet.
#[derive(Clone, Copy)]
pub(super) struct Open<'a> {
    pub line: u64,
    /// Its first line.
    pub text: &'a [u8],
    head: Head<'a>,
    /// The line that brought the URL, if that was the second.
    pub second: Option<&'a [u8]>,
    /// `None` while the URL itself is missing.
    url: Option<&'a [u8]>,
}

/// How a line left the record that it belongs to.
pub(super) enum Step<'a> {
    Open(Open<'a>),
    /// And hits of its line that it has no room for.
    Whole(ReflogRecord<'a>, u64),
    Bad(Reject<'a>, u64),
}

impl<'a> Open<'a> {
    /// A record by its first line. `None` if that does not begin one.
    pub fn begin(text: &'a [u8], line: u64, strictly: bool) -> Option<Step<'a>> {
        let mut fields = text.splitn(5, |&byte| byte == b'\t');
        let (batch, priority, time) = (fields.next()?, fields.next()?, fields.next()?);
        let is_timed = time.len() == 14 && is_digits(time);
        let is_shaped = is_timed && is_digits(batch) && is_digits(priority);
        if !is_shaped && (strictly || !is_meant(text, is_timed)) {
            return None;
        }
        let page = fields.next().unwrap_or_default();
        let open = Open { line, text, head: Head { batch, priority, time, page }, second: None, url: None };
        Some(match fields.next() {
            None | Some(b"") if page.is_empty() => Step::Bad(open.reject(RejectReason::TooFewFields, 0), 0),
            None | Some(b"") => Step::Open(open),
            Some(rest) => open.take_url(rest),
        })
    }

    /// Goes on with the next line that is not blank. `None` if it is no continuation.
    pub fn go_on(mut self, text: &'a [u8]) -> Option<Step<'a>> {
        match self.url {
            None => {
                let mut fields = text.split(|&byte| byte == b'\t');
                let url = fields.next().filter(|url| !url.is_empty())?;
                let (hits, is_short) = (fields.next(), fields.nth(1).is_none());
                if !(has_scheme(url) || is_short && hits.is_some_and(is_count)) {
                    return None;
                }
                self.second = Some(text);
                Some(self.take_url(text))
            }
            Some(_) => {
                let hits = &text[..memchr(b'\t', text).unwrap_or(text.len())];
                (is_count(hits) && memchr_iter(b'\t', text).count() < 2).then(|| self.take_hits(text))
            }
        }
    }

    fn take_url(mut self, rest: &'a [u8]) -> Step<'a> {
        let end = memchr(b'\t', rest).unwrap_or(rest.len());
        self.url = Some(&rest[..end]);
        match rest.get(end + 1..) {
            _ if end == 0 => Step::Bad(self.reject(RejectReason::NoUrl, 0), 0),
            None | Some(b"") => Step::Open(self),
            Some(rest) => self.take_hits(rest),
        }
    }

    fn take_hits(self, rest: &'a [u8]) -> Step<'a> {
        let end = memchr(b'\t', rest).unwrap_or(rest.len());
        let (hits, tag) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        match self.record(hits, tag) {
            Ok(record) => Step::Whole(record, beyond(hits)),
            Err(why) => Step::Bad(self.reject(why, number(hits).unwrap_or(0)), beyond(hits)),
        }
    }

    fn record(&self, hits: &'a [u8], tag: &'a [u8]) -> Result<ReflogRecord<'a>, RejectReason> {
        let Head { batch, priority, time, page } = self.head;
        let is_id = |digits: &[u8]| digits.len() <= DIGITS_MAX && is_digits(digits);
        let check = |is_good: bool, why: RejectReason| if is_good { Ok(()) } else { Err(why) };
        check(memchr(b'\t', tag).is_none(), RejectReason::TooManyFields)?;
        check(is_id(batch), RejectReason::Batch)?;
        let priority = number(priority).ok_or(RejectReason::Priority)?.min(u32::from(u8::MAX)) as u8;
        let at = Stamp::parse(time).ok_or(RejectReason::Time)?;
        check(is_id(page), RejectReason::Page)?;
        let url = self.url.unwrap_or_default();
        check(url.len() <= URL_BYTES_MAX, RejectReason::UrlTooLong)?;
        check(is_text(url), RejectReason::UrlBytes)?;
        let hits = number(hits).ok_or(RejectReason::Hits)?;
        check(tag.len() <= TAG_BYTES_MAX, RejectReason::TagTooLong)?;
        Ok(ReflogRecord { batch, priority, at, page, url, hits, tag })
    }

    pub fn reject(&self, why: RejectReason, hits: u32) -> Reject<'a> {
        Reject { line: self.line, why, text: beginning(self.text), hits }
    }
}

/// The fields of a record that stands in one line, as they were written; the tag may be missing.
pub fn fields(line: &[u8]) -> Result<[&[u8]; 7], RejectReason> {
    let mut found = [&[][..]; 7];
    let mut count = 0;
    for field in trimmed(line).split(|&byte| byte == b'\t') {
        *found.get_mut(count).ok_or(RejectReason::TooManyFields)? = field;
        count += 1;
    }
    if count < 6 { Err(RejectReason::TooFewFields) } else { Ok(found) }
}

impl<'a> ReflogRecord<'a> {
    /// A record that stands in one line whole, as a queue has it; without its line feed.
    pub fn read(line: &'a [u8]) -> Result<ReflogRecord<'a>, RejectReason> {
        match Open::begin(line, 0, true) {
            Some(Step::Whole(record, _)) => Ok(record),
            Some(Step::Bad(reject, _)) => Err(reject.why),
            Some(Step::Open(_)) => Err(RejectReason::Unfinished),
            None => Err(RejectReason::TooFewFields),
        }
    }
}

pub(super) fn beginning(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

/// A line without what may stand before its end unseen.
pub(super) fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\r'] = text {
        text = before;
    }
    text
}

/// The record at the beginning of `bytes` if all of it is as it should be, to its end, and how long its line is. Says of
/// no line anything else than [`Open`] does.
pub(super) fn plain<'a>(bytes: &'a [u8], stamps: &mut StampReader) -> Option<(ReflogRecord<'a>, usize)> {
    let (batch, rest) = digits(bytes, DIGITS_MAX)?;
    let (priority, rest) = digits(rest, 3)?;
    let (time, rest) = rest.split_at_checked(15)?;
    let (at, b'\t') = (stamps.parse(&time[..14])?, time[14]) else { return None };
    let (page, rest) = digits(rest, DIGITS_MAX)?;
    let end = memchr(b'\t', &rest[..rest.len().min(URL_BYTES_MAX + 1)])?;
    let (url, rest) = (&rest[..end], &rest[end + 1..]);
    let count = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    if end == 0 || !is_text(url) || count == 0 || count == 10 {
        return None;
    }
    let (hits, rest) = rest.split_at(count);
    let (tag, rest) = match rest {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] | [b'\t', b'\n', rest @ ..] => (&rest[..0], rest),
        [b'\t', tag @ b'!'..=0xff, b'\n', rest @ ..] => (slice::from_ref(tag), rest),
        [b'\t', rest @ ..] => {
            let end = memchr(b'\n', &rest[..rest.len().min(TAG_BYTES_MAX + 2)])?;
            (trimmed(&rest[..end]), &rest[end + 1..])
        }
        _ => return None,
    };
    if tag.len() > TAG_BYTES_MAX || memchr(b'\t', tag).is_some() {
        return None;
    }
    let number = |text: &[u8]| text.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let priority = number(priority).min(u32::from(u8::MAX)) as u8;
    let record = ReflogRecord { batch, priority, at, page, url, hits: number(hits), tag };
    Some((record, bytes.len() - rest.len()))
}

/// One to `max` digits and the tab behind them, and what follows.
fn digits(bytes: &[u8], max: usize) -> Option<(&[u8], &[u8])> {
    let count = bytes.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0 && bytes.get(count) == Some(&b'\t')).then(|| (&bytes[..count], &bytes[count + 1..]))
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// A count as it may stand in a line of its own; what is below zero is a bad count, and one all the same.
fn is_count(text: &[u8]) -> bool {
    is_digits(text.strip_prefix(b"-").unwrap_or(text))
}

fn has_scheme(text: &[u8]) -> bool {
    let length =
        text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)).count();
    text[0].is_ascii_alphabetic() && text[length..].starts_with(b"://")
}

/// Whether a line without the shape of a record has so much of one that it was meant as such.
fn is_meant(text: &[u8], is_timed: bool) -> bool {
    memchr_iter(b'\t', text).take(5).count() >= if is_timed { 3 } else { 5 }
}

/// A priority or a number of hits, of any length; more than fits is as much as fits.
pub fn number(text: &[u8]) -> Option<u32> {
    let text = text.trim_ascii();
    let add = |sum: u32, digit: &u8| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    is_digits(text).then(|| text.iter().fold(0, add))
}

/// What a number of hits says beyond what fits. More than a million million are no count, and read as so many.
fn beyond(hits: &[u8]) -> u64 {
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    match hits.trim_ascii() {
        text if text.len() > 9 && is_digits(text) => {
            text.iter().fold(0, add).min(HITS_READ_MAX).saturating_sub(u64::from(u32::MAX))
        }
        _ => 0,
    }
}

const HITS_READ_MAX: u64 = 1_000_000_000_000;

/// No control characters.
fn is_text(url: &[u8]) -> bool {
    // Without a way out early, so that many are looked at at once.
    !url.iter().fold(false, |found, &byte| found | (byte < b' ') | (byte == 0x7f))
}
