//! fjall: URLs in one keyspace; those that wait in another, keyed by host and the order in which they came. A candidate is
//! one that is no longer there.

use crate::peer::{DONE, Failure, Fetched, Found, PENDING, PER_HOST, Peer};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;

pub struct FjallPeer {
    database: Database,
    documents: Keyspace,
    waiting: Keyspace,
    waiting_count: u64,
    /// Hosts up to this one have had their turn.
    host: u64,
    value: Vec<u8>,
}

/// State, depth, via; behind them, once fetched, time, result and ETag.
const PENDING_BYTES: usize = 1 + 2 + 8;

impl FjallPeer {
    pub fn open(dir: &Path, cache_bytes: u64) -> Result<FjallPeer, Failure> {
        let database = Database::builder(dir).cache_size(cache_bytes).open()?;
        // Writes stay in the process until `persist` hands them to the kernel.
        let options = || KeyspaceCreateOptions::default().manual_journal_persist(true);
        let documents = database.keyspace("documents", options)?;
        let waiting = database.keyspace("waiting", options)?;
        Ok(FjallPeer { database, documents, waiting, waiting_count: 0, host: 0, value: Vec::new() })
    }
}

impl Peer for FjallPeer {
    fn discover(&mut self, found: &Found<'_>) -> Result<bool, Failure> {
        if self.documents.contains_key(found.url)? {
            return Ok(false);
        }
        self.value.clear();
        self.value.push(PENDING);
        self.value.extend_from_slice(&found.depth.to_le_bytes());
        self.value.extend_from_slice(&found.via.to_le_bytes());
        self.documents.insert(found.url, self.value.as_slice())?;
        self.waiting.insert(place(found.host, self.waiting_count), found.url)?;
        self.waiting_count += 1;
        Ok(true)
    }

    fn candidates(&mut self, want: usize, into: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        let wanted = into.len() + want;
        let mut from_the_start = false;
        while into.len() < wanted {
            let before = into.len();
            let take = PER_HOST.min(wanted - before);
            for guard in self.waiting.range(place(self.host, 0)..).take(take) {
                let (key, url) = guard.into_inner()?;
                self.host = u64::from_be_bytes(key[..8].try_into()?) + 1;
                into.push(url.to_vec());
                self.waiting.remove(key)?;
            }
            if into.len() == before {
                if from_the_start {
                    break;
                }
                (self.host, from_the_start) = (0, true);
            }
        }
        Ok(())
    }

    fn record(&mut self, url: &[u8], fetched: &Fetched) -> Result<(), Failure> {
        let old = self.documents.get(url)?.ok_or("a candidate is not there")?;
        self.value.clear();
        self.value.extend_from_slice(&old[..PENDING_BYTES]);
        self.value[0] = DONE;
        self.value.extend_from_slice(&fetched.at_us.to_le_bytes());
        self.value.push(fetched.result);
        self.value.extend_from_slice(&fetched.etag);
        self.documents.insert(url, self.value.as_slice())?;
        Ok(())
    }

    fn persist(&mut self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::Buffer)?)
    }
}

fn place(host: u64, count: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&host.to_be_bytes());
    key[8..].copy_from_slice(&count.to_be_bytes());
    key
}
