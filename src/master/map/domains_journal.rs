use super::super::{By, MapRow, ServerId};
use super::domain_map::DomainMap;
use crate::base::{u16_at, u32_at, u64_at};
use crate::storage::{Bytes, NewFile};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// `domains.journal`: rows and what was sent to them, appended as frames. Little-endian.
///
/// ```text
///   header   magic "NEPHDOM1" · generation u64 · bytes when it was compacted u64 · crc32c u32 · zero u32
///   frame    bytes u32 · crc32c u32 · kind u8 · payload
///   rows     (bytes u16 · domain · server u16 · moving to u16 · page u64 · since u32 · by u8 · fence u32)…
///   sent     now u32 · (number of the domain u32 · URLs u32)…
///   totals   base u32 · (server u16 · weight f64)…
///   weights  first number u32 · weight f32…
/// ```
///
/// The number of a domain is its place among the rows, in which every domain is counted where it first stands. What is
/// behind the length that the journal of epochs has committed is cut away.
pub(crate) struct DomainsJournal {
    path: PathBuf,
    bytes: Bytes,
    end: DomainsEnd,
    compacted_bytes: u64,
    /// Written, not committed.
    staged: u64,
}

/// How much of the file counts, as the journal of epochs says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DomainsEnd {
    pub generation: u64,
    pub bytes: u64,
}

const FILE: &str = "domains.journal";
const MAGIC: &[u8; 8] = b"NEPHDOM1";
const HEADER_BYTES: usize = 32;
const FRAME_HEAD: usize = 8;
const FRAME_BYTES: usize = 1 << 20;
const FRAME_BYTES_MAX: usize = FRAME_BYTES + 1_024;
const NONE: u16 = u16::MAX;
/// It is written anew when it is twice as long as it need be, and longer than this.
const COMPACT_BYTES_MIN: u64 = 4 << 20;

const ROWS: u8 = 1;
const SENT: u8 = 2;
const TOTALS: u8 = 3;
const WEIGHTS: u8 = 4;

impl DomainsJournal {
    /// Opens the file as it was committed, tells it to a map and cuts away what was not.
    pub fn open(folder: &Path, end: DomainsEnd) -> io::Result<(DomainsJournal, DomainMap)> {
        let path = folder.join(FILE);
        let (map, end, compacted_bytes) = match read(&path, end)? {
            Some(read) => read,
            None => {
                let file = NewFile::create(&path)?;
                file.file().write_all(&header(0, HEADER_BYTES as u64))?;
                file.commit()?;
                let end = DomainsEnd { generation: 0, bytes: HEADER_BYTES as u64 };
                (DomainMap::default(), end, end.bytes)
            }
        };
        let mut bytes = Bytes::open(&path)?;
        if bytes.len() > end.bytes {
            bytes.truncate(end.bytes)?;
            bytes.sync()?;
        }
        Ok((DomainsJournal { path, bytes, end, compacted_bytes, staged: end.bytes }, map))
    }

    /// Reads what is committed, and changes nothing.
    pub fn view(folder: &Path, end: DomainsEnd) -> io::Result<DomainMap> {
        Ok(read(&folder.join(FILE), end)?.map(|(map, ..)| map).unwrap_or_default())
    }

