use crate::base::{Now, Wall};
use crate::engine::crawl::completion::retry_after_s;
use crate::engine::runtime::groups::{STATUSES, status_at};
use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use crate::limits::{LOG_BATCH_BYTES, SCRIBE_BACKLOG_MAX};
use crate::proto::crawl_log::{LogLine, Path, PollNote, RuleChange, Rules, RunRules, Timing};
use crate::proto::job::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::spider::Fetched;
use crate::url_server::RobotsStep;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use xxhash_rust::xxh3::xxh3_128;

/// A shard's or the scheduler's way to the log writer: lines of the crawl log gather here and are handed on in batches.
pub(crate) struct ShardLog {
    wall: Wall,
    shard: u16,
    lines: Vec<u8>,
    port: LogWriterPort,
    /// Messages that the log writer's ring had no room for.
    backlog: VecDeque<ToLogWriter>,
    handed_on_at: Now,
    /// The lines go with the next `hand_on`, however few they are.
    hurried: bool,
    counts: LogCounts,
}

/// Lines by what they tell.
pub(crate) struct LogCounts {
    /// Of responses, in the order of their group.
    pub statuses: [u64; STATUSES.len()],
    /// Of requests for robots.txt: rules, another place to ask, nothing.
    pub robots: [u64; 3],
}

/// When a request was on the wire, and when its answer was dealt with.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub sent: Now,
    pub ended: Now,
}

/// A batch that is not full is handed on this often.
const HAND_ON_US: u64 = 20_000;

impl ShardLog {
    pub fn new(wall: Wall, shard: usize, port: LogWriterPort) -> ShardLog {
        ShardLog {
            wall,
            shard: shard.min(usize::from(u16::MAX)) as u16,
            lines: Vec::new(),
            port,
            backlog: VecDeque::new(),
            handed_on_at: Now::ZERO,
            hurried: false,
            counts: LogCounts { statuses: [0; STATUSES.len()], robots: [0; 3] },
        }
    }

    pub fn counts(&self) -> &LogCounts {
        &self.counts
    }

    pub fn wall(&self) -> Wall {
        self.wall
    }

    /// Seconds since 1970, for as long as 32 bits last.
    pub fn unix_s(&self, now: Now) -> u32 {
        u32::try_from(self.wall.unix_ms(now) / 1_000).unwrap_or(u32::MAX)
    }

    /// A page that a spider was given.
    pub fn page(
        &mut self,
        candidate: &Candidate,
        fetched: &Fetched,
        result: ResultCode,
        digest: Option<u128>,
        span: Span,
    ) {
        let line = LogLine {
            path: Path::Page { links: candidate.provenance.depth, redirects: candidate.provenance.hops },
            via: candidate.via.as_deref(),
            doc_id: Some(candidate.doc_id),
            digest,
            poll: candidate.poll.as_ref().map(|poll| PollNote { due_s: poll.due_s, why: &poll.why }),
            ..self.fetched(fetched, result, span)
        };
        line.write(&mut self.lines);
    }

    /// A page that a URL server in another process wanted: how it was come by is known there.
    pub fn order(&mut self, doc_id: u32, fetched: &Fetched, span: Span) {
        let digest = digest_of(fetched);
        LogLine { doc_id: Some(doc_id), digest, ..self.fetched(fetched, fetched.result, span) }
            .write(&mut self.lines);
    }

    /// A robots.txt, for the rules of `origin`.
    pub fn robots(&mut self, origin: &str, fetched: &Fetched, step: &RobotsStep, span: Span) {
        let path = robots_path(origin, step);
        self.counts.robots[match step {
            RobotsStep::Known { .. } => 0,
            RobotsStep::Hop | RobotsStep::Elsewhere { .. } => 1,
            RobotsStep::Unreachable | RobotsStep::Late => 2,
        }] += 1;
        let digest = digest_of(fetched);
        LogLine { path, digest, ..self.fetched(fetched, fetched.result, span) }.write(&mut self.lines);
    }

