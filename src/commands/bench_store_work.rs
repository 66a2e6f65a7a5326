//! What `bench store` measures, each beside the plainest way to do the same.

use super::bench::median;
use crate::base::Rng;
use crate::farm::{Site, SiteSpec};
use crate::proto::record::{HttpCode, ResultCode};
use crate::store_server::{
    AppendError, DataDir, Dedup, Keeper, Maintenance, Medium, NewRecord, Reader, RetentionRules, ShardStore,
    StoreRules,
};
use hdrhistogram::Histogram;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub struct Bench {
    root: PathBuf,
    pages: Vec<Vec<u8>>,
    count: usize,
}

#[derive(Serialize)]
pub struct Append {
    pub pages: usize,
    pub rounds: usize,
    /// User and system time of the whole process but for the plain part: shard and keeper.
    pub ours_us: f64,
    pub shard_us: f64,
    pub plain_us: f64,
    pub ours_mb_per_s: f64,
    pub plain_mb_per_s: f64,
    /// Medians over the rounds.
    pub ratio: f64,
    pub shard_ratio: f64,
    pub stored_bytes_per_page: f64,
}

#[derive(Serialize)]
pub struct Warcio {
    pub version: String,
    pub page_us: f64,
}

#[derive(Serialize)]
pub struct Commits {
    pub per_s: f64,
    pub plain_per_s: f64,
}

#[derive(Serialize)]
pub struct Reads {
    pub reads: usize,
    pub per_s: f64,
    pub page_us: f64,
    pub plain_us: f64,
}

#[derive(Serialize)]
pub struct Lookups {
    pub records: u64,
    pub files: usize,
    pub open_us: f64,
    pub median_us: f64,
    pub p99_us: f64,
}

#[derive(Serialize)]
pub struct Recovery {
    pub bytes: u64,
    pub s_per_gb: f64,
    pub plain_s_per_gb: f64,
}

/// Pages that differ; more are these again under other URLs.
const DISTINCT: usize = 4_096;
const PAGE_BYTES: u32 = 10_000;
const SEGMENT_BYTES: u64 = 32 << 20;
const COMMIT: Duration = Duration::from_millis(20);
const COMMITS_FOR: Duration = Duration::from_secs(2);
/// Ten seconds of them.
const APPEND_TRIES: usize = 50_000;
const WARCIO_PAGES: usize = 2_000;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nContent-Type: text/html\r\nContent-Length: 10000\r\nConnection: keep-alive\r\n\r\n";

/// CPU of a page, in one round.
#[derive(Default)]
struct Round {
    ours_us: f64,
    shard_us: f64,
    plain_us: f64,
    stored_bytes: u64,
}

/// Some milliseconds of either.
const TURN_PAGES: usize = 128;

/// A store that is being written.
struct Open {
    keeper: Keeper,
    store: ShardStore,
}

impl Bench {
    pub fn new(root: &Path, count: usize) -> Result<Bench, String> {
        let spec = SiteSpec { pages: DISTINCT as u32, page_bytes: PAGE_BYTES, ..SiteSpec::default() };
        let site = Site::new(spec).map_err(|error| error.to_string())?;
        let page = |index| [HEAD, &site.document(0, index as u32, 80)].concat();
        Ok(Bench { root: root.to_path_buf(), pages: (0..DISTINCT.min(count)).map(page).collect(), count })
    }

    pub fn page_bytes(&self) -> usize {
        self.pages.iter().map(Vec::len).sum::<usize>() / self.pages.len()
    }

    /// Both by turns of a few milliseconds, so that they meet the same machine. The last store stays, to be read.
    pub fn append(&self, rounds: usize) -> Result<Append, String> {
        let mut turns = Vec::new();
        for round in 0..rounds {
            turns.push(self.round(round + 1 == rounds)?);
        }
        let bytes = self.page_bytes() as f64;
        let of = |value: fn(&Round) -> f64| median(turns.iter().map(value));
        let (ours_us, plain_us) = (of(|round| round.ours_us), of(|round| round.plain_us));
        Ok(Append {
            pages: self.count,
            rounds,
            ours_us,
            shard_us: of(|round| round.shard_us),
            plain_us,
            ours_mb_per_s: bytes / ours_us,
            plain_mb_per_s: bytes / plain_us,
            ratio: of(|round| round.ours_us / round.plain_us),
            shard_ratio: of(|round| round.shard_us / round.plain_us),
            stored_bytes_per_page: of(|round| round.stored_bytes as f64) / self.count as f64,
        })
    }

