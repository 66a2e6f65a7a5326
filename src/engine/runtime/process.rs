//! What the kernel says of this process and its threads.

use crate::base::SortedMap;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::path::Path;

/// A process as the kernel sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessReadings {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub open_fds: u64,
    pub max_fds: u64,
    /// Seconds since 1970.
    pub start_seconds: f64,
}

/// The processor time of threads by name. A thread that is gone still counts: a sum never falls.
#[derive(Default)]
pub(super) struct ThreadTimes {
    /// Of threads that were seen last time, by their number.
    last: SortedMap<u32, Thread>,
    gone: SortedMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    name: String,
    ticks: u64,
}

/// Names beyond these count together: workers of the kernel and of libraries come and go.
const NAMES_MAX: usize = 64;
const OTHERS: &str = "other";

impl ThreadTimes {
    /// Seconds of every name so far.
    pub fn read(&mut self) -> Vec<(String, f64)> {
        let per_second = ticks_per_second();
        let mut now = SortedMap::new();
        for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let stat = fs::read_to_string(entry.path().join("stat")).ok();
            if let (Some(number), Some(thread)) = (number, stat.as_deref().and_then(Thread::parse)) {
                now.insert(number, thread);
            }
        }
        self.take(now).into_iter().map(|(name, ticks)| (name, ticks as f64 / per_second)).collect()
    }

    fn take(&mut self, now: SortedMap<u32, Thread>) -> SortedMap<String, u64> {
        for (number, thread) in std::mem::replace(&mut self.last, now) {
            // A number may have gone to another thread meanwhile, which has less behind it.
            let goes_on = self.last.get(&number);
            if goes_on.is_none_or(|now| now.name != thread.name || now.ticks < thread.ticks) {
                *self.gone.entry(thread.name).or_default() += thread.ticks;
            }
        }
        let mut sums = self.gone.clone();
        for thread in self.last.values() {
            *sums.entry(thread.name.clone()).or_default() += thread.ticks;
        }
        sums
    }
}

impl Thread {
    /// Reads a line of the kernel, `12 (name) S …`: the 14th and 15th of its fields are user and system time.
    fn parse(stat: &str) -> Option<Thread> {
        let (head, tail) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut times = tail.split_whitespace().skip(11);
        let mut ticks = || times.next()?.parse::<u64>().ok();
        let ticks = ticks()? + ticks()?;
        Some(Thread { name: known_name(name).to_string(), ticks })
    }
}

/// Threads of ours by the name they were given; whatever else there is, together.
fn known_name(name: &str) -> &str {
    const OURS: [&str; 12] = [
        "scheduler",
        "index",
        "names",
        "keeper",
        "maintenance",
        "log",
        "control",
        "links",
        "dispatcher",
        "record-sender",
        "acceptor",
        "nephila",
    ];
    let number = |prefix| name.strip_prefix(prefix).and_then(|number| number.parse::<usize>().ok());
    let is_shard = ["shard-", "store-"].iter().any(|prefix| number(*prefix).is_some_and(|at| at < NAMES_MAX));
    if is_shard || OURS.contains(&name) { name } else { OTHERS }
}

fn ticks_per_second() -> f64 {
    sysconf(SysconfVar::CLK_TCK).ok().flatten().map_or(100.0, |ticks| ticks.max(1) as f64)
}

impl ProcessReadings {
    pub(super) fn read(cpu_us: u64, start_seconds: f64) -> ProcessReadings {
        let page_bytes =
            sysconf(SysconfVar::PAGE_SIZE).ok().flatten().map_or(4_096, |bytes| bytes.max(1) as u64);
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        ProcessReadings {
            cpu_seconds: cpu_us as f64 / 1e6,
            resident_bytes: pages.unwrap_or(0) * page_bytes,
            open_fds: open_fds(Path::new("/proc/self/fd")),
            max_fds: getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft),
            start_seconds,
        }
    }
}

/// Newer kernels give the number as the size of the folder; of others the names are counted.
fn open_fds(folder: &Path) -> u64 {
    match fs::metadata(folder).map_or(0, |folder| folder.len()) {
        0 => fs::read_dir(folder).map_or(0, |names| names.count() as u64),
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str, ticks: u64) -> Thread {
        Thread { name: name.to_string(), ticks }
    }

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name() {
        let line = "71 (shard-0) R 1 71 71 0 -1 4194368 90 0 0 0 1500 250 0 0 20 0 9 0 5 1 2 3";
        assert_eq!(Thread::parse(line), Some(thread("shard-0", 1_750)));
        let odd = line.replace("shard-0", "a) b (c");
        assert_eq!(Thread::parse(&odd), Some(thread(OTHERS, 1_750)), "and its name is no label");
        assert_eq!(Thread::parse("71 (shard-0) R 1"), None);
        assert_eq!(
            (known_name("shard-63"), known_name("shard-64"), known_name("shard-x")),
            ("shard-63", OTHERS, OTHERS)
        );
    }

    #[test]
    fn the_time_of_a_thread_that_is_gone_stays() {
        let mut times = ThreadTimes::default();
        let sums = |times: &mut ThreadTimes, now: &[(u32, Thread)]| {
            times.take(now.iter().cloned().collect()).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(
            sums(&mut times, &[(1, thread("control", 5)), (2, thread("control", 7))]),
            [("control".into(), 12)]
        );
        assert_eq!(sums(&mut times, &[(1, thread("control", 6))]), [("control".into(), 13)]);
        // Its number went to another thread of the same name.
        assert_eq!(sums(&mut times, &[(1, thread("control", 1))]), [("control".into(), 14)]);
        assert_eq!(sums(&mut times, &[]), [("control".into(), 14)]);
    }

    #[test]
    fn this_process_can_be_read() {
        let process = ProcessReadings::read(1_500_000, 7.0);
        assert_eq!((process.cpu_seconds, process.start_seconds), (1.5, 7.0));
        assert!(
            process.resident_bytes > 1 << 20 && process.open_fds >= 3 && process.max_fds > process.open_fds
        );
        assert!(!ThreadTimes::default().read().is_empty());
    }
}
