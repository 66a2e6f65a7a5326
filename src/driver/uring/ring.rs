use super::super::errno::net_error;
use super::super::{Bell, Driver};
use super::buffers::{BufferRing, GROUP};
use super::listeners::{self, Listeners};
use crate::base::{Accepted, Key, NetError, NetEvent, Now, Transport};
use crate::limits::{RING_COMPLETIONS, RING_SUBMISSIONS};
use io_uring::types::{CancelBuilder, DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, SockaddrLike};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections over one io_uring.
pub struct UringDriver {
    pub(super) ring: IoUring,
    buffers: BufferRing,
    /// Indexed by the key's index, which is also the slot in the ring's file table.
    pub(super) conns: Box<[Conn]>,
    pub(super) listeners: Listeners,
    /// Completions copied out of the ring, not yet handed out.
    pub(super) batch: VecDeque<Raw>,
    /// The buffer behind the last `Received`.
    lent: Option<u16>,
    /// Receives that ended for want of a buffer or of a kernel resource, to be armed again.
    pub(super) rearm: Vec<Key>,
    bell: Arc<EventBell>,
    /// Where the kernel writes the bell's count while a read is armed.
    bell_count: Box<u64>,
    bell_armed: bool,
    min_wait: bool,
    started: Instant,
    pub(super) syscalls: u64,
}

/// One socket, as far as the kernel is concerned.
#[derive(Default)]
pub(super) struct Conn {
    pub generation: u32,
    pub open: bool,
    pub closing: bool,
    /// Of a datagram socket an empty receive is an empty datagram; of a stream it is the end.
    datagrams: bool,
    /// A multishot receive is armed.
    pub receiving: bool,
    /// The client takes no bytes at the moment.
    pub paused: bool,
    /// Submissions whose last completion is still to come.
    pub ops: u8,
    /// Bytes of `bytes` the kernel has taken.
    sent: u32,
    /// The request being sent; the kernel reads from it until SEND completes.
    bytes: Vec<u8>,
    /// The address being connected to; the kernel may read it until CONNECT completes.
    addr: Option<Box<Target>>,
}

const _: () = assert!(size_of::<Conn>() == 48, "an idle connection is small");

impl Conn {
    /// A connection whose key is in use from now on.
    pub fn opened(key: Key) -> Conn {
        Conn { generation: key.generation(), open: true, ..Conn::default() }
    }
}

/// An address as the kernel reads it: a quarter of the room that any family would take.
enum Target {
    V4(SockaddrIn),
    V6(SockaddrIn6),
}

