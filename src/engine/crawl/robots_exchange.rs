//! What a robots.txt that was fetched comes to, on a shard or in a URL server of its own.

use crate::base::Now;
use crate::engine::crawl::finished::report_of;
use crate::engine::crawl::messages::{FromShard, HostWord, RobotsAnswer};
use crate::engine::crawl::papers::Papers;
use crate::engine::runtime::outbox::Outbox;
use crate::handler::redirect_target;
use crate::proto::record::ResultCode;
use crate::spider::Fetched;
use crate::url_server::{Errand, RobotsStep, UrlServer};

/// A robots.txt, or an errand for another host's, has been fetched.
pub(crate) fn robots_fetched(
    url_server: &mut UrlServer,
    papers: &mut Papers,
    out: &mut Outbox<FromShard>,
    fetched: &Fetched,
    now: Now,
) {
    let report = report_of(fetched, now, papers.book.logger.wall);
    let answer = answer_of(fetched);
    let span = Papers::span(url_server, fetched, now);
    let origin: Box<str> = url_server.origin(fetched.trans).unwrap_or_default().into();
    if url_server.is_errand(fetched.trans) {
        if let Some(id) = url_server.release_errand(fetched.trans, &report, now) {
            // Whose rules they are is known at the asker's; here it is a request to this host like any other.
            let step = RobotsStep::Hop;
            papers.book.logger.robots(&mut papers.book.lines, &origin, fetched, &step, span);
            out.say(FromShard::ErrandDone { id, answer: Box::new(answer) });
        }
        return;
    }
    let step = url_server.robots(fetched.trans, &answer.as_robotstxt(), &report, now);
    if step != RobotsStep::Late {
        papers.book.logger.robots(&mut papers.book.lines, &origin, fetched, &step, span);
    }
    if step == RobotsStep::Unreachable {
        papers.unreachable(&origin, fetched, out);
    }
    robots_learnt(origin, step, out);
}

/// What the scheduler says about a host of this url server.
pub(crate) fn host_word(
    url_server: &mut UrlServer,
    papers: &mut Papers,
    out: &mut Outbox<FromShard>,
    word: HostWord,
    now: Now,
) {
    match word {
        HostWord::RobotsElsewhere { origin, answer } => {
            robots_elsewhere(url_server, papers, out, origin, &answer, now);
        }
        HostWord::HandOver { origin } => {
            let lines = url_server.hand_over(&origin);
            out.say(FromShard::HandedOver { origin, lines });
        }
        HostWord::Remember { origin, lines } => url_server.remember(&origin, &lines, now),
        HostWord::Look { id, url, doc_id } => {
            let view = url_server.look(&url, doc_id, now).map(Box::new);
            out.say(FromShard::Status { id, view, at: now });
        }
    }
}

/// What came of a hop that led to another host.
fn robots_elsewhere(
    url_server: &mut UrlServer,
    papers: &mut Papers,
    out: &mut Outbox<FromShard>,
    origin: Box<str>,
    answer: &RobotsAnswer,
    now: Now,
) {
    let step = url_server.robots_elsewhere(&origin, &answer.as_robotstxt(), now);
    if step != RobotsStep::Late {
        papers.book.logger.robots_elsewhere(&mut papers.book.lines, &origin, &step, now);
    }
    robots_learnt(origin, step, out);
}

/// A host of this shard holds the robots rules of another. One that finds no place is as good as out of reach.
pub(crate) fn admit_errand(
    url_server: &mut UrlServer,
    out: &mut Outbox<FromShard>,
    errand: Errand,
    now: Now,
) {
    let id = errand.id;
    if !url_server.admit_errand(errand, now) {
        out.say(FromShard::ErrandDone { id, answer: Box::new(RobotsAnswer::FAILED) });
    }
}

fn robots_learnt(origin: Box<str>, step: RobotsStep, out: &mut Outbox<FromShard>) {
    match step {
        RobotsStep::Known { sitemaps, .. } => out.say(FromShard::Sitemaps { origin, urls: sitemaps }),
        RobotsStep::Elsewhere { url, .. } => out.say(FromShard::Errand { origin, url }),
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
