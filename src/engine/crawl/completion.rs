//! What a fetch that has ended comes to: a record for the store, a report for niceness, an outcome and links for the doc
//! index.

use crate::base::{Now, Wall};
use crate::doc_index::{Note, Outcome};
use crate::engine::crawl::messages::{Found, NewUrl};
use crate::engine::crawl::shard_log::Span;
use crate::handler::Handled;
use crate::limits::REDIRECTS_MAX;
use crate::proto::http1::{Flags, Head, Validators, http_date};
use crate::proto::job::{Candidate, Held, Job};
use crate::proto::record::{HttpCode, ResultCode};
use crate::spider::Fetched;
use crate::store_server::NewRecord;
use crate::url_server::{Refusal, Report, UrlServer};

/// A page that is stored and read: what the doc index is told of it, whether it was fetched just now or by a process that
/// was killed before it could tell.
pub(crate) struct Completion<'a> {
    pub candidate: &'a Candidate,
    /// As its record has it.
    pub result: ResultCode,
    /// 0 without a response.
    pub status: u16,
    /// Seconds since 1970.
    pub at_s: u32,
    /// Of its document, under the store's key; 0 without one.
    pub digest: u128,
    /// How the server can be asked whether the document has changed, and the segment that has it.
    pub validators: Option<Validators>,
    pub segment: u64,
    /// What is to be said of a fetch that failed.
    pub trouble: Option<String>,
}

impl Completion<'_> {
    /// What became of the page, and what it leads to if that is anything.
    pub fn tell(self, handled: Handled) -> (Outcome, Option<Box<Found>>) {
        let Completion { candidate, segment, .. } = self;
        let note = Note {
            held: self.validators.map(|validators| Held { validators, segment }),
            head_only: candidate.provenance.head_only,
            new_url: handled.new_url.as_ref().map(|url| url.as_str().into()),
            canonical: handled.canonical.as_ref().map(|url| url.as_str().into()),
            reason: self.trouble.map(String::into_boxed_str),
            store: 0,
        };
        // What is stored of a feed may be but a word that it is the same.
        let digest = handled.feed.as_ref().map(|feed| feed.digest).filter(|&digest| digest != 0);
        let outcome = Outcome {
            status: self.status,
            digest: digest.unwrap_or(self.digest as u64),
            note: (!note.is_empty()).then(|| Box::new(note)),
            ..Outcome::new(candidate.doc_id, self.result, self.at_s)
        };
        (outcome, found_of(candidate, handled))
    }
}

/// How a server can be asked whether a document has changed. Only one that came whole is asked about: what is the same as
/// a part is not the document. A head is asked about by the next question for a head.
pub(crate) fn validators_of(
    result: ResultCode,
    flags: Flags,
    head: Option<&Head>,
    head_bytes: &[u8],
) -> Option<Validators> {
    let head = head.filter(|_| result == ResultCode::Ok && !flags.contains(Flags::NO_CLOSE_NOTIFY))?;
    let is_whole = head.status == 200 || flags.contains(Flags::HEAD_BY_GET);
    if is_whole { Validators::of(head, head_bytes) } else { None }
}

/// The same for a poll: what a 304 says of the feed takes the place of what was known.
pub(crate) fn validators_of_poll(
    candidate: &Candidate,
    result: ResultCode,
    head: Option<&Head>,
    head_bytes: &[u8],
) -> Option<Validators> {
    let head = head.filter(|_| result == ResultCode::NotModified)?;
    let Validators { etag, last_modified } = Validators::of(head, head_bytes)?;
    let before = candidate.held.as_ref().map(|held| held.validators.clone()).unwrap_or_default();
    let or = |new: Box<[u8]>, before: Box<[u8]>| if new.is_empty() { before } else { new };
    Some(Validators { etag: or(etag, before.etag), last_modified: or(last_modified, before.last_modified) })
}

/// The result of a page: a redirect that leads nowhere has one of its own.
pub(crate) fn result_of(candidate: &Candidate, result: ResultCode, handled: &Handled) -> ResultCode {
    match result {
        ResultCode::Redirect if candidate.provenance.hops >= REDIRECTS_MAX => ResultCode::TooManyRedirects,
        ResultCode::Redirect if is_loop(candidate, handled) => ResultCode::RedirectLoop,
        result => result,
    }
}

fn is_loop(candidate: &Candidate, handled: &Handled) -> bool {
    handled.new_url.as_ref().is_some_and(|target| candidate.is_loop(target))
}

