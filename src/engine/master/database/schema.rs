//! The shape of the tables: looked at with every connection, made when missing, completed where that changes nothing for
//! who wrote the rows that are there.

use super::errors::told;
use crate::base::shown;
use crate::master::DatabaseError;
use postgres::{Client, GenericClient};

/// A column: its name, the types that it may have, and how it is made.
struct Column {
    name: &'static str,
    types: &'static [&'static str],
    made: &'static str,
}

const WHOLE: &[&str] = &["integer", "smallint", "bigint"];
const TEXT: &[&str] = &["text", "character varying"];

const PARTNER_DOMAIN: [Column; 8] = [
    Column { name: "domain", types: TEXT, made: "text PRIMARY KEY" },
    Column { name: "server", types: WHOLE, made: "integer NOT NULL" },
    Column { name: "page_id", types: &["bigint"], made: "bigint NOT NULL DEFAULT 0" },
    Column {
        name: "since",
        types: &["timestamp with time zone", "timestamp without time zone"],
        made: "timestamptz NOT NULL DEFAULT now()",
    },
    Column { name: "by", types: TEXT, made: "text NOT NULL DEFAULT 'import'" },
    Column { name: "fence", types: &["integer", "bigint"], made: "integer NOT NULL DEFAULT 0" },
    Column { name: "moving_to", types: WHOLE, made: "integer" },
    Column { name: "changed", types: &["bigint"], made: "bigint NOT NULL DEFAULT txid_current()" },
];

/// Columns that a table must have to be completed: without them it is something else.
const LEAST: [&str; 2] = ["domain", "server"];

const PARTNER_HANDOVER: &str = "CREATE TABLE IF NOT EXISTS partner_handover (domain text NOT NULL, \
     fence integer NOT NULL, lines bytea NOT NULL, PRIMARY KEY (domain, fence))";

/// A server that is written by hand raises the fence, so that every master notices that no handover came before it.
const CHANGED: &str = r"
    CREATE INDEX IF NOT EXISTS partner_domain_changed ON partner_domain (changed);
    CREATE OR REPLACE FUNCTION partner_domain_changed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            NEW.changed := txid_current();
            IF TG_OP = 'UPDATE' THEN
                IF NEW.server <> OLD.server AND NEW.fence = OLD.fence THEN NEW.fence := OLD.fence + 1; END IF;
            END IF;
            RETURN NEW;
        END $$;
    DROP TRIGGER IF EXISTS partner_domain_changed ON partner_domain;
    CREATE TRIGGER partner_domain_changed BEFORE INSERT OR UPDATE ON partner_domain
        FOR EACH ROW EXECUTE PROCEDURE partner_domain_changed();";

/// Both masters may find the tables missing at once; one makes them.
const MAKING_LOCK: i64 = 0x6e65_7068_696c_6101;

/// Looks at the tables, and makes what is missing.
pub(super) fn complete(client: &mut Client) -> Result<(), DatabaseError> {
    if is_whole(client)? {
        return Ok(());
    }
    let mut transaction = client.transaction().map_err(|error| told(&error))?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING_LOCK]).map_err(|error| told(&error))?;
    if !is_whole(&mut transaction)? {
        let there = columns(&mut transaction)?;
        let statement = match there.is_empty() {
            true => created(),
            false => completed(&there),
        };
        for statement in [statement.as_str(), PARTNER_HANDOVER, CHANGED] {
            transaction.batch_execute(statement).map_err(|error| told(&error))?;
        }
    }
    transaction.commit().map_err(|error| told(&error))
}

struct There {
    name: String,
    kind: String,
    /// An INSERT that does not name it fails.
    must_be_given: bool,
}

fn columns(client: &mut impl GenericClient) -> Result<Vec<There>, DatabaseError> {
    let query = "SELECT attname::text, format_type(atttypid, NULL), \
            attnotnull AND NOT atthasdef AND attidentity = '' FROM pg_attribute \
            WHERE attrelid = to_regclass('partner_domain') AND attnum > 0 AND NOT attisdropped";
    let rows = client.query(query, &[]).map_err(|error| told(&error))?;
    let there = |row: &postgres::Row| There { name: row.get(0), kind: row.get(1), must_be_given: row.get(2) };
    Ok(rows.iter().map(there).collect())
}

/// Whether there is nothing left to make; another shape is an error that names the column.
fn is_whole(client: &mut impl GenericClient) -> Result<bool, DatabaseError> {
    let there = columns(client)?;
    if there.is_empty() {
        return Ok(false);
    }
    check(&there)?;
    let query = "SELECT relkind IN ('r', 'p'), \
            EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
                WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 \
                AND i.indpred IS NULL AND i.indexprs IS NULL AND a.attname = 'domain'), \
            EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgname = 'partner_domain_changed'), \
            to_regclass('partner_handover') IS NOT NULL \
            FROM pg_class c WHERE oid = to_regclass('partner_domain')";
    let row = client.query_one(query, &[]).map_err(|error| told(&error))?;
    let (is_table, is_unique, has_trigger, has_handover): (bool, bool, bool, bool) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    if !is_table {
        return Err(DatabaseError::Schema("it is no table".to_string()));
    }
    if !is_unique {
        return Err(DatabaseError::Schema(
            "its column domain is not unique, so that a domain could be with two servers: ALTER TABLE partner_domain ADD PRIMARY KEY (domain)"
                .to_string(),
        ));
    }
    let is_complete = PARTNER_DOMAIN.iter().all(|column| there.iter().any(|there| there.name == column.name));
    Ok(is_complete && has_trigger && has_handover)
}

/// Every column that is there is one of ours, or may be left out of an INSERT.
fn check(there: &[There]) -> Result<(), DatabaseError> {
    let wrong = |text: String| Err(DatabaseError::Schema(shown(&text, 300)));
    for least in LEAST {
        if !there.iter().any(|column| column.name == least) {
            return wrong(format!("it has no column {least}"));
        }
    }
    for column in there {
        match PARTNER_DOMAIN.iter().find(|ours| ours.name == column.name) {
            Some(ours) if !ours.types.contains(&column.kind.as_str()) => {
                return wrong(format!(
                    "its column {} is of type {}, not {}",
                    column.name,
                    column.kind,
                    ours.types.join(" or ")
                ));
            }
            None if column.must_be_given => {
                return wrong(format!(
                    "its column {} must be given with every row, and is none of ours: give it a default",
                    column.name
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn created() -> String {
    let columns: Vec<String> =
        PARTNER_DOMAIN.iter().map(|column| format!("\"{}\" {}", column.name, column.made)).collect();
    format!("CREATE TABLE partner_domain ({})", columns.join(", "))
}

fn completed(there: &[There]) -> String {
    let missing = PARTNER_DOMAIN.iter().filter(|ours| !there.iter().any(|there| there.name == ours.name));
    missing
        .map(|column| format!("ALTER TABLE partner_domain ADD COLUMN \"{}\" {};", column.name, column.made))
        .collect()
}
