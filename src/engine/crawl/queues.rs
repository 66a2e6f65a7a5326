use crate::base::{Now, Wall, shown};
use crate::doc_index::Outcome;
use crate::engine::crawl::completion::{moved_on, refusal_note, report_of, trouble_of};
use crate::engine::crawl::messages::{Done, Found, FromShard, HostWord, RestQuestion, RobotsAnswer};
use crate::engine::crawl::shard::ShardOut;
use crate::engine::crawl::shard_log::Span;
use crate::engine::inspect::loan_desk::{LentKey, LoanDesk, ShardSaid};
use crate::engine::inspect::reports::Reports;
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::groups::Group;
use crate::engine::runtime::log_writer::{InheritedState, ToLogWriter};
use crate::engine::runtime::notices::{Fields, Notice};
use crate::handler::redirect_target;
use crate::proto::job::Job;
use crate::proto::record::ResultCode;
use crate::proto::robots::clean_params;
use crate::rings::Receiver;
use crate::spider::{Fetched, Retry};
use crate::url_server::Lent;
use crate::url_server::{
    BackOffs, HostTally, OrderKind, Refusal, RemoteRobots, Report, RobotsStep, SetAside, SpillEvent,
    UrlServer, UrlServerConfig,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The url server of a shard, with what it has written down and fetches back, and what it says to the scheduler: the same
/// whether pages are fetched on this shard or by spiders in other processes.
pub struct Queues {
    pub(crate) url_server: UrlServer,
    shard: usize,
    epoch: u32,
    wall: Wall,
    spill: Receiver<SpillEvent>,
    /// What the scheduler was last told.
    wants: bool,
    /// Hosts out of reach that were spoken of.
    /// Of a node of a cluster.
    loans: Option<Arc<LoanDesk>>,
    right_until: Now,
    unreachable_said: u8,
    /// Why the robots rules of a host could not be had, of the last of them.
    unreachable: VecDeque<(Box<str>, String)>,
    /// When it was last said that the machine has no room for connections.
    no_socket_told: Option<Now>,
    robots: u64,
    robots_failed: u64,
    /// Nothing new is asked of anybody.
    is_paused: bool,
    /// Hosts that are being closed, and of which something is on the wire.
    closing: Vec<Box<str>>,
    /// Where a master is told of Clean-param lines.
    reports: Option<Reports>,
    tally: HostTally,
}

/// What queues are made of.
pub(crate) struct QueuesParts {
    pub config: UrlServerConfig,
    pub inherited: InheritedState,
    pub spill: Receiver<SpillEvent>,
    pub shard: usize,
    pub epoch: u32,
}

/// Whether a fetch that has ended was all that was wanted of it.
pub(crate) enum Settled {
    Over,
    /// It is the answer to a page; the report is for its release.
    Page(Report),
}

/// More of them would only hide the rest; the crawl log has them all.
const UNREACHABLE_SAID_MAX: u8 = 8;
/// What holds for all hosts is said again after a while.
const NO_SOCKET_TOLD_US: u64 = 60_000_000;
/// What waits for robots rules is refused as soon as they are out of reach; what comes later may go without the reason.
const UNREACHABLE_KEPT_MAX: usize = 64;

/// Rows that are looked at to count what hosts wait for.
const HOSTS_PER_PUBLISH: usize = 256;

type Out = ShardOut<FromShard>;

impl Queues {
    pub(crate) fn new(parts: QueuesParts, now: Now) -> Queues {
        let QueuesParts { config, inherited, spill, shard, epoch } = parts;
        let wall = config.wall;
        let url_server = UrlServer::new(config, now).after(inherited.quiet_until, inherited.memory);
        Queues {
            url_server,
            shard,
            epoch,
            wall,
            spill,
            wants: true,
            loans: None,
            right_until: Now::ZERO,
            unreachable_said: 0,
            unreachable: VecDeque::new(),
            no_socket_told: None,
            robots: 0,
            robots_failed: 0,
            is_paused: false,
            closing: Vec::new(),
            reports: None,
            tally: HostTally::default(),
        }
    }

    /// Pages are fetched by spiders that come and go.
    pub(crate) fn with_spiders_behind_links(self, now: Now) -> Queues {
        Queues { url_server: self.url_server.with_spiders_behind_links(now), ..self }
    }

    /// A master is told of Clean-param lines.
    pub(crate) fn with_reports(self, reports: Option<Reports>) -> Queues {
        Queues { reports, ..self }
    }

    /// Rules of a host are known.
    fn report(&self, origin: &str, step: &RobotsStep, body: &[u8]) {
        if let (Some(reports), RobotsStep::Known { .. }) = (&self.reports, step) {
            clean_params(body).into_iter().for_each(|rule| reports.clean(origin, rule));
        }
    }

    /// Whether a message was dealt to the shard that stood here before; it is dealt again.
    pub(crate) fn is_late(&self, epoch: u32) -> bool {
        epoch != self.epoch
    }

    /// Fetches back what the disk had, and moves the url server's timers.
    pub(crate) fn poll(&mut self, now: Now) {
        self.take_loans(now);
        while let Some(event) = self.spill.pop() {
            self.url_server.spill_event(event, now);
        }
        self.url_server.tick(now);
    }

    pub(crate) fn has_messages(&self) -> bool {
        let has_news =
            |loans: &Arc<LoanDesk>| loans.has_lent(self.shard) || loans.right_until() != self.right_until;
        !self.spill.is_empty() || self.loans.as_ref().is_some_and(has_news)
    }

    /// Those of a node of a cluster: nothing is asked that is not lent.
    #[must_use]
    pub(crate) fn with_loans(self, loans: Arc<LoanDesk>) -> Queues {
        let first = loans.begin(self.shard);
        Queues { url_server: self.url_server.with_loans().with_wants_from(first), loans: Some(loans), ..self }
    }

    /// Takes what is lent, and the right as it stands.
    fn take_loans(&mut self, now: Now) {
        let Some(loans) = &self.loans else { return };
        let right_until = loans.right_until();
        if right_until != self.right_until {
            self.right_until = right_until;
            if loans.lends_hosts() {
                self.url_server.lend_hosts();
            }
            self.url_server.set_right(right_until, now);
        }
        if !loans.has_lent(self.shard) {
            return;
        }
        for LentKey { key, want, due, until, part, line } in loans.take_lent(self.shard) {
            self.url_server.lend(&Lent { key: &key, want, due, until, part, line: &line }, now);
        }
    }

    /// Says what is wanted, and what is not any more.
    fn say_loans(&mut self) {
        if let Some(loans) = &self.loans {
            let words = self.url_server.take_loan_words();
            if !words.is_empty() {
                loans.say(self.shard, words.into_iter().map(ShardSaid::Word));
            }
        }
    }

    /// A host of this shard holds the robots rules of another. One that finds no place is as good as out of reach.
    pub(crate) fn admit_remote_robots(&mut self, request: RemoteRobots, out: &mut Out, now: Now) {
        let id = request.id;
        if !self.url_server.admit_remote_robots(request, now) {
            out.replies.send(FromShard::RemoteRobotsDone { id, answer: Box::new(RobotsAnswer::FAILED) });
        }
    }

    /// What the scheduler says about a host of this shard.
    pub(crate) fn about(&mut self, word: HostWord, out: &mut Out, now: Now) {
        match word {
            HostWord::RobotsElsewhere { origin, answer } => {
                let step = self.url_server.robots_elsewhere(&origin, &answer.as_robotstxt(), now);
                if step != RobotsStep::Late {
                    out.log.robots_elsewhere(&origin, &step, now);
                }
                self.report(&origin, &step, &answer.body);
                robots_learnt(origin, step, out);
            }
            HostWord::HandOver { origin } => {
                let lines = self.url_server.hand_over(&origin, now);
                out.replies.send(FromShard::HandedOver { origin, lines });
            }
            HostWord::Remember { origin, lines } => self.url_server.remember(&origin, &lines, now),
            HostWord::Close { origin } => {
                for RemoteRobots { id, .. } in self.url_server.close_host(&origin, now) {
                    let answer = Box::new(RobotsAnswer::FAILED);
                    out.replies.send(FromShard::RemoteRobotsDone { id, answer });
                }
                self.closing.push(origin);
                self.say_closed(out, now);
            }
            HostWord::Open { origin } => {
                self.url_server.open_host(&origin);
                self.closing.retain(|closing| *closing != origin);
            }
            HostWord::Look { id, url, doc_id } => {
                let view = self.url_server.look(&url, doc_id, now).map(Box::new);
                out.replies.send(FromShard::Status { id, view, at: now });
            }
        }
    }

    /// Tells of hosts that are closed, once nothing of them is on the wire.
    fn say_closed(&mut self, out: &mut Out, now: Now) {
        let url_server = &self.url_server;
        self.closing.retain(|origin| {
            let is_asking = url_server.is_asking(origin);
            if !is_asking {
                let lines = url_server.last_words(origin, now);
                out.replies.send(FromShard::HostClosed { origin: origin.clone(), lines });
            }
            is_asking
        });
    }

    /// Says whether everything waits, and for how long.
    pub(crate) fn say_rest(&self, question: RestQuestion, out: &mut Out, now: Now) {
        let RestQuestion { round, spoken_of_us } = question;
        let rest = self.url_server.rest(spoken_of_us, now).map(Box::new);
        out.replies.send(FromShard::Rest { round, rest });
    }

    /// A request of this kind is about to go out from here.
    pub(crate) fn counts(&mut self, kind: OrderKind) {
        self.robots += u64::from(kind != OrderKind::Page);
    }

    /// A URL that niceness or robots rules keep from every spider.
    pub(crate) fn refuse(&self, job: &Job, refusal: Refusal, out: &mut Out, now: Now) {
        if refusal == Refusal::Moved {
            return out.replies.send(FromShard::PutBack(job.candidate.doc_id));
        }
        let result = refusal.result();
        out.log.refused_job(job, result, now);
        let unreachable = refusal == Refusal::RobotsUnreachable;
        let origin = job.candidate.url.origin();
        let why = self.unreachable.iter().rev().find(|(of, _)| **of == *origin).map(|(_, why)| why.as_str());
        let note = refusal_note(&self.url_server, job, refusal, why);
        let outcome =
            Outcome { unreachable, note, ..Outcome::new(job.candidate.doc_id, result, out.log.unix_s(now)) };
        out.answer(outcome, None, false, None);
    }

    /// Deals with a fetch that has ended, unless it brought a page.
    pub(crate) fn settle(&mut self, fetched: &Fetched, out: &mut Out, now: Now) -> Settled {
        let report = report_of(fetched, now, self.wall);
        let is_page = self.url_server.doc_id(fetched.trans).is_some();
        match fetched.retry {
            // It is pending in the next process, and the pause of its host counts from here.
            Some(Retry::StaleConnection | Retry::Stopped | Retry::NoWay) => {
                self.url_server.put_back(fetched.trans, now)
            }
            Some(Retry::NoSocket) => {
                self.url_server.put_back(fetched.trans, now);
                self.tell_no_socket(out, now);
            }
            // The host may have been busy with it all the time: its pause is that of an answer.
            Some(Retry::NewRequest | Retry::Stalled) => {
                self.log_again(fetched, out, now);
                self.url_server.ask_again(fetched.trans, &report, now);
            }
            Some(Retry::TooLate) => {
                self.url_server.not_sent(fetched.trans, now);
                self.robots -= u64::from(!is_page);
            }
            None if moved_on(&mut self.url_server, fetched, now) => self.robots -= u64::from(!is_page),
            None if is_page => return Settled::Page(report),
            None => self.robots_fetched(fetched, &report, out, now),
        }
        Settled::Over
    }

    /// Says that this machine, and no host, is what stands in the way; once in a while.
    fn tell_no_socket(&mut self, out: &mut Out, now: Now) {
        if self.no_socket_told.is_none_or(|told| now.since_us(told) >= NO_SOCKET_TOLD_US) {
            self.no_socket_told = Some(now);
            let text = format!(
                "shard {}: this machine has no port, descriptor or memory for another connection; its URLs wait (nephila tune check says what is short)",
                self.shard
            );
            out.tell(Event::NoSocket, vec![("shard", self.shard.into())], text);
        }
    }

    /// When a fetch was on the wire, by the url server's book; to be asked before its release.
    pub(crate) fn span(&self, fetched: &Fetched, now: Now) -> Span {
        Span { sent: self.url_server.asked_at(fetched.trans).unwrap_or(fetched.started), ended: now }
    }

    /// Logs a request that is made again: its answer was that it is to be made differently, or nobody looked when it was due.
    fn log_again(&self, fetched: &Fetched, out: &mut Out, now: Now) {
        let span = self.span(fetched, now);
        match self.url_server.doc_id(fetched.trans) {
            Some(doc_id) => out.log.order(doc_id, fetched, span),
            None => {
                let origin = self.url_server.origin(fetched.trans).unwrap_or_default();
                out.log.robots(origin, fetched, &RobotsStep::Hop, span);
            }
        }
    }

    /// A robots.txt, or a request for another host's, has been fetched.
    fn robots_fetched(&mut self, fetched: &Fetched, report: &Report, out: &mut Out, now: Now) {
        let answer = answer_of(fetched);
        let span = self.span(fetched, now);
        let origin: Box<str> = self.url_server.origin(fetched.trans).unwrap_or_default().into();
        if self.url_server.is_remote_robots(fetched.trans) {
            if let Some(id) = self.url_server.release_remote_robots(fetched.trans, report, now) {
                // Whose rules they are is known at the asker's; here it is a request to this host like any other.
                out.log.robots(&origin, fetched, &RobotsStep::Hop, span);
                out.replies.send(FromShard::RemoteRobotsDone { id, answer: Box::new(answer) });
            }
            return;
        }
        let step = self.url_server.robots(fetched.trans, &answer.as_robotstxt(), report, now);
        if step != RobotsStep::Late {
            out.log.robots(&origin, fetched, &step, span);
        }
        if step == RobotsStep::Unreachable {
            self.robots_failed += 1;
            self.unreachable(&origin, fetched, out);
        }
        self.report(&origin, &step, &answer.body);
        robots_learnt(origin, step, out);
    }

    /// The robots rules of a host could not be had, so that nothing is asked of it: says why.
    fn unreachable(&mut self, origin: &str, fetched: &Fetched, out: &mut Out) {
        let mut cause = match fetched.status() {
            0 => trouble_of(fetched).unwrap_or_else(|| fetched.result.to_string()),
            status => format!("{}, status {status}", fetched.result),
        };
        cause.extend(fetched.flags.names().map(|name| format!(", {name}")));
        if self.unreachable_said < UNREACHABLE_SAID_MAX {
            self.unreachable_said += 1;
            let origin = shown(origin, 200);
            let text = format!("{origin}: nothing is asked of it, as its robots.txt cannot be had ({cause})");
            let fields = vec![("origin", origin.into()), ("cause", (&cause).into())];
            out.tell(Event::RobotsUnreachable, fields, text);
        }
        if self.unreachable.len() == UNREACHABLE_KEPT_MAX {
            self.unreachable.pop_front();
        }
        self.unreachable.push_back((origin.into(), cause));
    }

    /// Hands on what the url server wants written or known.
    pub(crate) fn flush(&mut self, out: &mut Out, now: Now) {
        self.say_loans();
        if !self.closing.is_empty() {
            self.say_closed(out, now);
        }
        while let Some(ask) = self.url_server.spill_ask() {
            out.log.send(ToLogWriter::Spill { shard: self.shard, ask });
        }
        if let Some(lines) = self.url_server.take_journal() {
            // What the next process will rely upon is to be found in the log as well: neither goes without the other.
            out.log.send(ToLogWriter::Journal(lines));
            out.log.hurry();
        }
        for SetAside { origin, failures } in self.url_server.take_set_aside() {
            let origin = shown(&origin, 200);
            let text = format!("{origin}: set aside for a day: it failed {failures} times in a row");
            let fields = vec![("origin", origin.into()), ("failures", u32::from(failures).into())];
            out.tell(Event::HostSetAside, fields, text);
        }
        let wants = self.url_server.wants_more();
        if std::mem::replace(&mut self.wants, wants) != wants {
            out.replies.send(FromShard::Wants(wants));
        }
    }

    /// Hands on everything, at the end.
    pub(crate) fn close(&mut self, out: &mut Out, now: Now) {
        self.url_server.journal_pauses(now);
        self.flush(out, now);
    }

    /// While it is paused, hosts become ready, and stay so.
    pub(crate) fn pause(&mut self, paused: bool) {
        self.is_paused = paused;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// True once every host has been counted.
    pub(crate) fn publish(&mut self, counters: &Counters, now: Now) -> bool {
        let is_whole = self.url_server.tally(&mut self.tally, HOSTS_PER_PUBLISH, now);
        counters.set_all(Group::HostStates, self.tally.states());
        let (busy, stats) = (self.url_server.hosts_busy() as u64, self.url_server.stats());
        let (in_memory, on_disk) = self.url_server.left_over();
        counters.set(Counter::Hosts, busy);
        counters.set(Counter::HostSlots, busy);
        counters.set(Counter::HostSlotsMax, self.url_server.hosts_max() as u64);
        counters.set(Counter::QueueUrls, self.url_server.queued() as u64);
        counters.set_all(Group::Leftovers, &[in_memory as u64, on_disk as u64]);
        counters.count(Counter::Resent, stats.resent);
        let BackOffs { penalty, retry_after, failures, set_aside, robots } = stats.back_offs;
        counters.count_all(Group::BackOffs, &[penalty, retry_after, failures, set_aside, robots]);
        let (host, address) = (stats.host_margin, stats.address_margin);
        counters.count_all(Group::Checked, &[host.requests, address.requests]);
        counters.count_all(Group::Violations, &[host.violations, address.violations]);
        counters.set_smaller(Group::Margins, &[host.smallest_us, address.smallest_us]);
        counters.count(Counter::Robots, self.robots);
        counters.count(Counter::RobotsFailed, self.robots_failed);
        is_whole
    }
}

impl ShardOut<FromShard> {
    /// The last word of a shard on a document.
    pub(crate) fn answer(
        &mut self,
        outcome: Outcome,
        sequence: Option<u64>,
        fetched: bool,
        found: Option<Box<Found>>,
    ) {
        self.replies.send(FromShard::Done(Done { outcome, sequence, fetched, found }));
    }

    pub(crate) fn tell(&mut self, event: Event, fields: Fields, text: String) {
        self.replies.send(FromShard::Notice(Box::new(Notice::new(event, fields, text))));
    }
}

fn robots_learnt(origin: Box<str>, step: RobotsStep, out: &mut Out) {
    match step {
        RobotsStep::Known { sitemaps, .. } => {
            out.replies.send(FromShard::Sitemaps { origin, urls: sitemaps })
        }
        RobotsStep::Elsewhere { url, .. } => out.replies.send(FromShard::RemoteRobots { origin, url }),
        RobotsStep::Unreachable | RobotsStep::Hop | RobotsStep::Late => {}
    }
}

fn answer_of(fetched: &Fetched) -> RobotsAnswer {
    let target = fetched
        .head
        .filter(|_| fetched.result == ResultCode::Redirect)
        .and_then(|head| redirect_target(&fetched.url, &head, &fetched.bytes));
    match fetched.result {
        ResultCode::Ok | ResultCode::TooLarge | ResultCode::Redirect | ResultCode::HttpError => {
            RobotsAnswer { status: fetched.status(), body: fetched.document().to_vec(), target }
        }
        _ => RobotsAnswer::FAILED,
    }
}
