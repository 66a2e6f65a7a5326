//! What several commands share: how they fail and print, the flags that open data directories, the machine that they
//! run on, and the one way in which `crawl`, `spider`, `urlserver` and `storeserver` run a node to its end.

mod cluster_key;
mod data;
mod event_log;
mod failure;
mod filter;
mod intake;
mod listening;
mod log_parts;
pub(super) mod machine;
mod names;
pub(super) mod output;
mod owned_view;
mod product_driver;
mod progress;
mod progress_line;
mod reload;
mod report;
mod run_note;
mod runner;
mod running;
mod service;
mod signals;
mod ticker;
mod times;
mod url_list;
mod verbosity;

pub(super) use crate::base::{counted, plural};
pub(super) use cluster_key::{KEY_FILE, key_path, read_key};
pub(super) use data::{DataArg, free_data, is_no_node, keep_settings, lacks, now_ms, open_data, open_index};
pub(super) use event_log::{LogArgs, tell as tell_event};
pub(super) use failure::Failure;
pub(super) use filter::{FilterArgs, is_of_host};
pub(super) use intake::Intake;
pub(super) use listening::{listen, take_doors};
pub(super) use log_parts::{LogParts, Missing, Piece};
pub(super) use machine::{
    announce_tuning, cores, for_node, links_possible, on_cores, raise_nofile, slow_commits, tell_slow_commits,
};
pub(super) use names::NameSource;
pub(super) use output::{
    hint, mb, print, say, say_failure, sized, stream, tell, tell_summary, write_json, written,
};
pub(super) use owned_view::{OwnedView, Standing};
pub(super) use product_driver::{ChosenDriver, ProductDriver};
pub(super) use reload::Reload;
pub(super) use report::{CrawlReport, Fetches, SpiderReport, StoreReport, UrlReport};
pub(super) use run_note::{OpenNote, RunNote};
pub(super) use runner::{Farewell, Leaving, announce_links, run_to_end};
pub(super) use running::RunningCrawl;
pub(super) use signals::{Interrupt, Signals, WithParent};
pub(super) use ticker::{Ticker, columns};
pub(super) use times::{age, read_since, with_age};
pub(super) use url_list::{parse_url, read_urls};
pub(super) use verbosity::Verbosity;
