use super::guard::Guard;
use super::metrics::Beside;
use super::routes::ROUTES;
use crate::engine::{Ask, Desk, Reply};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// What requests are answered from: the desk of the process, and what the listener knows of itself.
pub struct Office {
    pub desk: Arc<Desk>,
    pub guard: Guard,
    pub data: Option<PathBuf>,
    pub traffic: Traffic,
    /// What others keep for the figures of the process.
    pub beside: BesideSource,
}

/// Asked at every scrape.
pub type BesideSource = Box<dyn Fn() -> Beside + Send + Sync>;

/// Requests by handler and class of answer, and connections that are open.
#[derive(Default)]
pub struct Traffic {
    /// The last row is of requests that no route was found for, or that were refused.
    requests: [[AtomicU64; CLASSES.len()]; ROUTES.len() + 1],
    pub connections: AtomicU64,
}

pub const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];
const OTHER: &str = "other";

impl Traffic {
    pub fn count(&self, handler: Option<&str>, status: u16) {
        let row = handler.and_then(|name| ROUTES.iter().position(|route| route.name == name));
        let class = match status {
            0..400 => 0,
            400..500 => 1,
            _ => 2,
        };
        self.requests[row.unwrap_or(ROUTES.len())][class].fetch_add(1, Ordering::Relaxed);
    }

    /// Handler, class and number of requests.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let names = ROUTES.iter().map(|route| route.name).chain([OTHER]);
        names.zip(&self.requests).flat_map(|(name, row)| {
            CLASSES.iter().zip(row).map(move |(class, count)| (name, *class, count.load(Ordering::Relaxed)))
        })
    }
}

impl Office {
    /// Asks the scheduler, and waits no longer than this; `None` if there was no answer.
    pub async fn ask(&self, ask: Ask, patience: Duration) -> Option<Reply> {
        let (answer, answered) = oneshot::channel();
        self.desk.ask(ask, move |reply| drop(answer.send(reply)));
        tokio::time::timeout(patience, answered).await.ok()?.ok()
    }
}
