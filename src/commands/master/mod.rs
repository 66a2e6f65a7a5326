//! `nephila master`: URL logs in, the queue of every node out. One file per sub-command.

mod command;
mod report;
mod run;
mod status;

pub(super) use command::MasterArgs;
