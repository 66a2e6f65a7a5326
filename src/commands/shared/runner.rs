use super::progress::Progress;
use super::reload::Reload;
use super::signals::{Interrupt, Signals};
use super::{Failure, say};
use crate::engine::Running;
use std::collections::BTreeMap;
use std::net::SocketAddr;
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
    InOrder { pages: u64 },
}

/// Shows progress, says what the node waits for and passes on signals until it has finished.
pub(crate) fn run_to_end<N: Running>(
    node: N,
    mut signals: Signals,
    farewell: &Farewell,
    mut reload: Option<Reload<'_>>,
    mut leaving: impl FnMut(Leaving),
) -> Result<N::Summary, Failure> {
    let mut progress = Progress::new();
    let mut is_stopping = false;
    let pages = |node: &N| node.snapshot().map_or(0, |snapshot| snapshot.pages);
    let mut told = Told::default();
    while !node.is_finished() {
        let interrupt = signals.wait();
        if interrupt == Interrupt::AtOnce || (interrupt == Interrupt::Stop && is_stopping) {
            progress.say(&format!("stopped at once{}", farewell.at_once));
            leaving(Leaving::AtOnce { pages: pages(&node) });
            std::process::exit(3);
        }
        if interrupt == Interrupt::Stop {
            progress.say(&format!("stopping: {}; a second signal stops at once", farewell.stopping));
            is_stopping = true;
            node.stop();
        }
        if let (Interrupt::Reload(by), Some(reload)) = (interrupt, &mut reload) {
            reload.again(&node, by).iter().for_each(|line| progress.say(line));
        }
        node.notices().iter().for_each(|notice| progress.say(&notice.text));
        node.waiting_for().iter().filter(|text| told.is_news(text)).for_each(|text| progress.say(text));
        progress.show(node.stop_switch().is_stopped(), || node.snapshot());
    }
    node.notices().iter().for_each(|notice| progress.say(&notice.text));
    progress.end();
    leaving(Leaving::InOrder { pages: pages(&node) });
    Ok(node.finish()?)
}

/// What was said of that the node waits for, and when. Figures in it change all the time, and are no news.
#[derive(Default)]
struct Told(BTreeMap<String, Instant>);

const AGAIN_AFTER: Duration = Duration::from_secs(60);

impl Told {
    /// Whether it is to be said: something else is waited for, or it is so still after a while.
    fn is_news(&mut self, text: &str) -> bool {
        let what = text.split_once(": ").map_or(text, |(what, _)| what);
        if self.0.get(what).is_some_and(|said| said.elapsed() < AGAIN_AFTER) {
            return false;
        }
        self.0.insert(what.to_string(), Instant::now());
        true
    }
}

/// Says where a process listens, and whom it dials.
pub(crate) fn announce_links(process: &str, bound: Option<SocketAddr>, dials: &[String]) {
    bound.iter().for_each(|addr| say(format_args!("{process}: listening on {addr}")));
    dials.iter().for_each(|addr| say(format_args!("{process}: dialing {addr}")));
}
