use super::guard::Guard;
use super::socket;
use super::token::Token;
use crate::config::AdminSettings;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where a process listens for those who ask it: taken before it starts, so that an address in use keeps it from starting.
pub struct Doors {
    /// Where its socket is made once the directory is its own.
    data: Option<PathBuf>,
    tcp: Option<TcpListener>,
    hosts: Vec<String>,
}

#[derive(Debug, Error)]
pub enum DoorsError {
    #[error(
        "--admin {0} is not loopback: other machines could reach it; set hosts of [admin] to the names by which it may be called, or use 127.0.0.1 and a tunnel (ssh -L)"
    )]
    NotLoopback(SocketAddr),
    #[error("--admin {0} is not loopback, and without a data directory there is no token: use 127.0.0.1")]
    NoToken(SocketAddr),
    #[error(
        "cannot listen on {addr}: {cause} (choose another address with --admin; port 0 takes a free one)"
    )]
    Taken { addr: SocketAddr, cause: io::Error },
}

/// The same, open.
pub(super) struct OpenDoors {
    pub unix: Option<UnixListener>,
    pub tcp: Option<TcpListener>,
    pub guard: Guard,
    /// What cannot be had, in words; the process runs without it.
    pub trouble: Vec<String>,
}

impl Doors {
    /// Takes the address, if one is set. `data` is the data directory of the process, if it has one.
    pub fn take(settings: &AdminSettings, data: Option<&Path>) -> Result<Doors, DoorsError> {
        if let Some(addr) = settings.listen.filter(|addr| !addr.ip().is_loopback()) {
            match (settings.hosts.is_empty(), data) {
                (true, _) => return Err(DoorsError::NotLoopback(addr)),
                (false, None) => return Err(DoorsError::NoToken(addr)),
                (false, Some(_)) => {}
            }
        }
        let listen = |addr| TcpListener::bind(addr).map_err(|cause| DoorsError::Taken { addr, cause });
        let tcp = settings.listen.map(listen).transpose()?;
        Ok(Doors { data: data.map(Path::to_path_buf), tcp, hosts: settings.hosts.clone() })
    }

    /// Where it listens on TCP.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }

    pub fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// Opens them, in a data directory whose lock is held.
    pub(super) fn open(self) -> OpenDoors {
        let mut trouble = Vec::new();
        let mut had = |what: &str, cause: io::Error| trouble.push(format!("{what}: {cause}"));
        let data = self.data.as_deref();
        // Whoever sees the socket finds the token.
        let token = data.filter(|_| self.tcp.is_some()).and_then(|data| {
            Token::of(data)
                .map_err(|cause| had("no token, so nothing that needs one is answered", cause))
                .ok()
        });
        let unix = data.and_then(|data| {
            let no_socket = format!("nobody can ask this process: no {}", socket::ADMIN_SOCKET);
            socket::bind(data).map_err(|cause| had(&no_socket, cause)).ok()
        });
        let tcp = self.tcp.and_then(|tcp| {
            let set = tcp.set_nonblocking(true);
            set.map(|()| tcp).map_err(|cause| had("nobody can ask this process by TCP", cause)).ok()
        });
        OpenDoors { unix, tcp, guard: Guard { hosts: self.hosts, token, ..Guard::default() }, trouble }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_loopback_needs_names_and_a_token() {
        let of = |listen: &str, hosts: &[&str], data: Option<&str>| {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            let settings = AdminSettings { listen: Some(listen.parse().unwrap()), hosts };
            Doors::take(&settings, data.map(Path::new)).map(|doors| doors.bound())
        };
        assert!(matches!(of("0.0.0.0:0", &[], Some("/x")), Err(DoorsError::NotLoopback(_))));
        assert!(matches!(of("[::]:0", &["a"], None), Err(DoorsError::NoToken(_))));
        let bound = of("127.0.0.1:0", &[], None).unwrap().unwrap();
        assert!(bound.port() > 0);
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = of(&held.local_addr().unwrap().to_string(), &[], None).unwrap_err();
        assert!(taken.to_string().contains("--admin; port 0"), "{taken}");
    }
}
