use super::errors::{lost_a_race, told};
use super::schema;
use crate::engine::runtime::database_url::DatabaseUrl;
use crate::master::{By, DatabaseError, MapRow, ServerId};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client, Error, NoTls, Row};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is asked of the table.
#[derive(Debug, PartialEq)]
pub(super) enum Ask {
    Changes,
    Settle(Vec<MapRow>),
    Change { row: MapRow, fence: u32 },
    KeepHandover { domain: Box<str>, fence: u32, lines: Vec<u8> },
    Handover { domain: Box<str>, fence: u32 },
}

/// What it answers.
#[derive(Debug)]
pub(super) enum Said {
    Rows { rows: Vec<MapRow>, strangers: Vec<Stranger> },
    Changed(bool),
    Kept,
    Handover(Option<Vec<u8>>),
}

/// A row that names what cannot be a server. Its domain is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    pub domain: Box<str>,
    pub server: i64,
}

const BACK_OFF_MIN: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(15);

/// What a session is told first. A statement that takes longer than a minute is given up, and asked again.
const MANNERS: &str = "SET synchronous_commit = on; SET statement_timeout = '60s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning'";

/// A row with the number of the transaction that wrote it. A time without end is the first.
const COLUMNS: &str = "d.domain::text, d.server::int8, d.moving_to::int8, d.page_id, \
     CASE WHEN isfinite(d.since) THEN extract(epoch FROM d.since)::int8 ELSE 0 END, d.\"by\"::text, d.fence::int8, d.changed";

/// A connection that is made when it is needed, and again when it is lost.
pub(super) struct Session {
    url: DatabaseUrl,
    client: Option<Client>,
    /// No attempt before then, and why the last one failed.
    resting: Option<(Instant, DatabaseError)>,
    back_off: Duration,
    /// Rows of this transaction and later ones have not all been told.
    from: i64,
    /// Rows that were told although they are not below `from`, and by which transaction they were written.
    ahead: HashMap<Box<str>, i64>,
}

impl Session {
    pub fn new(url: DatabaseUrl) -> Session {
        let ahead = HashMap::new();
        Session { url, client: None, resting: None, back_off: BACK_OFF_MIN, from: 0, ahead }
    }

    pub fn answer(&mut self, ask: &Ask) -> Result<Said, DatabaseError> {
        let was_open = self.client.is_some();
        let first = self.attempt(ask);
        // A connection that the server closed while nobody asked is no reason to be away.
        let again = match &first {
            Err(Failed::Asking(error)) => lost_a_race(error) || (was_open && self.client.is_none()),
            _ => false,
        };
        let answer = if again { self.attempt(ask) } else { first };
        answer.map_err(|failed| match failed {
            Failed::Connecting(error) => error,
            Failed::Asking(error) => told(&error),
        })
    }

    fn attempt(&mut self, ask: &Ask) -> Result<Said, Failed> {
        self.connect().map_err(Failed::Connecting)?;
        let asked = self.ask(ask);
        if let Err(error) = &asked {
            let is_lost = self.client.as_ref().is_none_or(Client::is_closed);
            // Another shape may have come: it is looked at again with the next connection.
            if is_lost || matches!(told(error), DatabaseError::Schema(_)) {
                self.client = None;
            }
        }
        asked.map_err(Failed::Asking)
    }

