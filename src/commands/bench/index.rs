use super::cpu::thread_us;
use super::record::RecordArgs;
use super::stage::Stage;
use crate::commands::shared::{Failure, mb, on_cores};
use crate::config::size;
use crate::doc_index::{DocIndex, IndexRules, Link, Note, Origin, Outcome, RejectList};
use crate::handler::LinkBatch;
use crate::proto::http1::Validators;
use crate::proto::job::Held;
use crate::proto::record::ResultCode;
use clap::Args;
pub(super) use index_workload::LINKS_PER_PAGE;
use index_workload::Workload;
use serde::Serialize;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Discover, hand out and record URLs in a doc index, and print what each costs
///
/// A page brings 20 links, nine of ten known; half of these were found lately, half at any time. One core.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench index --urls 10000000\n  nephila bench index --urls 1000000 --memory 20000000\n  (cd bench/index-peers && cargo build --release)\n  nephila bench index --peers bench/index-peers/target/release/index-peers\n\nAll times are CPU times. The peers do the same straight on fjall and on SQLite, each in a process of its own."
)]
pub(super) struct IndexBenchArgs {
    /// URLs found in all
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    urls: u64,
    /// Memory for the index
    #[arg(long, value_name = "BYTES", default_value = "6GiB", value_parser = size::<usize>)]
    memory: usize,
    /// Where the index is written; it is removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-index")]
    data: PathBuf,
    /// The program of bench/index-peers, to measure fjall and SQLite in the same run
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// URLs that the peers find, if that is to be fewer
    #[arg(long, value_name = "N")]
    peers_urls: Option<u64>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct IndexBenchReport {
    ours: IndexCosts,
    /// As their program prints them.
    peers: Vec<serde_json::Value>,
}

#[derive(Serialize)]
struct IndexCosts {
    urls: u64,
    links: u64,
    discover_ns_per_link: f64,
    /// Of links that were known, and of those that were not.
    known_ns: f64,
    new_ns: f64,
    candidate_ns: f64,
    candidates_per_s: f64,
    record_ns: f64,
    /// Everything of a page with 20 links: discovering them, handing it out, noting what became of it.
    page_us: f64,
    /// Memory told of every URL whether it was known; otherwise the disk was asked in batches.
    seen_is_complete: bool,
    ram_bytes: u64,
    ram_bytes_per_url: f64,
    disk_bytes: u64,
    disk_bytes_per_url: f64,
    /// Opening it again after a kill.
    open_seconds: f64,
    open_ns_per_url: f64,
    seconds: f64,
}

/// Pages between two looks at the clock.
const PAGES_PER_ROUND: usize = 256;
/// Pages whose links are asked about together: as many as the index thread takes when it is busy, with a word for the links
/// and one for the outcome of each.
const PAGES_AT_ONCE: usize = 32;
/// Candidates that wait to be fetched, as the queues of url servers do.
const OPEN: usize = 50_000;
const NOW_S: u32 = 1_800_000_000;

impl IndexBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.urls < 1_000 || self.urls > u64::from(u32::MAX / 2) {
            return Err(Failure::Usage("--urls: from a thousand to two billion".into()));
        }
        let stage = Stage::unmade(&self.data)?;
        let ours = on_cores(&[stage.core], || self.measure())??;
        drop(stage);
        let peers = match &self.peers {
            Some(program) => vec![self.peer(program, "fjall")?, self.peer(program, "sqlite")?],
            None => Vec::new(),
        };
        self.record.tell(&IndexBenchReport { ours, peers }, IndexBenchReport::text)
    }

    fn measure(&self) -> Result<IndexCosts, Failure> {
        let rules = IndexRules { memory_bytes: self.memory, ..IndexRules::default() };
        let (mut index, _) = DocIndex::open(&self.data, rules.clone(), NOW_S)?;
        let mut load = Workload::new(self.urls);
        let [mut discovering, mut choosing, mut recording, mut opening] = [Clock::default(); 4];
        let mut open_docs = VecDeque::new();
        let started = Instant::now();
        let mut synced = started;
        let (mut pages, mut fetched, mut candidates) = (0, 0, 0);
        loop {
            let batches = pages_of(&mut load);
            if batches.is_empty() {
                break;
            }
            pages += batches.len() as u64;
            discovering.run(|| discover_pages(&mut index, &load, &batches));
            if open_docs.len() < OPEN {
                let found = choosing.run(|| index.candidates(2_048, &RejectList::default(), NOW_S));
                candidates += found.len() as u64;
                open_docs.extend(found.iter().map(|candidate| candidate.doc_id));
            }
            let done: Vec<Outcome> =
                open_docs.drain(..batches.len().min(open_docs.len())).map(outcome).collect();
            fetched += done.len() as u64;
            let sync = synced.elapsed() >= Duration::from_secs(1);
            synced = if sync { Instant::now() } else { synced };
            recording.run(|| {
                done.iter().for_each(|outcome| {
                    index.record(outcome, None);
                });
                index.flush(sync)
            })?;
        }
        let known_ns = known_links(&mut index, &mut load);
        let bytes = index.bytes();
        let links = pages * LINKS_PER_PAGE as u64;
        let discover_ns = discovering.ns;
        let new_ns = (discover_ns - known_ns * (links - load.urls()) as f64) / load.urls() as f64;
        let seconds = started.elapsed().as_secs_f64();
        // As a kill would: what is in no run of the seen-set is made again from the ledger.
        drop(index);
        let begun = Instant::now();
        let (index, _) = opening.run(|| DocIndex::open(&self.data, rules, NOW_S))?;
        let open_seconds = begun.elapsed().as_secs_f64();
        assert_eq!(index.stats().known, load.urls(), "every URL is known once");
        let per = |ns: f64, count: u64| ns / count.max(1) as f64;
        let ram_bytes = bytes.seen_ram + bytes.frontier_ram + bytes.other_ram;
        let disk_bytes = bytes.ledger_disk + bytes.documents_disk + bytes.seen_disk + bytes.frontier_disk;
        let candidate_ns = per(choosing.ns, candidates);
        let record_ns = per(recording.ns, fetched);
        Ok(IndexCosts {
            urls: load.urls(),
            links,
            discover_ns_per_link: discover_ns / links as f64,
            known_ns,
            new_ns,
            candidate_ns,
            candidates_per_s: 1e9 / candidate_ns,
            record_ns,
            page_us: (discover_ns / pages as f64 + candidate_ns + record_ns) / 1e3,
            seen_is_complete: bytes.seen_is_complete,
            ram_bytes,
            ram_bytes_per_url: ram_bytes as f64 / load.urls() as f64,
            disk_bytes,
            disk_bytes_per_url: disk_bytes as f64 / load.urls() as f64,
            open_seconds,
            open_ns_per_url: per(opening.ns, load.urls()),
            seconds,
        })
    }

    fn peer(&self, program: &Path, peer: &str) -> Result<serde_json::Value, Failure> {
        let urls = self.peers_urls.unwrap_or(self.urls);
        let data = self.data.with_extension(peer);
        let ran = Command::new(program)
            .args(["--peer", peer, "--urls", &urls.to_string(), "--json", "--dir"])
            .arg(&data)
            .output();
        let _ = std::fs::remove_dir_all(&data);
        let cannot =
            |cause: String| Failure::CannotRun(format!("{} --peer {peer}: {cause}", program.display()));
        let output = ran.map_err(|e| cannot(e.to_string()))?;
        if !output.status.success() {
            return Err(cannot(String::from_utf8_lossy(&output.stderr).trim().to_string()));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| cannot(e.to_string()))
    }
}

