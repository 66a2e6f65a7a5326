//! SQLite: one table, and an index of what is pending by host.

use crate::peer::{DONE, Failure, Fetched, Found, OPEN, PER_HOST, Peer};
use rusqlite::{Connection, params};
use std::path::Path;

pub struct SqlitePeer {
    connection: Connection,
    /// Hosts up to this one have had their turn.
    host: i64,
}

const SET_UP: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE documents (
        url TEXT PRIMARY KEY, host INTEGER NOT NULL, state INTEGER NOT NULL, depth INTEGER NOT NULL,
        via INTEGER NOT NULL, fetched_at INTEGER, result INTEGER, etag BLOB
    ) WITHOUT ROWID;
    CREATE INDEX pending ON documents (host) WHERE state = 0;
    BEGIN;";

impl SqlitePeer {
    pub fn open(dir: &Path, cache_bytes: u64) -> Result<SqlitePeer, Failure> {
        let connection = Connection::open(dir.join("documents.sqlite"))?;
        connection.pragma_update(None, "cache_size", -((cache_bytes >> 10) as i64))?;
        connection.execute_batch(SET_UP)?;
        Ok(SqlitePeer { connection, host: -1 })
    }
}

impl Peer for SqlitePeer {
    fn discover(&mut self, found: &Found<'_>) -> Result<bool, Failure> {
        let mut insert = self.connection.prepare_cached(
            "INSERT OR IGNORE INTO documents (url, host, state, depth, via) VALUES (?1, ?2, 0, ?3, ?4)",
        )?;
        let url = std::str::from_utf8(found.url)?;
        Ok(insert.execute(params![url, found.host as i64, found.depth, found.via as i64])? == 1)
    }

    fn candidates(&mut self, want: usize, into: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        let wanted = into.len() + want;
        let mut from_the_start = false;
        let mut select = self.connection.prepare_cached(
            "SELECT host, url FROM documents WHERE state = 0 AND host > ?1 ORDER BY host LIMIT ?2",
        )?;
        let mut take = self.connection.prepare_cached("UPDATE documents SET state = ?2 WHERE url = ?1")?;
        while into.len() < wanted {
            let before = into.len();
            let mut rows = select.query(params![self.host, PER_HOST.min(wanted - before) as i64])?;
            while let Some(row) = rows.next()? {
                self.host = row.get(0)?;
                into.push(row.get::<_, String>(1)?.into_bytes());
            }
            drop(rows);
            for url in &into[before..] {
                take.execute(params![std::str::from_utf8(url)?, OPEN])?;
            }
            if into.len() == before {
                if from_the_start {
                    break;
                }
                (self.host, from_the_start) = (-1, true);
            }
        }
        Ok(())
    }

    fn record(&mut self, url: &[u8], fetched: &Fetched) -> Result<(), Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE documents SET state = ?2, fetched_at = ?3, result = ?4, etag = ?5 WHERE url = ?1",
        )?;
        let url = std::str::from_utf8(url)?;
        let Fetched { at_us, result, etag } = fetched;
        match update.execute(params![url, DONE, *at_us as i64, result, etag.as_slice()])? {
            1 => Ok(()),
            _ => Err("a candidate is not there".into()),
        }
    }

    fn persist(&mut self) -> Result<(), Failure> {
        Ok(self.connection.execute_batch("COMMIT; BEGIN;")?)
    }
}

impl Drop for SqlitePeer {
    fn drop(&mut self) {
        let _ = self.connection.execute_batch("COMMIT;");
    }
}