    pub fn append_rows<'a>(&mut self, rows: impl Iterator<Item = &'a MapRow>) -> io::Result<()> {
        let mut frames = Frames::new(ROWS, &[]);
        rows.for_each(|row| frames.add(|out| put_row(out, row)));
        self.append(frames)
    }

    pub fn append_sent(&mut self, now_s: u32, counts: &[(u32, u32)]) -> io::Result<()> {
        let mut frames = Frames::new(SENT, &now_s.to_le_bytes());
        for (index, urls) in counts {
            frames.add(|out| {
                out.extend_from_slice(&index.to_le_bytes());
                out.extend_from_slice(&urls.to_le_bytes());
            });
        }
        self.append(frames)
    }

    fn append(&mut self, frames: Frames) -> io::Result<()> {
        let bytes = frames.end();
        self.bytes.write_at(&bytes, self.staged)?;
        self.staged += bytes.len() as u64;
        Ok(())
    }

    /// Makes what was appended durable, and says where the file will end.
    pub fn seal(&mut self) -> io::Result<DomainsEnd> {
        if self.staged > self.end.bytes {
            self.bytes.sync()?;
        }
        Ok(DomainsEnd { bytes: self.staged, ..self.end })
    }

    pub fn commit(&mut self) {
        self.end.bytes = self.staged;
    }

    /// Takes back what was appended since the last commit.
    pub fn cut(&mut self) -> io::Result<()> {
        if self.staged > self.end.bytes || self.bytes.len() > self.end.bytes {
            self.bytes.truncate(self.end.bytes)?;
            self.staged = self.end.bytes;
        }
        Ok(())
    }

    /// Writes the file anew if it is much longer than it need be. Killed before or after, either file says the same.
    pub fn compact(&mut self, map: &DomainMap) -> io::Result<()> {
        debug_assert_eq!(self.staged, self.end.bytes);
        if self.end.bytes < COMPACT_BYTES_MIN.max(2 * self.compacted_bytes) {
            return Ok(());
        }
        self.compact_now(map)
    }

    fn compact_now(&mut self, map: &DomainMap) -> io::Result<()> {
        let mut rows = Frames::new(ROWS, &[]);
        map.rows().for_each(|row| rows.add(|out| put_row(out, &row)));
        let loads = map.loads();
        let mut totals = Frames::new(TOTALS, &loads.base_s.to_le_bytes());
        for (server, total) in &loads.totals {
            totals.add(|out| {
                out.extend_from_slice(&server.0.to_le_bytes());
                out.extend_from_slice(&total.to_bits().to_le_bytes());
            });
        }
        let mut parts = vec![rows.end(), totals.end()];
        let weights: Vec<f32> = map.weights().collect();
        for (at, piece) in weights.chunks(FRAME_BYTES / 8).enumerate() {
            let first = (at * (FRAME_BYTES / 8)) as u32;
            let mut frames = Frames::new(WEIGHTS, &first.to_le_bytes());
            piece.iter().for_each(|weight| frames.add(|out| out.extend_from_slice(&weight.to_le_bytes())));
            parts.push(frames.end());
        }
        let bytes = HEADER_BYTES as u64 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let end = DomainsEnd { generation: self.end.generation + 1, bytes };
        let file = NewFile::create(&self.path)?;
        {
            let mut out = BufWriter::new(file.file());
            out.write_all(&header(end.generation, bytes))?;
            parts.iter().try_for_each(|part| out.write_all(part))?;
            out.flush()?;
        }
        file.commit()?;
        self.bytes = Bytes::open(&self.path)?;
        (self.end, self.compacted_bytes, self.staged) = (end, bytes, bytes);
        Ok(())
    }

    pub fn end(&self) -> DomainsEnd {
        self.end
    }
}

/// Frames of one kind, each of bounded size.
struct Frames {
    out: Vec<u8>,
    kind: u8,
    prefix: Vec<u8>,
    begun: Option<usize>,
}

impl Frames {
    fn new(kind: u8, prefix: &[u8]) -> Frames {
        Frames { out: Vec::new(), kind, prefix: prefix.to_vec(), begun: None }
    }

    fn add(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.begun.is_some_and(|at| self.out.len() - at >= FRAME_BYTES) {
            self.close();
        }
        if self.begun.is_none() {
            self.begun = Some(self.out.len());
            self.out.extend_from_slice(&[0; FRAME_HEAD]);
            self.out.push(self.kind);
            self.out.extend_from_slice(&self.prefix);
        }
        put(&mut self.out);
    }

    fn close(&mut self) {
        let Some(at) = self.begun.take() else { return };
        let payload = at + FRAME_HEAD;
        let (len, crc) = ((self.out.len() - payload) as u32, crc32c::crc32c(&self.out[payload..]));
        self.out[at..at + 4].copy_from_slice(&len.to_le_bytes());
        self.out[at + 4..payload].copy_from_slice(&crc.to_le_bytes());
    }

    fn end(mut self) -> Vec<u8> {
        self.close();
        self.out
    }
}

