use crate::base::Key;
use crate::rings::{Doorbell, Receiver, Sender};
use rapidhash::fast::RapidHashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What happens on the links. Of each link: `Up`, then `Bytes` and `Sent` in any number, perhaps `Ended`, then `Down`, once.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkEvent {
    Up {
        link: Key,
        peer: SocketAddr,
        /// Which of the addresses we dialed; otherwise the peer did.
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
}

/// The owner's end of all links.
pub struct LinkPort {
    events: Receiver<LinkEvent>,
    commands: Sender<Command>,
    /// The links thread's bell.
    bell: Arc<Doorbell>,
    /// Links between their `Up` and their `Down`, as far as the owner was told.
    known: RapidHashMap<Key, Known>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Open,
    /// The owner closed it: nothing but its `Down` is of interest.
    Closed,
}

/// Between two looks at a command ring that is full.
const FULL_PAUSE: Duration = Duration::from_micros(100);

/// The events there are at the moment; more may come after `None`. After `close` nothing of that link comes but its
/// `Down`.
impl Iterator for LinkPort {
    type Item = LinkEvent;

    fn next(&mut self) -> Option<LinkEvent> {
        while let Some(event) = self.events.pop() {
            match &event {
                LinkEvent::Up { link, .. } => {
                    self.known.insert(*link, Known::Open);
                }
                LinkEvent::Down { link, .. } => {
                    self.known.remove(link);
                }
                LinkEvent::Bytes { link, .. } | LinkEvent::Sent { link, .. } | LinkEvent::Ended { link } => {
                    if self.known.get(link) == Some(&Known::Closed) {
                        continue;
                    }
                }
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
    ) -> LinkPort {
        LinkPort { events, commands, bell, known: RapidHashMap::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Sends all of `bytes`, in order. On a link that is down it does nothing.
    pub fn send(&self, link: Key, bytes: Vec<u8>) {
        if !bytes.is_empty() && self.known.get(&link) == Some(&Known::Open) {
            self.command(Command::Send { link, bytes });
        }
    }

    /// Lets a link go; its `Down` follows. What was sent before is still handed to the kernel as far as it takes it.
    pub fn close(&mut self, link: Key) {
        if let Some(known @ Known::Open) = self.known.get_mut(&link) {
            *known = Known::Closed;
            self.command(Command::Close { link });
        }
    }

    /// Lets all of them go.
    pub fn close_all(&mut self) {
        let mut links: Vec<Key> = self.known.keys().copied().collect();
        // In one order each time, so that a simulation replays.
        links.sort_unstable_by_key(|link| link.pack(0));
        links.into_iter().for_each(|link| self.close(link));
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
