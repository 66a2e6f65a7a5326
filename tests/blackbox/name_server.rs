//! Name servers for the tests: dnsmasq, and one that follows a script.

use crate::support::*;
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Name, Ttl};
use domain::rdata::{A, Aaaa};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

// A server that follows a script ----------------------------------------------------------------------------

/// A question as the server read it.
#[derive(Clone, Debug)]
pub struct Question {
    pub id: u16,
    /// In lower case.
    pub name: String,
    pub wants_v6: bool,
    pub tcp: bool,
    pub from: SocketAddr,
    /// How many equal ones came before, over the same transport.
    pub nth: usize,
    bytes: Vec<u8>,
}

impl Question {
    fn read(bytes: &[u8], tcp: bool, from: SocketAddr, log: &[Question]) -> Question {
        let message = Message::from_octets(bytes).expect("a message");
        let asked = message.sole_question().expect("one question");
        assert!(message.header().rd() && message.opt().is_some(), "recursion, EDNS");
        let name = asked.qname().to_string().to_ascii_lowercase();
        let wants_v6 = asked.qtype() == Rtype::AAAA;
        let same = |other: &&Question| (&other.name, other.wants_v6, other.tcp) == (&name, wants_v6, tcp);
        let nth = log.iter().filter(same).count();
        Question { id: message.header().id(), name, wants_v6, tcp, from, nth, bytes: bytes.to_vec() }
    }

    fn start(&self, rcode: u8) -> domain::base::message_builder::AnswerBuilder<Vec<u8>> {
        let asked = Message::from_octets(&self.bytes[..]).unwrap();
        MessageBuilder::new_vec().start_answer(&asked, Rcode::masked_from_int(rcode)).unwrap()
    }

    /// Those of the addresses that are of the kind asked for, for a second.
    pub fn addresses<T: AsRef<str>>(&self, ips: &[T]) -> Vec<u8> {
        let mut answer = self.start(0);
        let (owner, ttl) = (self.name.parse::<Name<Vec<u8>>>().unwrap(), Ttl::from_secs(1));
        for ip in ips {
            match ip.as_ref().parse().unwrap() {
                IpAddr::V4(v4) if !self.wants_v6 => answer.push((&owner, ttl, A::new(v4))).unwrap(),
                IpAddr::V6(v6) if self.wants_v6 => answer.push((&owner, ttl, Aaaa::new(v6))).unwrap(),
                _ => {}
            }
        }
        answer.finish()
    }

    pub fn code(&self, rcode: u8) -> Vec<u8> {
        self.start(rcode).finish()
    }

    pub fn truncated(&self) -> Vec<u8> {
        let mut answer = self.start(0);
        answer.header_mut().set_tc(true);
        answer.finish()
    }
}

/// What is sent back, each so long after the question. Nothing at all is a datagram lost.
pub type Said = Vec<(Duration, Vec<u8>)>;

pub fn at_once(bytes: Vec<u8>) -> Said {
    vec![(Duration::ZERO, bytes)]
}

type Script = Arc<dyn Fn(&Question) -> Said + Send + Sync>;