/// Links of pages, about to be discovered.
pub(super) struct IndexPart {
    index: DocIndex,
    load: Workload,
    batches: Vec<BenchPage>,
}

impl IndexPart {
    /// In a directory of its own, which is emptied.
    pub fn new(dir: &Path, pages: u64) -> Result<IndexPart, Failure> {
        let data = dir.join("index");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        let (index, _) = DocIndex::open(&data, IndexRules::default(), NOW_S)?;
        // Two of the links of a page are new; the first half of the pages makes the others known.
        let mut load = Workload::new(4 * pages.max(PAGES_PER_ROUND as u64));
        let mut batches = Vec::new();
        while (batches.len() as u64) < 2 * pages {
            let more = pages_of(&mut load);
            if more.is_empty() {
                break;
            }
            batches.extend(more);
        }
        let measured = batches.split_off(batches.len().saturating_sub(pages as usize));
        let mut part = IndexPart { index, load, batches };
        part.discover();
        part.batches = measured;
        Ok(part)
    }

    pub fn discover(&mut self) {
        discover_pages(&mut self.index, &self.load, &self.batches);
    }
}

fn discover_pages(index: &mut DocIndex, load: &Workload, pages: &[BenchPage]) {
    for some in pages.chunks(PAGES_AT_ONCE) {
        let links = some.iter().flat_map(|page| {
            let origin = Origin::link(page.number as u32 + 1, load.depth_of(2 * page.number) + 1);
            page.links.iter().map(move |url| Link { url, origin, via: &page.url })
        });
        index.discover_links(links, NOW_S);
    }
}

/// A page, which is the URL of its number, and its links.
struct BenchPage {
    number: u64,
    url: Box<str>,
    links: LinkBatch,
}

/// The next pages.
fn pages_of(load: &mut Workload) -> Vec<BenchPage> {
    let mut url = Vec::new();
    let mut pages = Vec::with_capacity(PAGES_PER_ROUND);
    while pages.len() < PAGES_PER_ROUND
        && let Some(page) = load.next_page()
    {
        let links = batch(load, &page.links, &mut url);
        load.url_into(page.number, &mut url);
        pages.push(BenchPage { number: page.number, url: String::from_utf8_lossy(&url).into(), links });
    }
    pages
}

