//! The operations of the doc index, done straight on stores that others made, with no cache of ours before them.
//!
//! What is measured is CPU, user and system, of all threads of the process: a store that compacts in the background
//! pays for it here. The cost of making the URLs up is measured alone and taken off.

mod fjall_peer;
mod peer;
mod sqlite_peer;

use fjall_peer::FjallPeer;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use peer::{Failure, Fetched, Found, PAGES_PER_PERSIST, Peer};
use sqlite_peer::SqlitePeer;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use index_workload::{LINKS_PER_PAGE, Workload};

const USAGE: &str =
    "usage: index-peers --peer fjall|sqlite --urls N [--dir DIR] [--cache-mb N (256)] [--json]";

struct Args {
    peer: String,
    urls: u64,
    dir: Option<PathBuf>,
    cache_mb: u64,
    json: bool,
}

/// CPU of each sort of operation, in nanoseconds.
#[derive(Default)]
struct Costs {
    discover_ns: u64,
    candidates_ns: u64,
    candidates_wall_ns: u64,
    candidates: u64,
    record_ns: u64,
    persist_ns: u64,
    new: u64,
}

fn main() -> ExitCode {
    let run = || -> Result<(), Failure> {
        let args = Args::read(std::env::args().skip(1))?;
        let dir = match &args.dir {
            Some(dir) => dir.clone(),
            None => std::env::temp_dir().join(format!("index-peers-{}", std::process::id())),
        };
        std::fs::create_dir(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        let report = measure(&args, &dir);
        if args.dir.is_none() {
            let _ = std::fs::remove_dir_all(&dir);
        }
        print!("{}", report?);
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("index-peers: {e}");
            ExitCode::from(2)
        }
    }
}

fn measure(args: &Args, dir: &Path) -> Result<String, Failure> {
    let cache_bytes = args.cache_mb << 20;
    let started = Instant::now();
    let load_ns = load_alone_ns(args.urls);
    let cpu_before = cpu_ns();
    let mut peer: Box<dyn Peer> = match args.peer.as_str() {
        "fjall" => Box::new(FjallPeer::open(dir, cache_bytes)?),
        _ => Box::new(SqlitePeer::open(dir, cache_bytes)?),
    };
    let costs = crawl(&mut *peer, Workload::new(args.urls))?;
    drop(peer);
    let cpu_ns = cpu_ns() - cpu_before;
    let load = Workload::new(args.urls);
    if costs.new != load.urls() || costs.candidates != load.pages() {
        return Err(
            format!("{} of {} URLs were new, {} taken", costs.new, load.urls(), costs.candidates).into()
        );
    }
    let disk_bytes = bytes_below(dir)?;
    let (links, pages) = (load.links() as f64, load.pages() as f64);
    let load_ns_per_link = load_ns as f64 / links;
    let discover_ns = costs.discover_ns as f64 / links - load_ns_per_link;
    let candidate_ns = costs.candidates_ns as f64 / pages;
    let candidates_per_s = pages / (costs.candidates_wall_ns as f64 / 1e9);
    let record_ns = costs.record_ns as f64 / pages;
    let persist_ns = costs.persist_ns as f64 / pages;
    let page_us = (cpu_ns as f64 - load_ns as f64) / pages / 1e3;
    let ram_bytes = getrusage(UsageWho::RUSAGE_SELF)?.max_rss() * 1_024;
    let disk_per_url = disk_bytes as f64 / load.urls() as f64;
    let seconds = started.elapsed().as_secs_f64();
    let Args { peer, cache_mb, .. } = args;
    let (urls, hosts, links) = (load.urls(), load.hosts(), load.links());
    Ok(if args.json {
        format!(
            "{{\"peer\":\"{peer}\",\"urls\":{urls},\"hosts\":{hosts},\"links\":{links},\"discover_ns_per_link\":{discover_ns:.1},\"new_ns\":null,\
             \"candidates_per_s\":{candidates_per_s:.0},\"candidate_ns\":{candidate_ns:.1},\"record_ns\":{record_ns:.1},\
             \"persist_ns_per_page\":{persist_ns:.1},\"page_us\":{page_us:.2},\"ram_bytes\":{ram_bytes},\
             \"disk_bytes\":{disk_bytes},\"disk_bytes_per_url\":{disk_per_url:.1},\"seconds\":{seconds:.1},\
             \"cache_bytes\":{cache_bytes},\"load_ns_per_link\":{load_ns_per_link:.1}}}\n"
        )
    } else {
        format!(
            "{peer}, {urls} URLs of {hosts} hosts, {links} links, {LINKS_PER_PAGE} a page, cache {cache_mb} MB; CPU of all threads\n\n  \
             discover   {discover_ns:>9.0} ns a link\n  candidate  {candidate_ns:>9.0} ns, {candidates_per_s:.0}/s\n  \
             record     {record_ns:>9.0} ns\n  persist    {persist_ns:>9.0} ns a page\n  \
             page       {page_us:>9.1} µs, all of it\n  memory     {:>9.1} MB at most\n  \
             disk       {:>9.1} MB, {disk_per_url:.1} bytes a URL\n  seconds    {seconds:>9.1}\n",
            ram_bytes as f64 / 1e6,
            disk_bytes as f64 / 1e6
        )
    })
}

