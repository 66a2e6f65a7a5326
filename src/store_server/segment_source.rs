use super::layout::{HEADER_BYTES, SEGMENT_CRC};
use super::record;
use super::segment_copy::SegmentCopy;
use super::segment_file::{SegmentFile, list};
use super::segment_header::SegmentHeader;
use crate::base::{SortedMap, SortedSet, u32_at};
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::SegmentState;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The segments of a store as bytes, for a copy of it elsewhere. Of one in use only whole records are shown.
pub struct SegmentSource {
    segments: PathBuf,
    /// What is known of each that was there at the last look.
    known: SortedMap<u64, Known>,
    /// So many bytes are kept from one look to the next.
    room: usize,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct Looked {
    /// Oldest first. One without records is none yet.
    pub states: Vec<SegmentState>,
    /// The numbers of all that are there.
    pub listed: SortedSet<u64>,
    /// The first that the disk does not give, and why.
    pub trouble: Option<(PathBuf, io::Error)>,
}

struct Known {
    path: PathBuf,
    inode: u64,
    state: SegmentState,
    fresh: Fresh,
}

/// The last records of a segment in use, as they were looked at: whoever wants them need not read them again.
#[derive(Default)]
struct Fresh {
    at: u64,
    /// Its memory is used again by the next look that finds something.
    bytes: Vec<u8>,
    /// So many of them are whole records.
    whole: usize,
}

/// Of a store.
const FRESH_BYTES_MAX: usize = 8 << 20;
/// So much is read at once. A segment in use is as long as it may grow: behind its last record zeros are read.
const READ_BYTES: usize = 64 << 10;

impl SegmentSource {
    pub fn new(data: &Path) -> SegmentSource {
        SegmentSource::with_room(data, FRESH_BYTES_MAX)
    }

    pub(super) fn with_room(data: &Path, room: usize) -> SegmentSource {
        SegmentSource { segments: data.join("segments"), known: SortedMap::new(), room }
    }

    /// The key of its digests, without which a damaged copy tells less; 0 for none.
    pub fn key(&self) -> u64 {
        self.segments.parent().map_or(0, SegmentCopy::key)
    }

    /// Looks how far each segment is. Where there is no folder at all, that is an error, and nothing about the segments.
    pub fn look(&mut self) -> io::Result<Looked> {
        let files = list(&self.segments)?;
        let mut before = std::mem::take(&mut self.known);
        let mut looked = Looked::default();
        let mut room = self.room;
        for file in &files {
            looked.listed.insert(file.number);
            match look_at(file, before.remove(&file.number), &mut room) {
                Ok(known) => self.known.extend(known.map(|known| (file.number, known))),
                // The others are not to suffer for it.
                Err(cause) => looked.trouble = looked.trouble.or_else(|| Some((file.path.clone(), cause))),
            }
        }
        let states = self.known.values().map(|known| known.state);
        looked.states = states.filter(|state| state.bytes > SEGMENT_HEADER_BYTES as u64).collect();
        Ok(looked)
    }

    /// Leaves a segment out until it is another: the disk does not give its bytes.
    pub fn give_up(&mut self, segment: u64) {
        if let Some(known) = self.known.get_mut(&segment) {
            known.state = SegmentState { bytes: 0, is_sealed: true, ..known.state };
        }
    }

    /// Bytes of a segment as it was at the last look, from `at` on; `None` if that is not there any more.
    pub fn read(&self, segment: u64, at: u64, bytes_max: usize) -> io::Result<Option<Cow<'_, [u8]>>> {
        let Some(Known { path, inode, state, fresh }) = self.known.get(&segment) else { return Ok(None) };
        let left = usize::try_from(state.bytes.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes_max);
        if let Some(bytes) = fresh.get(at, left) {
            return Ok(Some(bytes.into()));
        }
        let file = SegmentFile { number: segment, sealed: state.is_sealed, path: path.clone() };
        let Some((file, _)) = file.open()? else { return Ok(None) };
        // A file that came in the place of it may have its inode.
        let is_it = file.metadata()?.ino() == *inode
            && (at > 0 || first_page(&file, segment)?.is_some_and(|(_, print)| print == state.print));
        if !is_it {
            return Ok(None);
        }
        let mut bytes = vec![0; left];
        file.read_exact_at(&mut bytes, at)?;
        Ok(Some(bytes.into()))
    }
}

