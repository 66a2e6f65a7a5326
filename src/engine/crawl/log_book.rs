use crate::base::Now;
use crate::engine::crawl::log_lines::Logger;
use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use crate::limits::{LOG_BATCH_BYTES, SCRIBE_BACKLOG_MAX};
use std::collections::VecDeque;

/// A shard's way to the scribe: lines of the crawl log gather here and are handed on in batches.
pub(crate) struct LogBook {
    pub logger: Logger,
    pub lines: Vec<u8>,
    scribe: LogWriterPort,
    /// Words the scribe's ring had no room for.
    backlog: VecDeque<ToLogWriter>,
    handed_on_at: Now,
    /// The lines go with the next `hand_on`, however few they are.
    hurried: bool,
}

/// A batch that is not full is handed on this often.
const HAND_ON_US: u64 = 20_000;

impl LogBook {
    pub fn new(logger: Logger, scribe: LogWriterPort) -> LogBook {
        LogBook {
            logger,
            lines: Vec::new(),
            scribe,
            backlog: VecDeque::new(),
            handed_on_at: Now::ZERO,
            hurried: false,
        }
    }

    /// Another word for the scribe; goes with the next `hand_on`.
    pub fn say(&mut self, word: ToLogWriter) {
        self.backlog.push_back(word);
    }

    /// Lets the lines that are here go with the next `hand_on`.
    pub fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Once a turn.
    pub fn hand_on(&mut self, now: Now) {
        let due = std::mem::take(&mut self.hurried) || now.since_us(self.handed_on_at) >= HAND_ON_US;
        if self.lines.len() >= LOG_BATCH_BYTES || (due && !self.lines.is_empty()) {
            self.handed_on_at = now;
            let next = Vec::with_capacity(self.lines.capacity());
            self.backlog.push_back(ToLogWriter::Log(std::mem::replace(&mut self.lines, next)));
        }
        if self.backlog.is_empty() {
            return;
        }
        while let Some(word) = self.backlog.pop_front() {
            if let Err(word) = self.scribe.words.push(word) {
                self.backlog.push_front(word);
                break;
            }
        }
        self.scribe.bell.ring_if_asleep();
    }

    /// Hands on what there is, at the end. True once nothing is left.
    pub fn close(&mut self, now: Now) -> bool {
        self.handed_on_at = Now::ZERO;
        self.hand_on(now.plus_us(HAND_ON_US));
        self.backlog.is_empty()
    }

    /// When something must be handed on even if nothing comes.
    pub fn next_due(&self, now: Now) -> Option<Now> {
        if !self.backlog.is_empty() {
            return Some(now.plus_ms(2));
        }
        (!self.lines.is_empty()).then(|| self.handed_on_at.plus_us(HAND_ON_US))
    }

    /// The scribe cannot keep up, or the disk is full.
    pub fn is_full(&self) -> bool {
        self.backlog.len() >= SCRIBE_BACKLOG_MAX
    }
}
