use crate::base::Now;
use crate::engine::crawl::linger::Linger;
use crate::engine::crawl::scheduler_setup::SchedulerConfig;
use crate::engine::runtime::counters::Ended;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// When and why a crawl ends: it is told to, a limit is reached, nothing is left, or all that is left waits too long.
pub(crate) struct Ending {
    pages_max: Option<u64>,
    seconds_max: Option<u64>,
    wait: bool,
    stop: Arc<AtomicBool>,
    is_paused: bool,
    /// Names fail, and not by their own fault: nothing more is done.
    no_names: Option<String>,
    linger: Linger,
    /// Set once, when the end begins.
    why: Option<Ended>,
}

/// What there is still to do.
pub(crate) struct Left {
    pub pages: u64,
    /// Nothing is open anywhere, and the index has nothing more.
    pub is_nothing: bool,
    /// Everything is with the shards, and they say that it must wait.
    pub rests: bool,
}

impl Ending {
    pub fn new(config: &SchedulerConfig, stop: Arc<AtomicBool>) -> Ending {
        Ending {
            pages_max: config.pages_max,
            seconds_max: config.seconds_max,
            wait: config.wait,
            stop,
            is_paused: false,
            no_names: None,
            linger: Linger::new((!config.wait).then_some(config.linger_us)),
            why: None,
        }
    }

    /// Other limits hold from now on.
    pub fn set_limits(&mut self, config: &SchedulerConfig, now: Now) {
        (self.pages_max, self.seconds_max, self.wait) = (config.pages_max, config.seconds_max, config.wait);
        self.linger.set_longest((!config.wait).then_some(config.linger_us), now);
    }

    pub fn has_begun(&self) -> bool {
        self.why.is_some()
    }

    pub fn why(&self) -> Option<Ended> {
        self.why
    }

    /// It was told to stop, and has not begun to.
    pub fn is_asked_for(&self) -> bool {
        !self.has_begun() && self.stop.load(Ordering::Relaxed)
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// True if that is a change.
    pub fn pause(&mut self, paused: bool) -> bool {
        std::mem::replace(&mut self.is_paused, paused) != paused
    }

    /// No name can be had, for this reason. What waits for names is pending in the next process.
    pub fn without_names(&mut self, fault: String) {
        self.no_names = Some(fault);
    }

    /// The reason why no name could be had, once.
    pub fn take_fault(&mut self) -> Option<String> {
        self.no_names.take()
    }

    pub fn linger(&self) -> &Linger {
        &self.linger
    }

    pub fn linger_mut(&mut self) -> &mut Linger {
        &mut self.linger
    }

    /// Begins the end if it is time. True the one time that it begins.
    pub fn begin(&mut self, left: &Left, now: Now) -> bool {
        if self.has_begun() {
            return false;
        }
        self.why = self.reason(left, now);
        self.has_begun()
    }

    fn reason(&self, left: &Left, now: Now) -> Option<Ended> {
        let is_told = self.stop.load(Ordering::Relaxed);
        let is_late = self.seconds_max.is_some_and(|max| now.us() / 1_000_000 >= max);
        let is_full = self.pages_max.is_some_and(|max| left.pages >= max);
        // Names that fail by our own fault are told of as an error.
        [
            (is_told || self.no_names.is_some(), Ended::Signal),
            (is_late, Ended::MaxSeconds),
            // An operator who pauses a crawl means to continue it: nothing below ends it.
            (!self.is_paused && is_full, Ended::MaxPages),
            (!self.is_paused && !self.wait && left.is_nothing, Ended::Done),
            (!self.is_paused && left.rests, Ended::Linger),
        ]
        .into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const LEFT: Left = Left { pages: 5, is_nothing: false, rests: false };

    fn ending(wait: bool) -> (Ending, Arc<AtomicBool>) {
        let stop = Arc::new(AtomicBool::new(false));
        let config = SchedulerConfig {
            pages_max: Some(10),
            seconds_max: Some(60),
            wait,
            ..SchedulerConfig::new(&Config::default())
        };
        (Ending::new(&config, stop.clone()), stop)
    }

    #[test]
    fn it_ends_once_and_for_one_reason() {
        let (mut ending, stop) = ending(false);
        assert!(!ending.begin(&LEFT, Now::ZERO) && !ending.has_begun());
        stop.store(true, Ordering::Relaxed);
        assert!(ending.is_asked_for());
        assert!(ending.begin(&Left { is_nothing: true, ..LEFT }, Now::ZERO));
        assert!(!ending.begin(&LEFT, Now::ZERO) && !ending.is_asked_for());
        assert_eq!(ending.why(), Some(Ended::Signal));
    }

    #[test]
    fn a_paused_crawl_ends_by_time_and_by_word_alone() {
        let done = Left { is_nothing: true, rests: true, ..LEFT };
        for (paused, at_s, why) in [
            (false, 0, Some(Ended::Done)),
            (true, 0, None),
            (true, 59, None),
            (true, 60, Some(Ended::MaxSeconds)),
        ] {
            let (mut ending, _) = ending(false);
            assert_eq!(ending.pause(paused), paused);
            ending.begin(&done, Now::ZERO.plus_ms(at_s * 1_000));
            assert_eq!(ending.why(), why, "{paused} {at_s}");
        }
    }

    #[test]
    fn a_limit_that_is_reached_is_the_reason_though_the_shards_rest() {
        let (mut ending, _) = ending(false);
        assert!(ending.begin(&Left { pages: 10, is_nothing: false, rests: true }, Now::ZERO));
        assert_eq!(ending.why(), Some(Ended::MaxPages));
    }

    #[test]
    fn one_that_waits_ends_by_its_limits() {
        let (mut ending, _) = ending(true);
        assert!(!ending.begin(&Left { is_nothing: true, ..LEFT }, Now::ZERO));
        assert!(ending.begin(&Left { pages: 10, ..LEFT }, Now::ZERO));
        assert_eq!(ending.why(), Some(Ended::MaxPages));
    }
}
