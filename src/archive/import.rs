use super::export::ArchiveError;
use super::index::FAULTS_TOLD;
use super::intake::{Block, Intake, Refused, Taken};
use super::source::{Fault, RecordPlace, Seen, Step, WarcSource};
use crate::proto::warc::{Kind, WarcHead, base32};
use crate::store_server::{
    AppendError, DataDir, Dedup, Keeper, Keeping, Librarian, Medium, ShardStore, StoreRules,
};
use rapidhash::fast::RapidHashMap;
use sha1::{Digest, Sha1};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// What is brought into a store.
#[derive(Clone, Debug)]
pub struct Import {
    pub files: Vec<PathBuf>,
    /// Longer documents are cut.
    pub doc_bytes_max: u64,
    pub segment_bytes: u64,
    pub dedup: Dedup,
}

/// What an import came to.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub files: u64,
    /// Records of the store that were written; all of them are on disk.
    pub records: u64,
    pub responses: u64,
    pub revisits: u64,
    pub resources: u64,
    /// WARC records that are nothing to a store: requests, descriptions, other schemes.
    pub left_out: u64,
    pub document_bytes: u64,
    /// What could not be read, and where: the first of them, and how many there are.
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
        let keeping = Keeping::all(self.segment_bytes);
        let librarian = Librarian::new(data, keeping, keeper.shares());
        let mut importing = Importing {
            intake: Intake::new(self.doc_bytes_max),
            files: &self.files,
            keeper,
            librarian,
            store,
            unix_ms,
            places: RapidHashMap::default(),
            waiting: Vec::new(),
            imported: Imported::default(),
        };
        let read = importing.read_all(watch);
        importing.store.finish();
        // What was read before a failure stays.
        importing.keeper.close()?;
        importing.librarian.turn(&importing.keeper.take_sealed())?;
        read.map(|()| importing.imported)
    }
}

struct Importing<'a> {
    intake: Intake,
    files: &'a [PathBuf],
    keeper: Keeper,
    librarian: Librarian,
    store: ShardStore,
    unix_ms: u64,
    /// Where the payload of a digest is: file and place. 40 bytes for each response.
    places: RapidHashMap<u128, (u32, RecordPlace)>,
    /// Revisits that came before what they refer to.
    waiting: Vec<(u32, RecordPlace)>,
    imported: Imported,
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

    /// The block is what its digest says, as far as that is one we know.
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

/// A file by its number, and a place in it.
type FilePlace = (u32, RecordPlace);

