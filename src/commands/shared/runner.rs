use super::event_log::{settle, tell, tell_aside};
use super::progress::Progress;
use super::reload::Reload;
use super::signals::{Interrupt, Signals};
use super::{Failure, counted};
use crate::admin::Listener;
use crate::base::SortedMap;
use crate::engine::{Commits, Event, Level, Part, Running, messages_told};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is said when a signal comes.
pub(crate) struct Farewell {
    pub stopping: &'static str,
    pub at_once: &'static str,
}

/// A node is about to be let go of, with so many pages.
#[derive(Clone, Copy)]
pub(crate) enum Leaving {
    /// The process ends as soon as this is heard.
    AtOnce { pages: u64 },
    /// It has finished, and sums up.
    InOrder { pages: u64, commits: Commits },
}

/// Shows progress, says what the node waits for and passes on signals until it has finished.
pub(crate) fn run_to_end<N: Running>(
    node: N,
    listener: Option<Listener>,
    mut signals: Signals,
    farewell: &Farewell,
    mut reload: Option<Reload<'_>>,
    mut leaving: impl FnMut(Leaving),
) -> Result<N::Summary, Failure> {
    let (mut service, started) = (std::mem::take(&mut signals.service), signals.since);
    // Whoever is told how it goes need not be told twice.
    let mut progress = Progress::new(!service.has_manager());
    let mut is_stopping = false;
    let pages = |node: &N| node.snapshot().map_or(0, |snapshot| snapshot.pages);
    let mut told = Told::default();
    service.ready(&node);
    while !node.is_finished() {
        let interrupt = signals.wait();
        if interrupt == Interrupt::AtOnce || (interrupt == Interrupt::Stop && is_stopping) {
            progress.tell(Event::StoppedAtOnce, Vec::new(), format!("stopped at once{}", farewell.at_once));
            settle(true);
            leaving(Leaving::AtOnce { pages: pages(&node) });
            std::process::exit(3);
        }
        if interrupt == Interrupt::Stop {
            let text = format!("stopping: {}; a second signal stops at once", farewell.stopping);
            progress.tell(Event::Stopping, vec![("by", "signal".into())], text);
            is_stopping = true;
            node.stop();
        }
        if let (Interrupt::Reload(by), Some(reload)) = (interrupt, &mut reload) {
            let (event, fields, text) = reload.again(&node, by);
            progress.tell(event, fields, text);
        }
        if interrupt == Interrupt::RotateLog {
            node.rotate_log();
        }
        progress.tell_more(node.notices());
        match told.look(node.waiting(), Instant::now()) {
            Some(News::Waits(part, text)) => {
                let fields = vec![("part", part.name().into()), ("cause", (&text).into())];
                progress.tell(Event::Waiting, fields, text);
            }
            Some(News::IsOver(part)) => {
                let text = match part {
                    Part::Names => "names are resolved again, and the work goes on",
                    Part::Network => "the network is there again, and the work goes on",
                    _ => "the disk takes what is written again, and the work goes on",
                };
                progress.tell(Event::WaitOver, vec![("part", part.name().into())], text);
            }
            None => {}
        }
        if let Some(text) = service.tick(&node) {
            progress.tell(Event::ThreadsSilent, Vec::new(), text);
        }
        settle(false);
        progress.show(node.stop_switch().is_stopped(), || node.snapshot());
    }
    service.ending();
    progress.tell_more(node.notices());
    settle(true);
    progress.end();
    let pages = pages(&node);
    let commits = node.snapshot().map_or(Commits::default(), |snapshot| snapshot.commits);
    leaving(Leaving::InOrder { pages, commits });
    // Nothing answers from here on, and the directory may soon be another's.
    listener.into_iter().for_each(Listener::end);
    let notices = node.health().notices.clone();
    let over = Arc::new(AtomicBool::new(false));
    hurry_when_asked(signals, node.health().in_haste.clone(), over.clone());
    let finished = node.finish();
    over.store(true, Ordering::Release);
    progress.tell_more(notices.take());
    settle(true);
    let summary = finished?;
    let (warnings, errors) = (messages_told(Level::Warn), messages_told(Level::Error));
    let fields = vec![
        ("pages", pages.into()),
        ("seconds", started.elapsed().as_secs().into()),
        ("warnings", warnings.into()),
        ("errors", errors.into()),
    ];
    let text = format!(
        "ended: {}, {} and {}",
        counted(pages, "page"),
        counted(warnings, "warning"),
        counted(errors, "error")
    );
    tell_aside(Event::Ended, fields, text);
    Ok(summary)
}

