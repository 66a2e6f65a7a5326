//! Nephila: an io_uring crawl appliance.
//!
//! One binary turns a Linux box into a crawl node: per-host queues that are nice to every host, fetches over raw
//! HTTP/1.1 on a thread per core, documents compressed straight into mmapped segments.
//!
//! # The life of a URL
//!
//! ```text
//!   seeds · links found · redirect targets · sitemaps · stories of feeds · the queue that a master holds for this node
//!                 │ discover
//!            provider, doc_index  every URL known, and what became of it, on disk  (index thread)
//!                 │ candidates(want, reject list)        ▲ record, once durable
//!            scheduler            deals each address to one shard                  (scheduler thread)
//!                 │ ◄── resolver: names to addresses, cached                       (names thread)
//!     work ring ──┤▲── reply ring                       lock-free, one lane per shard
//!   ┌─────────────▼┴──────────────────────────────────┐
//!   │ url_server   per-host queues, robots, niceness   │
//!   │     │ acquire                        ▲ release   │   one shard per core, pinned;
//!   │ spider       connections and fetches │           │   a host and its address live on
//!   │     │ finished fetch ────────────────┘           │   exactly one shard, so niceness
//!   │ handler      links, scope, redirects             │   needs no lock
//!   │     │ record                                     │
//!   │ store_server LZ4 straight into a mapped segment  │
//!   └─────┼────────────────────────────────────────────┘
//!       keeper       makes segments ready, group-commits, seals                    (keeper thread)
//!       maintenance  indexes sealed segments, keeps the store within its bounds    (maintenance thread)
//!       followers    copy sealed segments into PostgreSQL and S3                   (a thread each)
//!       log writer   crawl log, journal of hosts, leftovers beyond memory          (log thread)
//!       admin        answers `nephila explain`, `status`, `stop`, Prometheus… over HTTP (control thread)
//! ```
//!
//! A shard is one type, `Shard<D, W, S>`: a spider over a driver `D`, between a source of work `W` and a sink for records
//! `S`. In a crawl the source is the queues above and the sink is handler and segment; the scheduler holds every reply back
//! until its record is durable.
//!
//! Every thread turns an [`engine::Actor`], a plain value that takes the time and does what can be done without
//! waiting. (The control thread is the exception: asynchronous code lives there, and waits for no actor.)
//! [`engine::assemble`] makes a crawl as such values, joined by rings, without a thread; threads turn them in the
//! product, and the simulation turns the same values in virtual time.
//!
//! A crawl that goes on begins with its ledger; after a kill, with the end of its store, too: what was stored and not
//! recorded yet is told to the doc index as if it had just been fetched.
//!
//! Split over processes, the same roles speak lines over [`engine::Links`]: a URL server (`nephila urlserver`) hands
//! out work by the same queues, a spider process (`nephila spider`) fetches it on shards of the same type, and answers
//! DONE when the record is durable: in segments of its own, or with a store server (`nephila storeserver`) that counts
//! what it has on disk.
//!
//! ```text
//!   URL server ── 12 7 192.0.2.1 example.org http://example.org/ ──► spider ── records ──► store server
//!              ◄── GET 4 · WORKING 12 · DONE 12 ──                          ◄── counts ──
//! ```
//!
//! A master (`nephila master`) takes logs of URLs and deals each to one node by its domain. It is a pipeline of epochs
//! over files ([`master`]), with a numbered, durable queue for each node, which a crawl pulls (`--master`):
//!
//! ```text
//!   logs ──► epoch: group, JOIN with current_log, place by domain ──► queues ──── lines · UPTO 700 ───► crawl --master
//!                                                                            ◄── TAKE 7 200 500 · DONE 7 700 ──
//! ```
//!
//! # Folders and layers
//!
//! Imports go down only, and folders of one folder do not import each other in a circle; a test reads every file and
//! checks it.
//!
//! Many nodes are one crawl (`nephila node`, [`engine::Node`] with peers): every URL belongs to one of them by a table that all
//! have, and goes there out of the ledger of whoever found it, again until it is on its owner's disk:
//!
//! ```text
//!   node 1: ledger ──── URLs of node 2's partitions, in batches ───► node 2: index, ledger
//!                  ◄── counted up to batch 41 · how far are you? ──
//!                  ──── all that node 1 knows, and its pages ──────► node 2: copies/1, to take over from
//! ```
//!
//! From three nodes on, three of them vote ([`peer`]): a node renews its right to ask hosts with them, the right ends by itself,
//! and who is silent for too long is taken over. Until then nothing moves without its owner's word: a partition that goes to
//! another node goes with all that is known of its URLs, and is given away once that is on the other one's disk.
//!
//! | layer | folder                    | holds                                                              |
//! |-------|---------------------------|--------------------------------------------------------------------|
//! | 5     | `commands`                | what a user types; one file per sub-command                        |
//! | 4     | `admin`                   | the listener of a process: HTTP over its socket and loopback; above `engine` |
//! | 4     | `engine`                  | actors, threads, clocks, links: where roles meet mechanism. Wings: `runtime` `names` `links` `peers` `inspect` `from_master` `extraction` `followers` `crawl` `master` `searching` `split` |
//! | 4     | `sim`                     | a whole node, split processes, masters or a cluster, in virtual time against a misbehaving web |
//! | 4     | `farm`                    | a made-up web on loopback, for tests and benches                   |
//! | 4     | `archive`                 | WARC, CDXJ and WACZ out of a store, WARC into one; below `engine`  |
//! | 3     | `url_server`              | queues, robots gate, niceness                                      |
//! | 3     | `spider`                  | fetches as state machines, over TCP and TLS                        |
//! | 3     | `handler`                 | links, scope, redirects, sitemaps                                  |
//! | 3     | `extractor`               | the text of an article out of its page, and the texts that are kept |
//! | 3     | `store_server`            | segments: append, commit, seal, recover, index, read, let go       |
//! | 3     | `doc_index`               | every URL known: ledger, rows, seen-set, frontier, due times       |
//! | 3     | `feeds`                   | sources and feeds, when each is polled and why then; stories, each once |
//! | 3     | `audit`                   | the crawl log read again, and each promise held against it         |
//! | 3     | `master`                  | URL logs in, the queue of every node out: epochs, current_log, domain map, queues |
//! | 3     | `peer`                  | who owns which partition: table, council, rights that end by themselves, tickets, quiet |
//! | 3     | `search`                  | full text over stories, derived from their texts; only with the feature `search` |
//! | 3     | `resolver`                | names to addresses over DNS, with a cache                          |
//! | 3     | `config`                  | settings: typed, checked, told in one place                        |
//! | 3     | `tune`                    | settings of kernel and hardware: looked at, explained, changed and brought back |
//! | 2     | `driver`                  | io_uring, epoll, simulated network behind one trait                |
//! | 2     | `rings`                   | bounded rings and doorbells between threads                        |
//! | 2     | `storage`                 | sorted runs, the seen-set, spilled pieces, files that are there whole or not at all |
//! | 1     | `proto`                   | bytes in, facts out: HTTP/1.1, TLS, codings, charsets, URLs, robots, HTML, feeds, sitemaps, DNS, lines |
//! | 0     | `base`, `limits`          | time, keys, timers, the address guard; bounds                      |
//!
//! Roles (layer 3) are sans-IO: events and the time come in, actions go out. They know nothing of each other, of
//! drivers or of threads, which is why the simulation can run them as they are.
//!
//! # Invariants
//!
//! 1. A URL handed to a spider is answered for exactly once, or is sent again; it is never lost.
//! 2. No host has more than `req_host_concurrent` requests open, no host or address is asked faster than its
//!    rate, and nothing but /robots.txt is asked of a host before its robots rules are known.
//! 3. A document counts as done only when its record is on disk: data durable, then index, then done. A page is never
//!    done without its links, and what was open when a process was killed is pending in the next.
//! 4. A shard never blocks: no lock, no disk, no name look-up on its path.
//! 5. A slot is not used again while the kernel may still complete on it; keys carry a generation.
//! 6. The address that is connected to is the address that was checked.
//! 7. Memory is flat: receive buffers are lent only while bytes are in them, and every queue has a bound.
//!
//! The simulation (`nephila sim`) checks 1, 2 and 5 on every step of every seed, and audits the crawl log of each at
//! its end; `nephila audit` does so for a crawl on the real web. `nephila sim --split` checks 1, 2, 3 and 5 over a URL
//! server, three spiders and a store server whose links break and which are killed; what it cannot hold a URL server to,
//! because a request was left behind at a spider that it had to give up, is written in `sim/split/judge.rs`.
//! `nephila sim --master` does so with two masters, their table and three nodes: no line is lost, no domain is with two nodes
//! at once, nothing is fetched again without a change, and the audit of each master is clean. `nephila sim --cluster` does so
//! with nodes that join, are cut off, stand still, are killed and taken over: a host and an address have one node at a time,
//! nothing is lost, and *ready* is true. `nephila sim --feeds` checks what is promised of feeds, as their servers see it:
//! never asked before they are due, which a model of its own computes, with their validators as they came, and nothing
//! after 410; every story once, and all of it through kills.
#![deny(unsafe_code)]

pub mod admin;
pub(crate) mod archive;
pub(crate) mod audit;
pub mod base;
pub mod commands;
pub mod config;
pub mod doc_index;
pub mod driver;
pub mod engine;
pub mod extractor;
pub mod farm;
pub mod feeds;
pub(crate) mod handler;
pub mod limits;
pub mod master;
pub mod peer;
pub mod proto;
pub(crate) mod resolver;
pub(crate) mod rings;
#[cfg(feature = "search")]
pub mod search;
pub(crate) mod sim;
pub(crate) mod spider;
pub(crate) mod storage;
pub mod store_server;
pub(crate) mod tune;
pub(crate) mod url_server;