/// A whole crawl: links of 1,000 pages are looked up, 1,000 URLs taken, and 1,000 fetches noted, until all are found.
/// Work that a store puts off is counted where it happens to be done; over a whole crawl it is all counted.
fn crawl(peer: &mut dyn Peer, mut load: Workload) -> Result<Costs, Failure> {
    let mut costs = Costs::default();
    let (mut url, mut taken) = (Vec::new(), Vec::new());
    loop {
        let mut pages = 0;
        let mut at = cpu_ns();
        while pages < PAGES_PER_PERSIST
            && let Some(page) = load.next_page()
        {
            pages += 1;
            for number in page.links {
                load.url_into(number, &mut url);
                let (host, depth) = (load.host_of(number), load.depth_of(number));
                costs.new += u64::from(peer.discover(&Found { url: &url, host, depth, via: page.number })?);
            }
        }
        if pages == 0 {
            return Ok(costs);
        }
        costs.discover_ns += lap(&mut at);
        let wall = Instant::now();
        taken.clear();
        peer.candidates(pages as usize, &mut taken)?;
        costs.candidates_wall_ns += wall.elapsed().as_nanos() as u64;
        costs.candidates += taken.len() as u64;
        costs.candidates_ns += lap(&mut at);
        for (number, url) in taken.iter().enumerate() {
            let etag = [(number % 251) as u8; 32];
            peer.record(url, &Fetched { at_us: 1_794_700_800_000_000 + number as u64, result: 1, etag })?;
        }
        costs.record_ns += lap(&mut at);
        peer.persist()?;
        costs.persist_ns += lap(&mut at);
    }
}

/// What making the links up costs, with nobody asked.
fn load_alone_ns(urls: u64) -> u64 {
    let mut load = Workload::new(urls);
    let mut url = Vec::new();
    let before = cpu_ns();
    while let Some(page) = load.next_page() {
        for number in page.links {
            load.url_into(number, &mut url);
            std::hint::black_box((&url, load.host_of(number), load.depth_of(number)));
        }
    }
    cpu_ns() - before
}

/// CPU since `at`, which moves on.
fn lap(at: &mut u64) -> u64 {
    let now = cpu_ns();
    now - std::mem::replace(at, now)
}

/// User and system time of all threads of this process.
fn cpu_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0 };
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64 * 1_000
}

fn bytes_below(dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { bytes_below(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

impl Args {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Args, Failure> {
        let mut args = Args { peer: String::new(), urls: 0, dir: None, cache_mb: 256, json: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; {USAGE}"));
            match word.as_str() {
                "--peer" => args.peer = value()?,
                "--urls" => args.urls = value()?.replace('_', "").parse()?,
                "--dir" => args.dir = Some(value()?.into()),
                "--cache-mb" => args.cache_mb = value()?.parse()?,
                "--json" => args.json = true,
                _ => return Err(format!("{word} is not known; {USAGE}").into()),
            }
        }
        if !["fjall", "sqlite"].contains(&args.peer.as_str()) || args.urls < 2 {
            return Err(USAGE.into());
        }
        Ok(args)
    }
}
