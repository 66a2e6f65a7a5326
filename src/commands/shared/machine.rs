//! What the machine offers: cores, descriptors, memory. Looked at once, before anything starts.

use super::Failure;
use super::event_log::tell;
use crate::config::SpiderSettings;
use crate::engine::{Commits, Event};
use crate::limits::LINKS_MAX;
use crate::tune::{DiskSpeed, ForNode, Machine, Tally, startup_line};
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

/// What to say of commits that take far longer than the disk of a data directory did when it was measured, if they do.
pub(crate) fn slow_commits(data: &Path, commits: Commits) -> Option<String> {
    DiskSpeed::read(data)?.commits_are_slow(commits.count, commits.p99_us)
}

/// Says so at the end of a crawl.
pub(crate) fn tell_slow_commits(data: &Path, commits: Commits) {
    if let Some(text) = slow_commits(data, commits) {
        let fields = vec![("commits", commits.count.into()), ("time_us", commits.p99_us.into())];
        tell(Event::CommitsSlow, fields, text);
    }
}

/// Memory of this machine, or what control groups leave of it, as far as the kernel tells.
pub(crate) fn memory_bytes() -> Option<u64> {
    Machine::at(Path::new("/"), for_node(Path::new(""), None)).memory_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_held_against_the_disk_as_it_was_measured() {
        let data = std::env::temp_dir().join(format!("nephila-commits-{}", std::process::id()));
        std::fs::create_dir_all(&data).unwrap();
        let slow = Commits { count: 1_000, p99_us: 90_000 };
        assert_eq!(slow_commits(&data, slow), None, "it was never measured");
        let kept = DiskSpeed {
            measured_at: "2026-01-01T00:00:00Z".to_string(),
            fdatasync_p50_us: 500,
            fdatasync_p99_us: 2_000,
            syncs: 1_000,
            mb_per_second: 100.0,
            bytes: 1,
        };
        kept.keep(&data).unwrap();
        assert!(slow_commits(&data, slow).is_some_and(|text| text.contains("p99 90.0 ms")));
        assert_eq!(slow_commits(&data, Commits { p99_us: 9_000, ..slow }), None);
        assert_eq!(slow_commits(&data, Commits { count: 9, ..slow }), None);
        std::fs::remove_dir_all(&data).unwrap();
    }
}