    fn connect(&mut self) -> Result<(), DatabaseError> {
        if self.client.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(());
        }
        self.client = None;
        if let Some((until, why)) = &self.resting
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        match self.opened() {
            Ok(client) => {
                self.client = Some(client);
                self.resting = None;
                self.back_off = BACK_OFF_MIN;
                // It may be another database than before, restored from an earlier day.
                self.from = 0;
                self.ahead.clear();
                Ok(())
            }
            Err(error) => {
                self.resting = Some((Instant::now() + self.back_off, error.clone()));
                self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
                Err(error)
            }
        }
    }

    fn opened(&self) -> Result<Client, DatabaseError> {
        let mut client = self.url.config("nephila master").connect(NoTls).map_err(|error| told(&error))?;
        client.batch_execute(MANNERS).map_err(|error| told(&error))?;
        schema::complete(&mut client)?;
        Ok(client)
    }

    fn ask(&mut self, ask: &Ask) -> Result<Said, Error> {
        let Some(client) = &mut self.client else { unreachable!("asked without a connection") };
        match ask {
            Ask::Changes => self.changes(),
            Ask::Settle(proposals) => settle(client, proposals),
            Ask::Change { row, fence } => change(client, row, *fence).map(Said::Changed),
            Ask::KeepHandover { domain, fence, lines } => {
                keep_handover(client, domain, *fence, lines).map(|()| Said::Kept)
            }
            Ask::Handover { domain, fence } => handover(client, domain, *fence).map(Said::Handover),
        }
    }

    /// Rows of transactions from `from` on that were not told yet. What the same snapshot calls its oldest open transaction
    /// is where the next reading begins: everything below is either in this one or will never be.
    fn changes(&mut self) -> Result<Said, Error> {
        let Some(client) = &mut self.client else { unreachable!("asked without a connection") };
        let query = format!(
            "SELECT {COLUMNS}, now.oldest FROM (SELECT txid_snapshot_xmin(txid_current_snapshot()) AS oldest) now \
             LEFT JOIN partner_domain d ON d.changed >= $1"
        );
        let (mut read, mut next_from, mut ahead) = (Reading::default(), self.from, HashMap::new());
        {
            let mut rows = client.query_typed_raw(&query, [(&self.from, Type::INT8)])?;
            while let Some(row) = rows.next()? {
                next_from = row.get(8);
                let (Some(domain), Some(changed)) =
                    (row.get::<_, Option<&str>>(0), row.get::<_, Option<i64>>(7))
                else {
                    continue;
                };
                if changed >= next_from {
                    ahead.insert(domain.into(), changed);
                }
                if self.ahead.get(domain) != Some(&changed) {
                    read.take(&row);
                }
            }
        }
        // Only a whole reading counts.
        (self.from, self.ahead) = (next_from, ahead);
        Ok(read.said())
    }
}

enum Failed {
    Connecting(DatabaseError),
    Asking(Error),
}

#[derive(Default)]
struct Reading {
    rows: Vec<MapRow>,
    strangers: Vec<Stranger>,
}

impl Reading {
    fn take(&mut self, row: &Row) {
        let domain: Box<str> = row.get::<_, &str>(0).into();
        let server: i64 = row.get::<_, Option<i64>>(1).unwrap_or(-1);
        let moving_to: Option<i64> = row.get(2);
        for named in [Some(server), moving_to].into_iter().flatten() {
            if named_server(named) == ServerId::STRANGER {
                self.strangers.push(Stranger { domain: domain.clone(), server: named });
            }
        }
        self.rows.push(MapRow {
            domain,
            server: named_server(server),
            moving_to: moving_to.map(named_server),
            page: row.get::<_, Option<i64>>(3).unwrap_or(0).try_into().unwrap_or(0),
            since_s: clamped(row.get(4)),
            by: match row.get(5) {
                Some("rule") => By::Rule,
                Some("person") => By::Person,
                _ => By::Import,
            },
            fence: clamped(row.get(6)),
        });
    }

    fn said(self) -> Said {
        Said::Rows { rows: self.rows, strangers: self.strangers }
    }
}

fn named_server(number: i64) -> ServerId {
    let server = u16::try_from(number).map(ServerId).unwrap_or(ServerId::STRANGER);
    server.min(ServerId::STRANGER)
}

fn clamped(number: Option<i64>) -> u32 {
    u32::try_from(number.unwrap_or(0).max(0)).unwrap_or(u32::MAX)
}

fn by_name(by: By) -> &'static str {
    match by {
        By::Rule => "rule",
        By::Person => "person",
        By::Import => "import",
    }
}

