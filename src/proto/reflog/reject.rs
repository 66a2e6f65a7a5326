use super::record::{DIGITS_MAX, ReflogRecord, TAG_BYTES_MAX};
use crate::base::named_enum;
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::UrlError;

/// What a reader tells of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    Record {
        /// The one that it begins in, from 1.
        line: u64,
        record: ReflogRecord<'a>,
    },
    Reject(Reject<'a>),
}

/// What was meant as a record, and cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject<'a> {
    /// The one that it begins in, from 1.
    pub line: u64,
    pub why: RejectReason,
    /// Its first line, [`TEXT_BYTES_MAX`] of it.
    pub text: &'a [u8],
    /// 0 if they could not be read.
    pub hits: u32,
}

pub const TEXT_BYTES_MAX: usize = 200;

named_enum! {
    /// Why a record was not taken: its lines, its fields in their order, and what is wrong with its URL.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum RejectReason {
        LineTooLong = "line_too_long",
        /// The line that should bring the rest did not come.
        Unfinished = "unfinished",
        TooFewFields = "too_few_fields",
        TooManyFields = "too_many_fields",
        Batch = "batch",
        Priority = "priority",
        Time = "time",
        Page = "page",
        NoUrl = "no_url",
        UrlTooLong = "url_too_long",
        /// Control characters, or not UTF-8.
        UrlBytes = "url_bytes",
        Hits = "hits",
        TagTooLong = "tag_too_long",
        UrlSyntax = "url_syntax",
        /// Neither http nor https.
        UrlScheme = "url_scheme",
        /// With a user name or password.
        UrlCredentials = "url_credentials",
        /// No name can be so long.
        HostTooLong = "host_too_long",
    }
}

/// The longest name of a host.
const HOST_BYTES_MAX: usize = 253;

impl RejectReason {
    /// What is wrong with a URL in normal form.
    pub fn of_normal(url: &[u8]) -> Option<RejectReason> {
        // Most are shorter than that as a whole.
        if url.len() <= HOST_BYTES_MAX {
            return None;
        }
        let host = memchr::memmem::find(url, b"://").map_or(url, |at| &url[at + 3..]);
        let bytes = memchr::memchr2(b'/', b':', host).unwrap_or(host.len());
        (bytes > HOST_BYTES_MAX).then_some(RejectReason::HostTooLong)
    }

    /// In words, for a person.
    pub fn about(self) -> String {
        match self {
            RejectReason::LineTooLong => format!("a line of more than {} bytes", super::LINE_BYTES_MAX),
            RejectReason::Unfinished => "the line that should bring its URL or hits is missing".to_string(),
            RejectReason::TooFewFields => "it ends before its page".to_string(),
            RejectReason::TooManyFields => "more than seven fields (a tab in the URL?)".to_string(),
            RejectReason::Batch => format!("its batch is not 1 to {DIGITS_MAX} digits"),
            RejectReason::Priority => "its priority is not a number".to_string(),
            RejectReason::Time => "its time is not a moment as YYYYMMDDhhmmss".to_string(),
            RejectReason::Page => format!("its page is not 1 to {DIGITS_MAX} digits"),
            RejectReason::NoUrl => "no URL".to_string(),
            RejectReason::UrlTooLong => format!("a URL of more than {URL_BYTES_MAX} bytes"),
            RejectReason::UrlBytes => "control characters in the URL, or not UTF-8".to_string(),
            RejectReason::Hits => "its hits are not a number".to_string(),
            RejectReason::TagTooLong => format!("a tag of more than {TAG_BYTES_MAX} bytes"),
            RejectReason::UrlSyntax => "not a URL".to_string(),
            RejectReason::UrlScheme => "neither http nor https".to_string(),
            RejectReason::UrlCredentials => "a URL with a user name or password".to_string(),
            RejectReason::HostTooLong => format!("a host of more than {HOST_BYTES_MAX} bytes"),
        }
    }
}

impl From<&UrlError> for RejectReason {
    fn from(error: &UrlError) -> RejectReason {
        match error {
            UrlError::Syntax(_) => RejectReason::UrlSyntax,
            UrlError::Scheme(_) => RejectReason::UrlScheme,
            UrlError::Credentials => RejectReason::UrlCredentials,
            UrlError::TooLong => RejectReason::UrlTooLong,
        }
    }
}
