//! The shape of the table: looked at with every connection, and made when it is missing.

use super::target::SendError;
use postgres::{Client, Error};

/// A column: its name, the types that it may have, and how it is made.
struct Column {
    name: &'static str,
    types: &'static [&'static str],
    made: &'static str,
}

const TEXT: &[&str] = &["text", "character varying"];

const CONTENT: [Column; 8] = [
    Column { name: "doc_id", types: &["bigint"], made: "bigint" },
    Column { name: "fetched_at", types: &["timestamp with time zone"], made: "timestamptz" },
    Column { name: "url", types: TEXT, made: "text" },
    Column { name: "status", types: &["integer"], made: "integer" },
    Column { name: "result", types: TEXT, made: "text" },
    Column { name: "content_type", types: TEXT, made: "text" },
    Column { name: "head", types: &["bytea"], made: "bytea" },
    Column { name: "body", types: &["bytea"], made: "bytea" },
];

/// Where a batch is before it is in the table; of this connection alone.
pub(super) const BATCH: &str = "pg_temp.nephila_batch";

/// The names of its columns, with commas between.
pub(super) fn columns() -> String {
    CONTENT.each_ref().map(|column| column.name).join(", ")
}

fn made() -> String {
    CONTENT.each_ref().map(|column| format!("{} {} NOT NULL", column.name, column.made)).join(", ")
}

/// Makes what is missing; another shape is an error that names the column.
pub(super) fn complete(client: &mut Client, cause: impl Fn(&Error) -> SendError) -> Result<(), SendError> {
    let told = |error| cause(&error);
    if shape(client, &cause)?.is_none() {
        let table =
            format!("CREATE TABLE IF NOT EXISTS content ({}, PRIMARY KEY (doc_id, fetched_at))", made());
        client.batch_execute(&table).map_err(told)?;
        // Half of the bytes; a server that was built without it packs them as it can.
        let _ = client.batch_execute("ALTER TABLE content ALTER COLUMN body SET COMPRESSION lz4");
    }
    if let Some(wrong) = shape(client, &cause)?.flatten() {
        return Err(SendError::new(format!("the table content has another shape: {wrong}")));
    }
    let batch = format!("CREATE TEMP TABLE nephila_batch ({}) ON COMMIT DELETE ROWS", made());
    client.batch_execute(&batch).map_err(told)
}

/// `None` without a table; what is wrong with it, if anything is.
fn shape(
    client: &mut Client,
    cause: impl Fn(&Error) -> SendError,
) -> Result<Option<Option<String>>, SendError> {
    let query = "SELECT attname::text, format_type(atttypid, NULL), \
            attnotnull AND NOT atthasdef AND attidentity = '' FROM pg_attribute \
            WHERE attrelid = to_regclass('content') AND attnum > 0 AND NOT attisdropped";
    let rows = client.query(query, &[]).map_err(|error| cause(&error))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let there: Vec<(String, String, bool)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    if let Some(wrong) = wrong_column(&there) {
        return Ok(Some(Some(wrong)));
    }
    let query = "SELECT c.relkind IN ('r', 'p'), EXISTS (SELECT FROM pg_index i \
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 2 \
            AND i.indpred IS NULL AND i.indexprs IS NULL AND (SELECT count(*) FROM pg_attribute a \
                WHERE a.attrelid = c.oid AND a.attnum IN (i.indkey[0], i.indkey[1]) \
                AND a.attname IN ('doc_id', 'fetched_at')) = 2) \
            FROM pg_class c WHERE c.oid = to_regclass('content')";
    let row = client.query_one(query, &[]).map_err(|error| cause(&error))?;
    let wrong = match (row.get(0), row.get(1)) {
        (false, _) => Some("it is no table".to_string()),
        (true, false) => Some(
            "doc_id and fetched_at are not its key: ALTER TABLE content ADD PRIMARY KEY (doc_id, fetched_at)"
                .to_string(),
        ),
        (true, true) => None,
    };
    Ok(Some(wrong))
}

/// Every column of ours is there, and every other may be left out of an INSERT.
fn wrong_column(there: &[(String, String, bool)]) -> Option<String> {
    for ours in &CONTENT {
        match there.iter().find(|(name, ..)| name == ours.name) {
            None => return Some(format!("it has no column {} ({})", ours.name, ours.made)),
            Some((name, kind, _)) if !ours.types.contains(&kind.as_str()) => {
                return Some(format!("its column {name} is {kind}, and must be {}", ours.made));
            }
            Some(_) => {}
        }
    }
    let is_ours = |name: &str| CONTENT.iter().any(|ours| ours.name == name);
    let stranger = there.iter().find(|(name, _, must_be_given)| *must_be_given && !is_ours(name));
    stranger
        .map(|(name, ..)| format!("its column {name} must be given, and is none of ours (give it a default)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_column_is_named() {
        let ours = || -> Vec<(String, String, bool)> {
            CONTENT
                .iter()
                .map(|column| (column.name.to_string(), column.types[0].to_string(), true))
                .collect()
        };
        assert_eq!(wrong_column(&ours()), None);
        let mut missing = ours();
        missing.remove(6);
        assert_eq!(wrong_column(&missing).unwrap(), "it has no column head (bytea)");
        let mut other = ours();
        other[7].1 = "text".to_string();
        assert_eq!(wrong_column(&other).unwrap(), "its column body is text, and must be bytea");
        let mut more = ours();
        more.push(("note".to_string(), "text".to_string(), false));
        assert_eq!(wrong_column(&more), None);
        more[8].2 = true;
        assert!(wrong_column(&more).unwrap().contains("column note must be given"));
    }
}
