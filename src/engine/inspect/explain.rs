use crate::doc_index::{DocState, DocumentLine};
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::status::{Place, RobotsState, Status, WhyOut};
use crate::proto::record::ResultCode;
use crate::url_server::WaitsFor;

/// Where a URL stands, in a word. These names stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    NotKnown,
    OutOfScope,
    /// Left out by another rule of the last crawl, as of addresses.
    Excluded,
    Denied,
    Trap,
    OverBudget,
    RobotsDenied,
    Queued,
    WaitingForNiceness,
    Fetching,
    FailedDueAgain,
    Redirected,
    Done,
    DoneUnchanged,
    Error,
}

/// Why a URL was fetched, is not fetched yet, or never will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub answer: Answer,
    /// One line for people. It may name what came from the network.
    pub said: String,
}

impl Answer {
    pub fn name(self) -> &'static str {
        match self {
            Answer::NotKnown => "not_known",
            Answer::OutOfScope => "out_of_scope",
            Answer::Excluded => "excluded",
            Answer::Denied => "denied",
            Answer::Trap => "trap",
            Answer::OverBudget => "over_budget",
            Answer::RobotsDenied => "robots_denied",
            Answer::Queued => "queued",
            Answer::WaitingForNiceness => "waiting_for_niceness",
            Answer::Fetching => "fetching",
            Answer::FailedDueAgain => "failed_due_again",
            Answer::Redirected => "redirected",
            Answer::Done => "done",
            Answer::DoneUnchanged => "done_unchanged",
            Answer::Error => "error",
        }
    }

    /// It is to be fetched as soon as its turn comes.
    pub fn is_next(self) -> bool {
        matches!(self, Answer::Queued | Answer::WaitingForNiceness)
    }

    /// It is not fetched, and by these rules never will be.
    pub fn is_no(self) -> bool {
        matches!(
            self,
            Answer::OutOfScope
                | Answer::Excluded
                | Answer::Denied
                | Answer::Trap
                | Answer::OverBudget
                | Answer::RobotsDenied
                | Answer::Error
        )
    }
}

impl Explanation {
    /// Sums up what was found out. `now` is RFC 3339, like all times in it.
    pub fn of(looked: &Status, rules: &CrawlRules, now: &str) -> Explanation {
        let (answer, said) = match &looked.dossier {
            None => unknown(looked, rules),
            Some(dossier) => known(dossier, looked, rules, now),
        };
        Explanation { answer, said }
    }
}

/// Of a URL that no page has named yet.
fn unknown(looked: &Status, rules: &CrawlRules) -> (Answer, String) {
    if looked.place.at == Place::Parked {
        return (Answer::Queued, "queued: a page has named it just now".to_string());
    }
    if let Some(out) = out_of_scope(looked) {
        return out;
    }
    let host_known = looked.host.map_or(0, |host| host.counts.known);
    if rules.doc_index.pages_per_host > 0 && host_known >= rules.doc_index.pages_per_host {
        let said = format!("over budget: {host_known} URLs of its host are known (pages_per_host)");
        return (Answer::OverBudget, said);
    }
    let domain_known = looked.domain_known.unwrap_or(0);
    if rules.doc_index.pages_per_domain > 0 && domain_known >= rules.doc_index.pages_per_domain {
        let said = format!("over budget: {domain_known} URLs of its domain are known (pages_per_domain)");
        return (Answer::OverBudget, said);
    }
    let variants = looked.variants_known.unwrap_or(0);
    if rules.doc_index.query_variants_max > 0 && variants >= rules.doc_index.query_variants_max {
        let said = format!(
            "over budget: {variants} URLs are known that differ from it in the values of their query only (query_variants_max)"
        );
        return (Answer::OverBudget, said);
    }
    if let Some(denied) = robots_says_no(looked) {
        return denied;
    }
    (Answer::NotKnown, "not known: it would be queued as soon as a page named it".to_string())
}

fn known(dossier: &DocumentLine, looked: &Status, rules: &CrawlRules, now: &str) -> (Answer, String) {
    match dossier.state {
        Some(DocState::HandedOut) => handed_out(looked),
        Some(DocState::Pending) => pending(dossier, looked, rules, now),
        Some(DocState::Excluded) => out_of_scope(looked).unwrap_or_else(|| {
            let why = dossier.reason.as_deref().unwrap_or("the rules of the last crawl");
            (Answer::Excluded, format!("left out: {why}"))
        }),
        Some(DocState::Success) => had(dossier, rules, now),
        Some(DocState::Error) | None => failed(dossier, rules, now),
    }
}