impl Target {
    /// Family, address and its length.
    fn parts(&self) -> (i32, *const libc::sockaddr, libc::socklen_t) {
        match self {
            Target::V4(addr) => (libc::AF_INET, addr.as_ptr(), addr.len()),
            Target::V6(addr) => (libc::AF_INET6, addr.as_ptr(), addr.len()),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(addr: SocketAddr) -> Target {
        match addr {
            SocketAddr::V4(addr) => Target::V4(addr.into()),
            SocketAddr::V6(addr) => Target::V6(addr.into()),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Raw {
    pub user_data: u64,
    pub result: i32,
    pub flags: u32,
}

struct EventBell(EventFd);

impl Bell for EventBell {
    fn ring(&self) {
        // Only a counter at its very end could refuse, and then the bell is ringing already.
        let _ = self.0.write(1);
    }
}

const OP_SOCKET: u8 = 1;
pub(super) const OP_CONNECT: u8 = 2;
const OP_SEND: u8 = 3;
pub(super) const OP_RECV: u8 = 4;
pub(super) const OP_CANCEL: u8 = 5;
const OP_CLOSE: u8 = 6;
const OP_BELL: u8 = 7;
pub(super) const OP_SHUTDOWN: u8 = 8;
pub(super) const OP_ACCEPT: u8 = 9;

/// With many fetches open, a wait returns after this many completions or this long after the first.
const WANT_MAX: usize = 16;
const MIN_WAIT_US: u32 = 50;

impl UringDriver {
    /// A ring with room for `conns_max` connections. Must be made on the thread that will use it.
    pub fn new(conns_max: usize, started: Instant) -> io::Result<UringDriver> {
        let (ring, buffers) = patiently(ring_with_buffers)?;
        ring.submitter().register_files_sparse(conns_max as u32)?;
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC)?;
        let min_wait = ring.params().is_feature_min_timeout();
        Ok(UringDriver {
            ring,
            buffers,
            conns: (0..conns_max).map(|_| Conn::default()).collect(),
            listeners: Listeners::default(),
            batch: VecDeque::with_capacity(1_024),
            lent: None,
            rearm: Vec::new(),
            bell: Arc::new(EventBell(bell)),
            bell_count: Box::new(0),
            bell_armed: false,
            min_wait,
            started,
            syscalls: 0,
        })
    }

    /// Whether this kernel can run the driver on `rings` threads at once, and if not, why, in words for a user.
    pub fn probe(rings: usize) -> Result<(), String> {
        let why = |e: io::Error| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "io_uring is refused: by sysctl kernel.io_uring_disabled, or by a container's seccomp filter"
                    .to_string()
            }
            Some(libc::ENOSYS) => "this kernel has no io_uring, or a filter hides it".to_string(),
            Some(libc::EINVAL) => "this kernel's io_uring is too old (6.1 or later is needed)".to_string(),
            Some(libc::ENOMEM) => "not enough locked memory for the rings (raise ulimit -l)".to_string(),
            _ => format!("io_uring: {e}"),
        };
        // All are held until the last: what a user may lock bounds the sum.
        let mut held = Vec::with_capacity(rings);
        for _ in 0..rings {
            held.push(patiently(ring_with_buffers).map_err(why)?);
        }
        Ok(())
    }

    pub(super) fn push(&mut self, entries: &[squeue::Entry]) {
        // A chain must not be split over two submissions, so room is made for all of it first.
        let free = {
            let sq = self.ring.submission();
            sq.capacity() - sq.len()
        };
        if free < entries.len() {
            self.syscalls += 1;
            // Whatever the kernel could not take now stays queued; with SUBMIT_ALL that is nothing.
            let _ = self.ring.submit();
        }
        // JUSTIFICATION: `push_multiple` is unsafe because the entries' pointers must stay valid.
        // SAFETY: every pointer in an entry is to memory this driver owns until the completion: the address box,
        // the send buffer and the bell's count. None of them moves or is freed while `ops` counts the operation.
        unsafe {
            self.ring.submission().push_multiple(entries).expect("room was made");
        }
    }

    pub(super) fn conn_mut(&mut self, key: Key) -> &mut Conn {
        let conn = &mut self.conns[key.index()];
        assert!(conn.open && conn.generation == key.generation(), "{key:?} does not name an open connection");
        conn
    }

    pub(super) fn arm_receive(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        debug_assert!(!conn.receiving && !conn.closing);
        conn.receiving = true;
        conn.ops += 1;
        let entry =
            opcode::RecvMulti::new(Fixed(key.index() as u32), GROUP).build().user_data(key.pack(OP_RECV));
        self.push(&[entry]);
    }

    /// Sends what is left of the connection's buffer.
    fn submit_send(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        let rest = &conn.bytes[conn.sent as usize..];
        let entry = opcode::Send::new(Fixed(key.index() as u32), rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(key.pack(OP_SEND));
        conn.ops += 1;
        self.push(&[entry]);
    }

    /// A socket with options is made by ordinary calls, and takes its slot before it is connected.
    fn connect_link(&mut self, key: Key, addr: Box<Target>) {
        let (family, sockaddr, length) = addr.parts();
        let made = listeners::link_socket(family);
        self.conns[key.index()] = Conn { addr: Some(addr), ..Conn::opened(key) };
        if self.install(key, made) {
            let entry = opcode::Connect::new(Fixed(key.index() as u32), sockaddr, length).build();
            self.conn_mut(key).ops += 1;
            self.push(&[entry.user_data(key.pack(OP_CONNECT))]);
        }
    }

    /// Puts a socket into the slot of a connection. If it cannot be had, `Failed` follows.
    pub(super) fn install(&mut self, key: Key, socket: io::Result<OwnedFd>) -> bool {
        self.syscalls += 2;
        let installed = socket.and_then(|socket| {
            // The slot holds the socket from here on; the descriptor goes.
            self.ring.submitter().register_files_update(key.index() as u32, &[socket.as_raw_fd()])
        });
        let Err(error) = installed else { return true };
        self.conn_mut(key).ops += 1;
        let result = -error.raw_os_error().unwrap_or(libc::EIO);
        self.batch.push_back(Raw { user_data: key.pack(OP_CONNECT), result, flags: 0 });
        false
    }

    fn arm_bell(&mut self) {
        let fd = self.bell.0.as_fd().as_raw_fd();
        let into: *mut u64 = &mut *self.bell_count;
        let entry = opcode::Read::new(Fd(fd), into.cast(), 8).build().user_data(Key::new(0, 0).pack(OP_BELL));
        self.bell_armed = true;
        self.push(&[entry]);
    }

    /// Turns one raw completion into an event, or into nothing when it is only bookkeeping.
    fn digest(&mut self, raw: Raw) -> Option<(Key, Digest)> {
        let (key, op) = Key::unpack(raw.user_data);
        if op >= OP_BELL {
            match op {
                OP_BELL => {
                    self.bell_armed = false;
                    return None;
                }
                OP_ACCEPT => {
                    let (key, accepted) = self.listeners.accepted(key, raw.result)?;
                    return Some((key, Digest::Accepted(accepted)));
                }
                _ => {}
            }
        }
        let more = cqueue::more(raw.flags);
        let conn = self.conn_mut(key);
        if !more {
            conn.ops -= 1;
        }
        let failed = |errno: i32| Some((key, Digest::Failed(net_error(errno))));
        let event = match op {
            OP_CONNECT => {
                conn.addr = None;
                match raw.result {
                    _ if conn.closing => None,
                    0 => {
                        self.arm_receive(key);
                        Some((key, Digest::Connected))
                    }
                    e => failed(-e),
                }
            }
            OP_SEND => match raw.result {
                _ if conn.closing => {
                    conn.bytes = Vec::new();
                    None
                }
                n if n >= 0 => {
                    conn.sent += n as u32;
                    if (conn.sent as usize) < conn.bytes.len() {
                        self.submit_send(key);
                        None
                    } else {
                        Some((key, Digest::Sent(std::mem::take(&mut conn.bytes))))
                    }
                }
                e => failed(-e),
            },
            OP_RECV => {
                if !more {
                    conn.receiving = false;
                }
                let (closing, datagrams) = (conn.closing, conn.datagrams);
                match (raw.result, cqueue::buffer_select(raw.flags)) {
                    (n, Some(id)) if n > 0 => {
                        if closing {
                            self.buffers.give(id);
                            None
                        } else {
                            if !more {
                                self.rearm.push(key);
                            }
                            Some((key, Digest::Received { id, bytes: n as u32 }))
                        }
                    }
                    (n, id) => {
                        if let Some(id) = id {
                            self.buffers.give(id);
                        }
                        match n {
                            _ if closing => None,
                            // Nothing came, and that was all of it; the kernel ends a multishot receive on it.
                            0 if datagrams => {
                                self.rearm.push(key);
                                Some((key, Digest::Empty))
                            }
                            0 => Some((key, Digest::Ended)),
                            // All buffers are lent out: they come back within this batch.
                            // A pause cancelled it, and may be over by now.
                            n if n == -libc::ENOBUFS || n == -libc::ECANCELED => {
                                self.rearm.push(key);
                                None
                            }
                            n => failed(-n),
                        }
                    }
                }
            }
            // SOCKET and CANCEL are parts of chains whose last link tells all; CLOSE and SHUTDOWN are counted by `ops`.
            _ => None,
        };
        let conn = &mut self.conns[key.index()];
        if conn.closing && conn.ops == 0 {
            conn.open = false;
            conn.closing = false;
            conn.bytes = Vec::new();
            return Some((key, Digest::Closed));
        }
        event
    }
}

/// A completion with the buffer still as an id, so that bookkeeping is over before anything is lent.
enum Digest {
    Connected,
    Sent(Vec<u8>),
    Received {
        id: u16,
        bytes: u32,
    },
    /// A datagram without bytes took no buffer.
    Empty,
    Ended,
    Failed(NetError),
    Closed,
    Accepted(Result<Box<Accepted>, NetError>),
}

impl Driver for UringDriver {
    fn now(&self) -> Now {
        Now::from_us(self.started.elapsed().as_micros() as u64)
    }

    fn has_way(&self, ip: IpAddr) -> bool {
        super::super::route::has_way(ip)
    }

    fn connect(&mut self, key: Key, addr: SocketAddr, transport: Transport) {
        let conn = &mut self.conns[key.index()];
        assert!(!conn.open, "{key:?} is still in use");
        let addr = Box::new(Target::from(addr));
        let (family, sockaddr, length) = addr.parts();
        let (kind, datagrams) = match transport {
            Transport::Tcp => (libc::SOCK_STREAM, false),
            Transport::Udp => (libc::SOCK_DGRAM, true),
            Transport::Link => return self.connect_link(key, addr),
        };
        let entries = [
            opcode::Socket::new(family, kind, 0)
                .file_index(Some(
                    DestinationSlot::try_from_slot_target(key.index() as u32).expect("a small index"),
                ))
                .build()
                .flags(squeue::Flags::IO_LINK)
                .user_data(key.pack(OP_SOCKET)),
            opcode::Connect::new(Fixed(key.index() as u32), sockaddr, length)
                .build()
                .user_data(key.pack(OP_CONNECT)),
        ];
        *conn = Conn { datagrams, ops: 2, addr: Some(addr), ..Conn::opened(key) };
        self.push(&entries);
    }

    fn send(&mut self, key: Key, bytes: Vec<u8>) {
        let conn = self.conn_mut(key);
        debug_assert!(conn.bytes.is_empty() && !conn.closing, "one send at a time");
        conn.bytes = bytes;
        conn.sent = 0;
        self.submit_send(key);
    }

    fn close(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        debug_assert!(!conn.closing);
        conn.closing = true;
        let close = opcode::Close::new(Fixed(key.index() as u32)).build().user_data(key.pack(OP_CLOSE));
        // Closing a direct descriptor under an armed receive would leak the socket: cancel first. A hard link goes on to
        // CLOSE even when there was nothing left to cancel. Each operation is named by its user data, which the kernel
        // finds by hash; to find those of a file it walks through all that wait on the ring.
        let mut chain = Vec::with_capacity(4);
        let open =
            [(OP_CONNECT, conn.addr.is_some()), (OP_SEND, !conn.bytes.is_empty()), (OP_RECV, conn.receiving)];
        for (op, _) in open.into_iter().filter(|&(_, open)| open) {
            let cancel = opcode::AsyncCancel::new(key.pack(op)).build();
            chain.push(cancel.flags(squeue::Flags::IO_HARDLINK).user_data(key.pack(OP_CANCEL)));
        }
        chain.push(close);
        conn.ops += chain.len() as u8;
        self.push(&chain);
    }

    fn wait(&mut self, until: Option<Now>, busy: usize) -> io::Result<()> {
        if let Some(id) = self.lent.take() {
            self.buffers.give(id);
        }
        self.buffers.publish();
        for key in std::mem::take(&mut self.rearm) {
            let conn = &self.conns[key.index()];
            if conn.open
                && conn.generation == key.generation()
                && !conn.closing
                && !conn.receiving
                && !conn.paused
            {
                self.arm_receive(key);
            }
        }
        if !self.bell_armed {
            self.arm_bell();
        }
        let mut left_us = until.map_or(60_000_000, |until| until.since_us(self.now()).min(60_000_000));
        if !self.batch.is_empty() {
            left_us = 0;
        }
        let timeout = Timespec::new().sec(left_us / 1_000_000).nsec((left_us % 1_000_000) as u32 * 1_000);
        let mut args = SubmitArgs::new().timespec(&timeout);
        let mut want = 1;
        if self.min_wait && busy >= 8 && left_us > u64::from(MIN_WAIT_US) {
            want = (busy / 4).min(WANT_MAX);
            args = args.min_wait_usec(MIN_WAIT_US);
        }
        self.syscalls += 1;
        let entered = self.ring.submitter().submit_with_args(want, &args);
        // `completion` borrows the ring, so completions are copied out before any of them is acted upon.
        self.batch.extend(self.ring.completion().map(|cqe| Raw {
            user_data: cqe.user_data(),
            result: cqe.result(),
            flags: cqe.flags(),
        }));
        match entered.map_err(|e| (e.raw_os_error(), e)) {
            // The time ran out; a signal came; the completion ring overflowed and was just drained.
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN), _)) => Ok(()),
            Err((_, e)) => Err(e),
        }
    }

    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        if let Some(id) = self.lent.take() {
            self.buffers.give(id);
        }
        while let Some(raw) = self.batch.pop_front() {
            let Some((key, digest)) = self.digest(raw) else {
                continue;
            };
            let event = match digest {
                Digest::Connected => NetEvent::Connected,
                Digest::Sent(bytes) => NetEvent::Sent(bytes),
                Digest::Empty => NetEvent::Received(&[]),
                Digest::Ended => NetEvent::Ended,
                Digest::Failed(error) => NetEvent::Failed(error),
                Digest::Closed => NetEvent::Closed,
                Digest::Accepted(accepted) => NetEvent::Accepted(accepted),
                Digest::Received { id, bytes } => {
                    self.lent = Some(id);
                    NetEvent::Received(self.buffers.get(id, bytes as usize))
                }
            };
            return Some((key, event));
        }
        self.buffers.publish();
        None
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.bell.clone()
    }

    fn conns_max(&self) -> usize {
        self.conns.len()
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}

