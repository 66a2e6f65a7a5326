use super::document_info::DocumentInfo;
use super::documents::{DocState, Note, Row};
use super::ledger::{Origin, PRIORITY_MAX};
use crate::base::rfc3339;
use crate::proto::http1::Validators;
use crate::proto::job::{DocKind, Held, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::warc::read_date;
use serde::de::value::Error as WordError;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

/// A document's information as text: one line of `index export`, and what `index show` tells. Times are RFC 3339,
/// digests are hex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentLine {
    pub doc_id: u32,
    pub url: String,
    pub kind: String,
    /// `None` only of a line that was read, and whose word no state has.
    #[serde(deserialize_with = "known_word")]
    pub state: Option<DocState>,
    pub discovered_at: Option<String>,
    /// The page that named it.
    pub via: Option<String>,
    pub depth: u16,
    pub hops: u8,
    pub seed_chain: bool,
    pub head_only: bool,
    pub priority: u8,
    pub hits: u32,
    pub fetched_at: Option<String>,
    #[serde(deserialize_with = "known_word")]
    pub result: Option<ResultCode>,
    pub http_status: Option<u16>,
    pub retries: u8,
    pub due_at: Option<String>,
    pub interval_s: Option<u32>,
    pub fetches: u16,
    pub changes: u16,
    pub changed_at: Option<String>,
    pub digest: Option<String>,
    pub update_tag: Option<u32>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Where its document is stored.
    pub segment: Option<u64>,
    /// Only its head was asked for.
    pub only_head_known: bool,
    pub new_url: Option<String>,
    pub canonical: Option<String>,
    pub reason: Option<String>,
}

/// Reads a word. One that has no meaning here, as a later version may write it, is none.
fn known_word<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let word: Option<String> = Option::deserialize(from)?;
    Ok(word.and_then(|word| T::deserialize(IntoDeserializer::<WordError>::into_deserializer(word)).ok()))
}

fn time(at_s: u32) -> Option<String> {
    (at_s > 0).then(|| rfc3339(u64::from(at_s) * 1_000))
}

fn seconds(time: Option<&str>) -> u32 {
    let unix_ms = time.and_then(read_date).unwrap_or(0);
    u32::try_from(unix_ms / 1_000).unwrap_or(u32::MAX)
}

