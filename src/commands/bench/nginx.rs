use super::stage::{Stage, is_installed};
use crate::commands::shared::{Failure, on_cores};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NGINX: [&str; 2] = ["nginx", "/usr/sbin/nginx"];
/// For nginx to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// nginx on the core of the farm, which serves a directory.
pub(super) struct Nginx {
    child: Child,
    pub at: SocketAddr,
}

impl Nginx {
    pub fn start(stage: &Stage, site: &Path) -> Result<Nginx, Failure> {
        let site = site.canonicalize().map_err(|e| Failure::CannotRun(format!("{}: {e}", site.display())))?;
        let program = NGINX.into_iter().find(|program| is_installed(program, "-v"));
        let program = program.ok_or_else(|| {
            Failure::cannot_run("nginx is not installed: it serves the site (Debian package nginx)")
        })?;
        // A free one; nobody else takes it in this moment on a machine for benches.
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let conf = stage.dir.join("nginx.conf");
        fs::write(&conf, settings(&stage.dir, &site, at))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(&stage.dir).arg("-c").arg(&conf);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = on_cores(&[stage.farm_core], || command.spawn())??;
        let mut nginx = Nginx { child, at };
        let begun = Instant::now();
        while TcpStream::connect(at).is_err() {
            if begun.elapsed() > PATIENCE || nginx.child.try_wait()?.is_some() {
                let said = fs::read_to_string(stage.dir.join("nginx.log")).unwrap_or_default();
                let why = said.lines().last().unwrap_or("it says nothing").to_string();
                return Err(Failure::CannotRun(format!("nginx does not serve {}: {why}", site.display())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process, which ends when it is killed.
fn settings(dir: &Path, site: &Path, at: SocketAddr) -> String {
    let [dir, site] = [dir, site].map(|path| path.display().to_string());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {dir}/nginx-{name}; "))
        .collect();
    format!(
        "user root;\ndaemon off;\nmaster_process off;\npid {dir}/nginx.pid;\nerror_log {dir}/nginx.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  {temporary}\n  access_log off;\n  types {{ text/html html; text/css css; text/javascript js; }}\n  \
         keepalive_requests 100000000;\n  server {{ listen {at}; root \"{site}\"; }}\n}}\n"
    )
}