/// UDP and TCP on one port of 127.0.0.1; every question is written down.
pub struct ScriptedServer {
    pub addr: SocketAddr,
    log: Arc<Mutex<Vec<Question>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl ScriptedServer {
    pub fn start(script: impl Fn(&Question) -> Said + Send + Sync + 'static) -> ScriptedServer {
        // A port that is free for both.
        let (udp, tcp) = (0..50)
            .find_map(|_| {
                let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
                UdpSocket::bind(tcp.local_addr().unwrap()).ok().map(|udp| (udp, tcp))
            })
            .expect("a port");
        udp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let addr = udp.local_addr().unwrap();
        let (log, stop) = (Arc::<Mutex<Vec<Question>>>::default(), Arc::<AtomicBool>::default());
        let script: Script = Arc::new(script);
        let threads = vec![
            std::thread::spawn({
                let (log, stop, script) = (log.clone(), stop.clone(), script.clone());
                move || serve_datagrams(&udp, &log, &stop, &script)
            }),
            std::thread::spawn({
                let (log, stop) = (log.clone(), stop.clone());
                move || {
                    for stream in tcp.incoming() {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        let (log, script) = (log.clone(), script.clone());
                        std::thread::spawn(move || serve_stream(stream.unwrap(), &log, &script));
                    }
                }
            }),
        ];
        ScriptedServer { addr, log, stop, threads }
    }

    pub fn flag(&self) -> String {
        self.addr.to_string()
    }

    pub fn asked(&self) -> Vec<Question> {
        self.log.lock().unwrap().clone()
    }

    /// Whether each question about A came over TCP, in their order.
    pub fn tries(&self) -> Vec<bool> {
        self.asked().iter().filter(|asked| !asked.wants_v6).map(|asked| asked.tcp).collect()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve_datagrams(socket: &UdpSocket, log: &Mutex<Vec<Question>>, stop: &AtomicBool, script: &Script) {
    let mut buffer = [0; 2_000];
    while !stop.load(Ordering::SeqCst) {
        let Ok((n, from)) = socket.recv_from(&mut buffer) else { continue };
        let asked = {
            let mut log = log.lock().unwrap();
            let asked = Question::read(&buffer[..n], false, from, &log);
            log.push(asked.clone());
            asked
        };
        for (after, bytes) in script(&asked) {
            let socket = socket.try_clone().unwrap();
            let say = move || {
                std::thread::sleep(after);
                let _ = socket.send_to(&bytes, from);
            };
            if after.is_zero() {
                say();
            } else {
                std::thread::spawn(say);
            }
        }
    }
}

fn serve_stream(mut stream: TcpStream, log: &Mutex<Vec<Question>>, script: &Script) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let from = stream.peer_addr().unwrap();
    let mut length = [0; 2];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes).unwrap();
    let asked = {
        let mut log = log.lock().unwrap();
        let asked = Question::read(&bytes, true, from, &log);
        log.push(asked.clone());
        asked
    };
    for (after, bytes) in script(&asked) {
        std::thread::sleep(after);
        let framed = [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat();
        // In two pieces, as a network may.
        let (first, second) = framed.split_at(framed.len() / 2);
        let _ = stream.write_all(first);
        std::thread::sleep(Duration::from_millis(5));
        let _ = stream.write_all(second);
    }
}

// dnsmasq ---------------------------------------------------------------------------------------------------

/// dnsmasq in the foreground on a free port of 127.0.0.1, knowing what its configuration says and nothing else.
pub struct Dnsmasq {
    child: Child,
    pub addr: SocketAddr,
    _dir: TempDir,
}

impl Dnsmasq {
    pub fn start(records: &str) -> Dnsmasq {
        let dir = TempDir::new();
        let errors = dir.join("errors");
        // A free port may be taken by somebody else before dnsmasq has it: then another is tried.
        for _ in 0..5 {
            let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let port = addr.port();
            let user = if nix::unistd::geteuid().is_root() { "user=root\n" } else { "" };
            let conf = dir.write(
                "dnsmasq.conf",
                format!(
                    "port={port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\npid-file\n{user}{records}"
                ),
            );
            let mut child = Command::new(dnsmasq_program())
                .arg("--keep-in-foreground")
                .arg("--log-facility=-")
                .arg(format!("--conf-file={}", conf.display()))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(&errors).unwrap())
                .spawn()
                .expect("dnsmasq is installed");
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until && child.try_wait().unwrap().is_none() {
                if TcpStream::connect(addr).is_ok() {
                    return Dnsmasq { child, addr, _dir: dir };
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("dnsmasq does not start:\n{}", std::fs::read_to_string(errors).unwrap_or_default());
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        see_off(&mut self.child);
    }
}

fn dnsmasq_program() -> &'static str {
    if Path::new("/usr/sbin/dnsmasq").exists() { "/usr/sbin/dnsmasq" } else { "dnsmasq" }
}
