//! `nephila master`: URL logs in, the queue of every node out. One file per sub-command.

mod args;
mod command;
mod status;

pub(super) use command::MasterArgs;