impl Importing<'_> {
    fn read_all(&mut self, watch: &mut dyn FnMut(&Imported)) -> Result<(), ArchiveError> {
        for (index, path) in self.files.iter().enumerate() {
            let mut source = WarcSource::open(path)?;
            self.imported.files += 1;
            loop {
                let mut gathered = Gathered::default();
                let bytes_max = self.intake.block_bytes_max();
                match source.next(&mut |seen| gathered.see(seen, bytes_max)) {
                    Step::End => break,
                    Step::Fault(fault) => self.skip(index as u32, fault),
                    Step::Record { at, .. } => {
                        let place = (index as u32, at);
                        if let Err(Refused::Missing) = self.take(&gathered, place)? {
                            self.waiting.push(place);
                        }
                    }
                }
                watch(&self.imported);
            }
            self.commit()?;
        }
        for place in std::mem::take(&mut self.waiting) {
            let taken = match self.read_again(place)? {
                Some(gathered) => self.take(&gathered, place)?,
                None => Err(Refused::Missing),
            };
            if let Err(Refused::Missing) = taken {
                let cause = "a revisit of a document that is in none of the files".to_string();
                self.skip(place.0, Fault { offset: place.1.offset, cause });
            }
        }
        Ok(())
    }

    /// Stores a record, or counts it among those that are not. What refers to a document that was not seen yet is left to
    /// the caller.
    fn take(&mut self, gathered: &Gathered, place: FilePlace) -> Result<Result<(), Refused>, ArchiveError> {
        let taken = match self.read(gathered)? {
            Ok(taken) => taken,
            Err(Refused::Missing) => return Ok(Err(Refused::Missing)),
            Err(Refused::NotOurs) => {
                self.imported.left_out += 1;
                return Ok(Ok(()));
            }
            Err(Refused::Bad(cause)) => {
                self.skip(place.0, Fault { offset: place.1.offset, cause });
                return Ok(Ok(()));
            }
        };
        let kind = gathered.head.kind();
        if let (true, Some(key)) = (kind != Kind::Revisit, digest_key(&gathered.head)) {
            self.places.entry(key).or_insert(place);
        }
        match self.append(&taken)? {
            Ok(()) => {}
            Err(AppendError::TooLarge | AppendError::NoSegment) => {
                let cause = "the record does not fit into a segment".to_string();
                self.skip(place.0, Fault { offset: place.1.offset, cause });
                return Ok(Ok(()));
            }
        }
        match kind {
            Kind::Response => self.imported.responses += 1,
            Kind::Revisit => self.imported.revisits += 1,
            _ => self.imported.resources += 1,
        }
        Ok(Ok(()))
    }

    /// What a record comes to.
    fn read(&mut self, gathered: &Gathered) -> Result<Result<Taken, Refused>, ArchiveError> {
        let head = &gathered.head;
        let kind = head.kind();
        if matches!(kind, Kind::Other | Kind::Metadata) {
            return Ok(Err(Refused::NotOurs));
        }
        if !gathered.is_sound() {
            return Ok(Err(Refused::Bad("the block is not what its digest says".to_string())));
        }
        match kind {
            Kind::Response if is_http(gathered) => Ok(self.intake.response(head, gathered.block())),
            Kind::Revisit => {
                let taken = match self.intake.revisit(head, gathered.block()) {
                    Ok(taken) => taken,
                    Err(refused) => return Ok(Err(refused)),
                };
                if taken.is_unchanged() {
                    return Ok(Ok(taken));
                }
                let place = digest_key(head).and_then(|key| self.places.get(&key).copied());
                let Some(place) = place else { return Ok(Err(Refused::Missing)) };
                let Some(original) = self.read_again(place)? else { return Ok(Err(Refused::Missing)) };
                let original = match original.head.kind() {
                    Kind::Response if is_http(&original) => {
                        self.intake.response(&original.head, original.block())
                    }
                    _ => self.intake.resource(&original.head, original.block()),
                };
                Ok(original.map(|original| taken.with_document_of(&original)))
            }
            _ => Ok(self.intake.resource(head, gathered.block())),
        }
    }

    fn read_again(&self, place: FilePlace) -> Result<Option<Gathered>, ArchiveError> {
        let mut source = WarcSource::open_at(&self.files[place.0 as usize], place.1)?;
        let mut gathered = Gathered::default();
        let bytes_max = self.intake.block_bytes_max();
        match source.next(&mut |seen| gathered.see(seen, bytes_max)) {
            Step::Record { .. } => Ok(Some(gathered)),
            Step::Fault(_) | Step::End => Ok(None),
        }
    }

    fn append(&mut self, taken: &Taken) -> Result<Result<(), AppendError>, ArchiveError> {
        let record = taken.record();
        let mut appended = self.store.append(&record);
        if appended == Err(AppendError::NoSegment) {
            self.commit()?;
            appended = self.store.append(&record);
        }
        if let Err(error) = appended {
            return Ok(Err(error));
        }
        self.imported.records += 1;
        self.imported.document_bytes += (record.bytes.len() - record.head_len) as u64;
        if self.imported.records.is_multiple_of(COMMIT_EVERY) {
            self.commit()?;
        }
        Ok(Ok(()))
    }

    /// Makes everything durable, and indexes what was sealed.
    fn commit(&mut self) -> Result<(), ArchiveError> {
        self.keeper.turn(self.unix_ms)?;
        Ok(self.librarian.turn(&self.keeper.take_sealed())?)
    }

    fn skip(&mut self, file: u32, fault: Fault) {
        self.imported.skipped += 1;
        if self.imported.faults.len() < FAULTS_TOLD {
            self.imported.faults.push((self.files[file as usize].clone(), fault));
        }
    }
}

/// A response is one of HTTP if it says so or begins like one.
fn is_http(gathered: &Gathered) -> bool {
    let kind = gathered.head.get("Content-Type").unwrap_or("application/http").trim();
    let is_told = kind.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case("application/http"));
    is_told || gathered.block.starts_with(b"HTTP/1.")
}

/// The payload's digest as it is told: two records that tell the same have the same.
fn digest_key(head: &WarcHead) -> Option<u128> {
    let told = head.get("WARC-Payload-Digest")?.trim();
    (!told.is_empty()).then(|| xxh3_128(told.to_ascii_uppercase().as_bytes()))
}
