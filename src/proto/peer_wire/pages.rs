use super::FrameError;
use super::fields::{Fields, put_value};
use crate::limits::{PAGE_PIECE_BYTES_MAX, PEER_FRAME_BYTES_MAX, SEGMENTS_PER_WORD_MAX, STORES_COPIED_MAX};
use crate::proto::record::{SegmentPiece, SegmentState};

/// Which of the stores of a node: its own, or that of a node that is gone, whose pages it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreName {
    /// 0 for its own.
    pub node: u16,
    /// A node may have come and gone more than once.
    pub count: u16,
}

/// A store that is copied, and the key of its digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedStore {
    pub name: StoreName,
    pub key: u64,
}

impl StoreName {
    /// The store of the node itself.
    pub const OWN: StoreName = StoreName { node: 0, count: 0 };

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.node.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<StoreName, FrameError> {
        Ok(StoreName { node: fields.u16()?, count: fields.u16()? })
    }
}

pub(super) fn write_stores(out: &mut Vec<u8>, stores: &[CopiedStore]) {
    assert!(stores.len() <= STORES_COPIED_MAX, "{} stores", stores.len());
    out.extend_from_slice(&(stores.len() as u16).to_le_bytes());
    for CopiedStore { name, key } in stores {
        name.write(out);
        out.extend_from_slice(&key.to_le_bytes());
    }
}

pub(super) fn read_stores(fields: &mut Fields<'_>) -> Result<Vec<CopiedStore>, FrameError> {
    let count = usize::from(fields.u16()?);
    if count > STORES_COPIED_MAX {
        return fields.unreadable("with more stores than a node has");
    }
    (0..count).map(|_| Ok(CopiedStore { name: StoreName::read(fields)?, key: fields.u64()? })).collect()
}

pub(super) fn write_held(out: &mut Vec<u8>, held: &[(StoreName, SegmentState)]) {
    assert!(held.len() <= SEGMENTS_PER_WORD_MAX, "{} segments", held.len());
    out.extend_from_slice(&(held.len() as u16).to_le_bytes());
    for (store, state) in held {
        store.write(out);
        write_state(out, state);
    }
}

pub(super) fn read_held(fields: &mut Fields<'_>) -> Result<Vec<(StoreName, SegmentState)>, FrameError> {
    let count = segments(fields)?;
    (0..count).map(|_| Ok((StoreName::read(fields)?, read_state(fields)?))).collect()
}

pub(super) fn write_piece(out: &mut Vec<u8>, store: StoreName, piece: &SegmentPiece<'_>) {
    store.write(out);
    write_state(out, &piece.upto);
    put_value(out, piece.bytes, PAGE_PIECE_BYTES_MAX);
}

pub(super) fn read_piece<'a>(fields: &mut Fields<'a>) -> Result<(StoreName, SegmentPiece<'a>), FrameError> {
    let (store, upto) = (StoreName::read(fields)?, read_state(fields)?);
    Ok((store, SegmentPiece { upto, bytes: fields.value(PAGE_PIECE_BYTES_MAX)? }))
}

pub(super) fn write_gone(out: &mut Vec<u8>, store: StoreName, gone: &[u64]) {
    assert!(gone.len() <= SEGMENTS_PER_WORD_MAX, "{} segments", gone.len());
    store.write(out);
    out.extend_from_slice(&(gone.len() as u16).to_le_bytes());
    out.extend(gone.iter().flat_map(|segment| segment.to_le_bytes()));
}

pub(super) fn read_gone(fields: &mut Fields<'_>) -> Result<(StoreName, Vec<u64>), FrameError> {
    let store = StoreName::read(fields)?;
    let count = segments(fields)?;
    Ok((store, (0..count).map(|_| fields.u64()).collect::<Result<_, _>>()?))
}

fn segments(fields: &mut Fields<'_>) -> Result<usize, FrameError> {
    match usize::from(fields.u16()?) {
        count if count > SEGMENTS_PER_WORD_MAX => fields.unreadable("with more segments than a word has"),
        count => Ok(count),
    }
}

pub(super) fn write_state(out: &mut Vec<u8>, state: &SegmentState) {
    let SegmentState { segment, shard, print, bytes, is_sealed } = state;
    out.extend_from_slice(&segment.to_le_bytes());
    out.extend_from_slice(&shard.to_le_bytes());
    out.extend_from_slice(&print.to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.push(u8::from(*is_sealed));
}

pub(super) fn read_state(fields: &mut Fields<'_>) -> Result<SegmentState, FrameError> {
    Ok(SegmentState {
        segment: fields.u64()?,
        shard: fields.u32()?,
        print: fields.u32()?,
        bytes: fields.u64()?,
        is_sealed: fields.yes_or_no()?,
    })
}

/// A segment in a word, with its store.
const STATE_BYTES: usize = 4 + 8 + 4 + 4 + 8 + 1;
const _: () = assert!(SEGMENTS_PER_WORD_MAX * STATE_BYTES + 64 <= PEER_FRAME_BYTES_MAX);
const _: () = assert!(PAGE_PIECE_BYTES_MAX + STATE_BYTES + 64 <= PEER_FRAME_BYTES_MAX);
const _: () = assert!(SEGMENTS_PER_WORD_MAX <= u16::MAX as usize, "they are counted in 16 bits");
