use super::cpu::thread_us;
use super::record::RecordArgs;
use super::rounds::median;
use super::stage::Stage;
use super::store_work::{HEAD, page_record};
use crate::base::Rng;
use crate::commands::shared::{Failure, on_cores};
use crate::store_server::{
    AppendError, Compress, DataDir, Keeper, Maintenance, Medium, RECORD_HEADER_BYTES, Reader, RetentionRules,
    ShardStore, StoreRules,
};
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Store the pages of a directory each by itself, against each other, and as gzip, and print what they take and what it costs
///
/// The pages are those of one site: files that end in .html, in the order of their paths or by chance. All of it runs on one core,
/// the keeper too, the stores by turns of a few pages.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench density ./site --pages 600 --record bench/runs/my-machine-density.json\n\nThe figures to look at are the ratios: bytes of gzip over ours, and CPU with templates over CPU without."
)]
pub(super) struct DensityArgs {
    /// A directory of HTML pages, with those of the directories in it
    #[arg(value_name = "DIR")]
    site: PathBuf,
    /// Pages stored, the first of them [default: all]
    #[arg(long, value_name = "N")]
    pages: Option<usize>,
    /// Pages with fewer bytes than this are left out
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    from: u64,
    /// Pages with more bytes than this are left out
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    to: u64,
    /// The order in which they are stored
    #[arg(long, value_name = "HOW", default_value = "paths")]
    order: Order,
    /// Rounds; medians are reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Documents read back in each round, chosen by chance
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    reads: usize,
    /// Where the stores are written; they are removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-density")]
    data: PathBuf,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Order {
    Paths,
    Chance,
}

#[derive(Serialize)]
struct DensityReport {
    pages: usize,
    order: Order,
    /// Of a page, as fetched.
    page_bytes: f64,
    gzip: Gzip,
    plain: Way,
    template: Way,
    /// Bytes of gzip over those of blocks with templates; and over all that they take in segments, names and facts as well.
    denser_than_gzip: f64,
    denser_than_gzip_whole: f64,
    denser_than_plain: f64,
    /// With templates over without, within each round.
    append_ratio: f64,
    read_ratio: f64,
}

#[derive(Serialize)]
struct Gzip {
    level: u32,
    page_bytes: f64,
    ratio: f64,
    page_us: f64,
}

/// One way to compress them.
#[derive(Serialize)]
struct Way {
    /// Of a page: its block, and its whole record.
    block_bytes: f64,
    record_bytes: f64,
    /// Bytes as fetched over those of blocks.
    ratio: f64,
    append_us: f64,
    keeper_us: f64,
    read_us: f64,
}

/// A page as it is fetched.
struct Page {
    url: String,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Cost {
    append_us: f64,
    keeper_us: f64,
    read_us: f64,
    block_bytes: u64,
    record_bytes: u64,
}

const GZIP_LEVEL: u32 = 6;
const SEGMENT_BYTES: u64 = 32 << 20;
/// Some milliseconds of either.
const TURN_PAGES: usize = 64;

impl DensityArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.rounds == 0 || self.reads == 0 {
            return Err(Failure::Usage("measure at least once (--rounds, --reads)".into()));
        }
        let pages = self.read_pages()?;
        let stage = Stage::unmade(&self.data)?;
        let report = on_cores(&[stage.core], || self.measure(&pages, &stage.dir))??;
        drop(stage);
        self.record.tell(&report, DensityReport::text)
    }