fn header(generation: u64, compacted_bytes: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&generation.to_le_bytes());
    bytes[16..24].copy_from_slice(&compacted_bytes.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..24]);
    bytes[24..28].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn put_row(out: &mut Vec<u8>, row: &MapRow) {
    let domain = super::names::key(&row.domain);
    out.extend_from_slice(&(domain.len() as u16).to_le_bytes());
    out.extend_from_slice(domain.as_bytes());
    out.extend_from_slice(&row.server.0.to_le_bytes());
    out.extend_from_slice(&row.moving_to.map_or(NONE, |server| server.0).to_le_bytes());
    out.extend_from_slice(&row.page.to_le_bytes());
    out.extend_from_slice(&row.since_s.to_le_bytes());
    out.push(row.by as u8);
    out.extend_from_slice(&row.fence.to_le_bytes());
}

/// The map of a file, where it ends, and how long it was when it was compacted. `None` if there is no file, and none was
/// committed.
fn read(path: &Path, end: DomainsEnd) -> io::Result<Option<(DomainMap, DomainsEnd, u64)>> {
    let damaged = |at: u64, what: &str| {
        let text = format!(
            "{} is damaged at byte {at}: {what} (put a copy back; or move it away, start anew and bring the rows back with nephila master map import)",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return if end.bytes == 0 { Ok(None) } else { Err(damaged(0, "it is gone")) };
        }
        opened => drop(opened?),
    }
    let bytes = Bytes::read_only(path)?;
    let mut head = [0; HEADER_BYTES];
    let read = bytes.read_at(&mut head, 0)?;
    if read < HEADER_BYTES
        || head[..8] != *MAGIC
        || crc32c::crc32c(&head[..24]) != u32_at(&head, 24)
        || head[28..] != [0; 4]
    {
        return Err(damaged(0, "its header is not that of a domain map"));
    }
    let (generation, compacted_bytes) = (u64_at(&head, 8), u64_at(&head, 16));
    // Compacted after the last commit, it says all that was committed.
    let end = match generation {
        _ if end.bytes == 0 => DomainsEnd { generation, bytes: compacted_bytes },
        _ if generation == end.generation => end,
        _ if generation == end.generation + 1 => DomainsEnd { generation, bytes: compacted_bytes },
        _ => return Err(damaged(8, "it is of another time than the journal")),
    };
    if bytes.len() < end.bytes {
        return Err(damaged(bytes.len(), "it is shorter than what was committed"));
    }
    let mut map = DomainMap::default();
    let mut at = HEADER_BYTES as u64;
    let mut frame = Vec::new();
    while at < end.bytes {
        let mut head = [0; FRAME_HEAD];
        let len =
            if bytes.read_at(&mut head, at)? == FRAME_HEAD { u32_at(&head, 0) as usize } else { usize::MAX };
        if len == 0 || len > FRAME_BYTES_MAX || at + (FRAME_HEAD + len) as u64 > end.bytes {
            return Err(damaged(at, "there is no frame"));
        }
        frame.resize(len, 0);
        bytes.read_at(&mut frame, at + FRAME_HEAD as u64)?;
        if crc32c::crc32c(&frame) != u32_at(&head, 4) || apply(&mut map, &frame).is_none() {
            return Err(damaged(at, "the frame has another checksum"));
        }
        at += (FRAME_HEAD + len) as u64;
    }
    Ok(Some((map, end, compacted_bytes)))
}

