//! The end of a fetch: what it comes to, and what becomes of its connection.

use super::conn::ConnState;
use super::fetch::{Again, FetchState, Fetched};
use super::role::{Action, Spider};
use crate::base::{Key, Now};
use crate::proto::coding::{CodingLimits, Decoded, header_of};
use crate::proto::http1::{Flags, Head, Method};
use crate::proto::record::ResultCode;
use crate::proto::tls::CertFault;

impl Spider {
    /// Ends a fetch: its connection is kept or let go, and the result goes out.
    pub(super) fn finish(
        &mut self,
        fetch: Key,
        mut result: ResultCode,
        reusable: bool,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let mut fetch = self.fetches.remove(fetch).expect("a fetch finishes once");
        let held = fetch.bytes.len();
        let conn = self.conns.get_mut(fetch.conn).expect("an open fetch has its connection");
        let (head, mut flags) = match fetch.state {
            FetchState::Body { head, decoder } => (Some(head), head.flags | decoder.flags()),
            FetchState::Connect | FetchState::Handshake | FetchState::Await { .. } => {
                (None, Flags::default())
            }
        };
        flags.insert(fetch.flags);
        // What is no response may be the rest of the one before, which came when the request was out already.
        let astray = result == ResultCode::Malformed && head.is_none();
        let died = matches!(result, ResultCode::Empty | ResultCode::Reset);
        let stale = conn.reused && (astray || died && fetch.bytes.is_empty());
        if let Some(secure) = &conn.secure {
            flags.insert(secure.cert_fault().map_or(Flags::NONE, flag_of));
        }
        if reusable && conn.sent {
            self.keep(fetch.conn, now);
        } else {
            let route = conn.route;
            self.close(fetch.conn, out);
            // Its siblings have been idle for as long: they are likely as dead.
            while let Some(sibling) = stale.then(|| self.idle.take(route)).flatten() {
                self.close(sibling, out);
            }
        }
        let mut again = stale.then_some(Again::Stale);
        if let Some(head) = &head {
            let now_unix_s = self.config.wall.unix_ms(now) / 1_000;
            if self.manners.learn(&fetch.url, fetch.asked, head, &fetch.bytes, now_unix_s) {
                again = Some(Again::Differently);
            }
            if fetch.head_only {
                let by_get = fetch.asked.method == Method::Get;
                flags.insert(if by_get { Flags::HEAD_BY_GET } else { Flags::HEAD_ONLY });
                // The first byte of a document that has none.
                if by_get && head.status == 416 {
                    result = ResultCode::Ok;
                }
                fetch.bytes.truncate(head.head_bytes as usize);
            }
            self.decode(head, &mut fetch.bytes, &mut result, &mut flags);
        } else {
            fetch.bytes.clear();
        }
        self.held.resized(held, fetch.bytes.len());
        out.push(Action::Finished(Box::new(Fetched {
            trans: fetch.trans,
            url: fetch.url,
            addr: fetch.addr,
            result,
            head,
            bytes: fetch.bytes,
            flags,
            started: fetch.started,
            took_us: now.since_us(fetch.started),
            again,
        })));
    }

    /// Keeps a connection for the next page of its host.
    fn keep(&mut self, key: Key, now: Now) {
        let until = now.plus_us(self.config.idle_us);
        let conn = self.conns.get_mut(key).expect("the caller's connection is open");
        conn.state = ConnState::Idle { until };
        self.idle.put(conn.route, key);
        if !std::mem::replace(&mut conn.aged, true) {
            self.idle.age(key, until);
        }
    }

    pub(super) fn close(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("closing an open connection");
        debug_assert_ne!(slot.state, ConnState::Closing, "closed once");
        if let ConnState::Idle { .. } = slot.state {
            let route = slot.route;
            self.idle.remove(route, conn);
        }
        let slot = self.conns.get_mut(conn).expect("still open");
        slot.state = ConnState::Closing;
        slot.secure = None;
        self.closing += 1;
        out.push(Action::Net(crate::base::NetAsk::Close { conn }));
    }

    /// Undoes the content coding, all at once: so an open connection holds no decoder, which is larger than most pages.
    fn decode(&mut self, head: &Head, bytes: &mut Vec<u8>, result: &mut ResultCode, flags: &mut Flags) {
        let head_len = head.head_bytes as usize;
        if head.content_encoding.of(bytes).is_empty() || bytes.len() == head_len {
            return;
        }
        let codings = header_of(head, bytes);
        let limits = CodingLimits::new(self.config.body.doc_bytes_max);
        let mut plain = self.bodies.pop().unwrap_or_default();
        plain.extend_from_slice(&bytes[..head_len]);
        let decoded = self.decoder.decode(&codings, &bytes[head_len..], &limits, &mut plain);
        let whole = matches!(result, ResultCode::Ok);
        match decoded {
            Decoded::Plain => {}
            Decoded::Whole => flags.insert(Flags::DECODED),
            Decoded::TooLarge => {
                flags.insert(Flags::DECODED | Flags::CUT);
                if whole {
                    *result = ResultCode::TooLarge;
                }
            }
            // A document cut short on its way is cut short in its coding, too, and that is no fault of the coding.
            Decoded::Broken | Decoded::Bomb | Decoded::Unknown => {
                if *result != ResultCode::Truncated && !flags.contains(Flags::CUT) {
                    flags.insert(Flags::CONTENT_CODING_BROKEN);
                }
                if plain.len() > head_len {
                    flags.insert(Flags::DECODED);
                }
                if whole {
                    *result = ResultCode::DecodeFailed;
                }
            }
        }
        if flags.contains(Flags::DECODED) {
            std::mem::swap(bytes, &mut plain);
        }
        self.keep_body(plain);
    }
}

/// What a bad certificate leaves on the record.
pub(super) fn flag_of(fault: CertFault) -> Flags {
    match fault {
        CertFault::Expired => Flags::CERT_EXPIRED,
        CertFault::UnknownIssuer => Flags::CERT_UNKNOWN_ISSUER,
        CertFault::WrongName => Flags::CERT_WRONG_NAME,
        CertFault::Other => Flags::CERT_BAD,
    }
}