    /// As in a crawl, with the keeper beside; between the turns of the shard the compressor alone, into one buffer.
    fn round(&self, keep: bool) -> Result<Round, String> {
        let path = self.root.join("append");
        let _ = fs::remove_dir_all(&path);
        let mut table = CompressTable::large();
        let mut out = vec![0; get_maximum_output_size(self.pages.iter().map(Vec::len).max().unwrap_or(0))];
        let Open { mut keeper, mut store } = open(&path)?;
        let share = keeper.share(0);
        let over = AtomicBool::new(false);
        let before = process_us();
        let mut round = Round::default();
        let worked = std::thread::scope(|scope| {
            let keeping = scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    keeper.turn(1).map_err(|error| error.to_string())?;
                    std::thread::sleep(COMMIT);
                }
                keeper.close().map_err(|error| error.to_string())?;
                Ok::<_, String>(keeper)
            });
            let (mut plain_us, mut shard_us) = (0.0, 0.0);
            for first in (0..self.count).step_by(TURN_PAGES) {
                let pages = first..(first + TURN_PAGES).min(self.count);
                let begun = thread_us();
                for index in pages.clone() {
                    let page = &self.pages[index % self.pages.len()];
                    std::hint::black_box(compress_into_with_table(page, &mut out, &mut table).unwrap_or(0));
                }
                let between = thread_us();
                for index in pages {
                    let page = &self.pages[index % self.pages.len()];
                    let bytes = append(&mut store, index as u32, &url_of(index as u64), page, pause)?;
                    round.stored_bytes += bytes as u64;
                }
                plain_us += between - begun;
                shard_us += thread_us() - between;
            }
            while share.durable() < self.count as u64 {
                std::thread::sleep(Duration::from_millis(1));
            }
            store.finish();
            over.store(true, Ordering::Release);
            let keeper = keeping.join().map_err(|_| "the keeper died".to_string())??;
            round.plain_us = plain_us / self.count as f64;
            round.shard_us = shard_us / self.count as f64;
            Ok::<_, String>(keeper)
        });
        let mut keeper = worked?;
        round.ours_us = (process_us() - before) / self.count as f64 - round.plain_us;
        let mut librarian = Maintenance::new(&path, keeping(), keeper.shares());
        librarian.turn(&keeper.take_sealed()).map_err(|error| error.to_string())?;
        if !keep {
            let _ = fs::remove_dir_all(&path);
        }
        Ok(round)
    }

    /// The same pages by warcio's writer, one gzip member each, into nothing.
    pub fn warcio(&self, python: &Path) -> Result<Warcio, String> {
        let pages = self.root.join("pages");
        let mut file = File::create(&pages).map_err(|error| error.to_string())?;
        for page in self.pages.iter().take(WARCIO_PAGES) {
            file.write_all(&(page.len() as u32).to_be_bytes()).map_err(|error| error.to_string())?;
            file.write_all(page).map_err(|error| error.to_string())?;
        }
        let run = Command::new(python).arg("-c").arg(WARCIO_SCRIPT).arg(&pages).output();
        let output = run.map_err(|error| format!("cannot run {}: {error}", python.display()))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = said.split_whitespace();
        match (output.status.success(), words.next(), words.next().and_then(|us| us.parse().ok())) {
            (true, Some(version), Some(page_us)) => Ok(Warcio { version: version.to_string(), page_us }),
            _ => Err(format!(
                "{} has no warcio that works (pip install warcio): {}",
                python.display(),
                crate::base::shown(String::from_utf8_lossy(&output.stderr).trim(), 200)
            )),
        }
    }

    /// One page, one commit; beside it the same bytes written to a file and synced.
    pub fn commits(&self) -> Result<Commits, String> {
        let path = self.root.join("commits");
        let Open { mut keeper, mut store } = open(&path)?;
        let begun = Instant::now();
        let mut count = 0u64;
        while begun.elapsed() < COMMITS_FOR {
            let page = &self.pages[count as usize % self.pages.len()];
            append(&mut store, 1, &url_of(count), page, pause)?;
            keeper.turn(1).map_err(|error| error.to_string())?;
            count += 1;
        }
        let per_s = count as f64 / begun.elapsed().as_secs_f64();
        let file = File::create(self.root.join("plain")).map_err(|error| error.to_string())?;
        file.set_len(SEGMENT_BYTES).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        let (mut count, mut at) = (0u64, 0);
        while begun.elapsed() < COMMITS_FOR {
            let page = &self.pages[count as usize % self.pages.len()];
            let packed = lz4_flex::block::compress(page);
            file.write_all_at(&packed, at)
                .and_then(|()| file.sync_data())
                .map_err(|error| error.to_string())?;
            at = (at + packed.len() as u64) % (SEGMENT_BYTES - (1 << 20));
            count += 1;
        }
        Ok(Commits { per_s, plain_per_s: count as f64 / begun.elapsed().as_secs_f64() })
    }

    /// Documents by URL, in no order; beside it the records read and unpacked where they are known to be.
    pub fn reads(&self, reads: usize) -> Result<Reads, String> {
        let reader = Reader::open(&self.root.join("append")).map_err(|error| error.to_string())?;
        let mut places = Vec::new();
        reader
            .each(|located, _| places.push((located.segment, located.offset)))
            .map_err(|e| e.to_string())?;
        let mut rng = Rng::new(1);
        let begun = Instant::now();
        for _ in 0..reads {
            let url = url_of(rng.below(self.count as u64));
            let found = reader.find(&url).map_err(|error| error.to_string())?;
            if found.is_none_or(|(_, document)| document.is_none()) {
                return Err(format!("{url} is not there"));
            }
        }
        let page_us = begun.elapsed().as_secs_f64() * 1e6 / reads as f64;
        let begun = Instant::now();
        for _ in 0..reads {
            let (segment, offset) = places[rng.below(places.len() as u64) as usize];
            reader.read_at(segment, offset).map_err(|error| error.to_string())?.ok_or("a record is gone")?;
        }
        let plain_us = begun.elapsed().as_secs_f64() * 1e6 / reads as f64;
        Ok(Reads { reads, per_s: 1e6 / page_us, page_us, plain_us })
    }

    /// A store with many small records, found by URL.
    pub fn lookups(&self, records: u64) -> Result<Lookups, String> {
        let path = self.root.join("lookups");
        let Open { mut keeper, mut store } = open(&path)?;
        let mut librarian = Maintenance::new(&path, keeping(), keeper.shares());
        for index in 0..records {
            let page = &self.pages[index as usize % self.pages.len()][..HEAD.len() + 64];
            append(&mut store, index as u32, &url_of(index), page, || {
                keeper.turn(1).map_err(|error| error.to_string())?;
                librarian.turn(&keeper.take_sealed()).map_err(|error| error.to_string())
            })?;
        }
        store.finish();
        keeper.close().map_err(|error| error.to_string())?;
        librarian.turn(&keeper.take_sealed()).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        let reader = Reader::open(&path).map_err(|error| error.to_string())?;
        let (files, bare) = reader.index_files().map_err(|error| error.to_string())?;
        let open_us = begun.elapsed().as_secs_f64() * 1e6;
        if bare > 0 {
            return Err(format!("{bare} segments have no index"));
        }
        let mut rng = Rng::new(2);
        let mut ns = Histogram::<u64>::new(3).map_err(|error| error.to_string())?;
        for _ in 0..20_000.min(records * 4) {
            let url = url_of(rng.below(records));
            let begun = Instant::now();
            let found = reader.find(&url).map_err(|error| error.to_string())?;
            ns.record(begun.elapsed().as_nanos() as u64).map_err(|error| error.to_string())?;
            found.ok_or("a record is not found")?;
        }
        let us = |at| ns.value_at_quantile(at) as f64 / 1e3;
        let _ = fs::remove_dir_all(&path);
        Ok(Lookups { records, files, open_us, median_us: us(0.5), p99_us: us(0.99) })
    }

    /// A store is left as a kill leaves it, and opened; beside it the same file read and no more.
    pub fn recovery(&self) -> Result<Recovery, String> {
        let path = self.root.join("recovery");
        let Open { mut keeper, mut store } = open_sized(&path, 1 << 30)?;
        for (index, page) in self.pages.iter().cycle().take(self.count.max(50_000)).enumerate() {
            append(&mut store, 1, &url_of(index as u64), page, pause)?;
        }
        keeper.turn(1).map_err(|error| error.to_string())?;
        drop(keeper);
        std::mem::forget(store);
        let open = newest_file(&path.join("segments"))?;
        let begun = Instant::now();
        drop(DataDir::open(&path).map_err(|error| error.to_string())?);
        let seconds = begun.elapsed().as_secs_f64();
        let sealed = open.with_extension("seg");
        let begun = Instant::now();
        let bytes = fs::read(&sealed).map_err(|error| format!("{}: {error}", sealed.display()))?;
        std::hint::black_box(&bytes);
        let plain = begun.elapsed().as_secs_f64();
        let gb = bytes.len() as f64 / 1e9;
        let _ = fs::remove_dir_all(&path);
        Ok(Recovery { bytes: bytes.len() as u64, s_per_gb: seconds / gb, plain_s_per_gb: plain / gb })
    }
}

