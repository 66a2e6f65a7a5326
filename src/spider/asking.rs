//! The way to a request: TLS if the URL wants it, then what is asked.

use super::fetch::FetchState;
use super::manners::Asked;
use super::request::Request;
use super::role::{Action, Spider, keep};
use super::wire::Secure;
use crate::base::{Key, NetAsk, Now};
use crate::proto::http1::{HeadParser, Method};
use crate::proto::record::ResultCode;

impl Spider {
    pub(super) fn start_handshake(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        match self.tls.open(open.url.host_bare()) {
            Ok(tls) => {
                open.state = FetchState::Handshake;
                open.state_by = now.plus_us(self.config.connect_us);
                let conn = open.conn;
                let slot = self.conns.get_mut(conn).expect("an open fetch has its connection");
                slot.secure = Some(Box::new(Secure::new(tls)));
                self.send_secure(conn, out);
            }
            // A name that no certificate can be for.
            Err(_) => self.finish(fetch, ResultCode::TlsFailed, false, now, out),
        }
    }

    /// Sends what TLS wants sent, if it is its turn.
    pub(super) fn send_secure(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the caller's connection is open");
        if let Some(secure) = &mut slot.secure
            && let Some(ask) = secure.next_send(conn, || self.requests.pop().unwrap_or_default())
        {
            out.push(Action::Net(ask));
        }
    }

    pub(super) fn send_request(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let method = if open.head_only { self.manners.method_for_head(&open.url) } else { Method::Get };
        let mut request = Request::new(method, &open.url);
        request.first_byte_only = open.head_only && method == Method::Get;
        request.validators = open.validators.as_deref();
        let authorized = self.manners.adorn(&mut request, self.config.wall.unix_ms(now) / 1_000);
        let mut bytes = self.requests.pop().unwrap_or_default();
        request.write(&mut bytes, &self.config.user_agent);
        open.asked = Asked { method, authorized };
        open.state = FetchState::Await { parser: HeadParser::new(self.config.head, method) };
        open.state_by = now.plus_us(self.config.first_byte_us);
        let conn = open.conn;
        match &mut self.conns.get_mut(conn).expect("an open fetch has its connection").secure {
            Some(secure) => {
                secure.request(&bytes);
                keep(&mut self.requests, bytes, usize::MAX);
                self.send_secure(conn, out);
            }
            None => out.push(Action::Net(NetAsk::Send { conn, bytes })),
        }
    }
}
