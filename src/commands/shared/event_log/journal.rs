use nix::sys::stat::fstat;
use std::io::stderr;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The socket of systemd's journal, named anew with every message: the journal may be restarted.
pub(super) struct Journal(UnixDatagram);

const SOCKET: &str = "/run/systemd/journal/socket";
/// A journal that is stuck holds nobody up.
const PATIENCE: Duration = Duration::from_millis(100);

impl Journal {
    pub fn open() -> Option<Journal> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_write_timeout(Some(PATIENCE)).ok()?;
        Some(Journal(socket))
    }

    /// False if it did not take the message: it is not there, or the message is too long for it.
    pub fn send(&self, datagram: &[u8]) -> bool {
        self.0.send_to(datagram, SOCKET).is_ok()
    }
}

/// Whether our stderr goes to the journal: systemd names the device and inode that it gave to a service.
pub(super) fn has_stderr() -> bool {
    let named = std::env::var("JOURNAL_STREAM").ok();
    let ours = fstat(stderr()).ok().map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    named.is_some() && named == ours
}
