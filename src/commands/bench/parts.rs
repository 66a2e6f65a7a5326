use super::cpu::thread_us;
use super::index::{IndexPart, LINKS_PER_PAGE};
use super::parse::heads;
use super::queues::FilledQueues;
use super::record::RecordArgs;
use super::rounds::median;
use super::stage::{Stage, is_installed};
use super::store_work::AppendPart;
use crate::base::{Now, Rng, TimerWheel};
use crate::commands::shared::{Failure, on_cores};
use crate::farm::{Site, SiteSpec};
use crate::proto::html::{self, Fact};
use crate::proto::http1::{HeadLimits, HeadParser, Method};
use crate::proto::url::{CrawlUrl, LinkBase};
use crate::rings::ring;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

/// Measure the parts that a page passes through, each alone: CPU, and the instructions by valgrind
///
/// Instructions are the same in every run of a build, to a thousandth: a change that costs a part something shows at once, on any
/// machine and beside any load.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench parts\n  nephila bench parts links url --instructions --record bench/runs/my-machine-parts.json"
)]
pub(super) struct PartsArgs {
    /// These alone [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    /// Times that each is done in a round
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    times: u64,
    /// Times to measure; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Count the instructions as well, once, with valgrind
    #[arg(long)]
    instructions: bool,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// A response head
    Head,
    /// The links of a page of 10 KB
    Links,
    /// A link of a page, resolved
    Url,
    /// A word through a ring
    Ring,
    /// A timer set and fired
    Wheel,
    /// A URL chosen among 1,000 hosts, released and put in again
    Queues,
    /// A page of 10 KB appended to a segment
    Append,
    /// A link discovered, nine of ten known
    Index,
}

#[derive(Serialize)]
struct PartsReport {
    times: u64,
    rounds: usize,
    parts: Vec<PartCost>,
}

/// Of one time.
#[derive(Serialize)]
struct PartCost {
    name: Part,
    cpu_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<f64>,
}

/// Work that was prepared and is yet to be done.
type Work = Box<dyn FnOnce() -> Result<(), Failure>>;

/// Pages that parts are given by turns.
const PAGES: u32 = 64;
const PAGE_BYTES: u32 = 10_000;
const HOSTS: u32 = 1_000;
const URLS_PER_HOST: u64 = 4;
/// Timers are set up to so many microseconds ahead, as pauses and time-outs are.
const AHEAD_US: u64 = 60_000_000;

impl PartsArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.instructions && !is_installed("valgrind", "--version") {
            return Err(Failure::cannot_run(
                "valgrind is not installed: it counts instructions (Debian package valgrind)",
            ));
        }
        let stage = Stage::passing(None)?;
        let chosen = if self.parts.is_empty() { Part::value_variants() } else { &self.parts };
        let measure =
            || chosen.iter().map(|part| self.measure(*part, &stage)).collect::<Result<Vec<_>, Failure>>();
        let parts = on_cores(&[stage.core], measure)??;
        let report = PartsReport { times: self.times, rounds: self.rounds.max(1), parts };
        self.record.tell(&report, PartsReport::text)
    }

    fn measure(&self, part: Part, stage: &Stage) -> Result<PartCost, Failure> {
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            let work = part.prepare(self.times, &stage.dir)?;
            let begun = thread_us();
            part_at_work(work)?;
            rounds.push((thread_us() - begun) * 1e3 / self.times as f64);
        }
        let instructions = self.instructions.then(|| self.count(part)).transpose()?;
        Ok(PartCost { name: part, cpu_ns: median(rounds), instructions })
    }

    /// The same once more in a process of its own, which valgrind counts while the part is at work.
    fn count(&self, part: Part) -> Result<f64, Failure> {
        let mut command = Command::new("valgrind");
        command.args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*part_at_work*",
        ]);
        command.arg(std::env::current_exe()?).args(["bench", "parts", part.name(), "--rounds", "1"]);
        command.args(["--times", &self.times.to_string()]).stdin(Stdio::null());
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let counted =
            said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<f64>().ok());
        match counted {
            Some(counted) if output.status.success() && counted > 0.0 => Ok(counted / self.times as f64),
            _ => Err(Failure::CannotRun(format!(
                "valgrind did not count {}: {}",
                part.name(),
                said.lines().last().unwrap_or("it says nothing")
            ))),
        }
    }
}

