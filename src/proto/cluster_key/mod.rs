//! The key file of a cluster: what a node needs to be let in, and what nodes know that nobody else does.
//!
//! ```text
//!   nephila cluster key 1
//!   cluster 00112233445566778899aabbccddeeff
//!   secret <64 hex digits>
//!   -----BEGIN CERTIFICATE-----                  of the cluster's own authority
//!   …
//!   -----END CERTIFICATE-----
//!   -----BEGIN PRIVATE KEY-----
//!   …
//!   -----END PRIVATE KEY-----
//!   crc32c 1234abcd                              of all lines before it
//! ```
//!
//! It is text, as people carry it from machine to machine: ends of lines may be CR LF, and blanks may follow the last line.

mod hmac;
mod key_file;
#[cfg(test)]
mod tests;

pub use key_file::{ClusterKey, KeyError};
