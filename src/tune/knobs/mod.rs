//! Every setting that is looked at, a file for each runbook. A knob says what it wants of this machine and node, and what
//! its lack costs; none of them writes.

mod cpu;
mod disk;
mod dns;
mod files;
mod io_uring;
mod list;
mod nic;
mod ports;
mod sockets;
mod sysctl;

pub(crate) use list::{knob, knobs, nearest};
