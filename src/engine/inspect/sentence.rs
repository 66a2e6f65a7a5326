//! How a node goes, in one sentence or two: made of what was counted, and of nothing else.

use crate::base::{grouped, plural, span};
use crate::engine::runtime::counters::Snapshot;
use crate::url_server::WaitsFor;

/// What is known of a node besides its counts.
#[derive(Clone, Debug, Default)]
pub struct Outlook<'a> {
    /// What its `pages` are: a page, a URL, a record.
    pub noun: &'a str,
    /// Of the last seconds.
    pub per_second: f64,
    /// Until nothing is pending, at this pace.
    pub seconds_left: Option<u64>,
    /// What the process waits for, if it is more than the network.
    pub waiting_for: Option<&'a str>,
    pub is_stopping: bool,
}

/// How fast it is, what holds it back, and when it ends:
/// `100 pages/s. Held back by politeness: 912 of 1,000 hosts wait for their rate. At this pace pending ends in 9 min.`
pub fn sentence(now: &Snapshot, outlook: &Outlook<'_>) -> String {
    let open = match now.open {
        0 => String::new(),
        1 => ": 1 request is open".to_string(),
        open => format!(": {} requests are open", grouped(open)),
    };
    if outlook.is_stopping {
        return format!("Stopping{open}.");
    }
    if now.is_paused {
        return format!("Paused{open}.");
    }
    let per_second = outlook.per_second;
    let pace = match per_second < 9.95 {
        true => format!("{per_second:.1}"),
        false => grouped(per_second.round() as u64),
    };
    let mut said = format!("{pace} {}/s.", plural(2, outlook.noun));
    if let Some(what) = outlook.waiting_for {
        said += &format!(" Held back: {}.", what.trim_end_matches('.'));
        return said;
    }
    said += &held_back(now).unwrap_or_default();
    if let Some(seconds) = outlook.seconds_left {
        said += &format!(" At this pace pending ends in {}.", span(seconds));
    }
    said
}

/// What holds it back, if it is what most hosts wait for, or that there is little to do.
fn held_back(now: &Snapshot) -> Option<String> {
    let waiting: u64 = now.waits.iter().map(|(_, hosts)| hosts).sum();
    if now.hosts == 0 && now.open == 0 && now.pending == 0 && now.known > 0 {
        return Some(match now.waiting {
            0 => " Nothing is pending.".to_string(),
            1 => " 1 URL waits until it is due.".to_string(),
            waiting => format!(" {} URLs wait until they are due.", grouped(waiting)),
        });
    }
    if 2 * waiting < now.hosts.max(1) {
        return None;
    }
    let (what, _) = now.waits.iter().max_by_key(|(_, hosts)| *hosts)?;
    let by = match what {
        WaitsFor::Spider => "spiders",
        WaitsFor::Ticket | WaitsFor::Right => "the cluster",
        _ => "politeness",
    };
    Some(format!(" Held back by {by}: {}.", waits(now)?))
}

