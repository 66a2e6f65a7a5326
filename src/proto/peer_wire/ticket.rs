use super::fields::{Fields, put_value};
use super::{FrameError, TicketKey};
use crate::limits::{
    PEER_FRAME_BYTES_MAX, TICKET_HOST_BYTES_MAX, TICKET_LINE_BYTES_MAX, TICKETS_PER_WORD_MAX,
};

/// A node wants a ticket, or wants to keep the one it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want<K> {
    pub key: K,
    /// Grows with every ask of a node; the answer and BACK repeat it.
    pub ask: u64,
    /// The sender has the ticket and knows when it sent last.
    pub renews: bool,
}

/// The ticket is the asker's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<K> {
    pub key: K,
    pub ask: u64,
    pub for_us: u64,
    /// The first request may be sent so long after this came.
    pub due_in_us: u64,
    /// Requests that may be open, and the pause between two.
    pub slots: u16,
    pub pause_us: u64,
    /// What the address is owed besides, as the holder before told it. At most [`TICKET_LINE_BYTES_MAX`] bytes.
    pub line: Box<[u8]>,
}

/// Not yet: to be asked for again after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait<K> {
    pub key: K,
    pub ask: u64,
    pub wait_us: u64,
}

/// The ticket, and every one that was asked for before, is given back: nothing is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back<K> {
    pub key: K,
    pub ask: u64,
    /// How long ago the last request was sent; nothing if none was.
    pub sent_ago_us: Option<u64>,
    pub pause_us: u64,
    /// What the address is owed besides. At most [`TICKET_LINE_BYTES_MAX`] bytes.
    pub line: Box<[u8]>,
}

/// One of the tickets in a word, behind its key and ask.
pub(super) trait OfTicket: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(fields: &mut Fields<'_>) -> Result<Self, FrameError>;
}

impl OfTicket for Want<TicketKey> {
    fn write(&self, out: &mut Vec<u8>) {
        write_ask(out, &self.key, self.ask);
        out.push(u8::from(self.renews));
    }

    fn read(fields: &mut Fields<'_>) -> Result<Want<TicketKey>, FrameError> {
        let (key, ask) = read_ask(fields)?;
        Ok(Want { key, ask, renews: fields.yes_or_no()? })
    }
}

impl OfTicket for Grant<TicketKey> {
    fn write(&self, out: &mut Vec<u8>) {
        write_ask(out, &self.key, self.ask);
        out.extend_from_slice(&self.for_us.to_le_bytes());
        out.extend_from_slice(&self.due_in_us.to_le_bytes());
        out.extend_from_slice(&self.slots.to_le_bytes());
        out.extend_from_slice(&self.pause_us.to_le_bytes());
        put_value(out, &self.line, TICKET_LINE_BYTES_MAX);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Grant<TicketKey>, FrameError> {
        let (key, ask) = read_ask(fields)?;
        Ok(Grant {
            key,
            ask,
            for_us: fields.u64()?,
            due_in_us: fields.u64()?,
            slots: fields.u16()?,
            pause_us: fields.u64()?,
            line: fields.value(TICKET_LINE_BYTES_MAX)?.into(),
        })
    }
}

impl OfTicket for Wait<TicketKey> {
    fn write(&self, out: &mut Vec<u8>) {
        write_ask(out, &self.key, self.ask);
        out.extend_from_slice(&self.wait_us.to_le_bytes());
    }

    fn read(fields: &mut Fields<'_>) -> Result<Wait<TicketKey>, FrameError> {
        let (key, ask) = read_ask(fields)?;
        Ok(Wait { key, ask, wait_us: fields.u64()? })
    }
}

impl OfTicket for Back<TicketKey> {
    fn write(&self, out: &mut Vec<u8>) {
        write_ask(out, &self.key, self.ask);
        out.push(u8::from(self.sent_ago_us.is_some()));
        if let Some(ago_us) = self.sent_ago_us {
            out.extend_from_slice(&ago_us.to_le_bytes());
        }
        out.extend_from_slice(&self.pause_us.to_le_bytes());
        put_value(out, &self.line, TICKET_LINE_BYTES_MAX);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Back<TicketKey>, FrameError> {
        let (key, ask) = read_ask(fields)?;
        Ok(Back {
            key,
            ask,
            sent_ago_us: fields.yes_or_no()?.then(|| fields.u64()).transpose()?,
            pause_us: fields.u64()?,
            line: fields.value(TICKET_LINE_BYTES_MAX)?.into(),
        })
    }
}

fn write_ask(out: &mut Vec<u8>, key: &TicketKey, ask: u64) {
    key.write(out);
    out.extend_from_slice(&ask.to_le_bytes());
}

fn read_ask(fields: &mut Fields<'_>) -> Result<(TicketKey, u64), FrameError> {
    Ok((TicketKey::read(fields)?, fields.u64()?))
}

/// How many there are, and each of them.
///
/// # Panics
///
/// If there are more than [`TICKETS_PER_WORD_MAX`].
pub(super) fn write_tickets<T: OfTicket>(out: &mut Vec<u8>, tickets: &[T]) {
    assert!(tickets.len() <= TICKETS_PER_WORD_MAX, "{} tickets in a word", tickets.len());
    out.extend_from_slice(&(tickets.len() as u16).to_le_bytes());
    tickets.iter().for_each(|ticket| ticket.write(out));
}

pub(super) fn read_tickets<T: OfTicket>(fields: &mut Fields<'_>) -> Result<Vec<T>, FrameError> {
    let count = usize::from(fields.u16()?);
    if count > TICKETS_PER_WORD_MAX {
        return fields.unreadable("with more tickets than a word may have");
    }
    // Each is read before there is room for the next.
    let mut tickets = Vec::new();
    for _ in 0..count {
        tickets.push(T::read(fields)?);
    }
    Ok(tickets)
}

/// Bytes of the longest one: a key, its ask, four numbers and a line.
const TICKET_BYTES_MAX: usize = 3 + TICKET_HOST_BYTES_MAX + 8 + 4 * 8 + 4 + TICKET_LINE_BYTES_MAX;
const _: () =
    assert!(2 + TICKETS_PER_WORD_MAX * TICKET_BYTES_MAX <= PEER_FRAME_BYTES_MAX, "they fit in a frame");
const _: () = assert!(TICKETS_PER_WORD_MAX <= u16::MAX as usize, "they are counted in 16 bits");