const WARCIO_SCRIPT: &str = "
import io, struct, sys, time, warcio
from importlib.metadata import version
from warcio.warcwriter import WARCWriter
pages = []
with open(sys.argv[1], 'rb') as f:
    while size := f.read(4):
        pages.append(f.read(struct.unpack('>I', size)[0]))
class Nowhere(io.RawIOBase):
    def write(self, data): return len(data)
    def tell(self): return 0
writer = WARCWriter(Nowhere(), gzip=True)
begun = time.process_time()
for index, page in enumerate(pages):
    record = writer.create_warc_record('http://host-0.farm/p/%d' % index, 'response', payload=io.BytesIO(page))
    writer.write_record(record)
print(version('warcio'), (time.process_time() - begun) * 1e6 / len(pages))
";

fn open(path: &Path) -> Result<Open, String> {
    open_sized(path, SEGMENT_BYTES)
}

fn open_sized(path: &Path, segment_bytes: u64) -> Result<Open, String> {
    let directory = DataDir::open(path).map_err(|error| error.to_string())?;
    let rules = StoreRules { dedup: Dedup::Url, ..StoreRules::of_size(segment_bytes) };
    let mut keeper = Keeper::new(Medium::Directory(directory), rules, 1);
    keeper.prepare(1).map_err(|error| error.to_string())?;
    let store = ShardStore::new(keeper.share(0));
    Ok(Open { keeper, store })
}