/// Connections that are closed between two looks at what became of them, at the end.
const CLOSED_AT_ONCE: usize = 1_024;
/// How long the kernel may take to tell of the next, and of all.
const CLOSING_MS: u64 = 100;
const CLOSING_ALL_MS: u64 = 5_000;

impl UringDriver {
    /// Whether a connection or a request may be queued that the kernel was not told of. Closing what is open would tell it
    /// of them, too: hosts would be asked by a process that counts it no more.
    fn holds_requests(&mut self) -> bool {
        let asks = |conn: &Conn| conn.open && (conn.addr.is_some() || !conn.bytes.is_empty());
        !self.ring.submission().is_empty() && self.conns.iter().any(asks)
    }

    /// Closes every connection by itself, by name. Told to cancel whatever there is, the kernel would look for each among
    /// them all: seconds, with twenty thousand.
    fn close_all(&mut self) {
        let end = self.now().plus_ms(CLOSING_ALL_MS);
        let open = self.conns.iter().enumerate().filter(|(_, conn)| conn.open);
        let mut left = open.clone().count();
        let open: Vec<Key> = open
            .filter(|(_, conn)| !conn.closing)
            .map(|(index, conn)| Key::new(index as u32, conn.generation))
            .collect();
        for some in open.chunks(CLOSED_AT_ONCE) {
            some.iter().for_each(|key| self.close(*key));
            let Some(closed) = self.count_closed() else { return };
            left = left.saturating_sub(closed);
        }
        // The kernel tells of a few at a time.
        while left > 0
            && self.now() < end
            && let Some(closed) = self.count_closed()
        {
            left = left.saturating_sub(closed);
        }
    }

