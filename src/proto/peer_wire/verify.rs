use super::FrameError;
use super::StoreName;
use super::fields::Fields;
use super::pages::{read_state, write_state};
use crate::limits::{PEER_FRAME_BYTES_MAX, SHORTFALLS_MAX};
use crate::proto::record::SegmentState;

/// What a node found when it compared what it has with the copy of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// There is no more to come.
    pub is_done: bool,
    /// The table that it goes by, and the digest of its bytes.
    pub epoch: u64,
    pub table: u64,
    /// Who has its copy; 0 for nobody.
    pub follower: u16,
    /// Segments of which both have the same bytes, and how many bytes those are.
    pub segments: u64,
    pub bytes: u64,
    /// Documents that both know.
    pub documents: u64,
    /// Segments of nodes that are gone, all of whose records can be read.
    pub kept: u64,
    /// At most [`SHORTFALLS_MAX`].
    pub short: Vec<Shortfall>,
    /// Those for which there was no room.
    pub more: u64,
}

/// Something that is not as it was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    pub kind: ShortKind,
    /// Of the node that tells; its own where it is of no segment.
    pub store: StoreName,
    pub segment: u64,
}

/// Of which kind it is. A number is never given to another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ShortKind {
    /// The copy of a segment has other bytes.
    CopyDiffers = 1,
    /// The copy of a segment is not there, or is another segment's.
    CopyMissing = 2,
    /// The disk does not give the copy of a segment.
    CopyUnreadable = 3,
    /// Records of a segment cannot be read: of this node, or of one that is gone.
    Damaged = 4,
    /// The disk does not give a segment.
    Unreadable = 5,
    /// What the follower knows is something else than it was told.
    KnowledgeDiffers = 6,
    KnowledgeMissing = 7,
    KnowledgeUnreadable = 8,
    /// The follower has not got everything for too long.
    PagesBehind = 9,
    KnowledgeBehind = 10,
    /// The follower does not say what it has.
    NoAnswer = 11,
}

/// What is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumOf {
    /// So many bytes of a segment of the sender, from the first on.
    Segment { store: StoreName, state: SegmentState },
    /// So many bytes of a segment of the receiver's own store, which the sender kept while that was gone. There is none to be had
    /// unless the follower of the receiver has them, too.
    Original { state: SegmentState },
    /// What the sender knows: the batches of a copy up to this one.
    Knowledge { copy: u64, batch: u64 },
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// So many bytes or documents, and their digest.
    Of { count: u64, digest: u64 },
    /// It is not there, or less of it, or it is another.
    Missing,
    /// The disk does not give it.
    Unreadable,
}

impl ShortKind {
    const ALL: [ShortKind; 11] = [
        ShortKind::CopyDiffers,
        ShortKind::CopyMissing,
        ShortKind::CopyUnreadable,
        ShortKind::Damaged,
        ShortKind::Unreadable,
        ShortKind::KnowledgeDiffers,
        ShortKind::KnowledgeMissing,
        ShortKind::KnowledgeUnreadable,
        ShortKind::PagesBehind,
        ShortKind::KnowledgeBehind,
        ShortKind::NoAnswer,
    ];

    /// As it is named where programs read it.
    pub fn name(self) -> &'static str {
        match self {
            ShortKind::CopyDiffers => "copy_differs",
            ShortKind::CopyMissing => "copy_missing",
            ShortKind::CopyUnreadable => "copy_unreadable",
            ShortKind::Damaged => "damaged",
            ShortKind::Unreadable => "unreadable",
            ShortKind::KnowledgeDiffers => "knowledge_differs",
            ShortKind::KnowledgeMissing => "knowledge_missing",
            ShortKind::KnowledgeUnreadable => "knowledge_unreadable",
            ShortKind::PagesBehind => "pages_behind",
            ShortKind::KnowledgeBehind => "knowledge_behind",
            ShortKind::NoAnswer => "no_answer",
        }
    }

    fn read(fields: &mut Fields<'_>) -> Result<ShortKind, FrameError> {
        let number = usize::from(fields.u8()?);
        match number.checked_sub(1).and_then(|at| ShortKind::ALL.get(at)) {
            Some(kind) => Ok(*kind),
            None => fields.unreadable("with a shortfall that means nothing"),
        }
    }
}

