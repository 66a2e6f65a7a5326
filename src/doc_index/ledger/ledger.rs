use super::block::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, Scanned, scan};
use super::entry::Entry;
use super::origin::Origin;
use crate::base::{u32_at, u64_at};
use crate::limits::URL_BYTES_MAX;
use crate::storage::Bytes;
use std::io;
use std::ops::{ControlFlow, Range};

/// Everything that was ever discovered, in the order it was: the truth of the doc index, of which all else but the
/// documents' rows can be made again. Append-only; entries are gathered into blocks with a checksum each.
///
/// Between two calls of [`Ledger::write`] what is new is in memory.
pub(crate) struct Ledger {
    bytes: Bytes,
    /// Bytes that are in the file.
    written: u64,
    /// Whole blocks that are not.
    unwritten: Vec<u8>,
    block: OpenBlock,
    /// For every [`PLACE_DOCS`] documents, where the block begins that has the first of them.
    places: Vec<u64>,
    next_doc: u32,
    /// From where on links were followed by the rules of today.
    rules_since: u64,
    /// From where on this process has told.
    run_since: u64,
}

/// The block that entries are added to.
#[derive(Default)]
struct OpenBlock {
    payload: Vec<u8>,
    /// The URL told last.
    last: String,
    docs: u32,
    at_s: u32,
}

/// A document as it was discovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    pub url: Box<str>,
    pub origin: Origin,
    /// Seconds since 1970.
    pub at_s: u32,
}

/// Entries are added to a block up to this size: a look for one document reads one block.
const BLOCK_BYTES: usize = 1024;
/// What is read of a ledger to find its end.
const TAIL_BYTES: u64 = 1 << 20;
/// Memory that is kept for what is not written yet.
const UNWRITTEN_KEPT: usize = 256 * 1024;
/// Documents between two places.
const PLACE_DOCS: u32 = 8;

const _: () = assert!(BLOCK_BYTES + URL_BYTES_MAX + 64 < BLOCK_BYTES_MAX);

/// The header of the file: magic, the seed of the fingerprints, and a checksum.
const MAGIC: &[u8; 8] = b"NEPHIDX1";
pub(crate) const FILE_HEADER_BYTES: usize = 64;

/// An entry of the ledger in its place.
pub(crate) struct Told<'a> {
    /// The number of the document, for entries that have one.
    pub doc_id: u32,
    pub at_s: u32,
    /// Where its block begins.
    pub at: u64,
    pub entry: Entry<'a>,
}

impl Ledger {
    /// Makes the header of a new ledger.
    pub fn create(mut bytes: Bytes, seed: u64) -> io::Result<Ledger> {
        let mut header = vec![0; FILE_HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&seed.to_le_bytes());
        let crc = crc32c::crc32c(&header[..16]);
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes.truncate(0)?;
        bytes.write_at(&header, 0)?;
        bytes.sync()?;
        Ok(Ledger::at_end(bytes, FILE_HEADER_BYTES as u64))
    }

    /// The seed in a ledger's header; `None` if it is no ledger, or one that was never begun.
    pub fn seed_of(bytes: &Bytes) -> io::Result<Option<u64>> {
        let mut header = [0; FILE_HEADER_BYTES];
        let whole = bytes.read_at(&mut header, 0)? == header.len();
        let good = whole && header[..8] == *MAGIC && crc32c::crc32c(&header[..16]) == u32_at(&header, 16);
        Ok(good.then(|| u64_at(&header, 8)))
    }

