use crate::base::shown;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a request is refused, in the shape of RFC 9457.
#[derive(Clone, Debug)]
pub struct Problem {
    pub kind: Kind,
    /// One sentence, with the mend.
    detail: String,
    /// More members of the object.
    more: Value,
}

/// Kinds of problems: status, the end of their `type`, and their title.
macro_rules! kinds {
    ($($(#[doc = $about:literal])+ $Kind:ident = $status:literal $slug:literal $title:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[doc = $about])+ $Kind,)+
        }

        impl Kind {
            pub const ALL: &[Kind] = &[$(Kind::$Kind,)+];

            pub fn status(self) -> u16 {
                match self { $(Kind::$Kind => $status,)+ }
            }

            pub fn slug(self) -> &'static str {
                match self { $(Kind::$Kind => $slug,)+ }
            }

            pub fn title(self) -> &'static str {
                match self { $(Kind::$Kind => $title,)+ }
            }

            /// What it means, in a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Kind::$Kind => concat!($($about),+),)+ }
            }
        }
    };
}

kinds! {
    /// What came is no request: its head, its body or a parameter is malformed or missing.
    BadRequest = 400 "bad-request" "Malformed request",
    /// Over TCP the token of the process is needed, as Authorization: Bearer; it is in admin.token in the data directory.
    NoToken = 401 "no-token" "Token needed",
    /// The request comes from a web page of another origin.
    ForeignOrigin = 403 "foreign-origin" "Request of another web site",
    /// There is nothing under this path.
    NotFound = 404 "not-found" "Not found",
    /// The path is there, and takes other methods: the header Allow names them.
    WrongMethod = 405 "wrong-method" "Method not allowed",
    /// The request did not come within ten seconds.
    TooSlow = 408 "too-slow" "Request too slow",
    /// It is so already.
    AlreadySo = 409 "already-so" "Already so",
    /// The body is larger than 1 MiB: send it in pieces.
    TooLarge = 413 "too-large" "Too large",
    /// The body is of another type than this path takes.
    WrongType = 415 "wrong-type" "Type of body not supported",
    /// The header Host names another server than this one; admin.hosts in the settings adds names.
    ForeignHost = 421 "foreign-host" "Another host was meant",
    /// The request is well formed, and a value in it is not one that can be used.
    BadValue = 422 "bad-value" "Value cannot be used",
    /// After ten wrong tokens one a second is looked at.
    TooManyTries = 429 "too-many-tries" "Too many wrong tokens",
    /// No answer in time: the process is busy, waits for its disk, or ends.
    Busy = 503 "busy" "No answer now",
}

/// What a detail shows of what somebody sent.
const DETAIL_CHARS_MAX: usize = 600;

impl Problem {
    pub fn new(kind: Kind, detail: &str) -> Problem {
        Problem { kind, detail: shown(detail, DETAIL_CHARS_MAX), more: Value::Null }
    }

    /// With more members.
    pub fn with(self, more: Value) -> Problem {
        Problem { more, ..self }
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "type": format!("/problems/{}", self.kind.slug()),
            "title": self.kind.title(),
            "status": self.kind.status(),
            "detail": self.detail,
        });
        if let (Value::Object(object), Value::Object(more)) = (&mut object, &self.more) {
            object.extend(more.clone());
        }
        object
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(super::answers::json_of(&self.object())));
        *response.status_mut() = StatusCode::from_u16(self.kind.status()).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.kind {
            Kind::NoToken => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Kind::TooManyTries | Kind::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
