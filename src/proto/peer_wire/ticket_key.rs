use super::FrameError;
use super::fields::Fields;
use crate::limits::TICKET_HOST_BYTES_MAX;
use std::fmt;
use std::net::IpAddr;

/// What a ticket is for: an address, or a host, by its origin, where one site is spread over many nodes. An address has one form, so that no
/// two nodes have a ticket for it under different keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketKey(Key);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Address(IpAddr),
    Host(Box<str>),
}

const HOST: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

impl TicketKey {
    /// For an address; one of IPv4 within IPv6 is the one of IPv4.
    pub fn of_address(address: IpAddr) -> TicketKey {
        TicketKey(Key::Address(address.to_canonical()))
    }

    /// For a host, by its origin in normal form. `None` if it is not, or longer than [`TICKET_HOST_BYTES_MAX`].
    pub fn of_host(host: &str) -> Option<TicketKey> {
        let is_normal = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
        let is_host = (1..=TICKET_HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_normal);
        is_host.then(|| TicketKey(Key::Host(host.into())))
    }

    pub fn address(&self) -> Option<IpAddr> {
        match self.0 {
            Key::Address(address) => Some(address),
            Key::Host(_) => None,
        }
    }

    pub fn host(&self) -> Option<&str> {
        match &self.0 {
            Key::Address(_) => None,
            Key::Host(host) => Some(host),
        }
    }

    /// Which of the three it is, then four or sixteen bytes, or the host behind its length of two bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Key::Address(IpAddr::V4(address)) => {
                out.push(V4);
                out.extend_from_slice(&address.octets());
            }
            Key::Address(IpAddr::V6(address)) => {
                out.push(V6);
                out.extend_from_slice(&address.octets());
            }
            Key::Host(host) => {
                out.push(HOST);
                out.extend_from_slice(&(host.len() as u16).to_le_bytes());
                out.extend_from_slice(host.as_bytes());
            }
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<TicketKey, FrameError> {
        let address = match fields.u8()? {
            V4 => IpAddr::from(fields.array::<4>()?),
            V6 => IpAddr::from(fields.array::<16>()?),
            HOST => {
                let count = usize::from(fields.u16()?);
                let host = str::from_utf8(fields.bytes(count)?).ok();
                let key = host.and_then(TicketKey::of_host);
                return key.map_or_else(|| fields.unreadable("with a host that is not in normal form"), Ok);
            }
            _ => return fields.unreadable("with a ticket that this version does not know"),
        };
        if address != address.to_canonical() {
            return fields.unreadable("with an address that has another form");
        }
        Ok(TicketKey(Key::Address(address)))
    }
}

impl fmt::Display for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Key::Address(address) => address.fmt(f),
            Key::Host(host) => host.fmt(f),
        }
    }
}

const _: () = assert!(TICKET_HOST_BYTES_MAX <= u16::MAX as usize, "its length has two bytes");