fn out_of_scope(looked: &Status) -> Option<(Answer, String)> {
    let scope = looked.scope.as_ref()?;
    let answer = match scope.why_out? {
        WhyOut::OutOfScope => Answer::OutOfScope,
        WhyOut::Denied => Answer::Denied,
        WhyOut::Trap => Answer::Trap,
    };
    Some((answer, scope.said.clone()))
}

/// The rules that are known keep it out.
fn robots_says_no(looked: &Status) -> Option<(Answer, String)> {
    let robots = looked.robots.as_ref()?;
    if robots.state != RobotsState::Known || robots.allowed != Some(false) {
        return None;
    }
    Some((Answer::RobotsDenied, denied_by(robots.rule.as_deref())))
}

fn denied_by(rule: Option<&str>) -> String {
    rule.map_or("robots.txt denies it".to_string(), |rule| format!("robots.txt denies it: {rule}"))
}

/// A url server has it, or is about to.
fn handed_out(looked: &Status) -> (Answer, String) {
    let place = &looked.place;
    if place.at == Place::Open {
        let since = place.since.as_deref().unwrap_or("a moment ago");
        return (Answer::Fetching, format!("being fetched since {since}"));
    }
    if place.at == Place::Stored {
        return (Answer::Fetching, "fetched, and on its way to the disk".to_string());
    }
    if let Some(denied) = robots_says_no(looked) {
        return denied;
    }
    let line = match (place.at, place.before) {
        (Place::Queued, Some(0)) => "it is the next of its host".to_string(),
        (Place::Queued, Some(before)) => format!("{before} of its host go before it"),
        (Place::Leftover, _) => "its host's queue is full".to_string(),
        (Place::Resolving, _) => "the name of its host is being resolved".to_string(),
        _ => "it was handed out".to_string(),
    };
    let Some(waits_for) = place.waits_for else {
        return (Answer::Queued, format!("queued: {line}"));
    };
    let until = place.next_at.as_deref().map_or(String::new(), |at| format!(" until {at}"));
    let why = waits_for.words();
    (Answer::WaitingForNiceness, format!("waiting{until}: {why}; {line}"))
}

fn pending(dossier: &DocumentLine, looked: &Status, rules: &CrawlRules, now: &str) -> (Answer, String) {
    if let Some(due_at) = dossier.due_at.as_deref().filter(|&due_at| due_at > now) {
        let result = last_result(dossier);
        let said = format!(
            "failed ({result}), due again at {due_at} (try {} of {})",
            u32::from(dossier.retries) + 1,
            u32::from(rules.doc_index.retries_max) + 1
        );
        return (Answer::FailedDueAgain, said);
    }
    // What somebody typed, and where it leads, is in scope, but for a rule that denies it.
    if let Some(out) = out_of_scope(looked)
        && (!dossier.seed_chain || out.0 == Answer::Denied)
    {
        return out;
    }
    if let Some(denied) = robots_says_no(looked) {
        return denied;
    }
    if let Some(until) = looked.niceness.as_ref().and_then(|niceness| niceness.pause_until.as_deref()) {
        let why = match &looked.niceness {
            Some(niceness) if niceness.failures > 0 => WaitsFor::Failures.words(),
            Some(niceness) if niceness.penalty_ms > 0 => WaitsFor::Penalty.words(),
            _ => "its host is left alone until then",
        };
        return (Answer::WaitingForNiceness, format!("waiting until {until}: {why}"));
    }
    let said = match looked.live {
        true => "queued: it waits in the doc index for its host's turn",
        false => "queued: no crawl is running (nephila crawl --data goes on with it)",
    };
    (Answer::Queued, said.to_string())
}

fn last_result(dossier: &DocumentLine) -> String {
    let result = dossier.result.map_or("no answer", ResultCode::name);
    let status = dossier.http_status.map_or(String::new(), |status| format!(", status {status}"));
    let reason = dossier.reason.as_deref().map_or(String::new(), |reason| format!(", {reason}"));
    format!("{result}{status}{reason}")
}

/// When what is done with is looked at again, if this crawl looks again: one that does not passes over a time that another
/// has noted.
fn due_again<'a>(dossier: &'a DocumentLine, rules: &CrawlRules) -> Option<&'a str> {
    dossier.due_at.as_deref().filter(|_| rules.doc_index.recrawl)
}

