use super::crawl_process::CrawlProcess;
use super::lab::LabArgs;
use super::nginx::Nginx;
use super::plot::Bar;
use super::record::RecordArgs;
use super::rounds::median;
use super::site_peer::SitePeer;
use super::stage::Stage;
use crate::commands::shared::{CrawlReport, Failure};
use crate::farm::{Site, SiteSpec};
use crate::store_server::Reader;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A crawl of a directory of pages that nginx serves, beside others that follow the same links.
pub(super) struct SiteBench<'a> {
    /// Made up here if there is none.
    pub site: Option<&'a Path>,
    pub made_up: SiteSpec,
    pub start: &'a str,
    pub connections: u8,
    pub rounds: usize,
    pub data: Option<&'a Path>,
    pub peers: Vec<SitePeer>,
    /// Peers that are not installed.
    pub missing: Vec<&'static str>,
}

#[derive(Serialize)]
struct SiteBenchReport {
    pages: usize,
    /// As fetched.
    page_bytes: f64,
    rounds: usize,
    connections: u8,
    cpu_us_per_page: f64,
    compression: f64,
    syscalls_per_page: f64,
    peers: Vec<PeerReport>,
    missing: Vec<&'static str>,
    every_round: Vec<Round>,
}

#[derive(Serialize)]
struct PeerReport {
    name: &'static str,
    keeps: &'static str,
    cpu_us_per_page: f64,
    /// CPU of a page of ours over one of its, within each round: the median.
    ratio: f64,
    pages: Option<Compared>,
}

/// Pages that it brought, and those that only one of the two has.
#[derive(Serialize)]
struct Compared {
    its: usize,
    only_ours: usize,
    only_its: usize,
}

/// CPU in microseconds, of a page.
#[derive(Serialize)]
struct Round {
    crawl: f64,
    peers: BTreeMap<&'static str, f64>,
}

/// The directory of a crawl, and of a site that is made up, on the stage.
const CRAWL: &str = "crawl";
const MADE_UP: &str = "site";

impl SiteBench<'_> {
    pub fn run(&self, record: &RecordArgs, lab: &LabArgs) -> Result<(), Failure> {
        lab.check()?;
        let stage = Stage::passing(self.data)?;
        let site = match self.site {
            Some(site) => site.to_path_buf(),
            None => self.make_up(&stage.dir.join(MADE_UP))?,
        };
        let nginx = Nginx::start(&stage, &site)?;
        let url = format!("http://{}/{}", nginx.at, self.start.trim_start_matches('/'));
        let (mut crawls, mut every_round) = (Vec::new(), Vec::new());
        let mut brought = BTreeMap::new();
        for _ in 0..self.rounds.max(1) {
            let crawled = CrawlProcess::of_site(&stage, &url, self.connections)?.run()?;
            let mut round = Round { crawl: crawled.fetches.cpu_us_per_page, peers: BTreeMap::new() };
            for peer in &self.peers {
                let visit = peer.visit(&stage, &url, self.connections)?;
                round.peers.insert(peer.name, visit.cpu_us_per_page);
                brought.insert(peer.name, visit.pages);
            }
            every_round.push(round);
            crawls.push(crawled);
        }
        let ours = stored_pages(&stage.dir.join(CRAWL), &nginx.at)?;
        if ours.is_empty() {
            return Err(Failure::CannotRun(format!("the crawl of {url} brought no page that ends in .html")));
        }
        let report = self.report(&crawls, &ours, &brought, every_round);
        if lab.is_wanted() {
            let watched = lab.watch(&mut CrawlProcess::of_site(&stage, &url, self.connections)?, &stage)?;
            lab.write(&report.title(), &watched, report.bars())?;
        }
        record.tell(&report, SiteBenchReport::text)
    }

    /// Writes the pages of a host of the farm as files.
    fn make_up(&self, dir: &Path) -> Result<PathBuf, Failure> {
        let site = Site::new(self.made_up.clone())?;
        let folder = dir.join("p");
        fs::create_dir_all(&folder)?;
        for page in 0..self.made_up.pages {
            let path = if page == 0 { dir.join("index.html") } else { folder.join(format!("{page}.html")) };
            fs::write(path, site.document(0, page, 80))?;
        }
        Ok(dir.to_path_buf())
    }

    fn report(
        &self,
        crawls: &[CrawlReport],
        ours: &BTreeSet<String>,
        brought: &BTreeMap<&'static str, Option<BTreeSet<String>>>,
        every_round: Vec<Round>,
    ) -> SiteBenchReport {
        let of = |value: fn(&CrawlReport) -> f64| median(crawls.iter().map(value));
        let peers = self.peers.iter().map(|peer| {
            let its =
                || every_round.iter().filter_map(|round| Some((round.crawl, *round.peers.get(peer.name)?)));
            let pages = brought.get(peer.name).and_then(Option::as_ref).map(|pages| Compared {
                its: pages.len(),
                only_ours: ours.difference(pages).count(),
                only_its: pages.difference(ours).count(),
            });
            PeerReport {
                name: peer.name,
                keeps: peer.keeps,
                cpu_us_per_page: median(its().map(|(_, its)| its)),
                ratio: median(its().map(|(ours, its)| ours / its)),
                pages,
            }
        });
        SiteBenchReport {
            pages: ours.len(),
            page_bytes: of(|crawl| crawl.fetches.bytes as f64 / crawl.fetches.success.max(1) as f64),
            rounds: every_round.len(),
            connections: self.connections,
            cpu_us_per_page: of(|crawl| crawl.fetches.cpu_us_per_page),
            compression: of(|crawl| crawl.fetches.bytes as f64 / crawl.fetches.stored_bytes.max(1) as f64),
            syscalls_per_page: of(|crawl| crawl.syscalls_per_page),
            peers: peers.collect(),
            missing: self.missing.clone(),
            every_round,
        }
    }
}

