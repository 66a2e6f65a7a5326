use nix::time::{ClockId, clock_gettime};

/// What a shard is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Messages, timers of queues.
    Receive,
    /// Completions of the driver, TLS, reading of responses.
    Network,
    /// Links of a page.
    Parse,
    /// A record for the store.
    Compress,
    /// The crawl log, and what others are told.
    Record,
    /// Fetches begun.
    Start,
}

/// Where the processor time of a shard goes. One turn in [`Stages::SAMPLED`] is measured, and stands for all of them.
#[derive(Default)]
pub(crate) struct Stages {
    turns: u32,
    /// Of a turn that is measured: the end of the stage before.
    since: Option<u64>,
    ns: [u64; Stage::Start as usize + 1],
}

impl Stages {
    const SAMPLED: u32 = 16;

    /// A turn begins.
    pub fn begin(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        self.since = self.turns.is_multiple_of(Stages::SAMPLED).then(thread_ns);
    }

    /// What was done since the last mark was of this stage.
    #[inline]
    pub fn mark(&mut self, stage: Stage) {
        if let Some(since) = &mut self.since {
            let now = thread_ns();
            self.ns[stage as usize] += now.saturating_sub(*since);
            *since = now;
        }
    }

    /// Microseconds of each stage, of all turns together.
    pub fn us(&self) -> [u64; Stage::Start as usize + 1] {
        self.ns.map(|ns| ns * u64::from(Stages::SAMPLED) / 1_000)
    }
}

/// Processor time of this thread. It costs a system call, where the time of day would cost none and tell of other threads.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::runtime::groups::Group;

    #[test]
    fn one_turn_in_sixteen_is_measured() {
        let mut stages = Stages::default();
        for turn in 1..=Stages::SAMPLED {
            stages.begin();
            assert_eq!(stages.since.is_some(), turn == Stages::SAMPLED);
            stages.mark(Stage::Parse);
        }
        let before = stages.ns;
        let begun = thread_ns();
        while thread_ns() - begun < 2_000_000 {}
        stages.mark(Stage::Start);
        let started = stages.ns[Stage::Start as usize] - before[Stage::Start as usize];
        assert!(started >= 2_000_000);
        std::thread::sleep(std::time::Duration::from_millis(50));
        stages.mark(Stage::Network);
        assert!(stages.ns[Stage::Network as usize] < 50_000_000, "sleep is no work");
        assert_eq!(stages.ns[Stage::Record as usize], 0);
        assert!(stages.us()[Stage::Start as usize] >= 32_000);
        assert_eq!(Group::Stages.labels()[Stage::Compress as usize], "compress");
        assert_eq!(Group::Stages.len(), stages.ns.len());
    }
}