fn again(due_at: Option<&str>, now: &str) -> String {
    due_at.map_or(String::new(), |due_at| match due_at > now {
        true => format!("; looked at again at {due_at}"),
        false => format!("; due again since {due_at}"),
    })
}

fn had(dossier: &DocumentLine, rules: &CrawlRules, now: &str) -> (Answer, String) {
    let at = dossier.fetched_at.as_deref().unwrap_or("some time");
    let again = again(due_again(dossier, rules), now);
    if dossier.result == Some(ResultCode::Redirect) {
        let to = dossier.new_url.as_deref().unwrap_or("somewhere");
        return (Answer::Redirected, format!("redirected to {to} at {at}{again}"));
    }
    let unchanged = dossier.result == Some(ResultCode::NotModified)
        || (dossier.changed_at.is_some() && dossier.changed_at < dossier.fetched_at && dossier.fetches > 1);
    let result = last_result(dossier);
    match (unchanged, dossier.changed_at.as_deref()) {
        (true, Some(since)) => {
            (Answer::DoneUnchanged, format!("done at {at} ({result}), unchanged since {since}{again}"))
        }
        (true, None) => (Answer::DoneUnchanged, format!("done at {at} ({result}), unchanged{again}")),
        (false, _) => (Answer::Done, format!("done at {at} ({result}){again}")),
    }
}

