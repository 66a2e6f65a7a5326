//! Who may ask: decided by the head of a request and the way it came, before anything is looked up.

use super::problem::{Kind, Problem};
use super::token::{Token, Tries};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By the socket of the data directory: whoever can open it is its owner.
    Socket,
    /// By TCP, where we listen at this address.
    Tcp(SocketAddr),
}

/// What guards a listener.
#[derive(Default)]
pub struct Guard {
    /// Names by which it may be called besides those of loopback.
    pub hosts: Vec<String>,
    /// Without one nothing that needs it is answered over TCP.
    pub token: Option<Token>,
    pub tries: Mutex<Tries>,
}

impl Guard {
    /// Whether a request may be answered. `is_open`: it may be read on loopback by everybody.
    pub fn admit(&self, head: &Parts, via: Via, is_open: bool, now: Instant) -> Result<(), Problem> {
        let host = self.host(head, via)?;
        is_own_page(&head.headers, &host, self.is_listed(&host, via))?;
        match via {
            Via::Socket => Ok(()),
            Via::Tcp(at) if is_open && at.ip().is_loopback() => Ok(()),
            Via::Tcp(_) => self.has_token(&head.headers, now),
        }
    }

    /// The host that is meant, in small letters, if it is this one: a web site whose name leads here is another.
    fn host(&self, head: &Parts, via: Via) -> Result<String, Problem> {
        let mut hosts = head.headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Problem::new(Kind::BadRequest, "the request needs one header Host, and not two"));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        // A whole URL in the request line wins over the header; they must agree.
        let same = head.uri.authority().is_none_or(|named| named.as_str().eq_ignore_ascii_case(&host));
        match same && (is_local(&host, via) || self.is_listed(&host, via)) {
            true => Ok(host),
            false => Err(Problem::new(
                Kind::ForeignHost,
                &format!("\"{host}\" is not this server: use localhost, or add the name to hosts of [admin]"),
            )),
        }
    }

    fn is_listed(&self, host: &str, via: Via) -> bool {
        self.hosts.iter().map(|listed| listed.to_ascii_lowercase()).any(|listed| {
            host == listed || host.strip_prefix(&listed).is_some_and(|rest| is_our_port(rest, via))
        })
    }

    fn has_token(&self, headers: &HeaderMap, now: Instant) -> Result<(), Problem> {
        let needed = || {
            let detail =
                "send the token that is in admin.token of the data directory: Authorization: Bearer TOKEN";
            Err(Problem::new(Kind::NoToken, detail))
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' '));
        let Some((_, given)) = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return needed();
        };
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if !tries.may_try(now) {
            let detail = "ten tokens were wrong: one a second is looked at from now on";
            return Err(Problem::new(Kind::TooManyTries, detail));
        }
        let right = self.token.as_ref().is_some_and(|token| token.is(given.trim()));
        tries.tried(right);
        if right { Ok(()) } else { needed() }
    }
}

/// Whether a host is a name of this machine, with our port.
fn is_local(host: &str, via: Via) -> bool {
    let own = match via {
        Via::Tcp(at) if at.ip().is_loopback() && at.is_ipv4() => Some(at.ip().to_string()),
        _ => None,
    };
    let mut names = ["127.0.0.1", "[::1]", "localhost"].into_iter().chain(own.as_deref());
    names.any(|name| host.strip_prefix(name).is_some_and(|rest| is_our_port(rest, via)))
}

/// Whether what follows a name is our port. Behind a socket may be a tunnel, with any.
fn is_our_port(rest: &str, via: Via) -> bool {
    let port = rest.strip_prefix(':').map(str::parse::<u16>);
    match (via, port) {
        (Via::Socket, None) => rest.is_empty(),
        (Via::Socket, Some(port)) => port.is_ok(),
        (Via::Tcp(at), None) => rest.is_empty() && at.port() == 80,
        (Via::Tcp(at), Some(port)) => port == Ok(at.port()),
    }
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a request is not of a page of another web site: browsers say so. A listed name may have TLS before it.
fn is_own_page(headers: &HeaderMap, host: &str, is_listed: bool) -> Result<(), Problem> {
    let is_ours = |origin: &str| {
        let origin = origin.to_ascii_lowercase();
        origin.strip_prefix("http://") == Some(host)
            || is_listed && origin.strip_prefix("https://") == Some(host)
    };
    let origins = headers.get_all(ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(is_ours));
    let sites = headers.get_all(FETCH_SITE).iter().all(|site| *site == "same-origin" || *site == "none");
    match origins && sites {
        true => Ok(()),
        false => {
            let detail = "a page of another web site sent this; only pages of this server may";
            Err(Problem::new(Kind::ForeignOrigin, detail))
        }
    }
}
