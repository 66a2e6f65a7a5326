//! What a finished fetch comes to: a record for the store, a pause that its server asked for.

use crate::base::Wall;
use crate::proto::record::ResultCode;
use crate::spider::Fetched;
use crate::store_server::NewRecord;
use crate::url_server::Report;

/// The record of a fetch. `result` may be finer than the fetch's own.
pub(super) fn record_of<'a>(
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
        result,
        status: fetched.status(),
        flags: fetched.flags.bits(),
        took_ms: took_ms(fetched),
        fetched_unix_ms: wall.unix_ms(fetched.started),
        ip: fetched.addr.ip(),
        port: fetched.addr.port(),
        bytes: &fetched.bytes,
        head_len: fetched.head_bytes().len(),
    }
}

pub(super) fn took_ms(fetched: &Fetched) -> u32 {
    (fetched.took_us / 1_000).min(u64::from(u32::MAX)) as u32
}

/// Seconds of `Retry-After`, if the server said so in seconds.
pub(super) fn retry_after_s<T: std::str::FromStr>(fetched: &Fetched) -> Option<T> {
    let head = fetched.head?;
    std::str::from_utf8(head.retry_after.of(&fetched.bytes)).ok()?.trim().parse().ok()
}

/// What niceness needs to know of a fetch.
pub(super) fn report_of(fetched: &Fetched) -> Report {
    Report {
        result: fetched.result,
        status: fetched.status(),
        took_us: fetched.took_us,
        retry_after_s: retry_after_s(fetched),
    }
}
