use super::process::WALL;
use crate::base::{Now, Rng};
use crate::config::{Bytes, Millis, Rate, Seconds};
use crate::farm::host_name;
use crate::master::epoch::DomainBy;
use crate::master::map::Assign;
use crate::proto::reflog::{ReflogRecord, Stamp};
use crate::proto::sitemap::Sitemaps;
use crate::sim::misfortunes::Misfortunes;
use crate::sim::plan::{Faults, Plan};
use crate::sim::web::PORT;

/// What one seed stands for: a web, the files that masters are given, the processes and their misfortunes.
pub struct MasterPlan {
    /// The web, and the settings of every process.
    pub web: Plan,
    pub masters: usize,
    pub nodes: usize,
    /// Of each node.
    pub shards: usize,
    /// Masters share a table; without one they place by rendezvous.
    pub has_table: bool,
    /// Seconds that the clock of each master is ahead.
    pub clocks_s: [i64; MASTERS_MAX],
    pub letters: Vec<Letter>,
    pub faults: Misfortunes<Misfortune>,
}

/// A file of lines.
pub struct Letter {
    pub name: String,
    pub text: Vec<u8>,
    /// When each master gets it.
    pub at: [Now; MASTERS_MAX],
    pub lines: Vec<Line>,
}

/// A line that can be read.
pub struct Line {
    pub host: u32,
    /// In normal form, from the slash on.
    pub target: String,
    pub at_s: u64,
    pub hits: u32,
    /// 0 for a line without.
    pub tag: u32,
}

/// One misfortune.
#[derive(Clone, Copy, Debug)]
pub enum Misfortune {
    Cut,
    Delay,
    Reset,
    KillMaster,
    KillNode,
    Table,
    /// Somebody moves a domain to another server.
    Move,
}

pub const MASTERS_MAX: usize = 2;
pub const NODES_MAX: usize = 3;

const KINDS: [Misfortune; 7] = [
    Misfortune::Cut,
    Misfortune::Delay,
    Misfortune::Reset,
    Misfortune::KillMaster,
    Misfortune::KillNode,
    Misfortune::Table,
    Misfortune::Move,
];
/// Files come for so long.
const LETTERS_S: u64 = 120;
/// A file may come to one master this much later than to the other: less than a node overlaps when it changes.
const LATE_MS_MAX: u64 = 60_000;

impl MasterPlan {
    pub fn from_seed(seed: u64) -> MasterPlan {
        let mut web = Plan::from_seed(seed);
        let mut rng = Rng::new(seed ^ 0x03a5_7e12);
        let site = &mut web.site;
        site.hosts = 2 + rng.below(9) as u32;
        site.pages = 2 + rng.below(6) as u32;
        site.page_bytes = 300 + rng.below(2_000) as u32;
        (site.redirects, site.errors, site.broken, site.crawl_delay_s) = (0.0, 0.0, 0.0, None);
        web.addresses = web.site.hosts;
        (web.several, web.robots_elsewhere) = (0, 0);
        web.conns_max = 4 + rng.below(12) as usize;
        web.faults = Faults { slow: rng.below(60), ..Faults::default() };
        let masters = if rng.chance(850) { 2 } else { 1 };
        let nodes = 2 + rng.below(2) as usize;
        let has_table = rng.chance(600);
        let config = &mut web.config;
        let url_server = &mut config.url_server;
        (url_server.queue_count, url_server.leftover_urls) = (web.site.hosts as usize, 60);
        (url_server.req_ip_concurrent, url_server.req_ip_per_sec) = (None, None);
        url_server.req_host_per_sec = Rate([1.0, 3.0, 50.0][rng.below(3) as usize]);
        // Each request has its answer.
        (config.spider.timeout_req, config.spider.timeout_read) = (Millis(90_000), Millis(60_000));
        config.spider.timeout_connect = Millis(20_000);
        config.store.segment_bytes = Bytes(256 << 10);
        config.store.commit_ms = Millis(5 + rng.below(200));
        config.doc_index.retries_max = 0;
        config.doc_index.sitemaps = Sitemaps::Off;
        config.crawl.depth = Some(0);
        config.master.resend_after = Seconds([60, 3_600][rng.below(2) as usize]);
        config.master.epoch_max = Seconds(1 + rng.below(20));
        config.master.by = DomainBy::Host;
        config.master.timeout_node = Seconds(3 + rng.below(30));
        config.master.assign = match has_table || masters == 1 {
            true => Assign::LeastLoaded,
            false => Assign::Rendezvous,
        };
        let apart = rng.chance(400);
        let mut clock = || if apart { rng.below(1_201) as i64 - 600 } else { 0 };
        let clocks_s = [clock(), clock()];
        let every_ms = if rng.chance(100) { 0 } else { 800 + rng.below(15_000) };
        let mut weight = || if rng.chance(700) { 1 + rng.below(4) } else { 0 };
        let mut weights: [u64; 7] = std::array::from_fn(|_| weight());
        // Two masters that share no table place by names alone.
        weights[6] *= u64::from(has_table || masters == 1);
        weights[3] += u64::from(weights.iter().sum::<u64>() == 0);
        let until = Now::from_us(1_000_000 * (LETTERS_S + rng.below(40)));
        let letters = letters(&web, &mut rng);
        MasterPlan {
            web,
            masters,
            nodes,
            shards: 1 + rng.below(2) as usize,
            has_table,
            clocks_s,
            letters,
            faults: Misfortunes { every_ms, until, weights: KINDS.into_iter().zip(weights).collect() },
        }
    }
}

