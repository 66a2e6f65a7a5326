//! Kernel and hardware settings of a crawl node: what they are, what a crawl wants of them, and how to get there and back.
//!
//! ```text
//!   /proc /sys /etc ──► Machine ──► Knob::look ──► Report: a Finding each, a Tally, Advice     (tune check, explain, start)
//!                                       │ Mend::Write
//!                                       ▼
//!                                     Plan ──► script     what would be written, as a shell script
//!                                       └────► apply      undo.json, then the writes; revert goes back by it
//! ```
//!
//! | file         | holds                                                                       |
//! |--------------|-----------------------------------------------------------------------------|
//! | `machine`    | the machine as this process sees it, read below one root                    |
//! | `parse`      | what files of /proc, /sys and /etc say                                      |
//! | `knob`       | a setting, what a look at it found, how to mend it                          |
//! | `knobs`      | all of them, a file for each runbook                                        |
//! | `report`     | every setting looked at, and counted                                        |
//! | `advice`     | shards, cores, sockets and memory that the node can use                     |
//! | `runbook`    | the sections of tuning/*.md, compiled in                                    |
//! | `plan`       | what is to be written, and its way into the machine and back                |
//! | `undo`       | what was there before, on disk before the first change                      |
//! | `script`     | the same as a shell script                                                  |
//! | `disk_speed` | how fast the disk of a data directory makes things durable                  |
//!
//! Nothing here needs root to look, and nothing here prints. What a container hides cannot be told, and is never called
//! wrong.

mod advice;
mod disk_speed;
mod knob;
mod knobs;
mod machine;
mod parse;
mod plan;
mod report;
mod runbook;
mod script;
mod undo;

pub(crate) use advice::Advice;
pub(crate) use disk_speed::{Bounds, DiskSpeed};
pub(crate) use knob::{Change, Status};
pub(crate) use knobs::{knob, nearest};
pub(crate) use machine::{ForNode, Machine};
pub(crate) use plan::{Plan, revert};
pub(crate) use report::{Finding, Report, Tally, startup_line};
pub(crate) use runbook::section;
pub(crate) use script::script;
pub(crate) use undo::Undo;
