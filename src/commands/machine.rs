//! What the machine offers: cores, descriptors, io_uring. Looked at once, before anything starts.

use super::Failure;
use crate::config::DriverChoice;
use crate::driver::UringDriver;
use crate::limits::{LINKS_MAX, NAME_SOCKETS_MAX};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

/// The driver that will be used, and the line that says so.
pub struct ChosenDriver {
    pub name: &'static str,
    pub why: String,
}

pub fn choose_driver(choice: DriverChoice) -> Result<ChosenDriver, Failure> {
    let uring = "uring";
    match (choice, UringDriver::probe()) {
        (DriverChoice::Epoll, _) => Ok(ChosenDriver { name: "epoll", why: "asked for".to_string() }),
        (DriverChoice::Uring, Ok(())) => Ok(ChosenDriver { name: uring, why: "asked for".to_string() }),
        (DriverChoice::Uring, Err(cause)) => {
            Err(Failure::CannotRun(format!("{cause}; --driver auto falls back to epoll")))
        }
        (DriverChoice::Auto, Ok(())) => {
            Ok(ChosenDriver { name: uring, why: "this kernel offers io_uring with buffer rings".to_string() })
        }
        (DriverChoice::Auto, Err(cause)) => Ok(ChosenDriver { name: "epoll", why: cause }),
    }
}

/// The cores this process may run on.
pub fn cores() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Runs `body`, and every thread and process it starts, on these cores.
pub fn on_cores<T>(on: &[usize], body: impl FnOnce() -> T) -> Result<T, Failure> {
    let before = sched_getaffinity(Pid::from_raw(0)).map_err(Failure::cannot_run)?;
    let mut set = CpuSet::new();
    for &core in on {
        set.set(core).map_err(|_| Failure::Usage(format!("there is no core {core}")))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| {
        Failure::Usage(format!("cannot run on cores {on:?}: {e} (choose others with --cores)"))
    })?;
    let result = body();
    let _ = sched_setaffinity(Pid::from_raw(0), &before);
    Ok(result)
}

/// Raises the soft limit on open files to the hard one, and says what it is.
pub fn raise_nofile() -> u64 {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard => match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => soft,
        },
        Ok((soft, _)) => soft,
        Err(_) => 1_024,
    }
}

/// Descriptors kept for segments, rings, logs and the like.
const FILES_KEPT_BACK: u64 = 64;

/// Sockets the resolver can have open at once. Where they share the process's descriptors with the fetches, they
/// get a part of them.
pub fn name_sockets_possible(driver: &str) -> usize {
    let files = raise_nofile() as usize;
    let possible = match driver {
        "uring" => files,
        _ => files / 16,
    };
    possible.clamp(2, NAME_SOCKETS_MAX)
}

/// Links that one process can hold.
pub fn links_possible() -> usize {
    LINKS_MAX.min(raise_nofile() as usize)
}

/// Fetches one shard can have open. io_uring counts direct descriptors per ring; epoll shares the process's.
pub fn fetches_possible(driver: &str, wanted: usize, shards: usize) -> Result<usize, Failure> {
    let files = raise_nofile();
    let possible = match driver {
        "uring" => files as usize,
        _ => {
            let kept_back = FILES_KEPT_BACK + name_sockets_possible(driver) as u64;
            (files.saturating_sub(kept_back) as usize) / shards
        }
    };
    if possible < 16 {
        return Err(Failure::CannotRun(format!(
            "too few descriptors: the limit of {files} open files leaves {possible} fetches a shard (raise it with ulimit -n)"
        )));
    }
    Ok(wanted.min(possible))
}

/// Memory of this machine, as far as the kernel tells.
pub fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}
