use crate::base::shown;
use crate::master::DatabaseError;
use postgres::Error;
use postgres::error::SqlState;
use std::error::Error as _;

const CAUSE_CHARS_MAX: usize = 300;

/// What an error of the driver says about the table. Errors hold what the server wrote, never the password.
pub(super) fn told(error: &Error) -> DatabaseError {
    let Some(server) = error.as_db_error() else {
        // `connection closed` and the like; the cause below says more.
        let cause = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        return DatabaseError::Away(shown(&cause, CAUSE_CHARS_MAX));
    };
    let text = shown(server.message(), CAUSE_CHARS_MAX);
    let of_schema = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::DATATYPE_MISMATCH,
        SqlState::NOT_NULL_VIOLATION,
        SqlState::FOREIGN_KEY_VIOLATION,
        SqlState::CHECK_VIOLATION,
        SqlState::INVALID_COLUMN_REFERENCE,
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
    ];
    if of_schema.contains(server.code()) {
        return DatabaseError::Schema(text);
    }
    if *server.code() == SqlState::INSUFFICIENT_PRIVILEGE {
        return DatabaseError::Schema(format!(
            "{text}; grant SELECT, INSERT, UPDATE and DELETE on partner_domain and partner_handover, and CREATE if they are missing"
        ));
    }
    DatabaseError::Away(text)
}

/// Two writers that waited for each other: one was sent back, and asks again.
pub(super) fn lost_a_race(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
    })
}
