use super::ResultCode;
use std::fmt;

/// What a status means for the URL that it answers, and for its host. Every number has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusAction {
    /// What came is the document.
    Document,
    /// Another URL is to be used in place of this one.
    Follow,
    /// What is stored is still true.
    Unchanged,
    /// Another time may be better.
    Retry,
    /// There is nothing here for us, and there will not be.
    Drop,
    /// We ask too often: the host is given longer pauses, and the URL another time.
    BackOff,
}

impl StatusAction {
    /// The result of a fetch whose response is whole.
    pub fn result(self) -> ResultCode {
        match self {
            StatusAction::Document => ResultCode::Ok,
            StatusAction::Unchanged => ResultCode::NotModified,
            StatusAction::Follow => ResultCode::Redirect,
            StatusAction::Retry | StatusAction::Drop | StatusAction::BackOff => ResultCode::HttpError,
        }
    }

    pub fn of(status: u16) -> StatusAction {
        match status {
            200..=299 => StatusAction::Document,
            301 | 302 | 303 | 307 | 308 => StatusAction::Follow,
            304 => StatusAction::Unchanged,
            429 | 503 => StatusAction::BackOff,
            // Request Timeout, Misdirected Request, Locked, Too Early; the server's own trouble.
            408 | 421 | 423 | 425 | 500 | 502 | 504 | 507 | 509 => StatusAction::Retry,
            _ => StatusAction::Drop,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            StatusAction::Document => "document",
            StatusAction::Follow => "follow",
            StatusAction::Unchanged => "unchanged",
            StatusAction::Retry => "retry",
            StatusAction::Drop => "drop",
            StatusAction::BackOff => "back_off",
        }
    }
}

impl fmt::Display for StatusAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
