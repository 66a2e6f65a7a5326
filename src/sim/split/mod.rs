//! The split processes in virtual time: a URL server, three spiders and a store server, joined by links that are cut,
//! delayed and reset, while processes are killed and started again.
//!
//! ```text
//!   SplitPlan (drawn from the seed) ──► SplitWorld ──► UrlCore · SpiderCore × 3 · StoreCore, over SimDriver
//!                                          │               files of a process outlive it
//!                                          └──► SplitJudge: requests as servers see them, orders, DONEs, the store
//! ```

mod judge;
mod plan;
mod process;
mod world;

pub use world::run_split;
