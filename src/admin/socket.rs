//! The socket in a data directory, however long the way to that is.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The socket of a data directory.
pub const ADMIN_SOCKET: &str = "admin.sock";

/// The address of a socket has room for so many bytes, and a zero.
const PATH_BYTES_MAX: usize = 107;

pub fn path(data: &Path) -> PathBuf {
    data.join(ADMIN_SOCKET)
}

/// Listens in a data directory whose lock is held: a socket that is there is of a process that is gone.
pub fn bind(data: &Path) -> io::Result<UnixListener> {
    let path = path(data);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(&path)?,
        Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "something else has its name")),
        Err(_) => {}
    }
    let listener = shortly(data, |path| UnixListener::bind(path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub fn connect(data: &Path) -> io::Result<UnixStream> {
    shortly(data, |path| UnixStream::connect(path))
}

/// Calls a function with the path of the socket. One that is too long for an address leads over the open directory.
fn shortly<T>(data: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = path(data);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return call(&path);
    }
    let directory = File::open(data)?;
    call(Path::new(&format!("/proc/self/fd/{}/{ADMIN_SOCKET}", directory.as_raw_fd())))
}

/// Whether the other end is of the same user, or of root: the mode of the socket says so, too, once it is set.
pub fn is_ours(stream: &impl AsFd) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}
