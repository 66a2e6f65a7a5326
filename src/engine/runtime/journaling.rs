use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use std::sync::mpsc::{Receiver, sync_channel};

/// Lines on their way to the journal of hosts, which must have them before entries count as taken.
pub(crate) struct Journaling {
    log: LogWriterPort,
    lines: String,
    fence: Option<Receiver<()>>,
    /// The ring took lines, and had no room for the fence behind them.
    owes_fence: bool,
}

impl Journaling {
    pub fn new(log: LogWriterPort) -> Journaling {
        Journaling { log, lines: String::new(), fence: None, owes_fence: false }
    }

    pub fn add(&mut self, lines: &str) {
        self.lines.push_str(lines);
    }

    /// Whether the journal has all that came for it; what it was not told yet it is told now.
    pub fn is_written(&mut self) -> bool {
        let Journaling { log, lines, fence, owes_fence } = self;
        // A ring that is full has room in a moment.
        if fence.is_none() && !*owes_fence && !lines.is_empty() {
            *owes_fence = log.words.push(ToLogWriter::Journal(lines.clone())).is_ok();
            if *owes_fence {
                lines.clear();
            }
        }
        if *owes_fence {
            let (done, is_done) = sync_channel(1);
            if log.words.push(ToLogWriter::Fence(done)).is_ok() {
                (*fence, *owes_fence) = (Some(is_done), false);
            }
            log.bell.ring_if_asleep();
        }
        if fence.as_ref().is_some_and(|fence| fence.try_recv().is_ok()) {
            *fence = None;
        }
        fence.is_none() && !*owes_fence && lines.is_empty()
    }
}