/// What is measured: valgrind finds it by this name.
#[inline(never)]
fn part_at_work(work: Work) -> Result<(), Failure> {
    let done = work();
    // Not the last thing it does: a jump would not be its own.
    black_box(done)
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Head => "head",
            Part::Links => "links",
            Part::Url => "url",
            Part::Ring => "ring",
            Part::Wheel => "wheel",
            Part::Queues => "queues",
            Part::Append => "append",
            Part::Index => "index",
        }
    }

    fn prepare(self, times: u64, dir: &Path) -> Result<Work, Failure> {
        Ok(match self {
            Part::Head => Box::new(head(times)),
            Part::Links => Box::new(links(times)?),
            Part::Url => Box::new(url(times)?),
            Part::Ring => Box::new(through_ring(times)),
            Part::Wheel => Box::new(wheel(times)),
            Part::Queues => {
                let mut queues = FilledQueues::new(HOSTS, URLS_PER_HOST);
                Box::new(move || {
                    queues.decide(times);
                    Ok(())
                })
            }
            Part::Append => {
                let mut part = AppendPart::new(dir)?;
                Box::new(move || part.append(times))
            }
            Part::Index => {
                let mut part = IndexPart::new(dir, times.div_ceil(LINKS_PER_PAGE as u64))?;
                Box::new(move || {
                    part.discover();
                    Ok(())
                })
            }
        })
    }
}

fn head(times: u64) -> impl FnOnce() -> Result<(), Failure> {
    let heads: Vec<String> = heads().map(|(_, head)| head).collect();
    move || {
        for head in heads.iter().cycle().take(times as usize) {
            let mut parser = HeadParser::new(HeadLimits::default(), Method::Get);
            black_box(parser.parse(black_box(head.as_bytes())).is_ok());
        }
        Ok(())
    }
}

fn pages() -> Result<Vec<Vec<u8>>, Failure> {
    let site = Site::new(SiteSpec { pages: PAGES, page_bytes: PAGE_BYTES, ..SiteSpec::default() })?;
    Ok((0..PAGES).map(|page| site.document(0, page, 80)).collect())
}

fn links(times: u64) -> Result<impl FnOnce() -> Result<(), Failure>, Failure> {
    let pages = pages()?;
    Ok(move || {
        let mut found = 0_u64;
        for page in pages.iter().cycle().take(times as usize) {
            html::scan(black_box(page), |fact| found += u64::from(matches!(fact, Fact::Link { .. })));
        }
        black_box(found);
        Ok(())
    })
}

fn url(times: u64) -> Result<impl FnOnce() -> Result<(), Failure>, Failure> {
    let mut targets: Vec<Vec<u8>> = Vec::new();
    for page in pages()? {
        html::scan(&page, |fact| {
            if let Fact::Link { target, .. } = fact {
                targets.push(target.into_owned());
            }
        });
    }
    let base = CrawlUrl::parse("http://h0.farm.test/p/1.html")
        .map_err(|error| Failure::CannotRun(format!("the base of links: {error}")))?;
    Ok(move || {
        let (base, mut resolved) = (LinkBase::new(&base), String::new());
        for target in targets.iter().cycle().take(times as usize) {
            black_box(base.resolve(black_box(target), &mut resolved).is_ok());
        }
        Ok(())
    })
}

fn through_ring(times: u64) -> impl FnOnce() -> Result<(), Failure> {
    const WORDS: usize = 64;
    let (sender, receiver) = ring::<u64>(WORDS);
    move || {
        let mut word = 0;
        while word < times {
            while word < times && sender.push(word).is_ok() {
                word += 1;
            }
            while let Some(word) = receiver.pop() {
                black_box(word);
            }
        }
        Ok(())
    }
}

fn wheel(times: u64) -> impl FnOnce() -> Result<(), Failure> {
    let (mut wheel, mut rng) = (TimerWheel::new(Now::ZERO), Rng::new(1));
    move || {
        let mut fired = 0;
        for timer in 0..times {
            let now = timer * 1_000;
            wheel.insert(Now::from_us(now + rng.below(AHEAD_US)), timer);
            wheel.advance(Now::from_us(now), |_| fired += 1);
        }
        black_box(fired);
        Ok(())
    }
}

impl PartsReport {
    fn text(&self) -> String {
        let mut text =
            format!("each {} times, median of {} rounds\n\n  part        CPU ns", self.times, self.rounds);
        text += "   instructions\n";
        for PartCost { name, cpu_ns, instructions } in &self.parts {
            let counted = instructions.map_or("-".to_string(), |counted| format!("{counted:.0}"));
            text += &format!("  {:<8} {cpu_ns:>9.0} {counted:>14}\n", name.name());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_does_its_work() {
        let stage = Stage::passing(None).unwrap();
        for part in Part::value_variants() {
            part_at_work(part.prepare(50, &stage.dir).unwrap()).unwrap();
            assert_eq!(part.to_possible_value().unwrap().get_name(), part.name());
        }
    }
}
