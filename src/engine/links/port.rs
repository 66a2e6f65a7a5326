use crate::base::Key;
use crate::limits::LINK_DIALS_MAX;
use crate::rings::{Doorbell, Receiver, Sender};
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What happens on the links. Of each link: `Up`, then `Bytes` and `Sent` in any number, perhaps `Ended`, then `Down`, once.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkEvent {
    Up {
        link: Key,
        peer: SocketAddr,
        /// Which of the addresses we dialed: its place in the configured list, or the number that [`LinkPort::dial`] gave.
        /// Otherwise the peer did.
        dial: Option<usize>,
    },
    Bytes {
        link: Key,
        bytes: Vec<u8>,
    },
    /// The peer has said all of it, in good order. Told where it is asked for, and then the owner closes the link.
    Ended {
        link: Key,
    },
    /// So many bytes more were handed to the kernel.
    Sent {
        link: Key,
        bytes: usize,
    },
    Down {
        link: Key,
        why: String,
    },
}

/// From the owner to the links thread.
pub(super) enum Command {
    Send { link: Key, bytes: Vec<u8> },
    Close { link: Key },
    Dial { number: usize, address: String },
    Undial { number: usize },
}

/// The owner's end of all links.
pub struct LinkPort {
    events: Receiver<LinkEvent>,
    commands: Sender<Command>,
    /// The links thread's bell.
    bell: Arc<Doorbell>,
    /// Links between their `Up` and their `Down`, as far as the owner was told.
    known: RapidHashMap<Key, Known>,
    /// Numbers of the peers that are dialed.
    dials: RapidHashSet<usize>,
    next_dial: usize,
}

struct Known {
    dial: Option<usize>,
    /// Until the owner closes it: then nothing but its `Down` is of interest.
    is_open: bool,
}

/// Between two looks at a command ring that is full.
const FULL_PAUSE: Duration = Duration::from_micros(100);

/// The events there are at the moment; more may come after `None`. After `close` nothing of that link comes but its
/// `Down`; of a link that came to stand while its peer was undialed nothing comes at all.
impl Iterator for LinkPort {
    type Item = LinkEvent;

    fn next(&mut self) -> Option<LinkEvent> {
        while let Some(event) = self.events.pop() {
            let is_told = match &event {
                LinkEvent::Up { dial: Some(dial), .. } if !self.dials.contains(dial) => false,
                LinkEvent::Up { link, dial, .. } => {
                    self.known.insert(*link, Known { dial: *dial, is_open: true });
                    true
                }
                LinkEvent::Down { link, .. } => self.known.remove(link).is_some(),
                LinkEvent::Bytes { link, .. } | LinkEvent::Sent { link, .. } | LinkEvent::Ended { link } => {
                    self.is_open(*link)
                }
            };
            if !is_told {
                continue;
            }
            return Some(event);
        }
        None
    }
}

impl LinkPort {
    pub(super) fn new(
        events: Receiver<LinkEvent>,
        commands: Sender<Command>,
        bell: Arc<Doorbell>,
        dials: usize,
    ) -> LinkPort {
        let known = RapidHashMap::default();
        LinkPort { events, commands, bell, known, dials: (0..dials).collect(), next_dial: dials }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Sends all of `bytes`, in order. On a link that is down it does nothing.
    pub fn send(&self, link: Key, bytes: Vec<u8>) {
        if !bytes.is_empty() && self.is_open(link) {
            self.command(Command::Send { link, bytes });
        }
    }

    /// Lets a link go; its `Down` follows. What was sent before is still handed to the kernel as far as it takes it.
    pub fn close(&mut self, link: Key) {
        if let Some(known) = self.known.get_mut(&link).filter(|known| known.is_open) {
            known.is_open = false;
            self.command(Command::Close { link });
        }
    }

    /// Dials one more peer, `host:port`, until it is undialed. The number is never given to another; `None` when
    /// [`LINK_DIALS_MAX`] are dialed.
    pub fn dial(&mut self, address: String) -> Option<usize> {
        if self.dials.len() >= LINK_DIALS_MAX {
            return None;
        }
        let number = self.next_dial;
        self.next_dial += 1;
        self.dials.insert(number);
        self.command(Command::Dial { number, address });
        Some(number)
    }

    /// Dials a peer no more, and lets its link go as `close` does.
    pub fn undial(&mut self, number: usize) {
        if self.dials.remove(&number) {
            let of_it = self.known.values_mut().filter(|known| known.dial == Some(number));
            of_it.for_each(|known| known.is_open = false);
            self.command(Command::Undial { number });
        }
    }

    /// Lets all of them go.
    pub fn close_all(&mut self) {
        let mut links: Vec<Key> = self.known.keys().copied().collect();
        // In one order each time, so that a simulation replays.
        links.sort_unstable_by_key(|link| link.pack(0));
        links.into_iter().for_each(|link| self.close(link));
    }

    fn is_open(&self, link: Key) -> bool {
        self.known.get(&link).is_some_and(|known| known.is_open)
    }

    /// The links thread never waits for us, so a full ring has room in a moment.
    fn command(&self, mut command: Command) {
        while let Err(back) = self.commands.push(command) {
            command = back;
            self.bell.ring_if_asleep();
            std::thread::sleep(FULL_PAUSE);
        }
        self.bell.ring_if_asleep();
    }
}
