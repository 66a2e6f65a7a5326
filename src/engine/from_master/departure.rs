use crate::base::Now;
use crate::engine::inspect::entries::HandedOver;
use crate::engine::inspect::handover::{HandoverReader, handover_path};
use crate::engine::inspect::questions::{Ask, Leaves, Questions, Reply};
use crate::rings::Doorbell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// A domain that leaves for another server, from CLOSE to FENCED.
pub(super) struct Departure {
    pub domain: Box<str>,
    step: Step,
}

enum Step {
    /// Nothing was asked yet, or what was asked went unanswered: not before then.
    Begin {
        not_before: Now,
    },
    /// Nothing more is asked of its hosts, and what is on the wire may end.
    Closing(Receiver<Reply>),
    /// What is known of its hosts goes with the URLs that are pending, once all have come back.
    Returning {
        nice: String,
        not_before: Now,
    },
    Writing {
        nice: String,
        answer: Receiver<Reply>,
    },
    /// It is all written down, in a file or here.
    Ready {
        kept: Option<Vec<u8>>,
    },
}

/// What has happened.
pub(super) enum Departed {
    Waits,
    /// So many URLs are written down.
    Whole(u64),
    Trouble(String),
}

const AGAIN_US: u64 = 50_000;
const TROUBLE_US: u64 = 2_000_000;

impl Departure {
    /// One that was begun by a process before this one goes on where that was.
    pub fn new(domain: &str, directory: Option<&Path>) -> Departure {
        let is_written = directory.is_some_and(|directory| handover_path(directory, domain).exists());
        let step = match is_written {
            true => Step::Ready { kept: None },
            false => Step::Begin { not_before: Now::ZERO },
        };
        Departure { domain: domain.into(), step }
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.step, Step::Ready { .. })
    }

    /// What is to be told of it.
    pub fn read(&self, directory: Option<&Path>) -> io::Result<HandoverReader<Box<dyn Read + Send>>> {
        let input: Box<dyn Read + Send> = match (&self.step, directory) {
            (Step::Ready { kept: Some(kept) }, _) => Box::new(Cursor::new(kept.clone())),
            (_, Some(directory)) => Box::new(File::open(handover_path(directory, &self.domain))?),
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        HandoverReader::new(input, &self.domain)
    }

    /// What was written down cannot be read: it is written down anew.
    pub fn begin_anew(&mut self, now: Now) {
        self.step = Step::Begin { not_before: now.plus_us(TROUBLE_US) };
    }

    /// Does what can be done without waiting.
    pub fn look(&mut self, questions: &Questions, bell: &Arc<Doorbell>, now: Now) -> Departed {
        let step = std::mem::replace(&mut self.step, Step::Begin { not_before: now });
        let later = |us| now.plus_us(us);
        let (step, departed) = match step {
            Step::Begin { not_before } if not_before <= now => (
                Step::Closing(ask(questions, Ask::Close(Leaves::Domain(self.domain.clone())), bell)),
                Departed::Waits,
            ),
            Step::Closing(answer) => match answer.try_recv() {
                Ok(Reply::Closed { lines }) => {
                    (Step::Returning { nice: lines, not_before: now }, Departed::Waits)
                }
                Err(TryRecvError::Empty) => (Step::Closing(answer), Departed::Waits),
                Ok(_) | Err(TryRecvError::Disconnected) => {
                    (Step::Begin { not_before: later(AGAIN_US) }, Departed::Waits)
                }
            },
            Step::Returning { nice, not_before } if not_before <= now => {
                let hand_over = Ask::HandOver { domain: self.domain.clone(), nice: nice.clone() };
                (Step::Writing { nice, answer: ask(questions, hand_over, bell) }, Departed::Waits)
            }
            Step::Writing { nice, answer } => match answer.try_recv() {
                Ok(Reply::HandedOver(HandedOver::Whole { urls, kept })) => {
                    (Step::Ready { kept }, Departed::Whole(urls))
                }
                Ok(Reply::HandedOver(HandedOver::Refused(cause))) => {
                    (Step::Returning { nice, not_before: later(TROUBLE_US) }, Departed::Trouble(cause))
                }
                Err(TryRecvError::Empty) => (Step::Writing { nice, answer }, Departed::Waits),
                Ok(_) | Err(TryRecvError::Disconnected) => {
                    (Step::Returning { nice, not_before: later(AGAIN_US) }, Departed::Waits)
                }
            },
            step => (step, Departed::Waits),
        };
        self.step = step;
        departed
    }
}

fn ask(questions: &Questions, ask: Ask, bell: &Arc<Doorbell>) -> Receiver<Reply> {
    let (answer, answered) = channel();
    let bell = bell.clone();
    questions.ask(ask, move |reply| {
        let _ = answer.send(reply);
        bell.ring_if_asleep();
    });
    answered
}
