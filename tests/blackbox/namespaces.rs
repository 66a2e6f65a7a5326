//! A network of the test's own: machines at one switch, each a network namespace, with addresses that exist nowhere else.
//! Nothing of it has a name outside, and all of it is gone with its value or with the process of the test. A way between two
//! machines is cut so that packets are lost in silence, one way or both.

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::thread;

/// All machines are in it.
pub const NET: &str = "10.77.0.0/16";

/// A neighbour whom nobody is: what is sent to it is lost.
const NOBODY: &str = "02:00:00:00:00:99";

/// A namespace lives as long as this file is open, or a process is in it.
struct Namespace(File);

impl Namespace {
    fn new() -> nix::Result<Namespace> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(Namespace(File::open("/proc/thread-self/ns/net").unwrap()))
        });
        made.join().unwrap()
    }

    /// Does something in it. Sockets and processes that begin there stay there.
    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let acting = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                act()
            });
            acting.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    #[track_caller]
    fn ip(&self, words: &str) {
        let program = ["/usr/sbin/ip", "/sbin/ip"].into_iter().find(|path| File::open(path).is_ok());
        let mut command = Command::new(program.unwrap_or("ip"));
        command.args(words.split(' ')).stdin(Stdio::null());
        let ended = self.inside(|| command.output()).expect("ip is installed");
        assert!(ended.status.success(), "ip {words}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// Machines at a switch, by their numbers.
pub struct Network {
    machines: BTreeMap<u8, Namespace>,
    _switch: Namespace,
}

impl Network {
    /// `None` where no namespace may be made, which is said.
    pub fn new(numbers: impl IntoIterator<Item = u8>) -> Option<Network> {
        let switch = match Namespace::new() {
            Err(Errno::EPERM) => {
                println!("no network namespace can be made here, which takes root: skipped");
                return None;
            }
            made => made.expect("a kernel with network namespaces"),
        };
        switch.ip("link add switch type bridge");
        switch.ip("link set switch up");
        let mut machines = BTreeMap::new();
        for number in numbers {
            let machine = Namespace::new().unwrap();
            let at = format!("/proc/{}/fd/{}", std::process::id(), machine.0.as_raw_fd());
            switch.ip(&format!("link add port{number} type veth peer name eth0 netns {at}"));
            switch.ip(&format!("link set port{number} master switch up"));
            machine.ip("link set lo up");
            machine.ip(&format!("addr add {}/16 dev eth0", Network::address(number)));
            machine.ip("link set eth0 up");
            machines.insert(number, machine);
        }
        Some(Network { machines, _switch: switch })
    }

    pub fn address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, number)
    }

    /// Gives a machine one more address.
    #[track_caller]
    pub fn add(&self, number: u8, address: Ipv4Addr) {
        self.machines[&number].ip(&format!("addr add {address}/32 dev lo"));
    }

    /// Does something on a machine. Sockets and processes that begin there stay there.
    pub fn inside<T: Send>(&self, number: u8, act: impl FnOnce() -> T + Send) -> T {
        self.machines[&number].inside(act)
    }

    /// From now on what one machine sends to another is lost, and neither is told.
    #[track_caller]
    pub fn cut(&self, from: u8, to: u8) {
        let to = Network::address(to);
        self.machines[&from].ip(&format!("neigh replace {to} lladdr {NOBODY} dev eth0 nud permanent"));
    }

    #[track_caller]
    pub fn heal(&self, from: u8, to: u8) {
        let to = Network::address(to);
        self.machines[&from].ip(&format!("neigh del {to} dev eth0"));
    }
}

#[test]
fn a_cut_loses_what_goes_one_way_and_nothing_else() {
    use std::net::UdpSocket;
    use std::time::Duration;
    let Some(network) = Network::new([1, 2, 3]) else { return };
    let sockets = [1, 2, 3].map(|number| {
        let socket = network.inside(number, || UdpSocket::bind((Network::address(number), 7174)).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    });
    // Sending never fails, as nobody is told. What was not heard is said again, as a way that has just been made may take a
    // second to open; each time has a number, so that nothing late is taken for it.
    let mut number = 0_u32;
    let mut arrives = |from: u8, to: u8, times: usize| {
        number += 1;
        let word = number.to_be_bytes();
        (0..times).any(|_| {
            sockets[usize::from(from) - 1].send_to(&word, (Network::address(to), 7174)).unwrap();
            let mut heard = [0; 9];
            while let Ok(length) = sockets[usize::from(to) - 1].recv(&mut heard) {
                if heard[..length] == word {
                    return true;
                }
            }
            false
        })
    };
    const OFTEN: usize = 60;
    let ways = [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)];
    assert_eq!(ways.map(|(from, to)| arrives(from, to, OFTEN)), ways.map(|_| true));
    network.cut(3, 1);
    assert!(!arrives(3, 1, 3));
    assert_eq!(ways.map(|(from, to)| (from, to) == (3, 1) || arrives(from, to, OFTEN)), ways.map(|_| true));
    network.heal(3, 1);
    assert_eq!(ways.map(|(from, to)| arrives(from, to, OFTEN)), ways.map(|_| true));
}
