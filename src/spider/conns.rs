use super::Action;
use super::buffers::Buffers;
use super::idle_pool::IdlePool;
use super::tls_conn::TlsConn;
use crate::base::{Key, NetAsk, Now, Slots};
use crate::proto::tls::CertFault;

/// The connections of a spider. A slot is kept until the driver has reported Closed on it.
pub(super) struct Conns {
    slots: Slots<Conn>,
    idle: IdlePool,
    closing: usize,
}

/// One connection.
pub(super) struct Conn {
    state: ConnState,
    /// The origin and address that it leads to.
    route: u64,
    /// The fetch on it is not the first: the server may have closed it meanwhile.
    reused: bool,
    /// The kernel has taken the whole request.
    sent: bool,
    /// Listed by age in the pool already; one entry is enough for all its idle times.
    aged: bool,
    /// Set if the URL wants TLS.
    tls: Option<Box<TlsConn>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnState {
    /// Used by a fetch, from the attempt to connect to the last byte.
    Busy { fetch: Key },
    /// Kept for the next page of its host.
    Idle { until: Now },
    /// Closed by the spider; the kernel may still complete on it.
    Closing,
}

impl Conns {
    pub fn new(count_max: usize) -> Conns {
        Conns { slots: Slots::new(count_max), idle: IdlePool::default(), closing: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    pub fn has_idle(&self, route: u64) -> bool {
        self.idle.leads_to(route)
    }

    /// A connection that has not been reported Closed.
    pub fn get(&mut self, conn: Key) -> &mut Conn {
        self.slots.get_mut(conn).expect("drivers and fetches name open connections")
    }

    /// Takes an idle connection of this route, or else a free slot, of which there must be one. [`Conn::start`] follows.
    /// True if the connection is open already.
    pub fn assign(&mut self, route: u64, now: Now) -> (Key, bool) {
        if let Some(idle) = self.idle.take(route) {
            return (idle, true);
        }
        let state = ConnState::Idle { until: now };
        let conn = Conn { state, route, reused: false, sent: false, aged: false, tls: None };
        (self.slots.insert(conn).expect("there is room"), false)
    }

    /// Keeps a connection for the next page of its host.
    pub fn keep(&mut self, key: Key, until: Now) {
        let conn = self.slots.get_mut(key).expect("a kept connection is open");
        conn.state = ConnState::Idle { until };
        self.idle.put(conn.route, key);
        if !std::mem::replace(&mut conn.aged, true) {
            self.idle.age(key, until);
        }
    }

    pub fn close(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.slots.get_mut(conn).expect("a connection is open until it is closed");
        debug_assert_ne!(slot.state, ConnState::Closing, "closed once");
        if let ConnState::Idle { .. } = slot.state {
            self.idle.remove(slot.route, conn);
        }
        slot.state = ConnState::Closing;
        slot.tls = None;
        self.closing += 1;
        out.push(Action::Net(NetAsk::Close { conn }));
    }

    /// Closes a connection that was found dead, and its idle siblings: they have been idle for as long.
    pub fn close_route(&mut self, conn: Key, out: &mut Vec<Action>) {
        let route = self.get(conn).route;
        self.close(conn, out);
        while let Some(sibling) = self.idle.take(route) {
            self.close(sibling, out);
        }
    }

    /// The driver's last event of a connection.
    pub fn closed(&mut self, conn: Key) {
        self.closing -= 1;
        self.slots.remove(conn);
    }

    /// Closes the oldest idle connection, unless one is being closed already.
    pub fn make_room(&mut self, out: &mut Vec<Action>) {
        if self.closing > 0 {
            return;
        }
        while let Some(key) = self.idle.pop_oldest() {
            match self.slots.get_mut(key) {
                Some(Conn { state: ConnState::Idle { .. }, .. }) => return self.close(key, out),
                // In use again: it is listed again when it falls idle.
                Some(conn) => conn.aged = false,
                None => {}
            }
        }
    }

    /// Closes the connections that have been idle for too long.
    pub fn expire(&mut self, now: Now, out: &mut Vec<Action>) {
        while self.idle.next_due().is_some_and(|until| until <= now) {
            let Some(key) = self.idle.pop_oldest() else { break };
            let Some(conn) = self.slots.get_mut(key) else { continue };
            match conn.state {
                ConnState::Idle { until } if until <= now => self.close(key, out),
                ConnState::Idle { until } => self.idle.age(key, until),
                ConnState::Busy { .. } | ConnState::Closing => conn.aged = false,
            }
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        self.idle.next_due()
    }
}

impl Conn {
    pub fn state(&self) -> ConnState {
        self.state
    }

    /// Begins a fetch.
    pub fn start(&mut self, fetch: Key, reused: bool) {
        self.state = ConnState::Busy { fetch };
        self.sent = false;
        self.reused |= reused;
    }

    pub fn secure(&mut self, tls: TlsConn) {
        self.tls = Some(Box::new(tls));
    }

    pub fn tls(&mut self) -> Option<&mut TlsConn> {
        self.tls.as_deref_mut()
    }

    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// It has carried the whole request.
    pub fn is_sent(&self) -> bool {
        self.sent
    }

    /// The kernel has taken a send. True if that was the request, to its last byte.
    pub fn sent(&mut self) -> bool {
        let whole = self.tls().is_none_or(TlsConn::sent);
        self.sent |= whole;
        whole
    }

    /// TLS is in use, and its stream has not ended by the peer's close notification.
    pub fn lacks_close_notify(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.peer_closed())
    }

    pub fn cert_fault(&self) -> Option<CertFault> {
        self.tls.as_ref().and_then(|tls| tls.cert_fault())
    }

    /// Sends a request.
    pub fn request(&mut self, conn: Key, bytes: Vec<u8>, buffers: &mut Buffers) -> Option<NetAsk> {
        let Some(tls) = self.tls() else { return Some(NetAsk::Send { conn, bytes }) };
        tls.request(&bytes);
        buffers.keep_request(bytes);
        tls.next_send(conn, buffers)
    }
}
