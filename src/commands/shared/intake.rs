use super::running::RunningCrawl;
use super::{Failure, now_ms};
use crate::doc_index::{DocIndex, Import};
use crate::engine::{OpenIndex, PIECE_BYTES_MAX, PIECE_LINES_MAX, Taken};
use crate::store_server::{DataDir, OpenError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where URLs are handed in: to the crawl that runs in a data directory, by its socket and in pieces, or to the index of a
/// directory that no process uses.
pub(crate) struct Intake {
    data: PathBuf,
    are_seeds: bool,
    to: Receiver,
    /// Lines for the running crawl that have gathered.
    piece: String,
    lines: usize,
    taken: Taken,
}

enum Receiver {
    Crawl(RunningCrawl),
    Index { index: Box<DocIndex>, _held: DataDir },
}

/// A crawl that starts or ends holds its directory and does not listen.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// A piece is sent again, as what was taken of it is known: to the index if the crawl has ended in between.
const TRIES: usize = 3;
/// Lines between two writings to the disk.
const LINES_PER_FLUSH: usize = 100_000;
/// Enough to make a piece worth its way, and not to keep a crawl's index busy for long.
const PIECE_BYTES: usize = 64 * 1_024;

impl Intake {
    /// Seeds are what a user typed; otherwise lines are those of an import.
    pub fn open(data: &Path, are_seeds: bool) -> Result<Intake, Failure> {
        let (to, taken) = (Receiver::open(data)?, Taken::default());
        Ok(Intake { data: data.to_path_buf(), are_seeds, to, piece: String::new(), lines: 0, taken })
    }

    /// A crawl runs there.
    pub fn is_running(&self) -> bool {
        matches!(self.to, Receiver::Crawl(_))
    }

    /// Hands in what a line says.
    pub fn hand(&mut self, line: &str, import: &Import) -> Result<(), Failure> {
        self.lines += 1;
        let now_s = (now_ms() / 1_000) as u32;
        let Receiver::Index { index, .. } = &mut self.to else {
            let line = line.trim_end();
            if self.piece.len() + line.len() >= PIECE_BYTES_MAX {
                self.send()?;
            }
            self.piece.push_str(line);
            self.piece.push('\n');
            if self.piece.len() >= PIECE_BYTES || self.lines >= PIECE_LINES_MAX {
                self.send()?;
            }
            return Ok(());
        };
        self.taken.count(match self.are_seeds {
            true => index.add_seed(&import.url, false, now_s),
            false => index.import(import, now_s)?,
        });
        if self.lines.is_multiple_of(LINES_PER_FLUSH) {
            index.flush(false)?;
        }
        Ok(())
    }

    /// Sends what has gathered.
    fn send(&mut self) -> Result<(), Failure> {
        let piece = std::mem::take(&mut self.piece);
        self.lines = 0;
        let mut why = String::new();
        for _ in 0..TRIES {
            match &mut self.to {
                Receiver::Crawl(crawl) => {
                    let kind = if self.are_seeds { "seeds" } else { "import" };
                    match crawl.hand::<Taken>(&format!("/api/v1/urls?as={kind}"), &piece) {
                        Ok(Some(taken)) => {
                            self.taken.add(&taken);
                            return Ok(());
                        }
                        Ok(None) => why = "the crawl has ended".to_string(),
                        Err(error) => why = error.to_string(),
                    }
                }
                Receiver::Index { .. } => {
                    for line in piece.lines() {
                        if let Ok(Some(import)) = Import::read(line) {
                            self.hand(line, &import)?;
                        }
                    }
                    return Ok(());
                }
            }
            self.to = Receiver::open(&self.data)?;
        }
        Err(Failure::CannotRun(why))
    }

    /// All of it is on disk.
    pub fn close(mut self) -> Result<Taken, Failure> {
        if !self.piece.is_empty() {
            self.send()?;
        }
        if let Receiver::Index { index, .. } = &mut self.to {
            index.close()?;
        }
        Ok(self.taken)
    }
}

impl Receiver {
    fn open(data: &Path) -> Result<Receiver, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(crawl) = RunningCrawl::at(data)? {
                return Ok(Receiver::Crawl(crawl));
            }
            match DataDir::open(data) {
                Ok(held) => {
                    let index = Box::new(OpenIndex::open_as_before(&held)?.index);
                    return Ok(Receiver::Index { index, _held: held });
                }
                Err(OpenError::InUse { .. }) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
