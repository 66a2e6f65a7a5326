use super::cpu::thread_us;
use super::extract_pages::{KnownPage, known_pages};
use super::record::RecordArgs;
use super::rounds::median;
use super::stage::Stage;
use crate::commands::shared::{Failure, say};
use crate::extractor::{ExtractDepth, Extractor, Hints};
use clap::Args;
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Extract the text of pages whose text is known, and print how well and at what cost, beside Python's trafilatura
///
/// Words that are right count for an F-score of each page (0 to 1, the harmonic mean of precision and recall).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench extract\n  nephila bench extract --peer --record bench/runs/my-machine-extract.json\n  nephila bench extract --pages DIR      NAME.html, each with its text in NAME.txt\n\nWithout --pages there are 50 pages of six layouts and six languages, made here. The exit status is 1 if a floor is\nmissed: F 0.905 at 10 ms a page for `full`, 0.885 at 5 ms for `fast`, no page over a second."
)]
pub(super) struct ExtractBenchArgs {
    /// Pages of your own: NAME.html and NAME.txt
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
    /// Rounds over all pages; the median of a page counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Measure Python's trafilatura, too; it is installed into an environment in the bench's directory
    #[arg(long)]
    peer: bool,
    /// Where files are written; they are removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-extract")]
    data: PathBuf,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct ExtractBenchReport {
    pages: usize,
    page_bytes: usize,
    rows: Vec<Row>,
    /// Why the peer was not measured.
    skipped: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    f: f64,
    precision: f64,
    recall: f64,
    cpu_ms: f64,
    slowest_ms: f64,
    /// Pages without any text.
    failed: usize,
    /// F and milliseconds that are to be kept, and whether they are.
    floor: Option<(f64, f64, bool)>,
}

const SLOWEST_MS_MAX: f64 = 1_000.0;
/// As the threads of a crawl have it.
const STACK_BYTES: usize = 64 << 20;
const PEER: &str = include_str!("extract_peer.py");

impl ExtractBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if !Extractor::is_built() {
            return Err(Failure::CannotRun(
                "this build has no extraction (build it with the cargo feature extract)".into(),
            ));
        }
        let pages = match &self.pages {
            Some(dir) => read_pages(dir)?,
            None => known_pages(50),
        };
        let stage = Stage::unmade(&self.data)?;
        let mut rows = Vec::new();
        for (depth, f, ms) in [(ExtractDepth::Full, 0.905, 10.0), (ExtractDepth::Fast, 0.885, 5.0)] {
            let mut row = self.ours(depth, &pages)?;
            row.floor = Some((f, ms, row.f >= f && row.cpu_ms <= ms && row.slowest_ms <= SLOWEST_MS_MAX));
            rows.push(row);
        }
        let mut skipped = Some("not asked for (--peer)".to_string());
        if self.peer {
            match self.theirs(&stage, &pages) {
                Ok(row) => {
                    rows.push(row);
                    skipped = None;
                }
                Err(why) => skipped = Some(why),
            }
        }
        let bytes: usize = pages.iter().map(|page| page.html.len()).sum();
        let report =
            ExtractBenchReport { pages: pages.len(), page_bytes: bytes / pages.len(), rows, skipped };
        drop(stage);
        let missed = report.rows.iter().any(|row| row.floor.is_some_and(|(_, _, is_kept)| !is_kept));
        self.record.tell(&report, ExtractBenchReport::text)?;
        if missed { Err(Failure::No("a floor was missed".into())) } else { Ok(()) }
    }

    fn ours(&self, depth: ExtractDepth, pages: &[KnownPage]) -> Result<Row, Failure> {
        let extractor = Extractor::new(depth).ok_or_else(|| Failure::CannotRun("no extraction".into()))?;
        let work = || {
            let url = "http://quay.example/story";
            let mut read = Vec::new();
            for page in pages {
                let mut text = String::new();
                let costs = (0..self.rounds).map(|_| {
                    let begun = thread_us();
                    text = extractor.extract(&page.html, url, &Hints::default()).text;
                    (thread_us() - begun) / 1_000.0
                });
                let cost = median(costs.collect::<Vec<f64>>().into_iter());
                read.push((text, cost));
            }
            read
        };
        let read = std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join)
        })?;
        let read = read.map_err(|_| Failure::CannotRun("a parser panicked".into()))?;
        Ok(Row::of(format!("nephila {}", depth.name()), pages, &read))
    }

    fn theirs(&self, stage: &Stage, pages: &[KnownPage]) -> Result<Row, String> {
        let dir = stage.dir.join("pages");
        let failed = |cause: std::io::Error| cause.to_string();
        fs::create_dir_all(&dir).map_err(failed)?;
        for page in pages {
            fs::write(dir.join(&page.name).with_extension("html"), &page.html).map_err(failed)?;
        }
        let (venv, script) = (stage.dir.join("venv"), stage.dir.join("peer.py"));
        fs::write(&script, PEER).map_err(failed)?;
        say("installing trafilatura…");
        let python = venv.join("bin/python");
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "trafilatura"]))?;
        let said = run(Command::new(&python).arg(&script).arg(&dir).arg(self.rounds.to_string()))?;
        let said: serde_json::Value = serde_json::from_str(&said).map_err(|cause| cause.to_string())?;
        let read: Vec<(String, f64)> = pages
            .iter()
            .map(|page| {
                let text =
                    fs::read_to_string(dir.join(&page.name).with_extension("theirs")).unwrap_or_default();
                (text, said["ms"][&page.name].as_f64().unwrap_or(f64::NAN))
            })
            .collect();
        let version = said["version"].as_str().unwrap_or_default();
        Ok(Row::of(format!("trafilatura {version} (Python)"), pages, &read))
    }
}