impl Shortfall {
    /// One that is of no segment.
    pub fn of(kind: ShortKind) -> Shortfall {
        Shortfall { kind, store: StoreName::OWN, segment: 0 }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Shortfall { kind, store, segment } = *self;
        out.push(kind as u8);
        store.write(out);
        out.extend_from_slice(&segment.to_le_bytes());
    }

    fn read(fields: &mut Fields<'_>) -> Result<Shortfall, FrameError> {
        let (kind, store) = (ShortKind::read(fields)?, StoreName::read(fields)?);
        Ok(Shortfall { kind, store, segment: fields.u64()? })
    }
}

impl Verified {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Verified { is_done, epoch, table, follower, segments, bytes, documents, kept, short, more } =
            self;
        assert!(short.len() <= SHORTFALLS_MAX, "{} shortfalls", short.len());
        out.push(u8::from(*is_done));
        out.extend_from_slice(&follower.to_le_bytes());
        for number in [epoch, table, segments, bytes, documents, kept, more] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&(short.len() as u16).to_le_bytes());
        short.iter().for_each(|short| short.write(out));
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Verified, FrameError> {
        let (is_done, follower) = (fields.yes_or_no()?, fields.u16()?);
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = fields.u64()?;
        }
        let [epoch, table, segments, bytes, documents, kept, more] = numbers;
        let count = usize::from(fields.u16()?);
        if count > SHORTFALLS_MAX {
            return fields.unreadable("with more shortfalls than a word has");
        }
        let short = (0..count).map(|_| Shortfall::read(fields)).collect::<Result<_, _>>()?;
        Ok(Verified { is_done, epoch, table, follower, segments, bytes, documents, kept, short, more })
    }
}

const SEGMENT: u8 = 0;
const KNOWLEDGE: u8 = 1;
const ORIGINAL: u8 = 2;

impl SumOf {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            SumOf::Segment { store, state } => {
                out.push(SEGMENT);
                store.write(out);
                write_state(out, state);
            }
            SumOf::Original { state } => {
                out.push(ORIGINAL);
                write_state(out, state);
            }
            SumOf::Knowledge { copy, batch } => {
                out.push(KNOWLEDGE);
                out.extend_from_slice(&copy.to_le_bytes());
                out.extend_from_slice(&batch.to_le_bytes());
            }
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<SumOf, FrameError> {
        match fields.u8()? {
            SEGMENT => {
                let store = StoreName::read(fields)?;
                Ok(SumOf::Segment { store, state: read_state(fields)? })
            }
            ORIGINAL => Ok(SumOf::Original { state: read_state(fields)? }),
            KNOWLEDGE => Ok(SumOf::Knowledge { copy: fields.u64()?, batch: fields.u64()? }),
            _ => fields.unreadable("with something that has no sum"),
        }
    }
}

const OF: u8 = 0;
const MISSING: u8 = 1;
const UNREADABLE: u8 = 2;

impl Sum {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Sum::Of { count, digest } => {
                out.push(OF);
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&digest.to_le_bytes());
            }
            Sum::Missing => out.push(MISSING),
            Sum::Unreadable => out.push(UNREADABLE),
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Sum, FrameError> {
        match fields.u8()? {
            OF => Ok(Sum::Of { count: fields.u64()?, digest: fields.u64()? }),
            MISSING => Ok(Sum::Missing),
            UNREADABLE => Ok(Sum::Unreadable),
            _ => fields.unreadable("with a sum that means nothing"),
        }
    }
}

const _: () = assert!(SHORTFALLS_MAX * 13 + 128 <= PEER_FRAME_BYTES_MAX);
const _: () = assert!(SHORTFALLS_MAX <= u16::MAX as usize, "they are counted in 16 bits");
