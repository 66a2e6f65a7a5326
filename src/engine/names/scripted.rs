//! Names from a server that a test plays.

use super::{HostsFile, Names, ResolvConf};
use crate::driver::EpollDriver;
use crate::engine::runtime::health::Health;
use crate::proto::dns::made_up::Heard;
use crate::rings::Doorbell;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant;

/// The server says what `script` does, or nothing; it is asked once, and given a second. Its thread ends with the test.
pub(crate) fn scripted(script: impl Fn(&Heard) -> Option<Vec<u8>> + Send + 'static) -> Names {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let conf = ResolvConf { servers: vec![server.local_addr().unwrap()], timeout_s: 1, attempts: 1 };
    std::thread::spawn(move || {
        let mut buffer = [0; 600];
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            if let Some(bytes) = script(&Heard::read(&buffer[..n])) {
                server.send_to(&bytes, from).unwrap();
            }
        }
    });
    let make_driver = || EpollDriver::new(64, Instant::now());
    let asker = Arc::new(Doorbell::new(|| ()));
    Names::with_servers(HostsFile::default(), conf.resolver_config(), make_driver, asker, &Health::default())
        .unwrap()
}
