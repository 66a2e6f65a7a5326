use super::export::ArchiveError;
use super::index::FAULTS_TOLD;
use super::stored_originals::StoredOriginals;
use super::warc_decoder::{Block, DecodedRecord, Refusal, WarcDecoder};
use super::warc_source::{Fault, RecordPlace, Seen, Step, WarcSource};
use crate::proto::warc::{Kind, WarcHead, base32};
use crate::store_server::{
    AppendError, Appended, DataDir, Dedup, Keeper, Maintenance, Medium, RetentionRules, ShardStore,
    StoreRules,
};
use sha1::{Digest, Sha1};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// WARC files that are to be imported into a store.
#[derive(Clone, Debug)]
pub struct Import {
    pub files: Vec<PathBuf>,
    /// Longer documents are cut.
    pub doc_bytes_max: u64,
    pub segment_bytes: u64,
    pub dedup: Dedup,
}

/// The result of an import.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub files: u64,
    /// WARC records that were read; one that was read twice counts twice.
    pub records_read: u64,
    /// Records of the store that were written; all of them are on disk.
    pub records: u64,
    pub responses: u64,
    pub revisits: u64,
    pub resources: u64,
    /// WARC records of kinds that a store does not hold: requests, descriptions, other schemes.
    pub left_out: u64,
    pub document_bytes: u64,
    /// The first records that could not be read, and how many there are.
    pub faults: Vec<(PathBuf, Fault)>,
    pub skipped: u64,
}

/// Records between two group commits: what is durable can be referred to.
const COMMIT_EVERY: u64 = 1_024;

impl Import {
    /// Reads the files one after the other. When it returns, what it counts is on disk.
    pub fn run(
        &self,
        data: &Path,
        unix_ms: u64,
        watch: &mut dyn FnMut(&Imported),
    ) -> Result<Imported, ArchiveError> {
        let rules = StoreRules { dedup: self.dedup, ..StoreRules::of_size(self.segment_bytes) };
        let mut keeper = Keeper::new(Medium::Directory(DataDir::open(data)?), rules, 1);
        keeper.prepare(unix_ms)?;
        let store = ShardStore::new(keeper.share(0));
        let rules = RetentionRules::all(self.segment_bytes);
        let maintenance = Maintenance::new(data, rules, keeper.shares());
        let mut importing = Importing {
            decoder: WarcDecoder::new(self.doc_bytes_max),
            files: &self.files,
            keeper,
            maintenance,
            store,
            unix_ms,
            originals: StoredOriginals::new(data),
            waiting: Vec::new(),
            imported: Imported::default(),
        };
        let read = importing.read_all(watch);
        importing.store.finish();
        // What was read before a failure stays.
        importing.keeper.close()?;
        importing.maintenance.turn(&importing.keeper.take_sealed())?;
        read.map(|()| importing.imported)
    }
}

/// An import in progress.
struct Importing<'a> {
    decoder: WarcDecoder,
    files: &'a [PathBuf],
    keeper: Keeper,
    maintenance: Maintenance,
    store: ShardStore,
    unix_ms: u64,
    originals: StoredOriginals,
    /// Revisits that came before the documents they refer to, in the order in which they were read.
    waiting: Vec<FilePlace>,
    imported: Imported,
}

/// A file by its number, and a place in it.
#[derive(Clone, Copy)]
struct FilePlace {
    file: usize,
    at: RecordPlace,
}

/// A record as it was read.
#[derive(Default)]
struct Gathered {
    head: WarcHead,
    block: Vec<u8>,
    cut: bool,
    /// Of the whole block.
    hash: Sha1,
}

impl Gathered {
    fn see(&mut self, seen: Seen<'_>, bytes_max: usize) {
        match seen {
            Seen::Head(head) => *self = Gathered { head: head.clone(), ..Gathered::default() },
            Seen::Block(bytes) => {
                self.hash.update(bytes);
                let room = bytes_max - self.block.len();
                self.block.extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.cut |= bytes.len() > room;
            }
        }
    }

    fn block(&self) -> Block<'_> {
        Block { bytes: &self.block, cut: self.cut }
    }

    /// A response is one of HTTP if it says so or begins like one.
    fn is_http(&self) -> bool {
        let kind = self.head.get("Content-Type").unwrap_or("application/http").trim();
        let is_named = kind.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case("application/http"));
        is_named || self.block.starts_with(b"HTTP/1.")
    }

    /// The block is what its digest says, if that is a kind that is known here.
    fn is_sound(&self) -> bool {
        let told = self.head.get("WARC-Block-Digest").unwrap_or_default().trim();
        match told.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("sha1") && value.len() == 32 => {
                base32(&self.hash.clone().finalize()).eq_ignore_ascii_case(value)
            }
            _ => true,
        }
    }
}

