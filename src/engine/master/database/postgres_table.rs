use super::session::{Ask, Said, Session, Stranger};
use crate::engine::runtime::database_url::DatabaseUrl;
use crate::master::{DatabaseError, MapRow, PartnerDomain};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// `partner_domain` in PostgreSQL.
///
/// A caller waits for at most two seconds. What takes longer goes on behind its back, and counts as away until it is
/// answered; the answer is used then.
pub struct Postgres {
    url: DatabaseUrl,
    asks: SyncSender<Arc<Ask>>,
    answers: Receiver<Result<Said, DatabaseError>>,
    /// Asked, and not answered when its caller went on.
    open: Option<Arc<Ask>>,
    /// Rows that came too late for who asked.
    late: Vec<MapRow>,
    strangers: Vec<Stranger>,
}

const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Proposals in one statement.
const PROPOSALS_MAX: usize = 10_000;
/// Strangers that are kept to be told of.
const STRANGERS_MAX: usize = 1_000;

impl Postgres {
    /// Starts its thread; the database need not be there.
    pub fn start(url: DatabaseUrl) -> io::Result<Postgres> {
        let (asks, asked) = sync_channel::<Arc<Ask>>(1);
        let (answer, answers) = sync_channel(1);
        let mut session = Session::new(url.clone());
        std::thread::Builder::new().name("database".to_string()).spawn(move || {
            while let Ok(ask) = asked.recv() {
                if answer.send(session.answer(&ask)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Postgres { url, asks, answers, open: None, late: Vec::new(), strangers: Vec::new() })
    }

    /// Rows that name what cannot be a server, since this was last asked; the first thousand of them.
    pub fn strangers(&mut self) -> Vec<Stranger> {
        std::mem::take(&mut self.strangers)
    }

    fn ask(&mut self, ask: Ask) -> Result<Said, DatabaseError> {
        let deadline = Instant::now() + ANSWER_MAX;
        if let Some(open) = self.open.take() {
            match self.answer(open.clone(), deadline) {
                Ok(said) if *open == ask => return Ok(said),
                Ok(Said::Rows { rows, .. }) if *open == Ask::Changes => self.late.extend(rows),
                // What failed behind the back of another caller is asked anew.
                Ok(_) => {}
                Err(_) if self.open.is_none() => {}
                Err(away) => return Err(away),
            }
        }
        let ask = Arc::new(ask);
        if self.asks.send(ask.clone()).is_err() {
            return Err(self.away("its thread has ended"));
        }
        self.answer(ask, deadline)
    }

    /// The answer to what is being asked; if none comes in time, it stays open.
    fn answer(&mut self, ask: Arc<Ask>, deadline: Instant) -> Result<Said, DatabaseError> {
        match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(said)) => {
                if let Said::Rows { strangers, .. } = &said {
                    let room = STRANGERS_MAX.saturating_sub(self.strangers.len());
                    self.strangers.extend(strangers.iter().take(room).cloned());
                }
                Ok(said)
            }
            Ok(Err(DatabaseError::Away(cause))) => Err(self.away(&cause)),
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => {
                self.open = Some(ask);
                Err(self.away(&format!("no answer within {} s", ANSWER_MAX.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.away("its thread has ended")),
        }
    }

    fn away(&self, cause: &str) -> DatabaseError {
        DatabaseError::Away(format!("{cause} ({})", self.url))
    }
}

impl PartnerDomain for Postgres {
    fn changes(&mut self) -> Result<Vec<MapRow>, DatabaseError> {
        let Said::Rows { rows, .. } = self.ask(Ask::Changes)? else {
            return Err(self.away("another answer"));
        };
        let mut all = std::mem::take(&mut self.late);
        all.extend(rows);
        Ok(all)
    }

    fn settle(&mut self, proposals: &[MapRow]) -> Result<Vec<MapRow>, DatabaseError> {
        let mut settled = Vec::with_capacity(proposals.len());
        for some in proposals.chunks(PROPOSALS_MAX) {
            let Said::Rows { rows, .. } = self.ask(Ask::Settle(some.to_vec()))? else {
                return Err(self.away("another answer"));
            };
            if !rows.iter().map(|row| &row.domain).eq(some.iter().map(|row| &row.domain)) {
                return Err(self.away("rows went while they were proposed"));
            }
            settled.extend(rows);
        }
        Ok(settled)
    }

    fn change(&mut self, row: &MapRow, fence: u32) -> Result<bool, DatabaseError> {
        match self.ask(Ask::Change { row: row.clone(), fence })? {
            Said::Changed(changed) => Ok(changed),
            _ => Err(self.away("another answer")),
        }
    }

    fn keep_handover(&mut self, domain: &str, fence: u32, lines: &[u8]) -> Result<(), DatabaseError> {
        let ask = Ask::KeepHandover { domain: domain.into(), fence, lines: lines.to_vec() };
        self.ask(ask).map(drop)
    }

    fn handover(&mut self, domain: &str, fence: u32) -> Result<Option<Vec<u8>>, DatabaseError> {
        match self.ask(Ask::Handover { domain: domain.into(), fence })? {
            Said::Handover(lines) => Ok(lines),
            _ => Err(self.away("another answer")),
        }
    }
}
