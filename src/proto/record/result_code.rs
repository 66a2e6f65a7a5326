use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose fault a failure is; the url server and the doc index decide by this, never by a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing failed.
    None,
    /// The server answered, and its answer is the result.
    Server,
    /// The network or the server did not let us finish; another time may be better.
    Network,
    /// Our own rules said no.
    Ours,
}

macro_rules! result_codes {
    ($( $(#[$doc:meta])* $variant:ident = $value:literal, $name:literal, $fault:ident; )*) => {
        /// What happened to a fetch, finer than success or failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum ResultCode { $( $(#[$doc])* #[serde(rename = $name)] $variant = $value, )* }

        impl ResultCode {
            pub const ALL: &[ResultCode] = &[ $( ResultCode::$variant, )* ];

            pub const fn name(self) -> &'static str {
                match self { $( ResultCode::$variant => $name, )* }
            }

            pub fn from_u8(value: u8) -> Option<ResultCode> {
                match value { $( $value => Some(ResultCode::$variant), )* _ => None }
            }

            /// No connection was made, so nothing was asked of anybody.
            pub fn is_unconnected(self) -> bool {
                matches!(
                    self,
                    ResultCode::ConnectRefused | ResultCode::ConnectTimeout | ResultCode::ConnectFailed
                )
            }

            pub fn fault(self) -> Fault {
                match self { $( ResultCode::$variant => Fault::$fault, )* }
            }
        }
    };
}

result_codes! {
    /// A 2xx whose body is complete.
    Ok = 1, "ok", None;
    /// A 3xx that names another URL.
    Redirect = 2, "redirect", Server;
    /// A 304: what is stored is still true.
    NotModified = 3, "not_modified", None;
    /// Any other status.
    HttpError = 4, "http_error", Server;
    /// The document was cut at `max_doc_size`; what came is stored.
    TooLarge = 5, "too_large", None;
    /// The connection ended before the body did.
    Truncated = 6, "truncated", Network;
    /// The response breaks HTTP/1.1 beyond what we tolerate.
    Malformed = 7, "malformed", Server;
    /// The content coding is broken or not one we decode.
    DecodeFailed = 8, "decode_failed", Server;
    /// The connection was closed before a single byte came.
    Empty = 9, "empty", Network;
    /// The name does not resolve.
    DnsFailed = 16, "dns_failed", Network;
    /// Nobody listens there.
    ConnectRefused = 17, "connect_refused", Network;
    /// No answer to the connection attempt.
    ConnectTimeout = 18, "connect_timeout", Network;
    /// No route, or the network said no in another way before there was a connection.
    ConnectFailed = 19, "connect_failed", Network;
    /// The server stopped sending.
    ReadTimeout = 20, "read_timeout", Network;
    /// `timeout_req` ran out.
    TotalTimeout = 21, "total_timeout", Network;
    /// The connection was reset.
    Reset = 22, "reset", Network;
    /// The TLS handshake failed.
    TlsFailed = 23, "tls_failed", Network;
    /// The server sends, but slower than `min_rate`.
    TooSlow = 24, "too_slow", Network;
    /// The address or port is one we never connect to.
    BlockedAddress = 32, "blocked_address", Ours;
    /// The URL cannot be asked for.
    BadUrl = 33, "bad_url", Ours;
    /// robots.txt says no, or could not be learnt.
    RobotsDenied = 34, "robots_denied", Ours;
    /// The chain of redirects came back to itself.
    RedirectLoop = 35, "redirect_loop", Server;
    /// The chain of redirects is too long.
    TooManyRedirects = 36, "too_many_redirects", Server;
    /// The host brought nothing but failures and is left alone for a day.
    HostSetAside = 37, "host_set_aside", Ours;
    /// A shard died on this URL more than once.
    ShardDied = 48, "shard_died", Ours;
    /// A code of another maker's spider that is in no table of ours.
    Other = 255, "other", Server;
}

impl ResultCode {
    /// Whether a document counts as had: stored whole, cut at the limit on purpose, or still the stored one.
    pub fn is_success(self) -> bool {
        matches!(self, ResultCode::Ok | ResultCode::NotModified | ResultCode::TooLarge)
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_as_they_went() {
        for &code in ResultCode::ALL {
            assert_eq!(ResultCode::from_u8(code as u8), Some(code));
            assert_eq!(code.fault() == Fault::None, code.is_success(), "{code}");
        }
        assert_eq!(ResultCode::from_u8(0), None);
    }
}