    /// Goes through a ledger from its beginning, tells every entry, cuts a torn tail off and takes more at the end.
    pub fn open(
        bytes: Bytes,
        mut each: impl FnMut(Told<'_>) -> io::Result<()>,
    ) -> io::Result<(Ledger, Scanned)> {
        let mut ledger = Ledger::at_end(bytes, FILE_HEADER_BYTES as u64);
        let (mut places, mut next_doc) = (Vec::new(), 1);
        let (scanned, failed) = scan(&ledger.bytes, FILE_HEADER_BYTES as u64, |at, header, payload| {
            note_place(&mut places, &header, at);
            next_doc = header.first_doc + header.docs;
            tell(at, &header, payload, |told| {
                each(told).map_or_else(ControlFlow::Break, ControlFlow::Continue)
            })
        })?;
        failed.map_or(Ok(()), Err)?;
        if scanned.end < ledger.bytes.len() {
            ledger.bytes.truncate(scanned.end)?;
        }
        (ledger.written, ledger.places, ledger.next_doc) = (scanned.end, places, next_doc);
        Ok((ledger, scanned))
    }

    /// Where the last good block ends. The end of the file tells, unless all of that is torn.
    pub fn end_of(bytes: &Bytes) -> io::Result<u64> {
        let first = FILE_HEADER_BYTES as u64;
        let tail = bytes.len().saturating_sub(TAIL_BYTES).max(first);
        let end_from =
            |at| scan(bytes, at, |_, _, _| ControlFlow::<()>::Continue(())).map(|(scanned, _)| scanned.end);
        let end = end_from(tail)?;
        if end > tail || tail == first { Ok(end) } else { end_from(first) }
    }

    fn at_end(bytes: Bytes, written: u64) -> Ledger {
        Ledger {
            bytes,
            written,
            unwritten: Vec::new(),
            block: OpenBlock::default(),
            places: Vec::new(),
            next_doc: 1,
            rules_since: 0,
            run_since: 0,
        }
    }

    /// From where on links were followed by the rules of today, up to the end.
    pub fn rules_since(&self) -> u64 {
        self.rules_since
    }

    /// Links are followed by the rules of today since the ledger was this long; by other rules up to its end if `None`.
    pub fn set_rules_since(&mut self, since: Option<u64>) {
        self.rules_since = since.unwrap_or(self.told());
    }

    /// From where on this process has told: rows that rely on more are its own.
    pub fn run_since(&self) -> u64 {
        self.run_since
    }

    /// Begins the run of a process that works by these rules.
    pub fn begin_run(&mut self, rules: u64, now_s: u32) {
        self.run_since = self.told();
        self.push(&Entry::Run { rules }, now_s);
    }

    /// The number that the next document will have.
    pub fn next_doc(&self) -> u32 {
        self.next_doc
    }

    /// How long the ledger must be for all that was told so far to be in it.
    pub fn told(&self) -> u64 {
        let block =
            if self.block.payload.is_empty() { 0 } else { BLOCK_HEADER_BYTES + self.block.payload.len() };
        self.written + (self.unwritten.len() + block) as u64
    }

    /// Tells the entries that are in the file from the block at `at` on, a block at a time, until `each` breaks; says where
    /// the block after the last one begins that was told.
    pub fn each_from(
        &self,
        at: u64,
        mut each: impl FnMut(Told<'_>),
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> io::Result<u64> {
        let first = at.max(FILE_HEADER_BYTES as u64);
        if first >= self.written {
            return Ok(first);
        }
        let mut upto = first;
        let (scanned, _) = scan(&self.bytes, first, |at, header, payload| {
            if !goes_on(at) {
                return ControlFlow::Break(());
            }
            let told = tell(at, &header, payload, |told| {
                each(told);
                ControlFlow::<()>::Continue(())
            });
            upto = at + header.bytes();
            told
        })?;
        Ok(upto.max(scanned.end))
    }

    pub fn unwritten_bytes(&self) -> usize {
        self.unwritten.len() + self.block.payload.len()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.bytes.disk_bytes()
    }

    pub fn ram_bytes(&self) -> usize {
        self.unwritten.capacity() + self.places.capacity() * size_of::<u64>()
    }

    pub fn push(&mut self, entry: &Entry<'_>, at_s: u32) {
        if self.block.payload.len() >= BLOCK_BYTES
            || (self.block.at_s != at_s && !self.block.payload.is_empty())
        {
            self.close_block();
        }
        self.block.at_s = at_s;
        entry.write(&mut self.block.payload, &mut self.block.last);
        if matches!(entry, Entry::Doc { .. }) {
            self.block.docs += 1;
            self.next_doc += 1;
        }
    }

    fn close_block(&mut self) {
        let block = &mut self.block;
        if block.payload.is_empty() {
            return;
        }
        let header = BlockHeader {
            payload_bytes: block.payload.len() as u32,
            first_doc: self.next_doc - block.docs,
            docs: block.docs,
            at_s: block.at_s,
        };
        note_place(&mut self.places, &header, self.written + self.unwritten.len() as u64);
        header.write(&block.payload, &mut self.unwritten);
        block.payload.clear();
        block.last.clear();
        block.docs = 0;
    }

    /// Hands what is new to the file. After a failure it is all still here, to be tried again.
    pub fn write(&mut self) -> io::Result<()> {
        self.close_block();
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.bytes.write_at(&self.unwritten, self.written)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.unwritten.shrink_to(UNWRITTEN_KEPT);
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.bytes.sync()
    }

    /// A document as it was discovered. Reads the disk.
    pub fn doc(&self, doc_id: u32) -> io::Result<Option<Discovered>> {
        let mut buffer = Vec::new();
        let block = self.block_of(doc_id, &mut buffer)?;
        Ok(block.and_then(|(header, payload)| doc_in(&header, payload, doc_id)))
    }

    /// Documents as they were discovered; their numbers ascend, none is there twice, and those of one block cost one look. Of one
    /// that is not found nothing is told. Reads the disk.
    pub fn docs(
        &self,
        mut doc_ids: &[u32],
        mut each: impl FnMut(u32, &str, Origin) -> io::Result<()>,
    ) -> io::Result<()> {
        debug_assert!(doc_ids.is_sorted_by(|one, next| one < next));
        let mut buffer = Vec::new();
        while let Some(&first) = doc_ids.first() {
            let Some((header, payload)) = self.block_of(first, &mut buffer)? else {
                doc_ids = &doc_ids[1..];
                continue;
            };
            let here = doc_ids.partition_point(|&doc_id| doc_id < header.first_doc + header.docs);
            let mut wanted = doc_ids[..here].iter().peekable();
            doc_ids = &doc_ids[here..];
            let told = tell(0, &header, payload, |told| {
                let Entry::Doc { origin, url } = told.entry else { return ControlFlow::Continue(()) };
                if wanted.next_if_eq(&&told.doc_id).is_some()
                    && let Err(error) = each(told.doc_id, url, origin)
                {
                    return ControlFlow::Break(Err(error));
                }
                if wanted.peek().is_none() { ControlFlow::Break(Ok(())) } else { ControlFlow::Continue(()) }
            });
            told.break_value().unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// The block that a document is in, and its payload. The header of the open block does not tell how long it is.
    fn block_of<'a>(
        &'a self,
        doc_id: u32,
        buffer: &'a mut Vec<u8>,
    ) -> io::Result<Option<(BlockHeader, &'a [u8])>> {
        let open_first = self.next_doc - self.block.docs;
        if doc_id >= open_first {
            let header = BlockHeader {
                payload_bytes: 0,
                first_doc: open_first,
                docs: self.block.docs,
                at_s: self.block.at_s,
            };
            return Ok(header.has(doc_id).then_some((header, &self.block.payload)));
        }
        let Some(&at) = self.places.get((doc_id / PLACE_DOCS) as usize) else { return Ok(None) };
        if at < self.written
            && let Some((header, payload)) = read_block(&self.bytes, at, doc_id, buffer)?
        {
            return Ok(Some((header, &buffer[payload])));
        }
        // It may be in a block behind the last place that is not in the file yet.
        let unwritten = &self.unwritten[at.saturating_sub(self.written) as usize..];
        Ok(block_among(unwritten, doc_id).map(|(header, payload)| (header, &unwritten[payload])))
    }
}

fn note_place(places: &mut Vec<u64>, header: &BlockHeader, at: u64) {
    // What is missing before it, as it was damaged, is looked for here and not found.
    while (places.len() as u64 * u64::from(PLACE_DOCS)) < u64::from(header.first_doc + header.docs) {
        places.push(at);
    }
}

/// Bytes read for one look: most often the block that is looked for. If it is not among them, the second look finds it,
/// unless the ledger is damaged there.
const LOOK_BYTES: [usize; 2] = [BLOCK_BYTES + 512, 16 * BLOCK_BYTES];

pub(super) fn read_doc(bytes: &Bytes, at: u64, doc_id: u32) -> io::Result<Option<Discovered>> {
    let mut buffer = Vec::new();
    let block = read_block(bytes, at, doc_id, &mut buffer)?;
    Ok(block.and_then(|(header, payload)| doc_in(&header, &buffer[payload], doc_id)))
}

/// The block that a document is in, and where in the buffer its payload is now.
fn read_block(
    bytes: &Bytes,
    at: u64,
    doc_id: u32,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(BlockHeader, Range<usize>)>> {
    for look_bytes in LOOK_BYTES {
        buffer.resize(look_bytes.max(buffer.len()), 0);
        let read = bytes.read_at(&mut buffer[..look_bytes], at)?;
        if let Some(found) = block_among(&buffer[..read], doc_id) {
            return Ok(Some(found));
        }
    }
    let (_, found) = scan(bytes, at, |_, header, payload| match header.is_before(doc_id) {
        true => ControlFlow::Continue(()),
        false => {
            buffer.clear();
            buffer.extend_from_slice(payload);
            ControlFlow::Break((header, 0..payload.len()))
        }
    })?;
    Ok(found.filter(|(header, _)| header.has(doc_id)))
}

/// Among these blocks the one that has a document, and where its payload is.
fn block_among(blocks: &[u8], doc_id: u32) -> Option<(BlockHeader, Range<usize>)> {
    let mut at = 0;
    while let Some((header, payload)) = BlockHeader::read(&blocks[at..]) {
        if header.has(doc_id) {
            let from = at + BLOCK_HEADER_BYTES;
            return Some((header, from..from + payload.len()));
        }
        at += header.bytes() as usize;
    }
    None
}

fn doc_in(header: &BlockHeader, payload: &[u8], doc_id: u32) -> Option<Discovered> {
    let found = tell(0, header, payload, |told| match told.entry {
        Entry::Doc { origin, url } if told.doc_id == doc_id => {
            ControlFlow::Break(Discovered { url: url.into(), origin, at_s: told.at_s })
        }
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// Tells the entries of a block, until `each` breaks.
pub(super) fn tell<B>(
    at: u64,
    header: &BlockHeader,
    payload: &[u8],
    mut each: impl FnMut(Told<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let (mut rest, mut last, mut doc_id) = (payload, String::new(), header.first_doc);
    while let Some(entry) = Entry::read(&mut rest, &mut last) {
        let is_doc = matches!(entry, Entry::Doc { .. });
        each(Told { doc_id, at_s: header.at_s, at, entry })?;
        doc_id += u32::from(is_doc);
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::ledger::LedgerView;

    fn url(number: u32) -> String {
        format!("http://h{}.test/{}/{number}", number % 7, "x".repeat(number as usize % 90))
    }

    #[test]
    fn the_end_is_found_from_the_end_however_much_is_torn() {
        let mut ledger = written(60_000);
        ledger.write().unwrap();
        let Bytes::Memory(whole) = &ledger.bytes else { unreachable!() };
        assert!(whole.len() as u64 > 2 * TAIL_BYTES, "the test is of nothing if all of it is read");
        for torn in [0, 1, 5_000, 3 << 20] {
            let mut bytes = whole.clone();
            bytes.resize(whole.len() + torn, 7);
            assert_eq!(Ledger::end_of(&Bytes::Memory(bytes)).unwrap(), whole.len() as u64, "{torn} bytes");
        }
        for cut in [whole.len() - 1, whole.len() / 2, FILE_HEADER_BYTES + 3, FILE_HEADER_BYTES] {
            let bytes = Bytes::Memory(whole[..cut].to_vec());
            let (scanned, _) =
                scan(&bytes, FILE_HEADER_BYTES as u64, |_, _, _| ControlFlow::<()>::Continue(())).unwrap();
            assert_eq!(Ledger::end_of(&bytes).unwrap(), scanned.end, "cut at {cut}");
        }
    }

    fn written(docs: u32) -> Ledger {
        let mut ledger = Ledger::create(Bytes::Memory(Vec::new()), 9).unwrap();
        for number in 1..=docs {
            let origin = Origin::link(number - 1, 3);
            ledger.push(&Entry::Doc { origin, url: &url(number) }, number / 100);
            if number % 50 == 0 {
                ledger.write().unwrap();
            }
        }
        ledger
    }

    fn bytes_of(mut ledger: Ledger) -> Vec<u8> {
        ledger.write().unwrap();
        match ledger.bytes {
            Bytes::Memory(bytes) => bytes,
            Bytes::File { .. } => unreachable!(),
        }
    }

    fn reopened(bytes: Vec<u8>) -> (Ledger, Scanned, Vec<String>) {
        let mut urls = Vec::new();
        let (ledger, scanned) = Ledger::open(Bytes::Memory(bytes), |told| {
            if let Entry::Doc { url, .. } = told.entry {
                assert_eq!(told.doc_id as usize, urls.len() + 1);
                urls.push(url.to_string());
            }
            Ok(())
        })
        .unwrap();
        (ledger, scanned, urls)
    }

    #[test]
    fn every_document_is_found_by_its_number() {
        let ledger = written(1_234);
        for number in 1..=1_234 {
            let found = ledger.doc(number).unwrap().unwrap();
            assert_eq!((&*found.url, found.origin.via), (&*url(number), number - 1), "{number}");
            assert_eq!(found.at_s, number / 100);
        }
        assert_eq!(ledger.doc(0).unwrap(), None);
        assert_eq!(ledger.doc(1_235).unwrap(), None);
        let bytes = bytes_of(ledger);
        let view = LedgerView::new(Bytes::Memory(bytes.clone()));
        for number in 1..=1_234 {
            assert_eq!(&*view.doc(number).unwrap().unwrap().url, url(number));
        }
        assert_eq!(view.doc(1_235).unwrap(), None);
        let (ledger, scanned, urls) = reopened(bytes);
        assert_eq!(scanned.damaged_bytes, 0);
        assert_eq!(urls, (1..=1_234).map(url).collect::<Vec<_>>());
        assert_eq!(ledger.doc(777).unwrap().unwrap().url, url(777).into());
        assert_eq!(ledger.next_doc(), 1_235);
    }

    #[test]
    fn several_documents_are_told_as_each_alone_is() {
        let mut ledger = written(1_234);
        // Some in blocks that are not in the file, some in the open one.
        for number in 1_235..=1_400 {
            ledger.push(&Entry::Doc { origin: Origin::link(number - 1, 3), url: &url(number) }, number / 100);
            if number % 3 == 0 {
                ledger.push(&Entry::Resolved, number / 100);
            }
        }
        assert!(!ledger.unwritten.is_empty() && ledger.block.docs > 0);
        for step in [1, 2, 7, 90, 1_399] {
            let asked: Vec<u32> = (0..1_500).step_by(step).collect();
            let mut told = Vec::new();
            let each = |doc_id, url: &str, origin| {
                told.push((doc_id, url.to_owned(), origin));
                Ok(())
            };
            ledger.docs(&asked, each).unwrap();
            let alone = asked.iter().filter_map(|&doc_id| {
                ledger.doc(doc_id).unwrap().map(|found| (doc_id, found.url.into_string(), found.origin))
            });
            assert_eq!(told, alone.collect::<Vec<_>>(), "every {step}");
            assert_eq!(told.len(), asked.iter().filter(|&&doc_id| (1..=1_400).contains(&doc_id)).count());
        }
        let mut told = 0;
        let stops = ledger.docs(&[5, 6, 900], |doc_id, _, _| match doc_id {
            6 => Err(io::Error::other("enough")),
            _ => {
                told += 1;
                Ok(())
            }
        });
        assert_eq!((stops.unwrap_err().to_string().as_str(), told), ("enough", 1));
    }

    #[test]
    fn a_torn_tail_is_cut_and_written_over() {
        let bytes = bytes_of(written(300));
        for cut in (FILE_HEADER_BYTES..bytes.len()).step_by(37) {
            let (mut ledger, scanned, urls) = reopened(bytes[..cut].to_vec());
            assert!(scanned.end as usize <= cut);
            assert_eq!(urls, (1..=urls.len() as u32).map(url).collect::<Vec<_>>());
            let next = ledger.next_doc();
            ledger.push(&Entry::Doc { origin: Origin::SEED, url: "http://new/" }, 5);
            let (_, _, urls) = reopened(bytes_of(ledger));
            assert_eq!((urls.len() as u32, urls.last().unwrap().as_str()), (next, "http://new/"));
        }
    }

    #[test]
    fn a_flipped_bit_costs_its_block_and_no_more() {
        let bytes = bytes_of(written(2_000));
        for at in (FILE_HEADER_BYTES..bytes.len() - 8 * 1024).step_by(997) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            let mut seen = Vec::new();
            let (ledger, scanned) = Ledger::open(Bytes::Memory(bad), |told| {
                if let Entry::Doc { url, .. } = told.entry {
                    seen.push((told.doc_id, url.to_string()));
                }
                Ok(())
            })
            .unwrap();
            assert!(seen.iter().all(|(doc_id, text)| *text == url(*doc_id)), "flipped at {at}");
            assert!(scanned.damaged_bytes > 0 && scanned.damaged_bytes < 6 * 1024);
            assert!(seen.len() > 1_700, "{} left after {at}", seen.len());
            assert_eq!(ledger.next_doc(), 2_001, "numbers are not given twice");
        }
    }

    #[test]
    fn the_header_tells_the_seed_or_nothing() {
        let bytes = bytes_of(written(1));
        assert_eq!(Ledger::seed_of(&Bytes::Memory(bytes.clone())).unwrap(), Some(9));
        for at in 0..20 {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(Ledger::seed_of(&Bytes::Memory(bad)).unwrap(), None);
            assert_eq!(Ledger::seed_of(&Bytes::Memory(bytes[..at].to_vec())).unwrap(), None);
        }
    }
}
