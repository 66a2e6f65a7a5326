use crate::commands::shared::Failure;
use std::process::{Child, Output};
use std::time::{Duration, SystemTime};

/// What a running process has used by a moment, as `/proc` tells it. Reading it costs the process nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessSample {
    /// Microseconds since 1970.
    pub at_us: u64,
    /// User and system time of all its threads, in steps of a hundredth of a second.
    pub cpu_us: u64,
    pub rss_bytes: u64,
    /// Of those, what is its own and not a file's: segments are mapped, and their pages come and go.
    pub anon_bytes: u64,
}

/// `/proc` counts CPU time in hundredths of a second, whatever the kernel's own clock does.
const TICK_US: u64 = 10_000;

impl ProcessSample {
    /// Samples a child until it ends. What it prints until then is little enough for a pipe to hold.
    pub fn until_end(mut child: Child, every: Duration) -> Result<(Vec<ProcessSample>, Output), Failure> {
        let mut samples = Vec::new();
        loop {
            samples.extend(ProcessSample::of(child.id()));
            if child.try_wait()?.is_some() {
                return Ok((samples, child.wait_with_output()?));
            }
            std::thread::sleep(every);
        }
    }

    /// `None` once the process has ended.
    pub fn of(pid: u32) -> Option<ProcessSample> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        ProcessSample::parse(&status, &stat, at.as_micros() as u64)
    }

    fn parse(status: &str, stat: &str, at_us: u64) -> Option<ProcessSample> {
        let bytes = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
            Some(kilobytes * 1_024)
        };
        let cpu_us = ticks_us(stat)?;
        Some(ProcessSample { at_us, cpu_us, rss_bytes: bytes("VmRSS:")?, anon_bytes: bytes("RssAnon:")? })
    }
}

/// CPU of the threads of a process that have one of these names; 0 if it has none.
pub(super) fn threads_us(pid: u32, names: &[&str]) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let is_one = |stat: &String| names.iter().any(|name| stat.contains(&format!("({name})")));
    stats.filter(is_one).filter_map(|stat| ticks_us(&stat)).sum()
}

/// The threads that a process has, by name, and the CPU time of each in microseconds. The first has the name of the program.
pub(super) fn threads_of(pid: u32) -> Vec<(String, f64)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let used = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let on_core_ns: f64 = times.split_ascii_whitespace().next()?.parse().ok()?;
        let is_first = task.file_name().to_str() == Some(pid.to_string().as_str());
        let name = if is_first { "main" } else { name.trim_end() };
        Some((name.to_string(), on_core_ns / 1e3))
    });
    used.collect()
}

/// The CPU time in a file `stat` of a process or a thread.
pub(super) fn ticks_us(stat: &str) -> Option<u64> {
    // The name in parentheses may hold spaces and parentheses; behind it stand numbers.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * TICK_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let status = "Name:\tcrawl\nVmHWM:\t  900 kB\nVmRSS:\t  800 kB\nRssAnon:\t  300 kB\n";
        let stat = "17 (a) b (c)) S 1 17 17 0 -1 4194304 100 0 2 0 25 17 3 4 20 0 1 0 5 6 7";
        let sample = ProcessSample::parse(status, stat, 5).unwrap();
        let (rss_bytes, anon_bytes) = (800 << 10, 300 << 10);
        assert_eq!(sample, ProcessSample { at_us: 5, cpu_us: 420_000, rss_bytes, anon_bytes });
    }

    #[test]
    fn threads_have_names_and_use_the_core() {
        let threads = threads_of(std::process::id());
        assert!(threads.iter().any(|(name, cpu_us)| name == "main" && *cpu_us > 0.0), "{threads:?}");
        assert!(threads_of(0).is_empty());
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        assert_eq!(ProcessSample::parse("Name:\tcrawl\n", "17 (a) Z 1 17", 5), None);
        assert!(ProcessSample::of(std::process::id()).is_some_and(|own| own.rss_bytes >= own.anon_bytes));
    }
}
