//! `nephila master`: URL logs in, the queue of every node out. One file per sub-command.

mod command;
mod once;
mod status;
mod threads;

pub(super) use command::MasterArgs;
