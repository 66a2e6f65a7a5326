//! What the machine offers: cores, descriptors, memory. Looked at once, before anything starts.

use super::Failure;
use super::event_log::tell;
use crate::config::SpiderSettings;
use crate::engine::Event;
use crate::limits::LINKS_MAX;
use crate::tune::{ForNode, Machine, Tally, startup_line};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use std::path::Path;

/// The cores this process may run on.
pub(crate) fn cores() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Runs `body`, and every thread and process it starts, on these cores.
pub(crate) fn on_cores<T>(on: &[usize], body: impl FnOnce() -> T) -> Result<T, Failure> {
    let before = sched_getaffinity(Pid::from_raw(0))?;
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
pub(crate) fn raise_nofile() -> u64 {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard => match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => soft,
        },
        Ok((soft, _)) => soft,
        Err(_) => 1_024,
    }
}

/// Makes a file that meets its limit (`ulimit -f`) an error of whoever writes it; the signal would end the process without a
/// word. To be called before any thread starts: all of them inherit it.
pub fn survive_file_limits() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    let _ = signals.thread_block();
}

/// Links that one process can hold.
pub(crate) fn links_possible() -> usize {
    LINKS_MAX.min(raise_nofile() as usize)
}

/// What the settings of the machine are held against: a node as it is if it is told nothing else.
pub(crate) fn for_node(data: &Path, uring_refused: Option<String>) -> ForNode {
    let fetches_max = SpiderSettings::default().fetches_max;
    ForNode { fetches_max, data: Some(data.to_path_buf()), uring_refused, pid: None }
}

/// Says how the settings of the machine stand to a crawl, and counts them.
pub(crate) fn announce_tuning(data: &Path, uring_refused: Option<String>) -> Tally {
    let (tally, line) = startup_line(&Machine::at(Path::new("/"), for_node(data, uring_refused)));
    let counts = [
        ("ok", tally.ok),
        ("slower", tally.slower),
        ("stops", tally.stops),
        ("cannot_tell", tally.cannot_tell),
    ];
    tell(Event::MachineChecked, counts.map(|(name, count)| (name, count.into())).to_vec(), line);
    tally
}

/// Memory of this machine, or what control groups leave of it, as far as the kernel tells.
pub(crate) fn memory_bytes() -> Option<u64> {
    Machine::at(Path::new("/"), for_node(Path::new(""), None)).memory_bytes()
}
