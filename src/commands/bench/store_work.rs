//! What `bench store` measures, each beside the plainest way to do the same.

use super::cpu::{process_us, thread_us};
use super::rounds::median;
use crate::base::{Rng, shown};
use crate::commands::shared::Failure;
use crate::farm::{Site, SiteSpec};
use crate::proto::record::{HttpCode, ResultCode};
use crate::store_server::{
    AppendError, DataDir, Dedup, Keeper, Maintenance, Medium, NewRecord, Reader, RetentionRules, ShardStore,
    StoreRules,
};
use hdrhistogram::Histogram;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use serde::Serialize;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(super) struct StoreWork {
    root: PathBuf,
    pages: Vec<Vec<u8>>,
    count: usize,
}

#[derive(Serialize)]
pub(super) struct Append {
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
pub(super) struct Warcio {
    pub version: String,
    pub page_us: f64,
}

#[derive(Serialize)]
pub(super) struct Commits {
    pub per_s: f64,
    pub plain_per_s: f64,
}

#[derive(Serialize)]
pub(super) struct Reads {
    pub reads: usize,
    pub per_s: f64,
    pub page_us: f64,
    pub plain_us: f64,
}

#[derive(Serialize)]
pub(super) struct Lookups {
    pub records: u64,
    pub files: usize,
    pub open_us: f64,
    pub median_us: f64,
    pub p99_us: f64,
}

#[derive(Serialize)]
pub(super) struct Recovery {
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
/// Pages that are appended by turns where a part is measured.
const APPEND_PAGES: usize = 256;
const WARCIO_PAGES: usize = 2_000;
const WARCIO_SCRIPT: &str = include_str!("warcio_writer.py");
/// Some milliseconds of either.
const TURN_PAGES: usize = 128;
/// What every page begins with.
pub(super) const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nContent-Type: text/html\r\nContent-Length: 10000\r\nConnection: keep-alive\r\n\r\n";

/// CPU of a page, in one round.
#[derive(Default)]
struct Round {
    ours_us: f64,
    shard_us: f64,
    plain_us: f64,
    stored_bytes: u64,
}

impl StoreWork {
    pub fn new(root: &Path, count: usize) -> Result<StoreWork, Failure> {
        let spec = SiteSpec { pages: DISTINCT as u32, page_bytes: PAGE_BYTES, ..SiteSpec::default() };
        let site = Site::new(spec)?;
        let page = |index| [HEAD, &site.document(0, index as u32, 80)].concat();
        Ok(StoreWork { root: root.to_path_buf(), pages: (0..DISTINCT.min(count)).map(page).collect(), count })
    }

    pub fn page_bytes(&self) -> usize {
        self.pages.iter().map(Vec::len).sum::<usize>() / self.pages.len()
    }

    fn page(&self, index: usize) -> &[u8] {
        &self.pages[index % self.pages.len()]
    }

    /// Both by turns of a few milliseconds, so that they meet the same machine. The last store stays, to be read.
    pub fn append(&self, rounds: usize) -> Result<Append, Failure> {
        let turns = (0..rounds).map(|_| self.round()).collect::<Result<Vec<Round>, Failure>>()?;
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
    fn round(&self) -> Result<Round, Failure> {
        let path = self.root.join("append");
        let _ = fs::remove_dir_all(&path);
        let mut table = CompressTable::large();
        let mut out = vec![0; get_maximum_output_size(self.pages.iter().map(Vec::len).max().unwrap_or(0))];
        let (mut keeper, mut store) = open(&path, SEGMENT_BYTES)?;
        let share = keeper.share(0);
        let over = AtomicBool::new(false);
        let before = process_us();
        let mut round = Round::default();
        let worked = std::thread::scope(|scope| {
            let keeping = scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    keeper.turn(1)?;
                    std::thread::sleep(COMMIT);
                }
                keeper.close()?;
                Ok::<_, Failure>(keeper)
            });
            let (mut plain_us, mut shard_us) = (0.0, 0.0);
            for first in (0..self.count).step_by(TURN_PAGES) {
                let pages = first..(first + TURN_PAGES).min(self.count);
                let begun = thread_us();
                for index in pages.clone() {
                    let packed = compress_into_with_table(self.page(index), &mut out, &mut table);
                    black_box(packed.unwrap_or(0));
                }
                let between = thread_us();
                for index in pages {
                    let bytes = append(&mut store, index, self.page(index), pause)?;
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
            let keeper = keeping.join().map_err(|_| Failure::cannot_run("the keeper died"))??;
            round.plain_us = plain_us / self.count as f64;
            round.shard_us = shard_us / self.count as f64;
            Ok::<_, Failure>(keeper)
        });
        let mut keeper = worked?;
        round.ours_us = (process_us() - before) / self.count as f64 - round.plain_us;
        Maintenance::new(&path, RetentionRules::all(SEGMENT_BYTES), keeper.shares())
            .turn(&keeper.take_sealed())?;
        Ok(round)
    }