fn batch(load: &Workload, links: &[u64], url: &mut Vec<u8>) -> LinkBatch {
    let mut batch = LinkBatch::default();
    for &number in links {
        load.url_into(number, url);
        batch.push(str::from_utf8(url).unwrap_or_default());
    }
    batch
}

/// What a link costs that is known, with the index at its full size.
fn known_links(index: &mut DocIndex, load: &mut Workload) -> f64 {
    const ROUNDS: u64 = 200;
    let (mut clock, mut url, mut links) = (Clock::default(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut page = |_| {
            let links = load.known_links();
            batch(load, &links, &mut url)
        };
        let pages: Vec<LinkBatch> = (0..100).map(&mut page).collect();
        links += 100 * LINKS_PER_PAGE as u64;
        clock.run(|| {
            for some in pages.chunks(PAGES_AT_ONCE) {
                index.discover(some.iter().flat_map(LinkBatch::iter), Origin::link(1, 1), NOW_S);
            }
        });
    }
    clock.ns / links as f64
}

/// A page with an ETag, stored.
fn outcome(doc_id: u32) -> Outcome {
    let validators = Validators {
        etag: format!("\"{:030x}\"", u64::from(doc_id).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .into_bytes()
            .into(),
        last_modified: Box::default(),
    };
    let note = Note { held: Some(Held { validators, segment: 7 }), ..Note::default() };
    Outcome {
        status: 200,
        digest: u64::from(doc_id) << 20 | 1,
        note: Some(Box::new(note)),
        ..Outcome::new(doc_id, ResultCode::Ok, NOW_S)
    }
}

/// CPU time of this thread, which does all the work.
#[derive(Clone, Copy, Default)]
struct Clock {
    ns: f64,
}

impl Clock {
    fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before_us = thread_us();
        let done = work();
        self.ns += (thread_us() - before_us) * 1e3;
        done
    }
}

impl IndexBenchReport {
    fn text(&self) -> String {
        let IndexCosts { urls, links, seconds, known_ns, new_ns, candidates_per_s, .. } = &self.ours;
        let IndexCosts { discover_ns_per_link, candidate_ns, record_ns, page_us, .. } = &self.ours;
        let IndexCosts { ram_bytes_per_url, disk_bytes_per_url, open_seconds, open_ns_per_url, .. } =
            &self.ours;
        let [ram_mb, disk_mb] = [self.ours.ram_bytes, self.ours.disk_bytes].map(mb);
        let cache = match self.ours.seen_is_complete {
            true => "",
            false => "; the seen-set is a cache of what is on disk",
        };
        let mut text = format!(
            "{urls} URLs, {links} links, {seconds:.0} s\n  \
             discover   {discover_ns_per_link:.0} ns CPU a link: {known_ns:.0} if it is known, {new_ns:.0} if it is new\n  \
             candidates {candidate_ns:.0} ns each, {candidates_per_s:.0}/s\n  \
             record     {record_ns:.0} ns\n  \
             a page     {page_us:.2} us with 20 links\n  \
             memory     {ram_mb:.0} MB, {ram_bytes_per_url:.1} bytes a URL{cache}\n  \
             disk       {disk_mb:.0} MB, {disk_bytes_per_url:.1} bytes a URL\n  \
             opened     in {open_seconds:.2} s after a kill, {open_ns_per_url:.0} ns CPU a URL\n"
        );
        for peer in &self.peers {
            let number = |name: &str| peer[name].as_f64().unwrap_or(f64::NAN);
            let beside = |ours: f64, name: &str| (number(name), ours / number(name));
            let (discover, discover_ratio) = beside(*discover_ns_per_link, "discover_ns_per_link");
            let (candidate, candidate_ratio) = beside(*candidate_ns, "candidate_ns");
            let (record, record_ratio) = beside(*record_ns, "record_ns");
            let (page, page_ratio) = beside(*page_us, "page_us");
            text += &format!(
                "{} with {} URLs\n  \
                 discover   {discover:.0} ns a link: ours {discover_ratio:.3} x\n  \
                 candidates {candidate:.0} ns each: ours {candidate_ratio:.3} x\n  \
                 record     {record:.0} ns: ours {record_ratio:.3} x\n  \
                 a page     {page:.1} us: ours {page_ratio:.3} x\n  \
                 disk       {:.1} bytes a URL\n",
                peer["peer"].as_str().unwrap_or("?"),
                peer["urls"],
                number("disk_bytes_per_url"),
            );
        }
        if self.peers.is_empty() {
            text +=
                "fjall and SQLite were not measured (give the program of bench/index-peers with --peers)\n";
        }
        text
    }
}
