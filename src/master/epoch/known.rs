use super::current_log::{CurrentLog, CurrentRows};
use super::row::CurrentRow;
use std::io;

/// What a current_log knows, by partition.
pub(super) trait Known: Sync {
    type Rows<'a>: KnownRows
    where
        Self: 'a;

    fn rows(&self, partition: u8) -> io::Result<Self::Rows<'_>>;
}

/// Rows in the order of their ids.
pub(super) trait KnownRows {
    /// The next.
    fn peek(&mut self) -> io::Result<Option<CurrentRow>>;
    /// Goes on behind it.
    fn advance(&mut self);
    /// The texts of the next, where they are kept.
    fn text(&self) -> Option<KnownText<'_>>;
}

/// A row as text has it.
#[derive(Clone, Copy)]
pub(super) struct KnownText<'a> {
    pub url: &'a [u8],
    /// Empty if it is to be found out.
    pub domain: &'a [u8],
    pub tag: &'a [u8],
}

impl Known for Option<&CurrentLog> {
    type Rows<'a>
        = LogRows<'a>
    where
        Self: 'a;

    fn rows(&self, partition: u8) -> io::Result<LogRows<'_>> {
        Ok(LogRows { rows: self.map(|log| log.partition(partition)), next: None })
    }
}

pub(super) struct LogRows<'a> {
    rows: Option<CurrentRows<'a>>,
    next: Option<CurrentRow>,
}

impl KnownRows for LogRows<'_> {
    fn peek(&mut self) -> io::Result<Option<CurrentRow>> {
        if self.next.is_none()
            && let Some(rows) = &mut self.rows
        {
            self.next = rows.next()?;
        }
        Ok(self.next)
    }

    fn advance(&mut self) {
        self.next = None;
    }

    fn text(&self) -> Option<KnownText<'_>> {
        None
    }
}
