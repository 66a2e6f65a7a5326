use super::HttpAnswer;
use crate::base::shown;
use crate::limits::REGISTER_BYTES_MAX;
use crate::proto::auth::read_base64;
use serde::Deserialize;
use thiserror::Error;

/// Why bytes are no answer of an etcd, in one line that is safe to show.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EtcdError {
    #[error("the connection ended in the middle of an answer")]
    Cut,
    #[error("an answer of more than 1 MiB")]
    Long,
    #[error("this is no HTTP: {0}")]
    Http(httparse::Error),
    #[error("an answer whose end cannot be told")]
    Framing,
    #[error("status {status}: {text}")]
    Status { status: u16, text: String },
    #[error("this is no answer of an etcd: {0}")]
    Json(String),
    #[error("this is no answer of an etcd: {0}")]
    Sense(&'static str),
}

/// What an etcd says to a call, and which etcd it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// All members of one etcd have the same.
    pub cluster: u64,
    pub told: T,
}

/// What became of a swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    Done,
    /// The key had another value: this, or none.
    Differs(Option<Vec<u8>>),
}

#[derive(Deserialize)]
struct Header {
    cluster_id: String,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct KeyValue {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Found {
    header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct Txn {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(alias = "responseRange")]
    response_range: Option<Range>,
}

/// What an error says of itself.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

const TEXT_CHARS_MAX: usize = 200;

/// The value of a key that was asked for.
pub fn key_value(key: &str, answer: HttpAnswer<'_>) -> Result<Answer<Option<Vec<u8>>>, EtcdError> {
    let found: Found = read(answer)?;
    Ok(Answer { cluster: cluster(&found.header)?, told: value(key, found.kvs)? })
}

/// What became of a swap of a key.
pub fn swapped(key: &str, answer: HttpAnswer<'_>) -> Result<Answer<Swapped>, EtcdError> {
    let txn: Txn = read(answer)?;
    let cluster = cluster(&txn.header)?;
    if txn.succeeded {
        return Ok(Answer { cluster, told: Swapped::Done });
    }
    let mut responses = txn.responses.into_iter();
    match (responses.next().and_then(|response| response.response_range), responses.next()) {
        (Some(range), None) => Ok(Answer { cluster, told: Swapped::Differs(value(key, range.kvs)?) }),
        _ => Err(EtcdError::Sense("a swap that failed, without the value")),
    }
}

fn read<'a, T: Deserialize<'a>>(answer: HttpAnswer<'a>) -> Result<T, EtcdError> {
    let HttpAnswer { status, body } = answer;
    if status != 200 {
        let text = match serde_json::from_slice::<Refusal>(body) {
            Ok(Refusal { error, message }) if error.is_empty() => message,
            Ok(Refusal { error, .. }) => error,
            Err(_) => String::from_utf8_lossy(&body[..body.len().min(4 * TEXT_CHARS_MAX)]).trim().to_string(),
        };
        return Err(EtcdError::Status { status, text: shown(&text, TEXT_CHARS_MAX) });
    }
    let failed = |error: serde_json::Error| EtcdError::Json(shown(&error.to_string(), TEXT_CHARS_MAX));
    serde_json::from_slice(body).map_err(failed)
}

fn cluster(header: &Header) -> Result<u64, EtcdError> {
    header.cluster_id.parse().map_err(|_| EtcdError::Sense("its cluster_id is no number"))
}

fn value(key: &str, mut kvs: Vec<KeyValue>) -> Result<Option<Vec<u8>>, EtcdError> {
    if kvs.len() > 1 {
        return Err(EtcdError::Sense("more than one key"));
    }
    let Some(found) = kvs.pop() else { return Ok(None) };
    if read_base64(found.key.as_bytes()).as_deref() != Some(key.as_bytes()) {
        return Err(EtcdError::Sense("another key than was asked for"));
    }
    let value = read_base64(found.value.as_bytes()).ok_or(EtcdError::Sense("a value that is not base64"))?;
    match value.len() {
        0..=REGISTER_BYTES_MAX => Ok(Some(value)),
        _ => Err(EtcdError::Long),
    }
}
