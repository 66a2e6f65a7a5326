//! Bytes in, facts out: everything that parses, and nothing that waits.
//!
//! | folder        | from                        | to                                            |
//! |---------------|-----------------------------|-----------------------------------------------|
//! | `http1`       | response bytes, however cut | status, framing, header facts, document bytes |
//! | `coding`      | a body in content codings   | the document in it, within bounds             |
//! | `url`         | link text and a base        | one normal form of a URL, and its parts       |
//! | `robots`      | /robots.txt                 | which paths we may ask for, and how often     |
//! | `charset`     | a document in any encoding  | its text, and what it was written in          |
//! | `html`        | a document                  | links, base, refresh, robots directives       |
//! | `feed`        | a feed in any format        | its entries, and when it wants to be asked    |
//! | `sitemap`     | a sitemap or a feed         | URLs of pages, and when they changed          |
//! | `tls`         | the wire and plain bytes    | plain bytes and the wire, certificates judged |
//! | `auth`        | WWW-Authenticate            | the Authorization that answers it             |
//! | `cookies`     | Set-Cookie                  | the Cookie of the next request to that origin |
//! | `dns`         | answers of name servers     | addresses and how long they hold              |
//! | `etcd`        | answers of an etcd          | the value of a key, or what became of a swap  |
//! | `job`         | a URL on its way            | candidate, job, transaction: no parsing       |
//! | `cluster_key` | the key file of a cluster   | its parts and the keys derived from it        |
//! | `partition`   | a URL                       | which part of a shared crawl it belongs to    |
//! | `peer_wire`   | frames between nodes        | words, each whole and right or refused        |
//! | `peer_tls`    | the wire between nodes      | plain bytes of a node of the same cluster     |
//! | `reflog`      | URL logs, however cut       | records, and what could not be read           |
//! | `lines`       | lines between roles         | work for a spider, and its GET, WORKING, DONE |
//! | `record`      | what happened               | result and HTTP codes, and records as sent    |
//! | `crawl_log`   | a finished fetch            | one greppable line, and back                  |
//! | `warc`        | WARC files, however cut     | records, and back; lines of a CDXJ index      |
//! | `zip`         | entries and their sums      | the headers and the directory of a ZIP        |

pub(crate) mod auth;
pub(crate) mod charset;
pub mod cluster_key;
pub mod coding;
pub(crate) mod cookies;
pub mod crawl_log;
pub mod dns;
pub mod etcd;
pub mod feed;
pub mod html;
pub mod http1;
pub(crate) mod job;
pub mod lines;
pub mod partition;
pub mod peer_tls;
pub mod peer_wire;
pub mod record;
pub mod reflog;
pub mod robots;
pub mod sitemap;
pub(crate) mod tls;
pub mod url;
pub mod warc;
pub(crate) mod zip;