fn found_of(candidate: &Candidate, handled: Handled) -> Option<Box<Found>> {
    let follow = handled.follow && !is_loop(candidate, &handled);
    let new_url = handled.new_url.filter(|_| follow);
    let new_url = new_url.map(|url| NewUrl { url, provenance: candidate.provenance.next_hop() });
    let has_links = !handled.links.is_empty() || !handled.sitemaps.is_empty();
    let has_feeds = handled.feed.is_some() || !handled.feeds.is_empty();
    (has_links || new_url.is_some() || handled.into_scope || has_feeds).then(|| {
        Box::new(Found {
            doc_id: candidate.doc_id,
            url: candidate.url.clone(),
            links: handled.links,
            lastmods: handled.lastmods,
            sitemaps: handled.sitemaps,
            depth: candidate.provenance.links_depth(),
            new_url,
            into_scope: handled.into_scope.then(|| candidate.url.clone()),
            feed: handled.feed,
            feeds: handled.feeds,
        })
    })
}

/// What is to be said of a fetch that failed, beyond its result.
pub(crate) fn trouble_of(fetched: &Fetched) -> Option<String> {
    let (ip, port) = (fetched.addr.ip(), fetched.addr.port());
    (fetched.result == ResultCode::ConnectRefused).then(|| format!("nothing listens on {ip} port {port}"))
}

/// Why a URL was not fetched, for the doc index: the line of the robots rules that denied it, or what kept us from them.
/// `why` says what became of its robots.txt.
pub(crate) fn refusal_note(
    url_server: &UrlServer,
    job: &Job,
    refusal: Refusal,
    why: Option<&str>,
) -> Option<Box<Note>> {
    let reason = match refusal {
        Refusal::Robots => url_server.robots_line(&job.candidate.url)?,
        Refusal::RobotsUnreachable => match why {
            Some(why) => format!("robots.txt could not be had: {why}"),
            None => "robots.txt could not be had".to_string(),
        },
        Refusal::Moved => return None,
        Refusal::SetAside => "its host failed too often in a row".to_string(),
    };
    Some(Box::new(Note { reason: Some(reason.into()), ..Note::default() }))
}

/// The record of a fetch. `result` may be finer than the fetch's own.
pub(crate) fn record_of<'a>(
    fetched: &'a Fetched,
    doc_id: u32,
    new_url: Option<&'a str>,
    result: ResultCode,
    wall: Wall,
) -> NewRecord<'a> {
    NewRecord {
        doc_id,
        url: fetched.url.as_str(),
        new_url,
        success: result.is_success(),
        result,
        http_code: HttpCode::of(fetched.status()),
        status: fetched.status(),
        flags: fetched.flags.bits(),
        took_ms: (fetched.took_us / 1_000).min(u64::from(u32::MAX)) as u32,
        fetched_unix_ms: wall.unix_ms(fetched.started),
        ip: fetched.addr.ip(),
        port: fetched.addr.port(),
        bytes: &fetched.bytes,
        head_len: fetched.head_bytes().len(),
    }
}

/// What a URL server in another process is told: the time since the request was on the wire, no less than what the log says.
pub(crate) fn reported_ms(span: Span) -> u32 {
    span.ended.since_us(span.sent).div_ceil(1_000).min(u64::from(u32::MAX)) as u32
}

/// How long the server asks us to wait, whether it said so in seconds or by a date; more than a day is a day.
pub(crate) fn retry_after_s(fetched: &Fetched, wall: Wall) -> Option<u32> {
    let ended_ms = wall.unix_ms(fetched.started) + fetched.took_us / 1_000;
    retry_after_of(fetched.head.as_ref()?, &fetched.bytes, ended_ms)
}

/// The same of an answer that ended at this time, in milliseconds since 1970.
pub(crate) fn retry_after_of(head: &Head, head_bytes: &[u8], ended_ms: u64) -> Option<u32> {
    let text = head.retry_after.of(head_bytes).trim_ascii();
    if !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
        let seconds: u64 = str::from_utf8(text).ok()?.parse().unwrap_or(u64::MAX);
        return Some(seconds.min(RETRY_AFTER_S_MAX) as u32);
    }
    // Rounded up, so that we do not come before the second that was named.
    let wait_ms = (http_date(text)? * 1_000).checked_sub(ended_ms)?;
    Some(wait_ms.div_ceil(1_000).min(RETRY_AFTER_S_MAX) as u32)
}

const RETRY_AFTER_S_MAX: u64 = 86_400;

/// Whether a fetch found nobody to connect to and its host has another address to try. Then it is no fetch: nothing was
/// asked, nothing is logged, and it comes again.
pub(crate) fn moved_on(url_server: &mut UrlServer, fetched: &Fetched, now: Now) -> bool {
    fetched.result.is_unconnected() && url_server.unreachable(fetched.trans, fetched.result, now)
}

/// What niceness needs to know of a fetch that was dealt with at `ended`. The log has that time, too: a pause must not be
/// shorter than what the log says of the answer.
pub(crate) fn report_of(fetched: &Fetched, ended: Now, wall: Wall) -> Report {
    Report {
        result: fetched.result,
        status: fetched.status(),
        took_us: ended.since_us(fetched.started),
        retry_after_s: retry_after_s(fetched, wall),
    }
}
