use super::stored::Stored;
use crate::handler::{Handled, Handler, Page};
use crate::proto::http1::{Flags, HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::lines::Candidate;
use std::sync::Arc;

/// Reads the links of a page that has not changed from what is stored of it: the server did not send it again, and what
/// it leads to is to be looked at all the same. On the index thread, which may wait for the disk.
pub struct Rereading {
    stored: Arc<Stored>,
    handler: Handler,
}

impl Rereading {
    pub fn new(stored: Arc<Stored>, handler: Handler) -> Rereading {
        Rereading { stored, handler }
    }

    pub fn read(&mut self, candidate: &Candidate) -> Option<Handled> {
        let (record, document) = self.stored.read(&candidate.url)?;
        let parsed = HeadParser::new(HeadLimits::default(), Method::Get).parse(&document.head);
        let Ok(HeadStep::Done(head)) = parsed else {
            return None;
        };
        Some(self.handler.handle(&Page {
            candidate,
            result: record.result,
            head: Some(&head),
            head_bytes: &document.head,
            document: &document.body,
            decoded: Flags::from_bits(record.flags).contains(Flags::DECODED),
        }))
    }
}
