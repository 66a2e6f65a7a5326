use std::time::Instant;

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

/// Where the time of a shard goes. One turn in [`Stages::SAMPLED`] is measured, and stands for all of them: a shard never
/// waits within a turn, so that time is processor time, unless the kernel takes the core away.
#[derive(Default)]
pub(crate) struct Stages {
    turns: u32,
    /// Of a turn that is measured: the end of the stage before.
    since: Option<Instant>,
    ns: [u64; Stage::Start as usize + 1],
}

impl Stages {
    const SAMPLED: u32 = 16;

    /// A turn begins.
    pub fn begin(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        self.since = self.turns.is_multiple_of(Stages::SAMPLED).then(Instant::now);
    }

    /// What was done since the last mark was of this stage.
    #[inline]
    pub fn mark(&mut self, stage: Stage) {
        if let Some(since) = &mut self.since {
            let now = Instant::now();
            self.ns[stage as usize] += now.duration_since(*since).as_nanos() as u64;
            *since = now;
        }
    }

    /// Microseconds of each stage, of all turns together.
    pub fn us(&self) -> [u64; Stage::Start as usize + 1] {
        self.ns.map(|ns| ns * u64::from(Stages::SAMPLED) / 1_000)
    }
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
        std::thread::sleep(std::time::Duration::from_millis(2));
        stages.mark(Stage::Start);
        assert!(stages.ns[Stage::Start as usize] - before[Stage::Start as usize] >= 2_000_000);
        assert_eq!(stages.ns[Stage::Network as usize], 0);
        assert!(stages.us()[Stage::Start as usize] >= 32_000);
        assert_eq!(Group::Stages.labels()[Stage::Compress as usize], "compress");
        assert_eq!(Group::Stages.len(), stages.ns.len());
    }
}
