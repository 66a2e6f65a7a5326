use super::section::settings;
use std::net::SocketAddr;

settings! {
    /// The listener by which a process is asked and told things: always the socket `admin.sock` in its data directory, for
    /// its own user, and TCP where it is told to.
    "[admin]" AdminSettings {
        /// Where it listens on TCP, as `--admin` says, like "127.0.0.1:7180"; unset, nowhere.
        listen: Option<SocketAddr> = None, told once;
        /// Names by which it may be asked besides those of this machine, like ["crawl.example.org"]; needed off loopback.
        hosts: Vec<String> = Vec::new(), told once;
    }
}