impl DocumentLine {
    /// `via` is the URL of the page that named it.
    pub fn of(info: &DocumentInfo, via: Option<&str>) -> DocumentLine {
        let DocumentInfo { doc_id, discovered, note, .. } = info;
        let row = info.row.unwrap_or_default();
        let origin = row.raise(discovered.origin);
        let Provenance { kind, depth, hops, seed_chain, head_only } = origin.provenance;
        let text =
            |bytes: &[u8]| str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_string);
        let held = note.held.as_ref();
        let words = |text: &Option<Box<str>>| text.as_deref().map(str::to_string);
        DocumentLine {
            doc_id: *doc_id,
            url: discovered.url.to_string(),
            kind: kind.name().to_string(),
            state: Some(info.state()),
            discovered_at: time(discovered.at_s),
            via: via.map(str::to_string),
            depth,
            hops,
            seed_chain,
            head_only,
            priority: origin.priority,
            hits: origin.hits,
            fetched_at: time(row.fetched_s),
            result: row.result,
            http_status: (row.status > 0).then_some(row.status),
            retries: row.retries,
            due_at: time(row.due_s),
            interval_s: (row.interval_s > 0).then_some(row.interval_s),
            fetches: row.fetches,
            changes: row.changes,
            changed_at: time(row.changed_s),
            digest: (row.digest != 0).then(|| format!("{:016x}", row.digest)),
            update_tag: (row.update_tag != 0).then_some(row.update_tag),
            etag: held.and_then(|held| text(&held.validators.etag)),
            last_modified: held.and_then(|held| text(&held.validators.last_modified)),
            segment: held.map(|held| held.segment).filter(|&segment| segment > 0),
            only_head_known: note.head_only,
            new_url: words(&note.new_url),
            canonical: words(&note.canonical),
            reason: note.said(),
        }
    }

    /// Whether it was asked for by name by a feed, or is one itself: wherever links may lead, it is fetched.
    pub fn is_of_feeds(&self) -> bool {
        self.origin().is_some_and(|Origin { provenance, .. }| {
            provenance.is_story() || provenance.kind == DocKind::Feed
        })
    }

    /// As [`Provenance::links_followed`].
    pub fn links_followed(&self) -> Option<u16> {
        self.origin()?.provenance.links_followed()
    }

    /// Where it comes from, without the page that named it: its number is of another index.
    pub(super) fn origin(&self) -> Option<Origin> {
        let provenance = Provenance {
            kind: DocKind::from_name(&self.kind)?,
            depth: self.depth,
            // A chain that cannot be followed back is none.
            hops: 0,
            seed_chain: self.seed_chain && self.hops == 0,
            head_only: self.head_only,
        };
        Some(Origin { via: 0, provenance, priority: self.priority.min(PRIORITY_MAX), hits: self.hits })
    }

    /// What became of it, in an index that does not have its document. `None` of one that was never answered for.
    pub(super) fn row(&self) -> Option<(Row, Note)> {
        let state = match self.state? {
            DocState::HandedOut => DocState::Pending,
            stored => stored,
        };
        if state == DocState::Pending && self.fetched_at.is_none() {
            return None;
        }
        let digest = self.digest.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let row = Row {
            state,
            result: self.result,
            status: self.http_status.unwrap_or(0),
            retries: self.retries,
            fetches: self.fetches,
            changes: self.changes,
            fetched_s: seconds(self.fetched_at.as_deref()),
            due_s: seconds(self.due_at.as_deref()),
            interval_s: self.interval_s.unwrap_or(0),
            changed_s: seconds(self.changed_at.as_deref()),
            digest: digest.unwrap_or(0),
            update_tag: self.update_tag.unwrap_or(0),
            ..Row::default()
        };
        let octets = |text: &Option<String>| -> Box<[u8]> {
            // It came from a file: what could not stand in a header is not kept to be sent.
            let sound =
                |text: &&str| text.len() <= VALIDATOR_BYTES_MAX && !text.chars().any(char::is_control);
            text.as_deref().filter(sound).unwrap_or_default().as_bytes().into()
        };
        let validators = Validators { etag: octets(&self.etag), last_modified: octets(&self.last_modified) };
        let words = |text: &Option<String>| text.as_deref().map(Box::from);
        let note = Note {
            // Segment 0 is nowhere: the server is asked for the whole document.
            held: (validators != Validators::default()).then_some(Held { validators, segment: 0 }),
            head_only: self.only_head_known,
            new_url: words(&self.new_url),
            canonical: words(&self.canonical),
            reason: words(&self.reason),
            store: 0,
        };
        Some((row, note))
    }
}

const VALIDATOR_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_results_are_written_by_name_and_a_word_without_meaning_is_none() {
        for state in DocState::STORED.into_iter().chain([DocState::HandedOut]) {
            for &result in ResultCode::ALL {
                let line =
                    DocumentLine { state: Some(state), result: Some(result), ..DocumentLine::default() };
                let json = serde_json::to_value(&line).unwrap();
                assert_eq!((&json["state"], &json["result"]), (&state.name().into(), &result.name().into()));
                assert_eq!(serde_json::from_value::<DocumentLine>(json).unwrap(), line);
            }
        }
        let read = |json: &str| serde_json::from_str::<DocumentLine>(json).unwrap();
        let later = read(r#"{"url": "http://a/", "state": "dreaming", "result": "moonstruck"}"#);
        assert_eq!((later.state, later.result, later.row()), (None, None, None));
        assert_eq!(read(r#"{"result": null}"#), DocumentLine::default());
    }
}