fn letters(web: &Plan, rng: &mut Rng) -> Vec<Letter> {
    let (count, is_late) = (1 + rng.below(40), rng.chance(300));
    let mut at_ms: Vec<u64> = (0..count).map(|_| 500 + rng.below(1_000 * LETTERS_S)).collect();
    at_ms.sort_unstable();
    let mut versions = vec![0; (web.site.hosts * web.site.pages) as usize];
    let tagged = rng.below(1_000);
    at_ms
        .into_iter()
        .enumerate()
        .map(|(number, ms)| {
            let mut letter = Letter {
                name: format!("{number:04}.reflog"),
                text: Vec::new(),
                at: std::array::from_fn(|_| {
                    let most = if is_late && rng.chance(200) { LATE_MS_MAX } else { 3_000 };
                    Now::ZERO.plus_ms(ms + rng.below(most))
                }),
                lines: Vec::new(),
            };
            for _ in 0..1 + rng.below(20) {
                letter.add_line(web, &mut versions, tagged, ms, rng);
            }
            letter
        })
        .collect()
}

impl Letter {
    fn add_line(&mut self, web: &Plan, versions: &mut [u32], tagged: u64, ms: u64, rng: &mut Rng) {
        if rng.chance(30) {
            self.text.extend_from_slice(b"this is no line\tof a reflog\n");
        }
        let (host, page) =
            (rng.below(u64::from(web.site.hosts)) as u32, rng.below(u64::from(web.site.pages)) as u32);
        let version = &mut versions[(host * web.site.pages + page) as usize];
        *version += u32::from(*version == 0 || rng.chance(100));
        let tag = if rng.chance(tagged) { *version } else { 0 };
        let target = if page == 0 { "/".to_string() } else { format!("/p/{page}.html") };
        let name = host_name(host);
        let url = match rng.chance(100) {
            true => format!("HTTP://{}:{PORT}/x/..{target}", name.to_uppercase()),
            false => format!("http://{name}:{PORT}{target}"),
        };
        let hits = 1 + rng.below(50) as u32;
        let s = (WALL.unix_ms_at_zero + ms) / 1_000 - rng.below(5);
        let said = if tag == 0 { String::new() } else { format!("v{tag}") };
        let record = ReflogRecord {
            batch: b"1",
            priority: 5,
            at: Stamp::from_s(s as u32),
            page: b"7",
            url: url.as_bytes(),
            hits,
            tag: said.as_bytes(),
        };
        record.write(&mut self.text);
        self.lines.push(Line { host, target, at_s: s, hits, tag });
    }
}
