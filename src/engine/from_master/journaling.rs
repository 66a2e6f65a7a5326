use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use std::sync::mpsc::{Receiver, sync_channel};

/// Lines on their way to the journal of hosts, which must have them before entries count as taken.
pub(super) struct Journaling {
    log: LogWriterPort,
    lines: String,
    fence: Option<Receiver<()>>,
}

impl Journaling {
    pub fn new(log: LogWriterPort) -> Journaling {
        Journaling { log, lines: String::new(), fence: None }
    }

    pub fn add(&mut self, lines: &str) {
        self.lines.push_str(lines);
    }

    /// Whether the journal has all that came for it; what it was not told yet it is told now.
    pub fn is_written(&mut self) -> bool {
        let Journaling { log, lines, fence } = self;
        if fence.is_none() && !lines.is_empty() {
            let (done, is_done) = sync_channel(1);
            let journal = ToLogWriter::Journal(lines.clone());
            // A ring that is full has room in a moment.
            if log.words.push(journal).is_ok() {
                lines.clear();
                if log.words.push(ToLogWriter::Fence(done)).is_ok() {
                    *fence = Some(is_done);
                }
                log.bell.ring_if_asleep();
            }
        }
        if fence.as_ref().is_some_and(|fence| fence.try_recv().is_ok()) {
            *fence = None;
        }
        fence.is_none() && lines.is_empty()
    }
}
