//! A farm in a process of its own, for `demo` and `bench`: its CPU time is not ours, and it ends with us.

use super::Failure;
use super::machine::on_cores;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct ChildFarm {
    child: Child,
    pub port: u16,
    pub hosts_file: PathBuf,
    pub seeds_file: PathBuf,
    /// The authority to trust, if the flags ask for TLS.
    pub ca_file: PathBuf,
}

impl ChildFarm {
    /// Starts `nephila farm` with these flags on these cores, with its files in `dir`.
    pub fn start(flags: &[String], cores: &[usize], dir: &Path) -> Result<ChildFarm, Failure> {
        let hosts_file = dir.join("farm.hosts");
        let seeds_file = dir.join("farm.seeds");
        let ca_file = dir.join("farm.pem");
        let program = std::env::current_exe().map_err(Failure::cannot_run)?;
        let mut command = Command::new(program);
        command.arg("farm").args(flags).args(["--json", "--until-stdin-closes", "--hosts-file"]);
        command.arg(&hosts_file).arg("--seeds-file").arg(&seeds_file);
        if flags.iter().any(|flag| flag == "--tls") {
            command.arg("--ca-out").arg(&ca_file);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = on_cores(cores, || command.spawn())?
            .map_err(|e| Failure::CannotRun(format!("cannot start the farm: {e}")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let said: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        let port = said.and_then(|said| said["port"].as_u64()).and_then(|port| u16::try_from(port).ok());
        match port {
            Some(port) => Ok(ChildFarm { child, port, hosts_file, seeds_file, ca_file }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Failure::CannotRun("the farm did not start; its reason is above".to_string()))
            }
        }
    }
}

impl Drop for ChildFarm {
    /// Closing its stdin ends it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