/// What most hosts wait for: `912 of 1,000 hosts wait for their rate`.
pub fn waits(now: &Snapshot) -> Option<String> {
    if now.is_paused {
        return Some("paused".to_string());
    }
    let (what, waiting) = *now.waits.iter().max_by_key(|(_, hosts)| *hosts)?;
    // They were counted a moment apart.
    let hosts = now.hosts.max(waiting);
    let (verb, whose) = if waiting == 1 { ("waits", "its") } else { ("wait", "their") };
    let what = match what {
        WaitsFor::Rate => format!("{whose} rate"),
        WaitsFor::ResponseTime => "as long as an answer took".to_string(),
        WaitsFor::CrawlDelay => format!("{whose} Crawl-delay"),
        WaitsFor::Penalty => "a back-off after 429 or 503".to_string(),
        WaitsFor::RetryAfter => format!("{whose} Retry-After"),
        WaitsFor::Failures => "a pause after no answer".to_string(),
        WaitsFor::Robots => format!("{whose} robots.txt"),
        WaitsFor::Concurrent => "an open request".to_string(),
        WaitsFor::Address => "an address that hosts share".to_string(),
        WaitsFor::Spider => "a spider".to_string(),
        WaitsFor::Ticket => format!("the ticket of {whose} address"),
        WaitsFor::Right => "the right of this node".to_string(),
    };
    Some(format!("{} of {} {} {verb} for {what}", grouped(waiting), grouped(hosts), plural(hosts, "host")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Outlook<'_> = Outlook {
        noun: "page",
        per_second: 4_790.2,
        seconds_left: None,
        waiting_for: None,
        is_stopping: false,
    };

    fn busy() -> Snapshot {
        let waits = vec![(WaitsFor::Robots, 3), (WaitsFor::Rate, 912)];
        Snapshot { waits, hosts: 1_000, open: 61, pending: 6_812, known: 21_000, ..Snapshot::default() }
    }

    #[test]
    fn most_hosts_say_what_holds_it_back() {
        assert_eq!(
            sentence(&busy(), &Outlook { seconds_left: Some(11_400), ..CALM }),
            "4,790 pages/s. Held back by politeness: 912 of 1,000 hosts wait for their rate. At this pace pending ends in 3 h."
        );
        let few = Snapshot { waits: vec![(WaitsFor::Rate, 499)], ..busy() };
        assert_eq!(sentence(&few, &CALM), "4,790 pages/s.", "it is not held back by the fewer half");
        let spiders = Snapshot { waits: vec![(WaitsFor::Spider, 900)], ..busy() };
        let outlook = Outlook { noun: "URL", per_second: 0.26, ..CALM };
        assert_eq!(
            sentence(&spiders, &outlook),
            "0.3 URLs/s. Held back by spiders: 900 of 1,000 hosts wait for a spider."
        );
    }

    #[test]
    fn what_stands_above_all_is_said_alone() {
        let disk = Outlook { waiting_for: Some("fetching waits for disk space: 3 MB free."), ..CALM };
        assert_eq!(
            sentence(&busy(), &disk),
            "4,790 pages/s. Held back: fetching waits for disk space: 3 MB free."
        );
        let paused = Snapshot { is_paused: true, ..busy() };
        assert_eq!(sentence(&paused, &disk), "Paused: 61 requests are open.");
        assert_eq!(sentence(&Snapshot { open: 0, ..paused.clone() }, &CALM), "Paused.");
        let stopping = Outlook { is_stopping: true, ..CALM };
        assert_eq!(sentence(&Snapshot { open: 1, ..paused }, &stopping), "Stopping: 1 request is open.");
    }

    #[test]
    fn a_crawl_with_nothing_to_do_says_so() {
        let idle = Snapshot { known: 20, ..Snapshot::default() };
        let calm = Outlook { per_second: 0.0, ..CALM };
        assert_eq!(sentence(&idle, &calm), "0.0 pages/s. Nothing is pending.");
        assert_eq!(
            sentence(&Snapshot { waiting: 1_200, ..idle.clone() }, &calm),
            "0.0 pages/s. 1,200 URLs wait until they are due."
        );
        assert_eq!(
            sentence(&Snapshot { waiting: 1, ..idle }, &calm),
            "0.0 pages/s. 1 URL waits until it is due."
        );
        assert_eq!(sentence(&Snapshot::default(), &calm), "0.0 pages/s.", "it has only begun");
    }

    #[test]
    fn waits_are_of_the_most() {
        let one = Snapshot { waits: vec![(WaitsFor::Robots, 1)], hosts: 1, ..Snapshot::default() };
        assert_eq!(waits(&one).as_deref(), Some("1 of 1 host waits for its robots.txt"));
        assert_eq!(waits(&Snapshot { is_paused: true, ..one }).as_deref(), Some("paused"));
        assert_eq!(waits(&Snapshot::default()), None);
    }
}