    /// The same pages by warcio's writer, one gzip member each, into nothing.
    pub fn warcio(&self, python: &Path) -> Result<Warcio, Failure> {
        let pages = self.root.join("pages");
        let mut file = File::create(&pages)?;
        for page in self.pages.iter().take(WARCIO_PAGES) {
            file.write_all(&(page.len() as u32).to_be_bytes())?;
            file.write_all(page)?;
        }
        let run = Command::new(python).arg("-c").arg(WARCIO_SCRIPT).arg(&pages).output();
        let output = run.map_err(|e| Failure::CannotRun(format!("cannot run {}: {e}", python.display())))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = said.split_whitespace();
        match (output.status.success(), words.next(), words.next().and_then(|us| us.parse().ok())) {
            (true, Some(version), Some(page_us)) => Ok(Warcio { version: version.to_string(), page_us }),
            _ => Err(Failure::CannotRun(format!(
                "{} has no warcio that works (pip install warcio): {}",
                python.display(),
                shown(String::from_utf8_lossy(&output.stderr).trim(), 200)
            ))),
        }
    }

    /// One page, one commit; beside it the same bytes written to a file and synced.
    pub fn commits(&self) -> Result<Commits, Failure> {
        let path = self.root.join("commits");
        let (mut keeper, mut store) = open(&path, SEGMENT_BYTES)?;
        let per_s = times_per_s(|count| {
            append(&mut store, count, self.page(count), pause)?;
            Ok(keeper.turn(1).map(drop)?)
        })?;
        let file = File::create(self.root.join("plain"))?;
        file.set_len(SEGMENT_BYTES)?;
        let mut at = 0;
        let plain_per_s = times_per_s(|count| {
            let packed = lz4_flex::block::compress(self.page(count));
            file.write_all_at(&packed, at)?;
            at = (at + packed.len() as u64) % (SEGMENT_BYTES - (1 << 20));
            Ok(file.sync_data()?)
        })?;
        Ok(Commits { per_s, plain_per_s })
    }

    /// Documents by URL, in no order; beside it the records read and unpacked where they are known to be.
    pub fn reads(&self, reads: usize) -> Result<Reads, Failure> {
        let reader = Reader::open(&self.root.join("append"))?;
        let mut places = Vec::new();
        reader.each(|located, _| places.push((located.segment, located.offset)))?;
        let mut rng = Rng::new(1);
        let page_us = us_each(reads, || {
            let url = url_of(rng.below(self.count as u64) as usize);
            let found = reader.find(&url)?.and_then(|(_, document)| document);
            found.map(drop).ok_or_else(|| Failure::CannotRun(format!("{url} is not there")))
        })?;
        let plain_us = us_each(reads, || {
            let (segment, offset) = places[rng.below(places.len() as u64) as usize];
            let found = reader.read_at(segment, offset)?;
            found.map(drop).ok_or_else(|| Failure::cannot_run("a record is gone"))
        })?;
        Ok(Reads { reads, per_s: 1e6 / page_us, page_us, plain_us })
    }

    /// A store with many small records, found by URL.
    pub fn lookups(&self, records: u64) -> Result<Lookups, Failure> {
        let path = self.root.join("lookups");
        let (mut keeper, mut store) = open(&path, SEGMENT_BYTES)?;
        let mut maintenance = Maintenance::new(&path, RetentionRules::all(SEGMENT_BYTES), keeper.shares());
        for index in 0..records as usize {
            append(&mut store, index, &self.page(index)[..HEAD.len() + 64], || {
                keeper.turn(1)?;
                Ok(maintenance.turn(&keeper.take_sealed())?)
            })?;
        }
        store.finish();
        keeper.close()?;
        maintenance.turn(&keeper.take_sealed())?;
        let begun = Instant::now();
        let reader = Reader::open(&path)?;
        let (files, bare) = reader.index_files()?;
        let open_us = begun.elapsed().as_secs_f64() * 1e6;
        if bare > 0 {
            return Err(Failure::CannotRun(format!("{bare} segments have no index")));
        }
        let mut rng = Rng::new(2);
        let mut ns = Histogram::<u64>::new(3)?;
        for _ in 0..20_000.min(records * 4) {
            let url = url_of(rng.below(records) as usize);
            let begun = Instant::now();
            let found = reader.find(&url)?;
            ns.record(begun.elapsed().as_nanos() as u64)?;
            found.ok_or_else(|| Failure::cannot_run("a record is not found"))?;
        }
        let us = |at| ns.value_at_quantile(at) as f64 / 1e3;
        let _ = fs::remove_dir_all(&path);
        Ok(Lookups { records, files, open_us, median_us: us(0.5), p99_us: us(0.99) })
    }