    /// Rules of `origin` that were at another host: learnt now, whatever their fetch was.
    pub fn robots_elsewhere(&mut self, origin: &str, step: &RobotsStep, now: Now) {
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
            poll: None,
        };
        line.write(&mut self.lines);
    }

    /// A URL that no spider was given.
    pub fn refused(&mut self, candidate: &Candidate, ip: Option<IpAddr>, result: ResultCode, now: Now) {
        let line = LogLine {
            made_us: self.unix_us(now),
            status: None,
            result,
            document_bytes: 0,
            url: candidate.url.as_str(),
            path: Path::Page { links: candidate.provenance.depth, redirects: candidate.provenance.hops },
            via: candidate.via.as_deref(),
            media_type: b"",
            shard: self.shard,
            timing: None,
            digest: None,
            addr: ip.map(|ip| SocketAddr::new(ip, candidate.url.port())),
            doc_id: Some(candidate.doc_id),
            retry_after_s: None,
            poll: None,
        };
        line.write(&mut self.lines);
    }

    /// As [`ShardLog::refused`], for a job.
    pub fn refused_job(&mut self, job: &Job, result: ResultCode, now: Now) {
        self.refused(&job.candidate, Some(job.ip), result, now);
    }

    fn fetched<'a>(&mut self, fetched: &'a Fetched, result: ResultCode, span: Span) -> LogLine<'a> {
        let status = Some(fetched.status()).filter(|&status| status != 0);
        if let Some(status) = status {
            self.counts.statuses[status_at(status)] += 1;
        }
        LogLine {
            made_us: self.unix_us(span.ended),
            status,
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
            poll: None,
        }
    }

    /// Other rules hold on this shard from now on.
    pub fn rules(&mut self, rules: &RunRules, now: Now) {
        let at_us = self.unix_us(now);
        RuleChange { at_us, shard: self.shard, rules: rules.clone() }.write(&mut self.lines);
        self.hurry();
    }

    fn unix_us(&self, now: Now) -> u64 {
        self.wall.unix_ms_at_zero * 1_000 + now.us()
    }

    /// Another message for the log writer; goes with the next `hand_on`.
    pub fn send(&mut self, message: ToLogWriter) {
        self.backlog.push_back(message);
    }

    /// Lets the lines that are here go with the next `hand_on`.
    pub fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Once a turn.
    pub fn hand_on(&mut self, now: Now) {
        let due = std::mem::take(&mut self.hurried) || now.since_us(self.handed_on_at) >= HAND_ON_US;
        if self.lines.len() >= LOG_BATCH_BYTES || (due && !self.lines.is_empty()) {
            self.handed_on_at = now;
            let next = Vec::with_capacity(self.lines.capacity());
            self.backlog.push_back(ToLogWriter::Log(std::mem::replace(&mut self.lines, next)));
        }
        if self.backlog.is_empty() {
            return;
        }
        while let Some(message) = self.backlog.pop_front() {
            if let Err(message) = self.port.words.push(message) {
                self.backlog.push_front(message);
                break;
            }
        }
        self.port.bell.ring_if_asleep();
    }

    /// Hands on what there is, at the end. True once nothing is left.
    pub fn close(&mut self, now: Now) -> bool {
        self.hurry();
        self.hand_on(now);
        self.is_empty()
    }

    /// Nothing waits to be handed on.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.backlog.is_empty()
    }

    /// Lets go of what the log writer does not take.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.backlog.clear();
    }

    /// When something must be handed on even if nothing comes.
    pub fn next_due(&self, now: Now) -> Option<Now> {
        if !self.backlog.is_empty() {
            return Some(now.plus_ms(2));
        }
        (!self.lines.is_empty()).then(|| self.handed_on_at.plus_us(HAND_ON_US))
    }

    /// The log writer cannot keep up, or the disk is full.
    pub fn is_full(&self) -> bool {
        self.backlog.len() >= SCRIBE_BACKLOG_MAX
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
