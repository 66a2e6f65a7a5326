//! Keys of an etcd as registers: read one, or swap it if it holds what is expected. Two calls of its JSON gateway, over plain
//! HTTP, a connection each.
//!
//! ```text
//!   POST /v3/kv/range  {"key"}                                    ──► {"header", "kvs": [{"key", "value"}]}, or no kvs
//!   POST /v3/kv/txn    compare the value, or that there is none   ──► {"header", "succeeded": true}
//!                      success: put; failure: range               ──► {"header", "responses": [{"response_range"}]}
//! ```
//!
//! Reads are linearizable, which is what etcd does unless it is asked for less. Leases are not used: what ends, ends by the
//! clock of who holds it. Requests are of HTTP 1.0, so that an answer ends with its connection and is never in chunks.

mod answer;
mod http;
mod request;
#[cfg(test)]
mod tests;

pub use answer::{Answer, EtcdError, Swapped, key_value, swapped};
pub use http::{HTTP_BYTES_MAX, HttpAnswer, http_answer};
pub use request::EtcdRequest;
