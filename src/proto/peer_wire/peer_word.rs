use super::fields::{Fields, put_text, put_value};
use super::frame::write_framed;
use super::pages::{
    read_gone, read_held, read_piece, read_stores, write_gone, write_held, write_piece, write_stores,
};
use super::ticket::{read_tickets, write_tickets};
use super::{
    Back, Ballot, Beat, CopiedStore, Frame, FrameError, FrameKind, Grant, Hello, MoveBatch, Moved, Register,
    Status, StoreName, Sum, SumOf, TicketKey, UrlBatch, Verified, Wait, Want,
};
use crate::limits::{PEER_FRAME_BYTES_MAX, PEER_WHY_BYTES_MAX, REGISTER_BYTES_MAX, URL_BATCH_ITEMS_MAX};
use crate::proto::partition::Partition;
use crate::proto::record::{SegmentPiece, SegmentState};
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
    /// Asks the voter that has this disk to take no ballot below.
    Prepare {
        id: u64,
        register: Register,
        ballot: Ballot,
        disk: u64,
    },
    /// Asks the voter that has this disk to keep a value, and to promise the ballot `then` with it. Nothing is a value too;
    /// others have at most [`REGISTER_BYTES_MAX`] bytes.
    Accept {
        id: u64,
        register: Register,
        ballot: Ballot,
        disk: u64,
        then: Ballot,
        value: Option<&'a [u8]>,
    },
    /// No ballot below is taken; `value` was accepted last, under the ballot `accepted`.
    Promise {
        id: u64,
        register: Register,
        ballot: Ballot,
        accepted: Ballot,
        value: Option<&'a [u8]>,
    },
    /// The value is on disk.
    Accepted {
        id: u64,
        register: Register,
        ballot: Ballot,
    },
    /// Does not take the ballot, as a higher one was promised.
    Later {
        id: u64,
        register: Register,
        ballot: Ballot,
        promised: Ballot,
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
    /// Has no vote on the ballot: the disk is another one, or has no room. It is not counted, for or against.
    NoVote {
        id: u64,
        register: Register,
        ballot: Ballot,
    },
    /// At most [`TICKETS_PER_WORD_MAX`](crate::limits::TICKETS_PER_WORD_MAX), as in the next three.
    Want(Vec<Want<TicketKey>>),
    Grant(Vec<Grant<TicketKey>>),
    Wait(Vec<Wait<TicketKey>>),
    Back(Vec<Back<TicketKey>>),
    /// The beat of a node, of the sender or of another one, that was in its register.
    Beat {
        node: u16,
        beat: Beat,
    },
    StatusAsk {
        round: u64,
    },
    Move(MoveBatch<'a>),
    Moved(Moved),
    /// What the sender knows, for the node that would take it over: under the number of the copy, and of the batch in it. A copy
    /// is whole with the first batch that says so.
    Copy {
        is_whole: bool,
        batch: MoveBatch<'a>,
    },
    /// This batch of the copy and all before it are durable; none of them are if it is 0.
    Copied {
        id: u64,
        batch: u64,
    },
    /// The sender is to have its stores copied: what is there of them? The first of them is its own. Of `id`, the upper half is how
    /// often the sender was started: times that it tells are by the calendar of that start.
    PagesAsk {
        id: u64,
        stores: Vec<CopiedStore>,
    },
    /// So much of these segments is durable. The first answer may take several words; the last of them says so. If the disk refuses
    /// more, the sender is to wait.
    PagesHeld {
        id: u64,
        is_all: bool,
        is_refused: bool,
        held: Vec<(StoreName, SegmentState)>,
    },
    Pages {
        id: u64,
        store: StoreName,
        piece: SegmentPiece<'a>,
    },
    PagesGone {
        id: u64,
        store: StoreName,
        segments: Vec<u64>,
    },
    /// Pages that the sender had by this time of its calendar were told, in seconds.
    PagesUpto {
        id: u64,
        unix_s: u32,
    },
    /// The receiver is to say which table it goes by and, if so, to compare all that it has with its copy.
    VerifyAsk {
        id: u64,
        copies: bool,
    },
    Verified {
        id: u64,
        verified: Verified,
    },
    /// At most [`SUMS_ASKED_MAX`](crate::limits::SUMS_ASKED_MAX) wait for their answers.
    SumAsk {
        id: u64,
        of: SumOf,
    },
    Sum {
        id: u64,
        sum: Sum,
    },
    /// The receiver is to say when all that it knows now, by a table of this epoch or a later one, is on a second disk, and all its
    /// pages, if so.
    SafeAsk {
        id: u64,
        epoch: u64,
        pages: bool,
    },
    /// It is; or there is nobody who could have it, but for the one who asks.
    Safe {
        id: u64,
        is_alone: bool,
    },
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
            PeerWord::NoVote { .. } => FrameKind::NoVote,
            PeerWord::Want(_) => FrameKind::Want,
            PeerWord::Grant(_) => FrameKind::Grant,
            PeerWord::Wait(_) => FrameKind::Wait,
            PeerWord::Back(_) => FrameKind::Back,
            PeerWord::Beat { .. } => FrameKind::Beat,
            PeerWord::StatusAsk { .. } => FrameKind::StatusAsk,
            PeerWord::Move(_) => FrameKind::Move,
            PeerWord::Moved(_) => FrameKind::Moved,
            PeerWord::Copy { .. } => FrameKind::Copy,
            PeerWord::Copied { .. } => FrameKind::Copied,
            PeerWord::PagesAsk { .. } => FrameKind::PagesAsk,
            PeerWord::PagesHeld { .. } => FrameKind::PagesHeld,
            PeerWord::Pages { .. } => FrameKind::Pages,
            PeerWord::PagesGone { .. } => FrameKind::PagesGone,
            PeerWord::PagesUpto { .. } => FrameKind::PagesUpto,
            PeerWord::VerifyAsk { .. } => FrameKind::VerifyAsk,
            PeerWord::Verified { .. } => FrameKind::Verified,
            PeerWord::SumAsk { .. } => FrameKind::SumAsk,
            PeerWord::Sum { .. } => FrameKind::Sum,
            PeerWord::SafeAsk { .. } => FrameKind::SafeAsk,
            PeerWord::Safe { .. } => FrameKind::Safe,
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
            PeerWord::TableAsk { epoch_known: number }
            | PeerWord::Counted { batch: number }
            | PeerWord::StatusAsk { round: number } => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            PeerWord::Table { epoch, bytes } => {
                assert!(bytes.len() <= REGISTER_BYTES_MAX, "a table of {} bytes", bytes.len());
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                put_value(out, &lz4_flex::block::compress(bytes), PACKED_BYTES_MAX);
            }
            PeerWord::Prepare { id, register, ballot, disk } => {
                write_ballot(out, *id, *register, *ballot);
                out.extend_from_slice(&disk.to_le_bytes());
            }
            PeerWord::Accept { id, register, ballot, disk, then, value } => {
                write_ballot(out, *id, *register, *ballot);
                out.extend_from_slice(&disk.to_le_bytes());
                then.write(out);
                write_register_value(out, *value);
            }
            PeerWord::Promise { id, register, ballot, accepted, value } => {
                write_ballot(out, *id, *register, *ballot);
                accepted.write(out);
                write_register_value(out, *value);
            }
            PeerWord::Later { id, register, ballot, promised } => {
                write_ballot(out, *id, *register, *ballot);
                promised.write(out);
            }
            PeerWord::Accepted { id, register, ballot } | PeerWord::NoVote { id, register, ballot } => {
                write_ballot(out, *id, *register, *ballot);
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
            PeerWord::Want(tickets) => write_tickets(out, tickets),
            PeerWord::Grant(tickets) => write_tickets(out, tickets),
            PeerWord::Wait(tickets) => write_tickets(out, tickets),
            PeerWord::Back(tickets) => write_tickets(out, tickets),
            PeerWord::Beat { node, beat } => {
                out.extend_from_slice(&node.to_le_bytes());
                beat.write(out);
            }
            PeerWord::Move(batch) => batch.write(out),
            PeerWord::Moved(moved) => moved.write(out),
            PeerWord::Copy { is_whole, batch } => {
                out.push(u8::from(*is_whole));
                batch.write(out);
            }
            PeerWord::Copied { id, batch } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&batch.to_le_bytes());
            }
            PeerWord::PagesAsk { id, stores } => {
                out.extend_from_slice(&id.to_le_bytes());
                write_stores(out, stores);
            }
            PeerWord::PagesHeld { id, is_all, is_refused, held } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend([u8::from(*is_all), u8::from(*is_refused)]);
                write_held(out, held);
            }
            PeerWord::Pages { id, store, piece } => {
                out.extend_from_slice(&id.to_le_bytes());
                write_piece(out, *store, piece);
            }
            PeerWord::PagesGone { id, store, segments } => {
                out.extend_from_slice(&id.to_le_bytes());
                write_gone(out, *store, segments);
            }
            PeerWord::PagesUpto { id, unix_s } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&unix_s.to_le_bytes());
            }
            PeerWord::VerifyAsk { id, copies } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.push(u8::from(*copies));
            }
            PeerWord::Verified { id, verified } => {
                out.extend_from_slice(&id.to_le_bytes());
                verified.write(out);
            }
            PeerWord::SumAsk { id, of } => {
                out.extend_from_slice(&id.to_le_bytes());
                of.write(out);
            }
            PeerWord::Sum { id, sum } => {
                out.extend_from_slice(&id.to_le_bytes());
                sum.write(out);
            }
            PeerWord::SafeAsk { id, epoch, pages } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&epoch.to_le_bytes());
                out.push(u8::from(*pages));
            }
            PeerWord::Safe { id, is_alone } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.push(u8::from(*is_alone));
            }
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
                PeerWord::Prepare { id, register, ballot, disk: fields.u64()? }
            }
            FrameKind::Accept => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                let (disk, then) = (fields.u64()?, Ballot::read(&mut fields)?);
                PeerWord::Accept { id, register, ballot, disk, then, value: register_value(&mut fields)? }
            }
            FrameKind::Promise => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                let accepted = Ballot::read(&mut fields)?;
                PeerWord::Promise { id, register, ballot, accepted, value: register_value(&mut fields)? }
            }
            FrameKind::Accepted => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Accepted { id, register, ballot }
            }
            FrameKind::Later => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::Later { id, register, ballot, promised: Ballot::read(&mut fields)? }
            }
            FrameKind::Urls => PeerWord::Urls(UrlBatch::read(&mut fields)?),
            FrameKind::Counted => PeerWord::Counted { batch: fields.u64()? },
            FrameKind::NotMine => PeerWord::NotMine {
                batch: fields.u64()?,
                epoch: fields.u64()?,
                partitions: read_partitions(&mut fields)?,
            },
            FrameKind::Status => PeerWord::Status(Status::read(&mut fields)?),
            FrameKind::NoVote => {
                let (id, register, ballot) = read_ballot(&mut fields)?;
                PeerWord::NoVote { id, register, ballot }
            }
            FrameKind::Want => PeerWord::Want(read_tickets(&mut fields)?),
            FrameKind::Grant => PeerWord::Grant(read_tickets(&mut fields)?),
            FrameKind::Wait => PeerWord::Wait(read_tickets(&mut fields)?),
            FrameKind::Back => PeerWord::Back(read_tickets(&mut fields)?),
            FrameKind::Beat => PeerWord::Beat { node: fields.u16()?, beat: Beat::read(&mut fields)? },
            FrameKind::StatusAsk => PeerWord::StatusAsk { round: fields.u64()? },
            FrameKind::Move => PeerWord::Move(MoveBatch::read(&mut fields)?),
            FrameKind::Moved => PeerWord::Moved(Moved::read(&mut fields)?),
            FrameKind::Copy => {
                PeerWord::Copy { is_whole: fields.yes_or_no()?, batch: MoveBatch::read(&mut fields)? }
            }
            FrameKind::Copied => PeerWord::Copied { id: fields.u64()?, batch: fields.u64()? },
            FrameKind::PagesAsk => {
                PeerWord::PagesAsk { id: fields.u64()?, stores: read_stores(&mut fields)? }
            }
            FrameKind::PagesHeld => PeerWord::PagesHeld {
                id: fields.u64()?,
                is_all: fields.yes_or_no()?,
                is_refused: fields.yes_or_no()?,
                held: read_held(&mut fields)?,
            },
            FrameKind::Pages => {
                let (id, (store, piece)) = (fields.u64()?, read_piece(&mut fields)?);
                PeerWord::Pages { id, store, piece }
            }
            FrameKind::PagesGone => {
                let (id, (store, segments)) = (fields.u64()?, read_gone(&mut fields)?);
                PeerWord::PagesGone { id, store, segments }
            }
            FrameKind::PagesUpto => PeerWord::PagesUpto { id: fields.u64()?, unix_s: fields.u32()? },
            FrameKind::VerifyAsk => PeerWord::VerifyAsk { id: fields.u64()?, copies: fields.yes_or_no()? },
            FrameKind::Verified => {
                PeerWord::Verified { id: fields.u64()?, verified: Verified::read(&mut fields)? }
            }
            FrameKind::SumAsk => PeerWord::SumAsk { id: fields.u64()?, of: SumOf::read(&mut fields)? },
            FrameKind::Sum => PeerWord::Sum { id: fields.u64()?, sum: Sum::read(&mut fields)? },
            FrameKind::SafeAsk => {
                PeerWord::SafeAsk { id: fields.u64()?, epoch: fields.u64()?, pages: fields.yes_or_no()? }
            }
            FrameKind::Safe => PeerWord::Safe { id: fields.u64()?, is_alone: fields.yes_or_no()? },
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

fn write_ballot(out: &mut Vec<u8>, id: u64, register: Register, ballot: Ballot) {
    out.extend_from_slice(&id.to_le_bytes());
    register.write(out);
    ballot.write(out);
}

fn read_ballot(fields: &mut Fields<'_>) -> Result<(u64, Register, Ballot), FrameError> {
    Ok((fields.u64()?, Register::read(fields)?, Ballot::read(fields)?))
}

/// Whether there is a value, and the value.
fn write_register_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put_value(out, value, REGISTER_BYTES_MAX);
    }
}

fn register_value<'a>(fields: &mut Fields<'a>) -> Result<Option<&'a [u8]>, FrameError> {
    fields.yes_or_no()?.then(|| fields.value(REGISTER_BYTES_MAX)).transpose()
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
