use super::fields::{Fields, put_text, put_value};
use super::frame::write_framed;
use super::{Ballot, Frame, FrameError, FrameKind, Hello, RegisterId, Status, UrlBatch};
use crate::limits::{PEER_FRAME_BYTES_MAX, PEER_WHY_BYTES_MAX, REGISTER_BYTES_MAX, URL_BATCH_ITEMS_MAX};
use crate::proto::partition::Partition;
use std::borrow::Cow;

/// What a node says to another. `id` is of the one who asks, and comes back in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerWord<'a> {
    Hello(Hello<'a>),
    /// The link is closed after it. At most [`PEER_WHY_BYTES_MAX`] bytes are sent.
    Refused {
        why: &'a str,
    },
    TableAsk {
        epoch_known: u64,
    },
    /// The table in its own coding; packed on the wire. At most [`REGISTER_BYTES_MAX`] bytes.
    Table {
        epoch: u64,
        bytes: Cow<'a, [u8]>,
    },
    Prepare {
        id: u64,
        register: RegisterId,
        ballot: Ballot,
    },
    /// A value has at most [`REGISTER_BYTES_MAX`] bytes.
    Accept {
        id: u64,
        register: RegisterId,
        ballot: Ballot,
        value: &'a [u8],
    },
    Promise {
        id: u64,
        register: RegisterId,
        ballot: Ballot,
        accepted: Option<(Ballot, &'a [u8])>,
    },
    Accepted {
        id: u64,
        register: RegisterId,
        ballot: Ballot,
    },
    /// Refuses a ballot, as this higher one was promised.
    Later {
        id: u64,
        register: RegisterId,
        ballot: Ballot,
    },
    Urls(UrlBatch<'a>),
    /// This batch and all before it are durable.
    Counted {
        batch: u64,
    },
    /// URLs of these partitions, in this batch, are another node's since this epoch. At most [`URL_BATCH_ITEMS_MAX`].
    NotMine {
        batch: u64,
        epoch: u64,
        partitions: Vec<Partition>,
    },
    Status(Status),
}

impl PeerWord<'_> {
    pub fn kind(&self) -> FrameKind {
        match self {
            PeerWord::Hello(_) => FrameKind::Hello,
            PeerWord::Refused { .. } => FrameKind::Refused,
            PeerWord::TableAsk { .. } => FrameKind::TableAsk,
            PeerWord::Table { .. } => FrameKind::Table,
            PeerWord::Prepare { .. } => FrameKind::Prepare,
            PeerWord::Accept { .. } => FrameKind::Accept,
            PeerWord::Promise { .. } => FrameKind::Promise,
            PeerWord::Accepted { .. } => FrameKind::Accepted,
            PeerWord::Later { .. } => FrameKind::Later,
            PeerWord::Urls(_) => FrameKind::Urls,
            PeerWord::Counted { .. } => FrameKind::Counted,
            PeerWord::NotMine { .. } => FrameKind::NotMine,
            PeerWord::Status(_) => FrameKind::Status,
        }
    }

    /// Appends it to `out`, in a frame.
    ///
    /// # Panics
    ///
    /// If something in it is over its bound.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_framed(out, self.kind(), |out| self.write_body(out));
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match self {
            PeerWord::Hello(hello) => hello.write(out),
            PeerWord::Refused { why } => {
                put_text(out, &why[..why.floor_char_boundary(PEER_WHY_BYTES_MAX)], PEER_WHY_BYTES_MAX);
            }
            PeerWord::TableAsk { epoch_known: number } | PeerWord::Counted { batch: number } => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            PeerWord::Table { epoch, bytes } => {
                assert!(bytes.len() <= REGISTER_BYTES_MAX, "a table of {} bytes", bytes.len());
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                put_value(out, &lz4_flex::block::compress(bytes), PACKED_BYTES_MAX);
            }
            PeerWord::Prepare { id, register, ballot }
            | PeerWord::Accepted { id, register, ballot }
            | PeerWord::Later { id, register, ballot } => write_ballot(out, *id, *register, *ballot),
            PeerWord::Accept { id, register, ballot, value } => {
                write_ballot(out, *id, *register, *ballot);
                put_value(out, value, REGISTER_BYTES_MAX);
            }
            PeerWord::Promise { id, register, ballot, accepted } => {
                write_ballot(out, *id, *register, *ballot);
                out.push(u8::from(accepted.is_some()));
                if let Some((ballot, value)) = accepted {
                    ballot.write(out);
                    put_value(out, value, REGISTER_BYTES_MAX);
                }
            }
            PeerWord::Urls(batch) => batch.write(out),
            PeerWord::NotMine { batch, epoch, partitions } => {
                assert!(
                    partitions.len() <= URL_BATCH_ITEMS_MAX,
                    "{} partitions of a batch",
                    partitions.len()
                );
                out.extend_from_slice(&batch.to_le_bytes());
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&(partitions.len() as u16).to_le_bytes());
                out.extend(partitions.iter().flat_map(|partition| partition.get().to_le_bytes()));
            }
            PeerWord::Status(status) => out.extend_from_slice(&status.to_bytes()),
        }
    }
}