    /// A store is left as a kill leaves it, and opened; beside it the same file read and no more.
    pub fn recovery(&self) -> Result<Recovery, Failure> {
        let path = self.root.join("recovery");
        let (mut keeper, mut store) = open(&path, 1 << 30)?;
        for index in 0..self.count.max(50_000) {
            append(&mut store, index, self.page(index), pause)?;
        }
        keeper.turn(1)?;
        drop(keeper);
        std::mem::forget(store);
        let sealed = first_file(&path.join("segments"))?.with_extension("seg");
        let open_us = us_each(1, || DataDir::open(&path).map(drop).map_err(Failure::from))?;
        let mut bytes = Vec::new();
        let plain_us = us_each(1, || {
            bytes =
                fs::read(&sealed).map_err(|e| Failure::CannotRun(format!("{}: {e}", sealed.display())))?;
            Ok(())
        })?;
        let us_per_s_gb = bytes.len() as f64 / 1e3;
        let _ = fs::remove_dir_all(&path);
        Ok(Recovery {
            bytes: bytes.len() as u64,
            s_per_gb: open_us / us_per_s_gb,
            plain_s_per_gb: plain_us / us_per_s_gb,
        })
    }
}

/// Does it again and again for a while: times a second. The work is told how often it was done.
fn times_per_s(mut work: impl FnMut(usize) -> Result<(), Failure>) -> Result<f64, Failure> {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < COMMITS_FOR {
        work(count)?;
        count += 1;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// Microseconds that it takes, done this many times.
fn us_each(count: usize, mut work: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    (0..count).try_for_each(|_| work())?;
    Ok(begun.elapsed().as_secs_f64() * 1e6 / count as f64)
}

/// A store to be written.
/// Pages about to be appended, without a keeper's thread.
pub(super) struct AppendPart {
    keeper: Keeper,
    store: ShardStore,
    pages: Vec<Vec<u8>>,
}

impl AppendPart {
    /// In a directory of its own, which is emptied.
    pub fn new(dir: &Path) -> Result<AppendPart, Failure> {
        let path = dir.join("append");
        let _ = fs::remove_dir_all(&path);
        let (keeper, store) = open(&path, SEGMENT_BYTES)?;
        let pages = StoreWork::new(dir, APPEND_PAGES)?.pages;
        Ok(AppendPart { keeper, store, pages })
    }

    pub fn append(&mut self, times: u64) -> Result<(), Failure> {
        let AppendPart { keeper, store, pages } = self;
        for index in 0..times as usize {
            append(store, index, &pages[index % pages.len()], || Ok(keeper.turn(1).map(drop)?))?;
            if index % TURN_PAGES == 0 {
                keeper.turn(1)?;
            }
        }
        Ok(())
    }
}

fn open(path: &Path, segment_bytes: u64) -> Result<(Keeper, ShardStore), Failure> {
    let rules = StoreRules { dedup: Dedup::Url, ..StoreRules::of_size(segment_bytes) };
    let mut keeper = Keeper::new(Medium::Directory(DataDir::open(path)?), rules, 1);
    keeper.prepare(1)?;
    let store = ShardStore::new(keeper.share(0));
    Ok((keeper, store))
}

/// A page with [`HEAD`], as it is stored.
pub(super) fn page_record<'a>(doc_id: u32, url: &'a str, page: &'a [u8]) -> NewRecord<'a> {
    NewRecord {
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
    }
}

/// Appends a page; without a segment, `between` sees to it or waits.
fn append(
    store: &mut ShardStore,
    index: usize,
    page: &[u8],
    mut between: impl FnMut() -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let url = url_of(index);
    let record = page_record(index as u32, &url, page);
    for _ in 0..APPEND_TRIES {
        match store.append(&record) {
            Ok(appended) => return Ok(appended.bytes),
            Err(AppendError::NoSegment) => between()?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::cannot_run("no segment came"))
}

/// For a shard with a keeper on a thread beside it.
fn pause() -> Result<(), Failure> {
    std::thread::sleep(Duration::from_micros(200));
    Ok(())
}

fn url_of(index: usize) -> String {
    format!("http://host-{}.farm.test/section/page-{index}.html", index % 97)
}

/// The segment that was written to.
fn first_file(segments: &Path) -> Result<PathBuf, Failure> {
    let paths = fs::read_dir(segments)?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.min().ok_or_else(|| Failure::cannot_run("no segment was written"))
}
