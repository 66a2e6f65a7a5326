use crate::proto::lines::NodeWord;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// What pages and robots.txt tell a master about parameters that change nothing: lines on their way from the shards. It is
/// bounded, and nobody waits: what finds no room is counted.
#[derive(Clone)]
pub struct Reports {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// The other end.
pub struct Reported {
    lines: Receiver<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

const LINES_MAX: usize = 4_096;

pub fn reports() -> (Reports, Reported) {
    let (sender, lines) = sync_channel(LINES_MAX);
    let dropped = Arc::<AtomicU64>::default();
    (Reports { lines: sender, dropped: dropped.clone() }, Reported { lines, dropped })
}

impl Reports {
    /// A page was fetched. One without a query tells nothing.
    pub fn page(&self, status: u16, digest: u64, canonical: Option<&str>, url: &str) {
        if status != 0 && memchr::memchr(b'?', url.as_bytes()).is_some() {
            self.put(NodeWord::Page { status, digest, canonical, url });
        }
    }

    /// A robots.txt has a Clean-param line.
    pub fn clean(&self, origin: &str, rule: &str) {
        self.put(NodeWord::Clean { origin, rule });
    }

    fn put(&self, word: NodeWord<'_>) {
        let mut line = Vec::new();
        if word.write(&mut line).is_err() || self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Reported {
    /// The lines that have come, so many at most.
    pub fn take(&self, count_max: usize) -> (u64, Vec<u8>) {
        let (mut count, mut bytes) = (0, Vec::new());
        for line in self.lines.try_iter().take(count_max) {
            bytes.extend_from_slice(&line);
            count += 1;
        }
        (count, bytes)
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_with_a_query_are_told_of_and_what_finds_no_room_is_counted() {
        let (reports, reported) = reports();
        reports.page(200, 7, None, "http://a.ru/x");
        reports.page(0, 7, None, "http://a.ru/x?y=1");
        reports.page(200, 0xab, Some("http://a.ru/x"), "http://a.ru/x?y=1");
        reports.clean("http://a.ru", "ref&sid /x");
        let told =
            "PAGE 200 00000000000000ab http://a.ru/x http://a.ru/x?y=1\nCLEAN http://a.ru ref&sid /x\n";
        assert_eq!(reported.take(9), (2, told.as_bytes().to_vec()));
        (0..LINES_MAX + 5).for_each(|_| reports.clean("http://a.ru", "sid"));
        assert_eq!((reported.dropped(), reported.take(usize::MAX).0), (5, LINES_MAX as u64));
    }
}