impl Importing<'_> {
    fn read_all(&mut self, watch: &mut dyn FnMut(&Imported)) -> Result<(), ArchiveError> {
        for (file, path) in self.files.iter().enumerate() {
            let mut source = WarcSource::open(path)?;
            self.imported.files += 1;
            loop {
                let (step, gathered) = self.read_next(&mut source);
                match step {
                    Step::End => break,
                    Step::Fault(fault) => self.skip(file, fault),
                    Step::Record { at, .. } => self.take(&gathered, FilePlace { file, at }, true)?,
                }
                watch(&self.imported);
            }
            self.imported.records_read += source.records();
            self.commit()?;
        }
        self.read_waiting()
    }

    /// Reads the revisits again that came before their documents. Their order lets each gzip member be unpacked once.
    fn read_waiting(&mut self) -> Result<(), ArchiveError> {
        let mut again: Option<(usize, WarcSource)> = None;
        for place in std::mem::take(&mut self.waiting) {
            let path = &self.files[place.file];
            let source = match &mut again {
                Some((file, source)) if *file == place.file => source,
                _ => &mut again.insert((place.file, WarcSource::open(path)?)).1,
            };
            let before = source.records();
            source.go_to(place.at).map_err(|cause| ArchiveError::Source { path: path.clone(), cause })?;
            let gathered = match self.read_next(source) {
                (Step::Record { .. }, gathered) => Some(gathered),
                (Step::Fault(_) | Step::End, _) => None,
            };
            self.imported.records_read += source.records() - before;
            match gathered {
                Some(gathered) => self.take(&gathered, place, false)?,
                None => self.refuse(place, Refusal::Missing)?,
            }
        }
        Ok(())
    }

    fn read_next(&self, source: &mut WarcSource) -> (Step, Gathered) {
        let mut gathered = Gathered::default();
        let bytes_max = self.decoder.block_bytes_max();
        let step = source.next(&mut |seen| gathered.see(seen, bytes_max));
        (step, gathered)
    }

    /// Stores a record, or counts it among those that are not. A revisit of a document that was not read yet may wait.
    fn take(&mut self, gathered: &Gathered, place: FilePlace, may_wait: bool) -> Result<(), ArchiveError> {
        match self.store(gathered) {
            Ok(()) => Ok(()),
            Err(Refusal::Missing) if may_wait => {
                self.waiting.push(place);
                Ok(())
            }
            Err(refusal) => self.refuse(place, refusal),
        }
    }

    fn refuse(&mut self, place: FilePlace, refusal: Refusal) -> Result<(), ArchiveError> {
        let cause = match refusal {
            Refusal::Failed(error) => return Err(error),
            Refusal::NotOurs => {
                self.imported.left_out += 1;
                return Ok(());
            }
            Refusal::Missing => "a revisit of a document that is in none of the files".to_string(),
            Refusal::Bad(cause) => cause,
        };
        self.skip(place.file, Fault { offset: place.at.offset, cause });
        Ok(())
    }

    fn store(&mut self, gathered: &Gathered) -> Result<(), Refusal> {
        let decoded = self.decode(gathered)?;
        let appended = self.append(&decoded)?;
        let kind = gathered.head.kind();
        // A revisit is no original.
        let payload = payload_key(&gathered.head).filter(|_| kind != Kind::Revisit);
        self.originals.note(payload, &appended);
        match kind {
            Kind::Response => self.imported.responses += 1,
            Kind::Revisit => self.imported.revisits += 1,
            _ => self.imported.resources += 1,
        }
        Ok(())
    }

    fn decode(&mut self, gathered: &Gathered) -> Result<DecodedRecord, Refusal> {
        let head = &gathered.head;
        let kind = head.kind();
        if matches!(kind, Kind::Other | Kind::Metadata) {
            return Err(Refusal::NotOurs);
        }
        if !gathered.is_sound() {
            return Err(Refusal::Bad("the block is not what its digest says".to_string()));
        }
        match kind {
            Kind::Response if gathered.is_http() => self.decoder.response(head, gathered.block()),
            Kind::Revisit => {
                let decoded = self.decoder.revisit(head, gathered.block())?;
                if decoded.is_unchanged() {
                    return Ok(decoded);
                }
                let payload = payload_key(head).ok_or(Refusal::Missing)?;
                let found = self.originals.find(payload).map_err(ArchiveError::from)?;
                let (original, document) = found.ok_or(Refusal::Missing)?;
                Ok(decoded.with_document_of(&original, &document.body))
            }
            _ => self.decoder.resource(head, gathered.block()),
        }
    }

    fn append(&mut self, decoded: &DecodedRecord) -> Result<Appended, Refusal> {
        let record = decoded.record();
        let mut appended = self.store.append(&record);
        if appended == Err(AppendError::NoSegment) {
            self.commit()?;
            appended = self.store.append(&record);
        }
        let appended =
            appended.map_err(|_| Refusal::Bad("the record does not fit into a segment".to_string()))?;
        self.imported.records += 1;
        self.imported.document_bytes += (record.bytes.len() - record.head_len) as u64;
        if self.imported.records.is_multiple_of(COMMIT_EVERY) {
            self.commit()?;
        }
        Ok(appended)
    }

    /// Makes everything durable, and indexes what was sealed.
    fn commit(&mut self) -> Result<(), ArchiveError> {
        self.keeper.turn(self.unix_ms)?;
        Ok(self.maintenance.turn(&self.keeper.take_sealed())?)
    }

    fn skip(&mut self, file: usize, fault: Fault) {
        self.imported.skipped += 1;
        if self.imported.faults.len() < FAULTS_TOLD {
            self.imported.faults.push((self.files[file].clone(), fault));
        }
    }
}

/// A key for the payload digest that a record names: records that name the same digest have the same payload.
fn payload_key(head: &WarcHead) -> Option<u128> {
    let digest = head.get("WARC-Payload-Digest")?.trim();
    (!digest.is_empty()).then(|| xxh3_128(digest.to_ascii_uppercase().as_bytes()))
}