    fn read_pages(&self) -> Result<Vec<Page>, Failure> {
        let cannot =
            |path: &Path, cause: std::io::Error| Failure::CannotRun(format!("{}: {cause}", path.display()));
        let (mut folders, mut files) = (vec![self.site.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|cause| cannot(&folder, cause))? {
                let entry = entry.map_err(|cause| cannot(&folder, cause))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let kind = kind.map_err(|cause| cannot(&path, cause))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && path.extension().is_some_and(|end| end == "html") {
                    let bytes = entry.metadata().map_err(|cause| cannot(&path, cause))?.len();
                    files.extend((self.from..=self.to).contains(&bytes).then_some(path));
                }
            }
        }
        files.sort();
        files.truncate(self.pages.unwrap_or(usize::MAX));
        if self.order == Order::Chance {
            let mut rng = Rng::new(1);
            (1..files.len()).rev().for_each(|at| files.swap(at, rng.below(at as u64 + 1) as usize));
        }
        if files.is_empty() {
            return Err(Failure::Usage(format!("no page of that size is in {}", self.site.display())));
        }
        let page = |path: &PathBuf| {
            let name = path.strip_prefix(&self.site).unwrap_or(path).display();
            let body = fs::read(path).map_err(|cause| cannot(path, cause))?;
            Ok(Page { url: format!("http://site.test/{name}"), bytes: [HEAD, &body].concat() })
        };
        files.iter().map(page).collect()
    }

    fn measure(&self, pages: &[Page], dir: &Path) -> Result<DensityReport, Failure> {
        let gzip = gzip(pages)?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            rounds.push(self.round(pages, dir)?);
        }
        let of =
            |which: usize, value: fn(&Cost) -> f64| median(rounds.iter().map(|round| value(&round[which])));
        let bytes = bytes_of(pages);
        let count = pages.len() as f64;
        let way = |which: usize| {
            let block_bytes = of(which, |cost| cost.block_bytes as f64);
            Way {
                block_bytes: block_bytes / count,
                record_bytes: of(which, |cost| cost.record_bytes as f64) / count,
                ratio: bytes as f64 / block_bytes,
                append_us: of(which, |cost| cost.append_us),
                keeper_us: of(which, |cost| cost.keeper_us),
                read_us: of(which, |cost| cost.read_us),
            }
        };
        let (plain, template) = (way(0), way(1));
        let within =
            |value: fn(&Cost) -> f64| median(rounds.iter().map(|[plain, with]| value(with) / value(plain)));
        Ok(DensityReport {
            pages: pages.len(),
            order: self.order,
            page_bytes: bytes as f64 / count,
            denser_than_gzip: gzip.page_bytes / template.block_bytes,
            denser_than_gzip_whole: gzip.page_bytes / template.record_bytes,
            denser_than_plain: plain.block_bytes / template.block_bytes,
            append_ratio: within(|cost| cost.append_us + cost.keeper_us),
            read_ratio: within(|cost| cost.read_us),
            gzip,
            plain,
            template,
        })
    }

    /// Both by turns, so that they meet the same machine.
    fn round(&self, pages: &[Page], dir: &Path) -> Result<[Cost; 2], Failure> {
        let paths = ["plain", "template"].map(|name| dir.join(name));
        for path in paths.iter().filter(|path| path.exists()) {
            fs::remove_dir_all(path)?;
        }
        let mut stores =
            [Written::new(&paths[0], Compress::Plain)?, Written::new(&paths[1], Compress::Template)?];
        for turn in pages.chunks(TURN_PAGES) {
            stores.iter_mut().try_for_each(|store| store.append(turn))?;
        }
        let [plain, template] = stores;
        let mut costs = [plain.end(&paths[0], pages.len())?, template.end(&paths[1], pages.len())?];
        let readers = [Reader::open(&paths[0])?, Reader::open(&paths[1])?];
        let mut rng = Rng::new(2);
        for _ in 0..self.reads.div_ceil(TURN_PAGES) {
            let picked: Vec<&Page> =
                (0..TURN_PAGES).map(|_| &pages[rng.below(pages.len() as u64) as usize]).collect();
            for (reader, cost) in readers.iter().zip(&mut costs) {
                let begun = thread_us();
                for page in &picked {
                    let found = reader.find(&page.url)?.and_then(|(_, document)| document);
                    if found.is_none_or(|document| document.body != page.bytes[HEAD.len()..]) {
                        return Err(Failure::CannotRun(format!("{} is not what was stored", page.url)));
                    }
                }
                cost.read_us += (thread_us() - begun) / (self.reads.div_ceil(TURN_PAGES) * TURN_PAGES) as f64;
            }
        }
        Ok(costs)
    }
}