/// Takes bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn apply(map: &mut DomainMap, frame: &[u8]) -> Option<()> {
    let (&kind, mut rest) = frame.split_first()?;
    match kind {
        ROWS => {
            while !rest.is_empty() {
                let len = u16_at(take(&mut rest, 2)?, 0);
                let domain = std::str::from_utf8(take(&mut rest, usize::from(len))?).ok()?;
                let fields = take(&mut rest, 21)?;
                let moving_to = u16_at(fields, 2);
                map.set(&MapRow {
                    domain: domain.into(),
                    server: ServerId(u16_at(fields, 0)),
                    moving_to: (moving_to != NONE).then_some(ServerId(moving_to)),
                    page: u64_at(fields, 4),
                    since_s: u32_at(fields, 12),
                    by: match fields[16] {
                        0 => By::Rule,
                        1 => By::Person,
                        _ => By::Import,
                    },
                    fence: u32_at(fields, 17),
                });
            }
        }
        SENT => {
            let now_s = u32_at(take(&mut rest, 4)?, 0);
            let counts: Vec<(u32, u32)> =
                rest.chunks_exact(8).map(|pair| (u32_at(pair, 0), u32_at(pair, 4))).collect();
            map.sent(now_s, &counts);
        }
        TOTALS => {
            map.loads_mut().base_s = u32_at(take(&mut rest, 4)?, 0);
            for pair in rest.chunks_exact(10) {
                let total = f64::from_bits(u64_at(pair, 2));
                map.loads_mut().totals.insert(ServerId(u16_at(pair, 0)), total);
            }
        }
        WEIGHTS => {
            let first = u32_at(take(&mut rest, 4)?, 0) as usize;
            for (at, weight) in rest.chunks_exact(4).enumerate() {
                map.set_weight(first + at, f32::from_bits(u32_at(weight, 0)));
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u32, server: u16) -> MapRow {
        MapRow {
            domain: format!("d{n}.example").into(),
            server: ServerId(server),
            moving_to: (n % 7 == 0).then_some(ServerId(3)),
            page: u64::from(n) * 1_000,
            since_s: n,
            by: [By::Rule, By::Person, By::Import][n as usize % 3],
            fence: n % 5,
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("nephila-domains-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn told(map: &DomainMap) -> (Vec<MapRow>, Vec<u32>, Vec<(ServerId, u64)>) {
        let totals = map.loads().totals.iter().map(|(server, total)| (*server, total.to_bits())).collect();
        (map.rows().collect(), map.weights().map(f32::to_bits).collect(), totals)
    }

    fn write(journal: &mut DomainsJournal, map: &mut DomainMap, from: u32, to: u32) -> DomainsEnd {
        let rows: Vec<MapRow> = (from..to).map(|n| row(n, n as u16 % 4)).collect();
        journal.append_rows(rows.iter()).unwrap();
        for row in &rows {
            map.set(row);
        }
        let sent: Vec<(u32, u32)> =
            (0..map.numbers()).step_by(3).map(|index| (index, index % 11 + 1)).collect();
        let now_s = 1_311_797_321 + from * 977;
        journal.append_sent(now_s, &sent).unwrap();
        map.sent(now_s, &sent);
        let end = journal.seal().unwrap();
        journal.commit();
        end
    }

    #[test]
    fn the_map_comes_back_to_the_last_bit_compacted_or_not() {
        let folder = folder("back");
        let (mut journal, mut map) = DomainsJournal::open(&folder, DomainsEnd::default()).unwrap();
        write(&mut journal, &mut map, 0, 3_000);
        let end = write(&mut journal, &mut map, 2_500, 3_500);
        // Not committed.
        journal.append_rows([row(9_999, 1)].iter()).unwrap();
        drop(journal);
        let (mut journal, read) = DomainsJournal::open(&folder, end).unwrap();
        assert_eq!(told(&read), told(&map));
        assert_eq!(std::fs::metadata(folder.join(FILE)).unwrap().len(), end.bytes);
        journal.compact_now(&map).unwrap();
        assert_eq!(
            told(&DomainsJournal::view(&folder, end).unwrap()),
            told(&map),
            "killed before the next commit"
        );
        let end = write(&mut journal, &mut map, 3_400, 3_600);
        assert_eq!(told(&DomainsJournal::view(&folder, end).unwrap()), told(&map));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_flipped_byte_is_found_out() {
        let folder = folder("flip");
        let (mut journal, mut map) = DomainsJournal::open(&folder, DomainsEnd::default()).unwrap();
        let end = write(&mut journal, &mut map, 0, 20);
        let path = folder.join(FILE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).unwrap();
            let error = DomainsJournal::view(&folder, end).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("is damaged") && error.contains("map import"), "byte {at}: {error}");
        }
        std::fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(DomainsJournal::view(&folder, end).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(DomainsJournal::open(&folder, end).is_err(), "a map that is gone is not begun anew");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