fn failed(dossier: &DocumentLine, rules: &CrawlRules, now: &str) -> (Answer, String) {
    let at = dossier.fetched_at.as_deref().unwrap_or("some time");
    let due_at = due_again(dossier, rules);
    let again = again(due_at, now);
    if dossier.result == Some(ResultCode::RobotsDenied) {
        return (Answer::RobotsDenied, denied_by(dossier.reason.as_deref()) + &again);
    }
    let after = match dossier.retries {
        0 => String::new(),
        retries => format!(" after {} tries", u32::from(retries) + 1),
    };
    let answer = if due_at.is_some() { Answer::FailedDueAgain } else { Answer::Error };
    (answer, format!("error at {at}{after}: {}{again}", last_result(dossier)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::HostCounts;
    use crate::engine::inspect::status::{HostLine, PlaceLine, RobotsLine, ScopeLine};

    const NOW: &str = "2026-06-01T00:00:00.000Z";

    fn dossier(state: DocState, result: Option<ResultCode>) -> DocumentLine {
        DocumentLine {
            state: Some(state),
            result,
            fetched_at: result.map(|_| "2026-05-01T00:00:00.000Z".to_string()),
            ..DocumentLine::default()
        }
    }

    fn answer(looked: &Status) -> &'static str {
        let mut rules = CrawlRules::default();
        rules.doc_index.pages_per_host = 10;
        Explanation::of(looked, &rules, NOW).answer.name()
    }

    fn of(dossier: DocumentLine) -> &'static str {
        answer(&Status { dossier: Some(dossier), ..Status::default() })
    }

    #[test]
    fn every_state_has_its_word() {
        assert_eq!(of(dossier(DocState::Pending, None)), "queued");
        assert_eq!(of(dossier(DocState::Success, Some(ResultCode::Ok))), "done");
        assert_eq!(of(dossier(DocState::Success, Some(ResultCode::NotModified))), "done_unchanged");
        assert_eq!(of(dossier(DocState::Success, Some(ResultCode::Redirect))), "redirected");
        assert_eq!(of(dossier(DocState::Error, Some(ResultCode::HttpError))), "error");
        assert_eq!(of(dossier(DocState::Error, Some(ResultCode::RobotsDenied))), "robots_denied");
        assert_eq!(of(dossier(DocState::Excluded, None)), "excluded");
        let due = |due_at: &str| DocumentLine {
            due_at: Some(due_at.to_string()),
            retries: 1,
            ..dossier(DocState::Pending, Some(ResultCode::ReadTimeout))
        };
        assert_eq!(of(due("2026-06-01T00:00:01.000Z")), "failed_due_again");
        assert_eq!(of(due("2026-05-31T23:59:59.000Z")), "queued", "its time has come");
        let same = DocumentLine {
            fetches: 2,
            changed_at: Some("2026-04-01T00:00:00.000Z".to_string()),
            ..dossier(DocState::Success, Some(ResultCode::Ok))
        };
        assert_eq!(of(same), "done_unchanged");
    }

    #[test]
    fn what_is_not_known_is_judged_by_the_rules() {
        let out = |why_out| ScopeLine { why_out: Some(why_out), ..ScopeLine::default() };
        let scoped = |scope| answer(&Status { scope: Some(scope), ..Status::default() });
        assert_eq!(scoped(out(WhyOut::OutOfScope)), "out_of_scope");
        assert_eq!(scoped(out(WhyOut::Denied)), "denied");
        assert_eq!(scoped(out(WhyOut::Trap)), "trap");
        assert_eq!(scoped(ScopeLine { in_scope: true, ..ScopeLine::default() }), "not_known");
        let host = |known| {
            let counts = HostCounts { known, ..HostCounts::default() };
            answer(&Status { host: Some(HostLine { counts, open: None }), ..Status::default() })
        };
        assert_eq!((host(9), host(10)), ("not_known", "over_budget"));
        let robots = RobotsLine {
            state: RobotsState::Known,
            allowed: Some(false),
            rule: Some("Disallow: /x".to_string()),
            ..RobotsLine::default()
        };
        let looked = Status { robots: Some(robots), ..Status::default() };
        assert_eq!(answer(&looked), "robots_denied");
        let said = Explanation::of(&looked, &CrawlRules::default(), NOW).said;
        assert_eq!(said, "robots.txt denies it: Disallow: /x");
    }

    #[test]
    fn an_error_is_due_again_only_where_crawls_look_again() {
        let due_at = Some("2026-06-02T00:00:00.000Z".to_string());
        let gone = DocumentLine { due_at, ..dossier(DocState::Error, Some(ResultCode::HttpError)) };
        let looked = Status { dossier: Some(gone), ..Status::default() };
        let of = |recrawl, now| {
            let mut rules = CrawlRules::default();
            rules.doc_index.recrawl = recrawl;
            let Explanation { answer, said } = Explanation::of(&looked, &rules, now);
            (answer, said.split("; ").nth(1).map(str::to_string))
        };
        assert_eq!(of(false, NOW), (Answer::Error, None));
        let (answer, said) = of(true, NOW);
        assert_eq!(answer, Answer::FailedDueAgain);
        assert_eq!(said.as_deref(), Some("looked at again at 2026-06-02T00:00:00.000Z"));
        let (answer, said) = of(true, "2026-06-03T00:00:00.000Z");
        assert_eq!(answer, Answer::FailedDueAgain);
        assert_eq!(said.as_deref(), Some("due again since 2026-06-02T00:00:00.000Z"));
    }

    #[test]
    fn what_was_typed_is_kept_out_by_a_rule_that_denies_it_and_by_no_scope() {
        let of = |why_out| {
            let scope = Some(ScopeLine { why_out: Some(why_out), ..ScopeLine::default() });
            let dossier = Some(DocumentLine { seed_chain: true, ..dossier(DocState::Pending, None) });
            answer(&Status { dossier, scope, ..Status::default() })
        };
        assert_eq!(
            [of(WhyOut::Denied), of(WhyOut::OutOfScope), of(WhyOut::Trap)],
            ["denied", "queued", "queued"]
        );
    }

    #[test]
    fn one_variant_of_a_query_too_many_is_over_budget() {
        let mut rules = CrawlRules::default();
        rules.doc_index.query_variants_max = 5;
        let of = |variants_known| {
            Explanation::of(&Status { variants_known, ..Status::default() }, &rules, NOW).answer.name()
        };
        assert_eq!([of(None), of(Some(4)), of(Some(5))], ["not_known", "not_known", "over_budget"]);
    }

    #[test]
    fn what_is_handed_out_is_fetched_or_waits() {
        let at = |place| {
            answer(&Status { dossier: Some(dossier(DocState::HandedOut, None)), place, ..Status::default() })
        };
        assert_eq!(at(PlaceLine { at: Place::Open, ..PlaceLine::default() }), "fetching");
        let queued = PlaceLine { at: Place::Queued, before: Some(0), ..PlaceLine::default() };
        assert_eq!(at(queued.clone()), "queued");
        assert_eq!(at(PlaceLine { waits_for: Some(WaitsFor::Rate), ..queued }), "waiting_for_niceness");
        assert_eq!(at(PlaceLine { at: Place::Resolving, ..PlaceLine::default() }), "queued");
    }
}