    /// Counts the connections that the kernel tells to be closed; `None` if it tells nothing for a while.
    fn count_closed(&mut self) -> Option<usize> {
        self.wait(Some(self.now().plus_ms(CLOSING_MS)), 0).ok()?;
        if self.batch.is_empty() {
            return None;
        }
        let mut closed = 0;
        while let Some((_, event)) = self.next() {
            closed += usize::from(matches!(event, NetEvent::Closed));
        }
        Some(closed)
    }
}

impl Drop for UringDriver {
    /// The kernel may still be reading requests and filling buffers: end every operation before the memory goes.
    fn drop(&mut self) {
        // What a panic left behind is not to be relied upon, and another one must not keep the operations from their end.
        if !std::thread::panicking() && !self.holds_requests() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.close_all()));
        }
        self.listeners.close_all();
        let timeout = Timespec::new().sec(5);
        let ended = match self.ring.submitter().register_sync_cancel(Some(timeout), CancelBuilder::any()) {
            Ok(()) => true,
            Err(e) => e.raw_os_error() == Some(libc::ENOENT),
        };
        // A connection that came meanwhile is closed with its descriptor.
        let came = self.ring.completion().map(|cqe| (cqe.user_data(), cqe.result())).collect::<Vec<_>>();
        let batch = self.batch.drain(..).map(|raw| (raw.user_data, raw.result));
        for (user_data, result) in batch.chain(came) {
            if let (number, OP_ACCEPT) = Key::unpack(user_data) {
                self.listeners.accepted(number, result);
            }
        }
        if !ended {
            // Better a leak than the kernel writing into memory that has found another owner.
            std::mem::forget(std::mem::take(&mut self.conns));
            std::mem::forget(std::mem::take(&mut self.bell_count));
            self.buffers.leak();
        }
    }
}

/// A ring and its buffers, in the order in which they are to go.
fn ring_with_buffers() -> io::Result<(IoUring, BufferRing)> {
    let ring = build_ring()?;
    let buffers = BufferRing::register(&ring)?;
    Ok((ring, buffers))
}

/// Tries again for a moment where memory is short: what a ring had locked is given back some time after it was closed.
fn patiently<T>(mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const TRIES: u32 = 20;
    for _ in 1..TRIES {
        match make() {
            Err(e) if e.raw_os_error() == Some(libc::ENOMEM) => std::thread::sleep(Duration::from_millis(10)),
            made => return made,
        }
    }
    make()
}

/// The flags of a ring that one thread fills and empties; older kernels get fewer of them.
fn build_ring() -> io::Result<IoUring> {
    let base = || {
        let mut builder = IoUring::builder();
        builder
            .setup_cqsize(RING_COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .dontfork();
        builder
    };
    match base().setup_no_sqarray().build(RING_SUBMISSIONS) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => base().build(RING_SUBMISSIONS),
        built => built,
    }
}
