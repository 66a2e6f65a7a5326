use crate::base::shown;
use serde::Serialize;

/// Why a request is refused, in the shape of RFC 9457.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A page that exists: `nephila help protocols` has a line for each.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: &'static str,
    pub status: u16,
    /// One sentence, with the mend.
    pub detail: String,
}

/// What a detail shows of what somebody sent.
const DETAIL_CHARS_MAX: usize = 600;

impl Problem {
    pub fn new(status: u16, slug: &str, title: &'static str, detail: &str) -> Problem {
        let (kind, detail) = (format!("/problems/{slug}"), shown(detail, DETAIL_CHARS_MAX));
        Problem { kind, title, status, detail }
    }
}
