//! What a finished fetch comes to: a record for the store, a pause that its server asked for.

use crate::base::{Now, Wall};
use crate::doc_index::Note;
use crate::proto::http1::http_date;
use crate::proto::lines::Job;
use crate::proto::record::{HttpCode, ResultCode};
use crate::spider::Fetched;
use crate::store_server::NewRecord;
use crate::url_server::{Refusal, Report, UrlServer};

/// Why a URL was not fetched, for the doc index: the line of the robots rules that denied it, or what kept us from them.
pub(crate) fn refusal_note(url_server: &UrlServer, job: &Job, refusal: Refusal) -> Option<Box<Note>> {
    let reason = match refusal {
        Refusal::Robots => url_server.robots_line(&job.candidate.url)?,
        Refusal::RobotsUnreachable => "robots.txt could not be had".to_string(),
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

/// What a URL server in another process is told: no less than what the log says.
pub(crate) fn reported_ms(fetched: &Fetched, ended: Now) -> u32 {
    ended.since_us(fetched.started).div_ceil(1_000).min(u64::from(u32::MAX)) as u32
}

/// How long the server asks us to wait, whether it said so in seconds or by a date; more than a day is a day.
pub(crate) fn retry_after_s(fetched: &Fetched, wall: Wall) -> Option<u32> {
    let text = fetched.head?.retry_after.of(&fetched.bytes).trim_ascii();
    if !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
        let seconds: u64 = str::from_utf8(text).ok()?.parse().unwrap_or(u64::MAX);
        return Some(seconds.min(RETRY_AFTER_S_MAX) as u32);
    }
    let now_ms = wall.unix_ms(fetched.started) + fetched.took_us / 1_000;
    // Rounded up, so that we do not come before the second that was named.
    let wait_ms = (http_date(text)? * 1_000).checked_sub(now_ms)?;
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