/// Runs a program; what it said, or why it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Err(said.lines().last().unwrap_or_default().to_string())
}

fn read_pages(dir: &Path) -> Result<Vec<KnownPage>, Failure> {
    let cannot = |path: &Path, cause| Failure::CannotRun(format!("cannot read {}: {cause}", path.display()));
    let mut pages = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| cannot(dir, e))? {
        let path = entry?.path();
        let text = path.with_extension("txt");
        if path.extension().is_some_and(|ending| ending == "html") && text.exists() {
            let html = fs::read(&path).map_err(|e| cannot(&path, e))?;
            pages.push(KnownPage {
                name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                html: String::from_utf8_lossy(&html).into_owned(),
                text: fs::read_to_string(&text).map_err(|e| cannot(&text, e))?,
            });
        }
    }
    if pages.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no pages (NAME.html, each with its text in NAME.txt)",
            dir.display()
        )));
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pages)
}

impl Row {
    fn of(name: String, pages: &[KnownPage], read: &[(String, f64)]) -> Row {
        let count = pages.len() as f64;
        let mut row = Row {
            name,
            f: 0.0,
            precision: 0.0,
            recall: 0.0,
            cpu_ms: read.iter().map(|(_, ms)| ms).sum::<f64>() / count,
            slowest_ms: read.iter().map(|(_, ms)| *ms).fold(0.0, f64::max),
            failed: read.iter().filter(|(text, _)| text.trim().is_empty()).count(),
            floor: None,
        };
        for (page, (text, _)) in pages.iter().zip(read) {
            let (precision, recall) = score(&page.text, text);
            row.precision += precision / count;
            row.recall += recall / count;
            if precision + recall > 0.0 {
                row.f += 2.0 * precision * recall / (precision + recall) / count;
            }
        }
        row
    }
}

/// Words of a text, how often each. In scripts without spaces, characters.
fn words(text: &str) -> RapidHashMap<String, i64> {
    let mut words = RapidHashMap::default();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match word.chars().any(|c| c as u32 >= 0x2e80) {
            true => word.chars().for_each(|c| *words.entry(c.to_string()).or_insert(0) += 1),
            false => *words.entry(word.to_lowercase()).or_insert(0) += 1,
        }
    }
    words
}

/// Which share of what was found is right, and which of what is right was found.
fn score(truth: &str, found: &str) -> (f64, f64) {
    let (truth, found) = (words(truth), words(found));
    let right: i64 = found.iter().map(|(word, count)| *count.min(truth.get(word).unwrap_or(&0))).sum();
    let share = |of: &RapidHashMap<String, i64>| right as f64 / of.values().sum::<i64>().max(1) as f64;
    (share(&found), share(&truth))
}

impl ExtractBenchReport {
    fn text(&self) -> String {
        let mut text = format!(
            "{} pages of {} KB; one thread\n{:<28} {:>6} {:>10} {:>7} {:>10} {:>11} {:>7}\n",
            self.pages,
            self.page_bytes / 1_000,
            "",
            "F",
            "precision",
            "recall",
            "CPU ms",
            "slowest ms",
            "none"
        );
        for row in &self.rows {
            text += &format!(
                "{:<28} {:>6.3} {:>10.3} {:>7.3} {:>10.2} {:>11.1} {:>7}",
                row.name, row.f, row.precision, row.recall, row.cpu_ms, row.slowest_ms, row.failed
            );
            if let Some((f, ms, is_kept)) = row.floor {
                text += &format!("   floor {f} at {ms} ms: {}", if is_kept { "kept" } else { "MISSED" });
            }
            text.push('\n');
        }
        if let Some(why) = &self.skipped {
            text += &format!("trafilatura (Python): {why}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores() {
        assert_eq!(score("a b c d", "A, b! c. d"), (1.0, 1.0));
        assert_eq!(score("a b c d", "a b"), (1.0, 0.5));
        assert_eq!(score("a b", "a b x y"), (0.5, 1.0));
        assert_eq!(score("a a", "a a a a"), (0.5, 1.0));
        assert_eq!(score("市议会", "市议"), (1.0, 2.0 / 3.0));
        assert_eq!(score("a", ""), (0.0, 0.0));
    }
}
