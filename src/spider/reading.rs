//! Head and body as they come.

use super::fetch::FetchState;
use super::role::{Action, Spider};
use crate::base::{Key, Now};
use crate::proto::http1::{BodyDecoder, BodyStep, Flags, Framing, HeadStep, Method};
use crate::proto::record::{ResultCode, StatusAction};

/// Room made at once for an announced document; a larger one grows as it comes.
const BODY_RESERVE_MAX: u64 = 1 << 20;
/// Of a document that is not wanted, this much is read for the sake of its connection.
const UNWANTED_BYTES_MAX: u64 = 1_024;

impl Spider {
    /// Head bytes: usually the whole head in one piece, straight from the receive buffer.
    pub(super) fn receive_head(&mut self, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let FetchState::Await { parser } = &mut open.state else { unreachable!("the caller matched") };
        let held = open.bytes.len();
        let split = held > 0;
        if split {
            open.bytes.extend_from_slice(bytes);
        }
        let step = parser.parse(if split { &open.bytes } else { bytes });
        let head = match step {
            Ok(HeadStep::Done(head)) => head,
            Ok(HeadStep::NeedMore) => {
                if !split {
                    open.bytes.extend_from_slice(bytes);
                }
                self.held.resized(held, open.bytes.len());
                return;
            }
            Err(_) => {
                self.held.resized(held, open.bytes.len());
                self.finish(fetch, ResultCode::Malformed, false, now, out);
                return;
            }
        };
        let head_bytes = head.head_bytes as usize;
        let unwanted =
            open.head_only && !matches!(head.framing, Framing::None | Framing::Length(..=UNWANTED_BYTES_MAX));
        let decoder = BodyDecoder::new(head.framing, self.config.body);
        let expected = decoder.size_hint().unwrap_or(0).min(BODY_RESERVE_MAX) as usize;
        open.state = FetchState::Body { head, decoder };
        let rest;
        let body = if split {
            rest = open.bytes.split_off(head_bytes);
            &rest[..]
        } else {
            open.bytes.reserve(head_bytes + if unwanted { 0 } else { expected });
            open.bytes.extend_from_slice(&bytes[..head_bytes]);
            &bytes[head_bytes..]
        };
        self.held.resized(held, open.bytes.len());
        if unwanted {
            // The rest of it is not waited for.
            return self.finish(fetch, complete(head.status), false, now, out);
        }
        open.bytes.reserve(expected);
        self.receive_body(fetch, body, now, out);
    }

    pub(super) fn receive_body(&mut self, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let FetchState::Body { head, decoder } = &mut open.state else { unreachable!("the caller matched") };
        let held = open.bytes.len();
        let step = decoder.push(bytes, &mut open.bytes);
        self.held.resized(held, open.bytes.len());
        match step {
            Ok(BodyStep::NeedMore) => {}
            Ok(BodyStep::Done { consumed }) => {
                // Bytes after the response are never a next one: we asked for one only.
                let alone = consumed == bytes.len();
                let reusable = head.keep_alive && decoder.keep_alive() && alone;
                let result = complete(head.status);
                if open.asked.method == Method::Head && !alone {
                    self.manners.refuses_head(&open.url);
                }
                self.finish(fetch, result, reusable, now, out);
            }
            Ok(BodyStep::TooLarge) => {
                open.flags.insert(Flags::CUT);
                // An error page is one however long it is.
                let result = match complete(head.status) {
                    ResultCode::Ok => ResultCode::TooLarge,
                    other => other,
                };
                self.finish(fetch, result, false, now, out);
            }
            Err(_) => self.finish(fetch, ResultCode::Malformed, false, now, out),
        }
    }
}

/// What a whole response means by its status.
pub(super) fn complete(status: u16) -> ResultCode {
    match StatusAction::of(status) {
        StatusAction::Document => ResultCode::Ok,
        StatusAction::Unchanged => ResultCode::NotModified,
        StatusAction::Follow => ResultCode::Redirect,
        StatusAction::Retry | StatusAction::Drop | StatusAction::BackOff => ResultCode::HttpError,
    }
}
