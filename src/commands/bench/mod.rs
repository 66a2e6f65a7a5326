//! Measurements of the product, each beside a peer that does the same in the same run: one file per bench, named for
//! what it measures, over one harness.
//!
//! ```text
//!   Stage           a directory of its own, the first core for what is measured, the last for the farm
//!   FarmProcess     the web that is crawled, in a process of its own
//!   CrawlProcess    a whole crawl, in a process of its own; ProcessSample looks at it from outside
//!   rounds          by turns with the peer; medians, and the ratio within each round
//!   cpu             CPU time of a thread, of this process, of its children
//!   RecordArgs      the run as text, as JSON, and as a file that is kept
//!   LabArgs         one crawl more, watched, as a page of plots
//! ```

mod args;
mod cluster;
mod course;
mod cpu;
mod crawl;
mod crawl_process;
mod density;
mod diff;
mod extract;
mod extract_pages;
mod farm_process;
mod feeds;
mod feeds_made;
mod idle;
mod index;
mod lab;
mod long;
mod master;
mod master_latency;
mod master_log;
mod master_turns;
mod nginx;
mod parse;
mod parts;
mod plot;
mod polls;
mod queues;
mod record;
mod rounds;
mod sampler;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "search")]
mod search_texts;
mod site;
mod site_peer;
mod slow;
mod stage;
mod store;
mod store_work;
mod stories;
mod tls;
mod watched;
mod ways;

pub(super) use args::BenchArgs;
pub(super) use farm_process::FarmProcess;