/// A store that is being written.
struct Written {
    keeper: Keeper,
    store: ShardStore,
    cost: Cost,
}

impl Written {
    fn new(path: &Path, compress: Compress) -> Result<Written, Failure> {
        let rules = StoreRules { compress, ..StoreRules::of_size(SEGMENT_BYTES) };
        let mut keeper = Keeper::new(Medium::Directory(DataDir::open(path)?), rules, 1);
        keeper.prepare(1)?;
        let store = ShardStore::new(keeper.share(0));
        Ok(Written { keeper, store, cost: Cost::default() })
    }

    fn append(&mut self, pages: &[Page]) -> Result<(), Failure> {
        for page in pages {
            loop {
                let begun = thread_us();
                let appended = self.store.append(&page_record(1, &page.url, &page.bytes));
                self.cost.append_us += thread_us() - begun;
                match appended {
                    Ok(appended) => {
                        self.cost.record_bytes += appended.bytes as u64;
                        let names_and_facts = RECORD_HEADER_BYTES + page.url.len();
                        self.cost.block_bytes += (appended.bytes - names_and_facts) as u64;
                        break;
                    }
                    Err(AppendError::NoSegment) => self.keep()?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.keep()
    }

    fn keep(&mut self) -> Result<(), Failure> {
        let begun = thread_us();
        self.keeper.turn(1)?;
        self.cost.keeper_us += thread_us() - begun;
        Ok(())
    }

    fn end(mut self, path: &Path, pages: usize) -> Result<Cost, Failure> {
        self.store.finish();
        self.keeper.close()?;
        Maintenance::new(path, RetentionRules::all(SEGMENT_BYTES), self.keeper.shares())
            .turn(&self.keeper.take_sealed())?;
        self.cost.append_us /= pages as f64;
        self.cost.keeper_us /= pages as f64;
        Ok(self.cost)
    }
}

fn bytes_of(pages: &[Page]) -> usize {
    pages.iter().map(|page| page.bytes.len()).sum()
}

/// Each page in a member of its own, as archives have them.
fn gzip(pages: &[Page]) -> Result<Gzip, Failure> {
    let (begun, mut bytes) = (thread_us(), 0);
    for page in pages {
        bytes += gzip_bytes(&page.bytes)?;
    }
    let count = pages.len() as f64;
    Ok(Gzip {
        level: GZIP_LEVEL,
        page_bytes: bytes as f64 / count,
        ratio: bytes_of(pages) as f64 / bytes as f64,
        page_us: (thread_us() - begun) / count,
    })
}

/// What a page takes as a gzip member.
pub(super) fn gzip_bytes(page: &[u8]) -> io::Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(page)?;
    Ok(encoder.finish()?.len())
}

impl DensityReport {
    fn text(&self) -> String {
        let way = |name: &str, way: &Way| {
            let Way { block_bytes, record_bytes, ratio, append_us, keeper_us, read_us } = way;
            format!(
                "{name} {ratio:.2}:1, {block_bytes:.0} bytes a page ({record_bytes:.0} with its facts); append {append_us:.1} us and keeper {keeper_us:.1}, read {read_us:.1} us\n"
            )
        };
        let Gzip { level, page_bytes, ratio, page_us } = &self.gzip;
        format!(
            "{} pages of {:.0} bytes\n{}{}gzip -{level}   {ratio:.2}:1, {page_bytes:.0} bytes a page; {page_us:.1} us\n\
             with templates {:.2} x denser than gzip ({:.2} x with names and facts), {:.2} x than without; an append {:.2} x, a read {:.2} x the CPU\n",
            self.pages,
            self.page_bytes,
            way("plain    ", &self.plain),
            way("template ", &self.template),
            self.denser_than_gzip,
            self.denser_than_gzip_whole,
            self.denser_than_plain,
            self.append_ratio,
            self.read_ratio,
        )
    }
}
