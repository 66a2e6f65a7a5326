//! One way to tell a user something, from any thread.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A bounded list of notices that every thread of a node writes to and one place reads. Clones share the list.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Untaken>>);

#[derive(Default)]
struct Untaken {
    notices: Vec<Notice>,
    /// Notices that came while the list was full.
    dropped: u64,
}

/// Something a user should know, and no thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub level: Level,
    /// What happened, as one word for programs, such as `link_down`.
    pub event: &'static str,
    pub fields: Vec<(&'static str, String)>,
    /// The line that a user reads.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// Notices kept until they are taken.
const NOTICES_MAX: usize = 256;

impl Notices {
    pub fn tell(
        &self,
        level: Level,
        event: &'static str,
        fields: Vec<(&'static str, String)>,
        text: impl Into<String>,
    ) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match untaken.notices.len() < NOTICES_MAX {
            true => untaken.notices.push(Notice { level, event, fields, text: text.into() }),
            false => untaken.dropped += 1,
        }
    }

    /// Takes all of them, oldest first. If some were dropped, the last one says how many.
    pub fn take(&self) -> Vec<Notice> {
        let Untaken { mut notices, dropped } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if dropped > 0 {
            notices.push(Notice {
                level: Level::Warn,
                event: "notices_dropped",
                fields: vec![("count", dropped.to_string())],
                text: format!("{dropped} notices more came at once, and are not shown"),
            });
        }
        notices
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let notices = Notices::default();
        let same = notices.clone();
        for n in 0..NOTICES_MAX + 3 {
            same.tell(Level::Info, "test", vec![("n", n.to_string())], format!("line {n}"));
        }
        let taken = notices.take();
        assert_eq!(taken.len(), NOTICES_MAX + 1);
        assert_eq!((taken[0].text.as_str(), taken[0].fields[0].1.as_str()), ("line 0", "0"));
        let last = &taken[NOTICES_MAX];
        assert_eq!((last.event, last.fields[0].1.as_str()), ("notices_dropped", "3"));
        assert!(notices.take().is_empty());
    }
}
