//! Lines of the crawl log, out of what the engine knows of a fetch.

use crate::base::{Now, Wall};
use crate::engine::crawl::finished::retry_after_s;
use crate::proto::crawl_log::{LogLine, Path, Rules, Timing};
use crate::proto::lines::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::spider::Fetched;
use crate::url_server::RobotsStep;
use std::net::{IpAddr, SocketAddr};
use xxhash_rust::xxh3::xxh3_128;

/// What every line has in common.
#[derive(Clone, Copy)]
pub(crate) struct Logger {
    pub wall: Wall,
    pub shard: u16,
}

/// When a request was on the wire, and when its answer was dealt with.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub sent: Now,
    pub ended: Now,
}

impl Logger {
    /// A page that a spider was given.
    pub fn page(
        self,
        out: &mut Vec<u8>,
        candidate: &Candidate,
        fetched: &Fetched,
        result: ResultCode,
        digest: Option<u128>,
        span: Span,
    ) {
        let line = LogLine {
            path: Path::Page { links: candidate.depth, redirects: candidate.hops },
            via: candidate.via.as_deref(),
            doc_id: Some(candidate.doc_id),
            digest,
            ..self.fetched(fetched, result, span)
        };
        line.write(out);
    }

    /// A page that a URL server in another process wanted: how it was come by is known there.
    pub fn order(self, out: &mut Vec<u8>, doc_id: u32, fetched: &Fetched, span: Span) {
        let digest = digest_of(fetched);
        LogLine { doc_id: Some(doc_id), digest, ..self.fetched(fetched, fetched.result, span) }.write(out);
    }

    /// A robots.txt, for the rules of `origin`.
    pub fn robots(self, out: &mut Vec<u8>, origin: &str, fetched: &Fetched, step: &RobotsStep, span: Span) {
        let path = robots_path(origin, step);
        let digest = digest_of(fetched);
        LogLine { path, digest, ..self.fetched(fetched, fetched.result, span) }.write(out);
    }

    /// Rules of `origin` that were at another host: learnt now, whatever their fetch was.
    pub fn robots_elsewhere(self, out: &mut Vec<u8>, origin: &str, step: &RobotsStep, now: Now) {
        let url = format!("{origin}/robots.txt");
        let line = LogLine {
            made_us: self.unix_us(now),
            status: None,
            result: ResultCode::Redirect,
            document_bytes: 0,
            url: &url,
            path: robots_path(origin, step),
            via: None,
            media_type: b"",
            shard: self.shard,
            timing: None,
            digest: None,
            addr: None,
            doc_id: None,
            retry_after_s: None,
        };
        line.write(out);
    }

    /// A URL that no spider was given.
    pub fn refused(
        self,
        out: &mut Vec<u8>,
        candidate: &Candidate,
        ip: Option<IpAddr>,
        result: ResultCode,
        now: Now,
    ) {
        let line = LogLine {
            made_us: self.unix_us(now),
            status: None,
            result,
            document_bytes: 0,
            url: candidate.url.as_str(),
            path: Path::Page { links: candidate.depth, redirects: candidate.hops },
            via: candidate.via.as_deref(),
            media_type: b"",
            shard: self.shard,
            timing: None,
            digest: None,
            addr: ip.map(|ip| SocketAddr::new(ip, candidate.url.port())),
            doc_id: Some(candidate.doc_id),
            retry_after_s: None,
        };
        line.write(out);
    }

    /// As [`Logger::refused`], for a job.
    pub fn refused_job(self, out: &mut Vec<u8>, job: &Job, result: ResultCode, now: Now) {
        self.refused(out, &job.candidate, Some(job.ip), result, now);
    }

    fn fetched<'a>(self, fetched: &'a Fetched, result: ResultCode, span: Span) -> LogLine<'a> {
        LogLine {
            made_us: self.unix_us(span.ended),
            status: Some(fetched.status()).filter(|&status| status != 0),
            result,
            document_bytes: fetched.document().len() as u64,
            url: fetched.url.as_str(),
            path: Path::Page { links: 0, redirects: 0 },
            via: None,
            media_type: fetched.head.as_ref().map_or(b"", |head| head.content_type.of(&fetched.bytes)),
            shard: self.shard,
            timing: Some(Timing {
                sent_us: self.unix_us(span.sent),
                took_us: span.ended.since_us(span.sent),
                wait_us: Some(span.sent.since_us(fetched.started).min(u64::from(u32::MAX)) as u32),
            }),
            digest: None,
            addr: Some(fetched.addr),
            doc_id: None,
            retry_after_s: retry_after_s(fetched, self.wall),
        }
    }

    fn unix_us(self, now: Now) -> u64 {
        self.wall.unix_ms_at_zero * 1_000 + now.us()
    }
}

/// Of what is in no store of this process.
fn digest_of(fetched: &Fetched) -> Option<u128> {
    let document = fetched.document();
    (!document.is_empty()).then(|| xxh3_128(document))
}

fn robots_path<'a>(origin: &'a str, step: &RobotsStep) -> Path<'a> {
    let (rules, crawl_delay_ms) = match step {
        RobotsStep::Known { crawl_delay_ms, .. } => (Rules::Known, *crawl_delay_ms),
        RobotsStep::Hop | RobotsStep::Elsewhere { .. } => (Rules::Hop, None),
        RobotsStep::Unreachable | RobotsStep::Late => (Rules::Unreachable, None),
    };
    Path::Robots { origin, rules, crawl_delay_ms }
}
