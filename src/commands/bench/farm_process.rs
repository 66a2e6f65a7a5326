use crate::commands::shared::{Failure, on_cores};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A farm in a process of its own, for `demo` and `bench`: its CPU time is not ours, and it ends with us.
pub(crate) struct FarmProcess {
    child: Child,
    pub port: u16,
    pub hosts_file: PathBuf,
    pub seeds_file: PathBuf,
    pub is_tls: bool,
    /// The authority to trust, if it speaks TLS.
    pub ca_file: PathBuf,
}

impl FarmProcess {
    /// Starts `nephila farm` with these flags on these cores, with its files in `dir`.
    pub fn start(
        figures: &[(&str, u32)],
        switches: &[&str],
        cores: &[usize],
        dir: &Path,
    ) -> Result<FarmProcess, Failure> {
        let [hosts_file, seeds_file, ca_file] =
            ["farm.hosts", "farm.seeds", "farm.pem"].map(|name| dir.join(name));
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("farm").args(switches).args(["--json", "--until-stdin-closes"]);
        for (flag, figure) in figures {
            command.args([flag, &*figure.to_string()]);
        }
        command.arg("--hosts-file").arg(&hosts_file).arg("--seeds-file").arg(&seeds_file);
        let is_tls = switches.contains(&"--tls");
        if is_tls {
            command.arg("--ca-out").arg(&ca_file);
        }
        // Ctrl-C is for us: what is open may end, and the farm ends with us.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = on_cores(cores, || command.spawn())?
            .map_err(|e| Failure::CannotRun(format!("cannot start the farm: {e}")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let mut farm =
            FarmProcess { child, port: port.unwrap_or(0), hosts_file, seeds_file, is_tls, ca_file };
        if port.is_none() {
            let _ = farm.child.kill();
            return Err(Failure::CannotRun("the farm did not start; its reason is above".to_string()));
        }
        Ok(farm)
    }
}

impl Drop for FarmProcess {
    /// Closing its stdin ends it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
