//! `nephila master`: URL logs in, the queue of every node out. One file per sub-command.

mod args;
mod audit;
mod command;
mod diff;
mod explain;
mod log;
mod map;
mod once;
mod once_data;
mod queue;
mod rejects;
mod report;
mod run;
mod status;

pub(super) use command::MasterArgs;
