use super::cpu::children_us;
use super::farm_process::FarmProcess;
use crate::commands::shared::{Failure, cores, on_cores};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where a bench takes place: a directory of its own, the first core for what is measured, the last for the farm.
pub(super) struct Stage {
    pub dir: PathBuf,
    pub core: usize,
    pub farm_core: usize,
    is_kept: bool,
}

/// What a peer said, and what it used.
pub(super) struct PeerRun {
    pub text: String,
    pub cpu_us: f64,
    pub seconds: f64,
}

/// What wrk reached, and what a request cost it.
#[derive(Serialize, Clone, Copy)]
pub(super) struct WrkRun {
    pub requests_per_second: f64,
    pub cpu_us_per_request: f64,
}

impl Stage {
    /// In a directory that is removed at the end, by default one under the system's temporary one.
    pub fn passing(dir: Option<&Path>) -> Result<Stage, Failure> {
        let mut stage = Stage::at(dir);
        std::fs::create_dir_all(&stage.dir)
            .map_err(|e| Failure::CannotRun(format!("cannot use {}: {e}", stage.dir.display())))?;
        stage.is_kept = false;
        Ok(stage)
    }

    /// In a directory that is made here, and stays if it was named.
    pub fn lasting(dir: Option<&Path>) -> Result<Stage, Failure> {
        let mut stage = Stage::at(dir);
        std::fs::create_dir(&stage.dir)
            .map_err(|e| Failure::CannotRun(format!("cannot make {}: {e}", stage.dir.display())))?;
        stage.is_kept = dir.is_some();
        Ok(stage)
    }

    /// In a directory that what is measured makes; it is removed at the end.
    pub fn unmade(dir: &Path) -> Result<Stage, Failure> {
        if dir.exists() {
            return Err(Failure::Usage(format!(
                "{} is there already (name a directory that is not, with --data)",
                dir.display()
            )));
        }
        let mut stage = Stage::at(Some(dir));
        stage.is_kept = false;
        Ok(stage)
    }

    fn at(dir: Option<&Path>) -> Stage {
        let own = || std::env::temp_dir().join(format!("nephila-bench-{}", std::process::id()));
        let cores = cores();
        let (core, farm_core) = (cores[0], cores[cores.len() - 1]);
        Stage { dir: dir.map_or_else(own, Path::to_path_buf), core, farm_core, is_kept: true }
    }

    pub fn farm(&self, figures: &[(&str, u32)], switches: &[&str]) -> Result<FarmProcess, Failure> {
        FarmProcess::start(figures, switches, &[self.farm_core], &self.dir)
    }

    /// Has wrk ask for one page again and again, on the core of what is measured.
    pub fn wrk(&self, url: &str, connections: u32, seconds: u32) -> Result<WrkRun, Failure> {
        let mut command = Command::new("wrk");
        command.args(["-t1", "-c", &connections.to_string(), "-d", &format!("{}s", seconds.max(1)), url]);
        let ran = self.peer(command)?;
        let requests = ran.number(|line| Some(line.split_once(" requests in")?.0));
        let rate = ran.number(|line| line.trim().strip_prefix("Requests/sec:"));
        match (requests, rate) {
            (Some(requests), Some(requests_per_second)) if requests > 0.0 => {
                Ok(WrkRun { requests_per_second, cpu_us_per_request: ran.cpu_us / requests })
            }
            _ => Err(ran.unread("wrk")),
        }
    }

    /// Runs a program on the core of what is measured.
    pub fn peer(&self, mut command: Command) -> Result<PeerRun, Failure> {
        command.stdin(Stdio::null());
        let (begun, before) = (Instant::now(), children_us());
        let output = on_cores(&[self.core], || command.output())??;
        Ok(PeerRun {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            cpu_us: children_us() - before,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

impl PeerRun {
    /// The number in the part of a line that `part` finds.
    pub fn number<'a>(&'a self, part: impl Fn(&'a str) -> Option<&'a str>) -> Option<f64> {
        self.text.lines().find_map(|line| part(line)?.trim().parse().ok())
    }

    pub fn unread(&self, peer: &str) -> Failure {
        Failure::CannotRun(format!("cannot read what {peer} said: {}", self.text.trim()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

pub(super) fn is_installed(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_unless_it_was_to_last() {
        let root = std::env::temp_dir().join(format!("nephila-stage-{}", std::process::id()));
        let inside = root.join("inside");
        drop(Stage::lasting(Some(&root)).unwrap());
        assert!(root.exists() && Stage::lasting(Some(&root)).is_err(), "it must be new");
        assert!(Stage::unmade(&root).is_err() && root.exists(), "what was there stays");
        let stage = Stage::unmade(&inside).unwrap();
        assert!(!inside.exists());
        std::fs::create_dir(&inside).unwrap();
        drop(stage);
        assert!(!inside.exists());
        drop(Stage::passing(Some(&root)).unwrap());
        assert!(!root.exists());
    }
}