/// All proposals in one statement. They are written in one order by everybody, so that two masters that propose the same
/// domains wait for each other and not in a circle.
fn settle(client: &mut Client, proposals: &[MapRow]) -> Result<Said, Error> {
    fn column<T>(proposals: &[MapRow], of: impl FnMut(&MapRow) -> T) -> Vec<T> {
        proposals.iter().map(of).collect()
    }
    let domains: Vec<&str> = proposals.iter().map(|row| &*row.domain).collect();
    let servers = column(proposals, |row| i32::from(row.server.0));
    let pages = column(proposals, |row| i64::try_from(row.page).unwrap_or(i64::MAX));
    let since = column(proposals, |row| i64::from(row.since_s));
    let by = column(proposals, |row| by_name(row.by));
    let params: [(&(dyn ToSql + Sync), Type); 5] = [
        (&domains, Type::TEXT_ARRAY),
        (&servers, Type::INT4_ARRAY),
        (&pages, Type::INT8_ARRAY),
        (&since, Type::INT8_ARRAY),
        (&by, Type::TEXT_ARRAY),
    ];
    client.query_typed(
        "INSERT INTO partner_domain (domain, server, page_id, since, \"by\") \
         SELECT domain, server, page, to_timestamp(since), said FROM \
         unnest($1, $2, $3, $4, $5) WITH ORDINALITY AS proposed(domain, server, page, since, said, place) \
         ORDER BY domain, place ON CONFLICT (domain) DO NOTHING",
        &params,
    )?;
    let query = format!(
        "SELECT {COLUMNS} FROM unnest($1) WITH ORDINALITY AS proposed(domain, place) \
         JOIN partner_domain d ON d.domain = proposed.domain ORDER BY place"
    );
    let mut read = Reading::default();
    for row in client.query_typed(&query, &[(&domains, Type::TEXT_ARRAY)])? {
        read.take(&row);
    }
    Ok(read.said())
}

fn change(client: &mut Client, row: &MapRow, fence: u32) -> Result<bool, Error> {
    let (server, moving_to) = (i64::from(row.server.0), row.moving_to.map(|server| i64::from(server.0)));
    let (before, after) = (i64::from(fence), i64::from(row.fence));
    let since = i64::from(row.since_s);
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&&*row.domain, Type::TEXT),
        (&before, Type::INT8),
        (&server, Type::INT8),
        (&moving_to, Type::INT8),
        (&after, Type::INT8),
        (&by_name(row.by), Type::TEXT),
        (&since, Type::INT8),
    ];
    let rows = client.query_typed(
        "UPDATE partner_domain SET server = $3, moving_to = $4, fence = $5, \"by\" = $6, since = to_timestamp($7) \
         WHERE domain = $1 AND fence = $2 RETURNING true",
        &params,
    )?;
    Ok(!rows.is_empty())
}

fn keep_handover(client: &mut Client, domain: &str, fence: u32, lines: &[u8]) -> Result<(), Error> {
    let fence = i32::try_from(fence).unwrap_or(i32::MAX);
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&domain, Type::TEXT), (&fence, Type::INT4), (&lines, Type::BYTEA)];
    client.query_typed(
        "WITH former AS (DELETE FROM partner_handover WHERE domain = $1 AND fence < $2) \
         INSERT INTO partner_handover (domain, fence, lines) VALUES ($1, $2, $3) ON CONFLICT (domain, fence) DO NOTHING",
        &params,
    )?;
    Ok(())
}

fn handover(client: &mut Client, domain: &str, fence: u32) -> Result<Option<Vec<u8>>, Error> {
    let fence = i32::try_from(fence).unwrap_or(i32::MAX);
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&domain, Type::TEXT), (&fence, Type::INT4)];
    let query = "SELECT lines FROM partner_handover WHERE domain = $1 AND fence = $2";
    Ok(client.query_typed(query, &params)?.first().map(|row| row.get(0)))
}
