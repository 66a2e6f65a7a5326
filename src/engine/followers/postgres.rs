use super::batch::{Batch, Outgoing};
use super::schema;
use super::target::{SendError, Sent, Target};
use crate::base::shown;
use crate::engine::runtime::database_url::DatabaseUrl;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::types::Type;
use postgres::{Client, Error, NoTls};
use std::error::Error as _;
use std::time::{Duration, UNIX_EPOCH};

/// The table `content` of a database. A batch goes by COPY into a table of this connection, and from there what is not in
/// `content` yet goes over, all in one transaction.
pub(super) struct PostgresTarget {
    url: DatabaseUrl,
    client: Option<Client>,
}

/// What a session is told first. A statement that takes longer is given up, and tried again.
const MANNERS: &str = "SET synchronous_commit = on; SET statement_timeout = '300s'; \
     SET idle_in_transaction_session_timeout = '300s'; SET client_min_messages = 'warning'";

const TYPES: [Type; 8] =
    [Type::INT8, Type::TIMESTAMPTZ, Type::TEXT, Type::INT4, Type::TEXT, Type::TEXT, Type::BYTEA, Type::BYTEA];

impl PostgresTarget {
    pub fn new(url: DatabaseUrl) -> PostgresTarget {
        PostgresTarget { url, client: None }
    }

    fn told(&self, error: &Error) -> SendError {
        let Some(server) = error.as_db_error() else {
            // `connection closed` and the like; the cause below says more.
            let cause =
                error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
            return SendError::new(format!("{cause} ({})", self.url));
        };
        let mend = match server.code() {
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "; grant SELECT and INSERT on content, and CREATE if it is missing"
            }
            code if *code == SqlState::INVALID_PASSWORD => {
                "; see postgres_password_file and NEPHILA_DATABASE_PASSWORD"
            }
            _ => "",
        };
        SendError::new(format!("{} ({}){mend}", server.message(), self.url))
    }

    fn connect(&mut self) -> Result<(), SendError> {
        if self.client.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(());
        }
        let told = |error: &Error| self.told(error);
        let mut client = self.url.config("nephila content").connect(NoTls).map_err(|error| told(&error))?;
        client.batch_execute(MANNERS).map_err(|error| told(&error))?;
        schema::complete(&mut client, told)?;
        self.client = Some(client);
        Ok(())
    }

    /// Copies documents, halving them until the one is found that is refused for its own sake.
    fn copy(
        &mut self,
        documents: &[Outgoing],
        first: usize,
        refused: &mut Vec<(usize, String)>,
    ) -> Result<(), SendError> {
        self.connect()?;
        let Some(client) = &mut self.client else { return Ok(()) };
        let Err(error) = copy_all(client, documents) else { return Ok(()) };
        let told = self.told(&error);
        if !is_of_a_row(&error) {
            self.client = None;
            return Err(told);
        }
        if documents.len() == 1 {
            refused.push((first, told.0));
            return Ok(());
        }
        let (earlier, later) = documents.split_at(documents.len() / 2);
        self.copy(earlier, first, refused)?;
        self.copy(later, first + earlier.len(), refused)
    }
}

/// The other side has said no to what a row holds, and not to us.
fn is_of_a_row(error: &Error) -> bool {
    // Data, constraints, limits of the program; what a trigger raises.
    error.code().is_some_and(|code| {
        ["22", "23", "54"].iter().any(|class| code.code().starts_with(class))
            || *code == SqlState::RAISE_EXCEPTION
    })
}

fn copy_all(client: &mut Client, documents: &[Outgoing]) -> Result<(), Error> {
    let (columns, batch) = (schema::columns(), schema::BATCH);
    let mut transaction = client.transaction()?;
    let writer = transaction.copy_in(&format!("COPY {batch} ({columns}) FROM STDIN BINARY"))?;
    let mut writer = BinaryCopyInWriter::new(writer, &TYPES);
    for outgoing in documents {
        let record = &outgoing.located.record;
        let fetched_at = UNIX_EPOCH + Duration::from_millis(record.fetched_unix_ms.min(TIME_MAX_MS));
        // No text of theirs may hold a NUL.
        let url = record.url.replace('\0', "%00");
        writer.write(&[
            &outgoing.doc_id(),
            &fetched_at,
            &url,
            &i32::from(record.status),
            &record.result.name(),
            &outgoing.content_type(),
            &&outgoing.document.head[..],
            &&outgoing.document.body[..],
        ])?;
    }
    writer.finish()?;
    transaction.execute(
        &format!(
            "INSERT INTO content ({columns}) SELECT {columns} FROM {batch} \
             ON CONFLICT (doc_id, fetched_at) DO NOTHING"
        ),
        &[],
    )?;
    transaction.commit()
}

/// So many documents are not refused for their own sake, one and all: the table is.
const ALL_AT_LEAST: usize = 20;
const PLACE_CHARS_MAX: usize = 400;
/// The year 9999: what an import says of its time may be anything.
const TIME_MAX_MS: u64 = 253_370_764_800_000;

impl Target for PostgresTarget {
    fn name(&self) -> &'static str {
        "postgres"
    }

    /// A schema that the options choose is another place.
    fn place(&self) -> String {
        match self.url.config("").get_options() {
            Some(options) => shown(&format!("{} {options}", self.url), PLACE_CHARS_MAX),
            None => self.url.to_string(),
        }
    }

    fn send(&mut self, batch: &Batch) -> Result<Sent, SendError> {
        let was_open = self.client.is_some();
        let mut refused = Vec::new();
        let mut copied = self.copy(&batch.documents, 0, &mut refused);
        // A connection that was lost while nobody used it says nothing about the other side.
        if copied.is_err() && was_open && self.client.is_none() {
            refused.clear();
            copied = self.copy(&batch.documents, 0, &mut refused);
        }
        copied?;
        let count = batch.documents.len();
        if let Some((_, cause)) = refused.first().filter(|_| refused.len() == count && count >= ALL_AT_LEAST)
        {
            return Err(SendError::new(format!("the table content refuses every document: {cause}")));
        }
        Ok(Sent { refused })
    }
}