fn keeping() -> RetentionRules {
    RetentionRules::all(SEGMENT_BYTES)
}

/// Appends a page; without a segment, `between` sees to it or waits.
fn append(
    store: &mut ShardStore,
    doc_id: u32,
    url: &str,
    page: &[u8],
    mut between: impl FnMut() -> Result<(), String>,
) -> Result<usize, String> {
    let record = NewRecord {
        doc_id,
        url,
        new_url: None,
        success: true,
        result: ResultCode::Ok,
        http_code: HttpCode::of(200),
        status: 200,
        flags: 0,
        took_ms: 12,
        fetched_unix_ms: 1_794_744_000_000,
        ip: std::net::Ipv4Addr::LOCALHOST.into(),
        port: 80,
        bytes: page,
        head_len: HEAD.len(),
    };
    for _ in 0..APPEND_TRIES {
        match store.append(&record) {
            Ok(appended) => return Ok(appended.bytes),
            Err(AppendError::NoSegment) => between()?,
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("no segment came".to_string())
}

/// For a shard with a keeper on a thread beside it.
fn pause() -> Result<(), String> {
    std::thread::sleep(Duration::from_micros(200));
    Ok(())
}

fn url_of(index: u64) -> String {
    format!("http://host-{}.farm.test/section/page-{index}.html", index % 97)
}

/// The segment that was written to.
fn newest_file(segments: &Path) -> Result<PathBuf, String> {
    let paths = fs::read_dir(segments).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = paths.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    paths.into_iter().next().ok_or_else(|| "no segment was written".to_string())
}

fn thread_us() -> f64 {
    clock_us(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn process_us() -> f64 {
    clock_us(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_us(clock: ClockId) -> f64 {
    clock_gettime(clock).map_or(0.0, |time| time.tv_sec() as f64 * 1e6 + time.tv_nsec() as f64 / 1e3)
}