impl<'a> Frame<'a> {
    /// The word that it holds.
    pub fn word(&self) -> Result<PeerWord<'a>, FrameError> {
        let mut fields = Fields::of(self.kind, self.body);
        let word = match self.kind {
            FrameKind::Hello => PeerWord::Hello(Hello::read(&mut fields)?),
            FrameKind::Refused => PeerWord::Refused { why: fields.text(PEER_WHY_BYTES_MAX)? },
            FrameKind::TableAsk => PeerWord::TableAsk { epoch_known: fields.u64()? },
            FrameKind::Table => {
                PeerWord::Table { epoch: fields.u64()?, bytes: unpacked(&mut fields)?.into() }
            }
            FrameKind::Prepare => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Prepare { id, register, ballot }
            }
            FrameKind::Accept => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Accept { id, register, ballot, value: fields.value(REGISTER_BYTES_MAX)? }
            }
            FrameKind::Promise => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                let accepted = match fields.yes_or_no()? {
                    true => Some((Ballot::read(&mut fields)?, fields.value(REGISTER_BYTES_MAX)?)),
                    false => None,
                };
                PeerWord::Promise { id, register, ballot, accepted }
            }
            FrameKind::Accepted => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Accepted { id, register, ballot }
            }
            FrameKind::Later => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Later { id, register, ballot }
            }
            FrameKind::Urls => PeerWord::Urls(UrlBatch::read(&mut fields)?),
            FrameKind::Counted => PeerWord::Counted { batch: fields.u64()? },
            FrameKind::NotMine => PeerWord::NotMine {
                batch: fields.u64()?,
                epoch: fields.u64()?,
                partitions: read_partitions(&mut fields)?,
            },
            FrameKind::Status => PeerWord::Status(Status::read(&mut fields)?),
        };
        fields.end()?;
        Ok(word)
    }
}

/// What the bytes of a table may come to when they are packed and it does not help.
const PACKED_BYTES_MAX: usize = lz4_flex::block::get_maximum_output_size(REGISTER_BYTES_MAX);
const _: () = assert!(PACKED_BYTES_MAX + 64 <= PEER_FRAME_BYTES_MAX);

/// One byte of LZ4 stands for no more than so many.
const LZ4_RATIO_MAX: usize = 255;

fn unpacked(fields: &mut Fields<'_>) -> Result<Vec<u8>, FrameError> {
    let plain_bytes = fields.u32()? as usize;
    let packed = fields.value(PACKED_BYTES_MAX)?;
    if plain_bytes > REGISTER_BYTES_MAX || plain_bytes > packed.len() * LZ4_RATIO_MAX {
        return fields.unreadable("with a table over its bound");
    }
    let mut plain = vec![0; plain_bytes];
    match lz4_flex::block::decompress_into(packed, &mut plain) {
        Ok(bytes) if bytes == plain_bytes => Ok(plain),
        _ => fields.unreadable("with a table that cannot be unpacked"),
    }
}

fn write_ballot(out: &mut Vec<u8>, id: u64, register: RegisterId, ballot: Ballot) {
    out.extend_from_slice(&id.to_le_bytes());
    register.write(out);
    ballot.write(out);
}

fn read_ballot(fields: &mut Fields<'_>) -> Result<(u64, RegisterId, Ballot), FrameError> {
    Ok((fields.u64()?, RegisterId::read(fields)?, Ballot::read(fields)?))
}

fn read_partitions(fields: &mut Fields<'_>) -> Result<Vec<Partition>, FrameError> {
    let count = usize::from(fields.u16()?);
    if count > URL_BATCH_ITEMS_MAX {
        return fields.unreadable("with more partitions than a batch has items");
    }
    let numbers = fields.bytes(2 * count)?.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    match numbers.map(Partition::new).collect() {
        Some(partitions) => Ok(partitions),
        None => fields.unreadable("with a partition out of range"),
    }
}