impl Fresh {
    fn get(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes[..self.whole].get(from..from.checked_add(bytes)?)
    }

    /// Whole records of a segment in use, from the end of one on: the last of them, and where they end. `bytes` is memory to use.
    fn read(
        file: &File,
        segment: u64,
        from: u64,
        room: &mut usize,
        mut bytes: Vec<u8>,
    ) -> io::Result<(Fresh, u64)> {
        let (mut at, mut read, mut whole) = (from, 0, 0);
        loop {
            let wanted = match whole_record(&bytes[whole..read], segment) {
                Next::Whole(bytes) => {
                    whole += bytes;
                    continue;
                }
                Next::More(bytes) => bytes,
                Next::None => break,
            };
            if whole >= *room {
                bytes.copy_within(whole..read, 0);
                at += whole as u64;
                read -= std::mem::take(&mut whole);
            }
            let upto = read + wanted.max(READ_BYTES);
            if bytes.len() < upto {
                bytes.resize(upto, 0);
            }
            match file.read_at(&mut bytes[read..upto], at + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        let end = at + whole as u64;
        if whole == 0 || whole > *room {
            (bytes, whole) = (Vec::new(), 0);
        } else if bytes.len() > 2 * read + READ_BYTES {
            bytes.truncate(read);
            bytes.shrink_to_fit();
        }
        *room -= whole;
        Ok((Fresh { at, bytes, whole }, end))
    }
}

/// What bytes of a segment begin with.
enum Next {
    /// A record of so many bytes.
    Whole(usize),
    /// So many bytes more are needed to know.
    More(usize),
    None,
}

fn whole_record(bytes: &[u8], segment: u64) -> Next {
    if bytes.len() < HEADER_BYTES {
        return Next::More(HEADER_BYTES - bytes.len());
    }
    let Ok(lengths) = record::check_header(bytes, segment) else { return Next::None };
    match bytes.get(..lengths.record) {
        Some(whole) if record::parse(whole, segment).is_ok() => Next::Whole(lengths.record),
        Some(_) => Next::None,
        None => Next::More(lengths.record - bytes.len()),
    }
}

/// How far a segment is. What was known of it before is not read again.
fn look_at(file: &SegmentFile, before: Option<Known>, room: &mut usize) -> io::Result<Option<Known>> {
    if let Some(known) = before.as_ref().filter(|known| known.state.is_sealed && known.path == file.path) {
        let is_same = file
            .path
            .metadata()
            .is_ok_and(|meta| meta.ino() == known.inode && [0, meta.len()].contains(&known.state.bytes));
        if is_same {
            return Ok(before);
        }
    }
    // One that is removed meanwhile is none.
    let Some((opened, is_sealed)) = file.open()? else { return Ok(None) };
    let inode = opened.metadata()?.ino();
    let before = before.filter(|known| known.inode == inode && !known.state.is_sealed);
    let (from, memory) = before
        .map_or((SEGMENT_HEADER_BYTES as u64, Vec::new()), |known| (known.state.bytes, known.fresh.bytes));
    let Some((shard, print)) = first_page(&opened, file.number)? else { return Ok(None) };
    // What the disk refused was cut where it was good.
    let is_sealed = is_sealed || file.is_bad();
    let (fresh, bytes) = match is_sealed {
        true => (Fresh::default(), opened.metadata()?.len()),
        false => Fresh::read(&opened, file.number, from, room, memory)?,
    };
    let state = SegmentState { segment: file.number, shard, print, bytes, is_sealed };
    Ok(Some(Known { path: file.path.clone(), inode, state, fresh }))
}

/// The shard and the print of a segment; nothing if its first page was never finished.
pub(super) fn first_page(file: &File, number: u64) -> io::Result<Option<(u32, u32)>> {
    let Some(header) = SegmentHeader::of(file, number)? else { return Ok(None) };
    let mut crc = [0; 4];
    file.read_exact_at(&mut crc, SEGMENT_CRC as u64)?;
    Ok(Some((header.shard, u32_at(&crc, 0))))
}
