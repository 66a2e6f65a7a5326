//! One way to tell a user something, from any thread.

use super::events::{Event, Level};
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A bounded list of notices that every thread of a node writes to and one place reads. Clones share the list.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Untaken>>);

/// What was told and not taken yet.
#[derive(Default)]
pub struct Untaken {
    /// Oldest first.
    pub notices: Vec<Notice>,
    /// How many more there were of an event than are kept.
    pub more: Vec<(Event, u64)>,
}

/// Something a user should know, and no thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub event: Event,
    pub fields: Fields,
    /// What a user reads; a line, rarely several.
    pub text: String,
}

/// What a notice says for programs, by the names that its event lists.
pub type Fields = Vec<(&'static str, Value)>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(String),
    Count(u64),
}

/// Notices of one event kept until they are taken: what one event floods drops no other.
const NOTICES_PER_EVENT: usize = 32;

/// Messages of this process by level, since it started: also those that were not shown.
static MESSAGES: [AtomicU64; Level::ALL.len()] = [const { AtomicU64::new(0) }; Level::ALL.len()];

/// Counts messages of an event. To be called where they are told to a user, once for each.
pub fn count_messages(event: Event, count: u64) {
    MESSAGES[event.level() as usize].fetch_add(count, Ordering::Relaxed);
}

/// Messages of this process so far, for metrics.
pub fn messages_told(level: Level) -> u64 {
    MESSAGES[level as usize].load(Ordering::Relaxed)
}

impl Notice {
    pub fn new(event: Event, fields: Fields, text: impl Into<String>) -> Notice {
        let is_listed = |(name, _): &(&str, Value)| event.fields().contains(name);
        debug_assert!(fields.iter().all(is_listed), "{} has a field that is not listed", event.name());
        Notice { event, fields, text: text.into() }
    }
}

impl Notices {
    pub fn tell(&self, event: Event, fields: Fields, text: impl Into<String>) {
        self.put(Notice::new(event, fields, text));
    }

    pub fn put(&self, notice: Notice) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Untaken { notices, more } = &mut *untaken;
        let kept = notices.iter().filter(|kept| kept.event == notice.event).count();
        match more.iter_mut().find(|(event, _)| *event == notice.event) {
            _ if kept < NOTICES_PER_EVENT => notices.push(notice),
            Some((_, count)) => *count += 1,
            None => more.push((notice.event, 1)),
        }
    }

    /// Takes all of them.
    pub fn take(&self) -> Untaken {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Count(count) => count.fmt(f),
        }
    }
}

macro_rules! values {
    ($($Count:ty)+ ; $($Text:ty)+) => {
        $(impl From<$Count> for Value {
            fn from(count: $Count) -> Value {
                Value::Count(count as u64)
            }
        })+
        $(impl From<$Text> for Value {
            fn from(text: $Text) -> Value {
                Value::Text(text.to_string())
            }
        })+
    };
}
values!(u64 u32 usize u128; String &String &str SocketAddr std::path::Display<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_by_event() {
        let notices = Notices::default();
        let same = notices.clone();
        for n in 0..NOTICES_PER_EVENT + 3 {
            same.tell(Event::LinkFails, vec![("peer", n.into())], format!("line {n}"));
        }
        same.tell(Event::Paused, Vec::new(), "paused");
        let taken = notices.take();
        assert_eq!(taken.notices.len(), NOTICES_PER_EVENT + 1, "another event has room still");
        assert_eq!((taken.notices[0].text.as_str(), &taken.notices[0].fields[0].1), ("line 0", &0u64.into()));
        assert_eq!(taken.more, [(Event::LinkFails, 3)]);
        assert!(notices.take().notices.is_empty() && notices.take().more.is_empty());
    }

    #[test]
    fn messages_are_counted_by_level() {
        let before = messages_told(Level::Error);
        count_messages(Event::ThreadFailed, 3);
        assert!(messages_told(Level::Error) >= before + 3);
    }
}