impl SiteBenchReport {
    fn title(&self) -> String {
        let Self { pages, page_bytes, rounds, connections, .. } = self;
        format!(
            "{pages} pages of {page_bytes:.0} bytes, {connections} connections, median of {rounds} rounds"
        )
    }

    /// What a page costs each.
    fn bars(&self) -> Vec<Bar> {
        let ours = Bar { name: "nephila".to_string(), value: self.cpu_us_per_page, is_ours: true };
        let peers = self.peers.iter().map(|peer| {
            let name = format!("{} ({})", peer.name, peer.keeps);
            Bar { name, value: peer.cpu_us_per_page, is_ours: false }
        });
        std::iter::once(ours).chain(peers).collect()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}\n\n  CPU µs per page   {:>9.1}   (schedule, fetch, parse, links, LZ4, store)\n  \
             compression {:.2}:1, {:.2} system calls of the shard per page\n",
            self.title(),
            self.cpu_us_per_page,
            self.compression,
            self.syscalls_per_page
        );
        if !self.peers.is_empty() {
            text += "\n  same server, same core:        CPU µs per page    ours is\n";
        }
        for peer in &self.peers {
            let PeerReport { name, keeps, cpu_us_per_page, ratio, pages } = peer;
            let pages = match pages {
                None => "one page, again and again".to_string(),
                Some(Compared { its, only_ours: 0, only_its: 0 }) => format!("{its} pages, the same ones"),
                Some(Compared { its, only_ours, only_its }) => {
                    format!(
                        "{its} pages; {only_ours} of ours are not among them, {only_its} are not among ours"
                    )
                }
            };
            text += &format!("  {name:<8} {keeps:<20} {cpu_us_per_page:>17.1} {ratio:>8.3} x   {pages}\n");
        }
        if !self.missing.is_empty() {
            text += &format!("\n  not installed: {} (see bench/README.md)\n", self.missing.join(", "));
        }
        text
    }
}

/// HTML pages of a store by their paths.
fn stored_pages(data: &Path, at: &SocketAddr) -> Result<BTreeSet<String>, Failure> {
    let origin = format!("http://{at}/");
    let mut pages = BTreeSet::new();
    Reader::open(data)?.each(|located, _| {
        let record = located.record;
        let path = record.url.strip_prefix(&origin).unwrap_or(&record.url);
        let path = path.split('?').next().unwrap_or(path);
        if record.success && record.status == 200 && path.ends_with(".html") {
            pages.insert(path.to_string());
        }
    })?;
    Ok(pages)
}