/// A signal while everything is being finished: what can wait for the next run does.
fn hurry_when_asked(mut signals: Signals, in_haste: Arc<AtomicBool>, over: Arc<AtomicBool>) {
    // Without it the end takes as long as it takes.
    let _ = std::thread::Builder::new().name("haste".to_string()).spawn(move || {
        while !over.load(Ordering::Acquire) {
            if matches!(signals.wait(), Interrupt::Stop | Interrupt::AtOnce) {
                in_haste.store(true, Ordering::Release);
            }
        }
    });
}

/// What was said of that the node waits for, and when. Figures in it change all the time, and are no news.
#[derive(Default)]
struct Told {
    said: SortedMap<String, Instant>,
    /// What it was seen to wait for last, and was not told to be over.
    last: Option<(Part, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Waits(Part, String),
    IsOver(Part),
}

const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// A wait may come back at once: what is tried again fails again.
const OVER_AFTER: Duration = Duration::from_secs(5);

impl Told {
    /// What is to be said: something else is waited for, or it is so still after a while, or it is over.
    fn look(&mut self, waiting: Option<(Part, String)>, now: Instant) -> Option<News> {
        let Some((part, text)) = waiting else {
            let (part, _) = self.last.take_if(|(_, seen)| now.duration_since(*seen) >= OVER_AFTER)?;
            self.said.clear();
            return Some(News::IsOver(part));
        };
        self.last = Some((part, now));
        let what = text.split_once(": ").map_or(&*text, |(what, _)| what);
        if self.said.get(what).is_some_and(|said| now.duration_since(*said) < AGAIN_AFTER) {
            return None;
        }
        self.said.insert(what.to_string(), now);
        Some(News::Waits(part, text))
    }
}

/// Says where a process listens, and whom it dials.
pub(crate) fn announce_links(process: &str, bound: Option<SocketAddr>, dials: &[String]) {
    if let Some(addr) = bound {
        let fields = vec![("process", process.into()), ("addr", addr.into())];
        tell(Event::Listening, fields, format!("{process}: listening on {addr}"));
    }
    for addr in dials {
        let fields = vec![("process", process.into()), ("addr", addr.into())];
        tell(Event::Dialing, fields, format!("{process}: dialing {addr}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_once_a_minute_and_so_is_its_end() {
        let (began, mut told) = (Instant::now(), Told::default());
        let at = |s: u64| began + Duration::from_secs(s);
        let full = |free: u64| Some((Part::Store, format!("fetching waits for disk space: {free} bytes")));
        assert_eq!(told.look(None, at(0)), None);
        assert!(matches!(told.look(full(7), at(1)), Some(News::Waits(Part::Store, _))));
        assert_eq!(told.look(full(8), at(2)), None, "a figure is no news");
        assert_eq!(told.look(None, at(3)), None, "it may come back");
        assert_eq!(told.look(full(9), at(4)), None);
        assert!(told.look(full(9), at(61)).is_some(), "still so");
        assert_eq!(told.look(None, at(67)), Some(News::IsOver(Part::Store)));
        assert_eq!(told.look(None, at(99)), None, "told once");
        assert!(told.look(full(9), at(100)).is_some(), "a new wait");
    }
}
