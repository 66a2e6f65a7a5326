use super::density::gzip_bytes;
use super::sampler::threads_of;
use crate::base::SortedMap;
use crate::commands::shared::{Failure, LogParts};
use crate::proto::crawl_log::{LogLine, Path as Found};
use crate::store_server::Reader;
use hdrhistogram::Histogram;
use lz4_flex::block::compress;
use serde::Serialize;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Output};
use std::time::Duration;

/// One crawl, looked at while it runs and when it is over: by its threads, its log and its store. It costs the crawl nothing, but the
/// machine a little, so that none of the rounds that count is watched.
#[derive(Serialize)]
pub(super) struct Watched {
    /// Pages in each part of the time, and how long a part is.
    pub pages: Vec<u64>,
    pub part_ms: u64,
    /// CPU by what threads are called, without their numbers.
    pub threads: Vec<(String, f64)>,
    pub density: Density,
    /// Of a fetch, from the decision to ask until it is over, in microseconds.
    #[serde(skip)]
    pub fetches: Histogram<u64>,
}

/// Bytes of some pages, as fetched and as kept.
#[derive(Serialize, Default)]
pub(super) struct Density {
    pub pages: u64,
    pub plain: u64,
    pub stored: u64,
    pub lz4: u64,
    pub gzip: u64,
}

/// Looks at threads: the last look misses this much of them.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Parts that the time of a crawl has in a plot.
const PARTS: u64 = 60;
/// Pages that are compressed in other ways.
const DENSITY_PAGES: u64 = 500;

impl Watched {
    /// What threads used when the child was looked at last, and what it said in the end.
    pub fn until_end(mut child: Child) -> Result<(Vec<(String, f64)>, Output), Failure> {
        let mut threads = Vec::new();
        loop {
            let now = threads_of(child.id());
            // Threads end one after the other, and what they used counts until the process is gone.
            if now.len() >= threads.len() {
                threads = now;
            }
            if child.try_wait()?.is_some() {
                return Ok((threads, child.wait_with_output()?));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub fn read(data: &Path, threads: Vec<(String, f64)>) -> Result<Watched, Failure> {
        let (mut times, mut fetches) = (Vec::new(), Histogram::new(3).expect("three digits"));
        let parts = LogParts::of(data)?;
        for piece in parts.pieces() {
            read_log(parts.read(&piece)?.1, &mut times, &mut fetches)?;
        }
        times.sort_unstable();
        let (first, last) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
        let part_ms = ((last - first) / 1_000 / PARTS).max(1);
        let mut pages = vec![0; ((last - first) / 1_000 / part_ms) as usize + 1];
        for time in times {
            pages[((time - first) / 1_000 / part_ms) as usize] += 1;
        }
        // The last part is not whole.
        if pages.len() > 1 {
            pages.pop();
        }
        Ok(Watched { pages, part_ms, threads: by_name(threads), density: Density::of_store(data)?, fetches })
    }

    /// Percentiles as HdrHistogram writes them, in milliseconds.
    pub fn hgrm(&self) -> String {
        let mut text = format!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        for step in self.fetches.iter_quantiles(5) {
            let (value, quantile) = (step.value_iterated_to() as f64 / 1e3, step.quantile_iterated_to());
            text +=
                &format!("{value:>12.3} {quantile:>14.12} {:>10} ", self.seen_to(step.value_iterated_to()));
            text += &match quantile < 1.0 {
                true => format!("{:>14.2}\n", 1.0 / (1.0 - quantile)),
                false => format!("{:>14}\n", "inf"),
            };
        }
        let Self { fetches, .. } = self;
        text += &format!(
            "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n",
            fetches.mean() / 1e3,
            fetches.stdev() / 1e3
        );
        text += &format!(
            "#[Max     = {:>12.3}, Total count    = {:>12}]\n",
            fetches.max() as f64 / 1e3,
            fetches.len()
        );
        text + &format!("#[Buckets = {:>12}, SubBuckets     = {:>12}]\n", fetches.buckets(), 2_048)
    }

    fn seen_to(&self, value: u64) -> u64 {
        self.fetches.count_between(0, value)
    }
}

/// Adds the time of every page that came, and how long it took.
fn read_log(
    mut log: impl BufRead,
    times: &mut Vec<u64>,
    fetches: &mut Histogram<u64>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line)? > 0 {
        if let Ok(LogLine { path: Found::Page { .. }, result, made_us, timing: Some(timing), .. }) =
            LogLine::parse(line.trim_ascii_end())
            && result.is_success()
        {
            times.push(made_us);
            let waited_us = u64::from(timing.wait_us.unwrap_or(0));
            fetches.saturating_record((waited_us + timing.took_us).max(1));
        }
        line.clear();
    }
    Ok(())
}

/// The CPU of threads with one name, the most first: `shard-0` and `shard-1` are shards.
fn by_name(threads: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let mut sums: SortedMap<String, f64> = SortedMap::new();
    for (name, cpu_us) in threads {
        let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
        *sums.entry(name.to_string()).or_default() += cpu_us;
    }
    let mut sums: Vec<(String, f64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}

impl Density {
    /// Of pages from all over a store.
    fn of_store(data: &Path) -> Result<Density, Failure> {
        let reader = Reader::open(data)?;
        let mut all = 0;
        reader.each(|_, _| all += 1)?;
        let (every, mut seen, mut read) = ((all / DENSITY_PAGES).max(1), 0, Ok(()));
        let mut density = Density::default();
        reader.each(|located, bytes| {
            seen += 1;
            if seen % every != 0 || density.pages == DENSITY_PAGES || !located.record.has_document() {
                return;
            }
            let stored = u64::from(located.record.record_bytes);
            let added = match reader.unpack(&located, bytes) {
                Ok(Some(document)) => density.add(&[document.head, document.body].concat(), stored),
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if added.is_err() {
                read = added;
            }
        })?;
        read.map(|()| density)
    }

    fn add(&mut self, plain: &[u8], stored: u64) -> Result<(), Failure> {
        self.pages += 1;
        self.plain += plain.len() as u64;
        self.stored += stored;
        self.lz4 += compress(plain).len() as u64;
        self.gzip += gzip_bytes(plain)? as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_kind_are_taken_together() {
        let threads = [("shard-0", 3.0), ("keeper", 1.0), ("shard-11", 4.0), ("index", 2.0)];
        let by_name = by_name(threads.map(|(name, cpu)| (name.to_string(), cpu)).to_vec());
        assert_eq!(
            by_name,
            [("shard", 7.0), ("index", 2.0), ("keeper", 1.0)].map(|(n, c)| (n.to_string(), c))
        );
    }

    #[test]
    fn percentiles_are_written_as_the_tools_read_them() {
        let mut fetches = Histogram::new(3).unwrap();
        for value in 1..=1_000 {
            fetches.record(value).unwrap();
        }
        let (pages, threads, density) = (Vec::new(), Vec::new(), Density::default());
        let hgrm = Watched { pages, part_ms: 1, threads, density, fetches }.hgrm();
        let rows: Vec<Vec<f64>> = hgrm
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.iter().all(|row| row.len() == 4), "{hgrm}");
        assert!(rows.is_sorted_by(|a, b| a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]), "{hgrm}");
        assert_eq!(rows.last().unwrap(), &[1.0, 1.0, 1_000.0, f64::INFINITY]);
        let half = rows.iter().find(|row| row[1] == 0.5).expect("the middle");
        assert_eq!((half[0], half[2]), (0.5, 500.0));
        assert!(hgrm.contains("Total count    =         1000]"), "{hgrm}");
    }
}
