use crate::doc_index::{Import, Imported};
use serde::{Deserialize, Serialize};

/// URLs that somebody hands to a crawl.
pub struct Handed {
    /// They were typed, like those that a crawl begins with; otherwise they are lines of an import.
    pub are_seeds: bool,
    pub lines: Vec<Import>,
    /// Lines that could not be read.
    pub bad: u64,
}

/// What became of them. As it travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    pub new: u64,
    pub known: u64,
    /// They were pending, and come sooner.
    pub moved_up: u64,
    /// They were had, and are pending again.
    pub due: u64,
    /// Too many of their host or domain.
    pub refused: u64,
    pub bad: u64,
}

/// URLs that travel at once.
pub const PIECE_LINES_MAX: usize = 4_096;
/// More than the longest line of an import, which has a URL of 8,000 bytes, each of them escaped, in three fields.
pub const PIECE_BYTES_MAX: usize = 512 * 1_024;

impl Handed {
    /// Reads the lines of a piece; `None` if it has too many.
    pub fn read(text: &str, are_seeds: bool) -> Option<Handed> {
        let mut handed = Handed { are_seeds, lines: Vec::new(), bad: 0 };
        for (number, line) in text.lines().enumerate() {
            if number == PIECE_LINES_MAX {
                return None;
            }
            match Import::read(line) {
                Ok(None) => {}
                Ok(Some(import)) => handed.lines.push(import),
                Err(_) => handed.bad += 1,
            }
        }
        Some(handed)
    }
}

impl Taken {
    pub fn count(&mut self, imported: Imported) {
        let counter = match imported {
            Imported::New => &mut self.new,
            Imported::Known => &mut self.known,
            Imported::MovedUp => &mut self.moved_up,
            Imported::Due => &mut self.due,
            Imported::Refused => &mut self.refused,
        };
        *counter += 1;
    }

    pub fn add(&mut self, more: &Taken) {
        let Taken { new, known, moved_up, due, refused, bad } = more;
        self.new += new;
        self.known += known;
        self.moved_up += moved_up;
        self.due += due;
        self.refused += refused;
        self.bad += bad;
    }
}
