//! Hosts that are slow or broken: what each of them does to its clients.
//!
//! They stand behind the good hosts: with 100 of those the first is `h100.farm.test`. No page links to them; they are
//! among the seeds. A connection that is kept waiting costs the farm a slot, and a timer where bytes drip.

use super::answer::{Resource, Then};
use super::site::Site;

/// How a host misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Takes the request and never answers.
    Silent,
    /// A byte a second.
    Drip,
    /// The connection is reset before any byte.
    Reset,
    /// The connection is closed before any byte.
    Close,
    /// One header after the other.
    EndlessHead,
    /// No status in the status line.
    Malformed,
    /// Its port has no listener.
    Refused,
    /// 503 with a Retry-After.
    Unavailable,
    /// The connection is closed after half of what Content-Length says.
    HalfBody,
}

impl Misbehaviour {
    pub const ALL: [Misbehaviour; 9] = [
        Misbehaviour::Silent,
        Misbehaviour::Drip,
        Misbehaviour::Reset,
        Misbehaviour::Close,
        Misbehaviour::EndlessHead,
        Misbehaviour::Malformed,
        Misbehaviour::Refused,
        Misbehaviour::Unavailable,
        Misbehaviour::HalfBody,
    ];

    /// Of the misbehaving host with this number: all kinds in turns.
    pub fn of(number: u32) -> Misbehaviour {
        Misbehaviour::ALL[number as usize % Misbehaviour::ALL.len()]
    }

    /// Whether that host answers for its robots.txt, so that its pages are asked for at all: every other turn does.
    pub fn has_robots(number: u32) -> bool {
        number / Misbehaviour::ALL.len() as u32 % 2 == 1
    }

    /// How it keeps its peers waiting, if it does.
    pub(super) fn linger(self) -> Option<Linger> {
        match self {
            Misbehaviour::Silent => Some(Linger::Silent),
            Misbehaviour::Drip => Some(Linger::Drip { sent: 0 }),
            Misbehaviour::EndlessHead => Some(Linger::Head { begun: false }),
            _ => None,
        }
    }

    /// Appends the answer of one that does not keep its peers waiting.
    pub(super) fn push(self, out: &mut Vec<u8>) -> Then {
        match self {
            Misbehaviour::Reset => Then::Reset,
            Misbehaviour::Malformed => {
                out.extend_from_slice(b"HTTP/1.1 2x0 Perhaps\r\nContent-Length: 0\r\n\r\n");
                Then::Close
            }
            Misbehaviour::Unavailable => {
                out.extend_from_slice(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 600\r\n");
                out.extend_from_slice(b"Content-Length: 0\r\n\r\n");
                Then::KeepAlive
            }
            Misbehaviour::HalfBody => {
                out.extend_from_slice(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8192\r\n\r\n",
                );
                out.resize(out.len() + 4096, b'h');
                Then::Close
            }
            Misbehaviour::Close | Misbehaviour::Refused => Then::Close,
            Misbehaviour::Silent | Misbehaviour::Drip | Misbehaviour::EndlessHead => {
                unreachable!("a host that lingers has no answer")
            }
        }
    }
}

/// A connection whose answer has no end; only the peer ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linger {
    Silent,
    Drip {
        sent: usize,
    },
    /// `begun`: the status line is out.
    Head {
        begun: bool,
    },
}

const DRIP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n";
const DRIP_MS: u32 = 1_000;
const STATUS_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";
const HEADER: &[u8] = b"X-And-Another: one more of them, and after it the next one\r\n";
/// Headers of one write, and the pause between two: more than a reader needs to have enough, and no burden here.
const HEADERS_PER_WRITE: usize = 32;
const HEADERS_MS: u32 = 10;

impl Linger {
    /// When there is something to send again.
    pub(super) fn pause_ms(self) -> Option<u32> {
        match self {
            Linger::Silent => None,
            Linger::Drip { .. } => Some(DRIP_MS),
            Linger::Head { .. } => Some(HEADERS_MS),
        }
    }

    /// Appends the next bytes.
    pub(super) fn push(&mut self, out: &mut Vec<u8>) {
        match self {
            Linger::Silent => {}
            Linger::Drip { sent } => {
                out.push(DRIP.get(*sent).copied().unwrap_or(b'.'));
                *sent += 1;
            }
            Linger::Head { begun } => {
                if !std::mem::replace(begun, true) {
                    out.extend_from_slice(STATUS_LINE);
                }
                for _ in 0..HEADERS_PER_WRITE {
                    out.extend_from_slice(HEADER);
                }
            }
        }
    }
}

impl Site {
    /// How a host misbehaves when it is asked for this, if it does.
    pub fn misbehaviour(&self, host: u32, resource: Resource) -> Option<Misbehaviour> {
        let number = host.checked_sub(self.spec.hosts)?;
        let is_well = resource == Resource::Robots && Misbehaviour::has_robots(number);
        (!is_well).then(|| Misbehaviour::of(number))
    }
}

#[cfg(test)]
mod tests {
    use super::super::site_spec::SiteSpec;
    use super::*;

    #[test]
    fn good_hosts_behave_and_the_others_take_turns() {
        let site = Site::new(SiteSpec { hosts: 4, slow_hosts: 40, ..SiteSpec::default() }).unwrap();
        for host in 0..4 {
            assert_eq!(site.misbehaviour(host, Resource::Page(0)), None);
        }
        for (number, kind) in Misbehaviour::ALL.into_iter().enumerate() {
            let host = 4 + number as u32;
            assert_eq!(site.misbehaviour(host, Resource::Robots), Some(kind));
            assert_eq!(site.misbehaviour(host + 9, Resource::Robots), None, "every other turn has rules");
            assert_eq!(site.misbehaviour(host + 9, Resource::Page(0)), Some(kind));
        }
    }

    #[test]
    fn a_drip_is_a_byte_and_a_head_has_no_end() {
        let (mut drip, mut out) = (Linger::Drip { sent: 0 }, Vec::new());
        for bytes in 1..200 {
            drip.push(&mut out);
            assert_eq!(out.len(), bytes);
        }
        assert!(out.starts_with(DRIP) && out.ends_with(b"..."));
        let (mut head, mut out) = (Linger::Head { begun: false }, Vec::new());
        for _ in 0..100 {
            head.push(&mut out);
        }
        assert_eq!(out.windows(4).position(|four| four == b"\r\n\r\n"), None);
        assert!(out.starts_with(b"HTTP/1.1 200 OK\r\nX-And-Another: ") && out.len() > 100_000);
    }

    #[test]
    fn half_a_body_is_half() {
        let mut out = Vec::new();
        assert_eq!(Misbehaviour::HalfBody.push(&mut out), Then::Close);
        let text = String::from_utf8(out).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with("Content-Length: 8192"));
        assert_eq!(body.len(), 4096);
    }
}
