use super::feeds_made::{MadeFeed, feeds};
use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use super::stage::Stage;
use crate::commands::shared::{Failure, cores, on_cores};
use crate::proto::feed::{FeedLimits, FeedSource, read};
use clap::Args;
use serde::Serialize;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Read feeds of 18 to 190 KB with our reader and with feed-rs, and print MB/s of each
///
/// The feeds are made up here: RSS and Atom in several languages, with HTML in CDATA sections, as references and as
/// elements. Both get the whole feed in one slice, and tell every entry of it. feed-rs keeps all that a feed says,
/// contents, too; ours what a crawl needs: links, ids, titles, dates, authors.
#[derive(Args)]
#[command(
    after_help = "Example:\n  (cd bench/feed-peers && cargo build --release)\n  nephila bench feeds --peers bench/feed-peers/target/release/feed-peers --record bench/runs/my-machine-feeds.json\n\nThe two take turns on one core; the figure to look at is the ratio, the median over all pairs of turns."
)]
pub(super) struct FeedsBenchArgs {
    /// Pairs of turns for each feed; the median is reported
    #[arg(long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Times that a feed is read in one turn
    #[arg(long, value_name = "N", default_value_t = 200)]
    times: u32,
    /// The program of bench/feed-peers, to measure feed-rs in the same run
    #[arg(long, value_name = "PROGRAM")]
    peers: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct FeedsBenchReport {
    rounds: usize,
    feeds: Vec<Measured>,
    ours_mb_per_s_median: f64,
    /// The smallest of all feeds.
    ratio_min: Option<f64>,
}

/// What one feed came to.
#[derive(Serialize)]
struct Measured {
    name: &'static str,
    bytes: usize,
    entries: u32,
    ours_us: f64,
    ours_mb_per_s: f64,
    peer_mb_per_s: Option<f64>,
    /// Our speed over feed-rs's; above 1 ours is faster.
    ratio: Option<f64>,
}

impl FeedsBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.rounds == 0 || self.times == 0 {
            return Err(Failure::Usage("measure at least once (--rounds, --times)".into()));
        }
        let stage = Stage::passing(None)?;
        let measure =
            || feeds().iter().map(|feed| self.measure(feed, &stage.dir)).collect::<Result<Vec<_>, Failure>>();
        let feeds = on_cores(&cores()[..1], measure)??;
        let report = FeedsBenchReport {
            rounds: self.rounds,
            ours_mb_per_s_median: median(feeds.iter().map(|feed| feed.ours_mb_per_s)),
            ratio_min: feeds.iter().filter_map(|feed| feed.ratio).reduce(f64::min),
            feeds,
        };
        self.record.tell(&report, FeedsBenchReport::text)
    }

    fn measure(&self, feed: &MadeFeed, dir: &Path) -> Result<Measured, Failure> {
        let bytes = feed.text.as_bytes();
        let file = dir.join(feed.name);
        std::fs::write(&file, bytes)
            .map_err(|e| Failure::CannotRun(format!("cannot write {}: {e}", file.display())))?;
        let turns = |round| {
            in_turns(round, |side| match (side, &self.peers) {
                (0, _) => Ok(self.turn(feed)),
                (_, Some(program)) => self.peer_turn(program, &file, feed.entries),
                (_, None) => Ok(f64::NAN),
            })
        };
        // One turn each to warm up.
        turns(0)?;
        let turns = (0..self.rounds).map(turns).collect::<Result<Vec<_>, Failure>>()?;
        let ours_ns = median(turns.iter().map(|(ours, _)| *ours));
        let mb_per_s = |ns: f64| bytes.len() as f64 * 1e3 / ns;
        let with_peer = |figure: f64| self.peers.is_some().then_some(figure);
        Ok(Measured {
            name: feed.name,
            bytes: bytes.len(),
            entries: feed.entries,
            ours_us: ours_ns / 1e3,
            ours_mb_per_s: mb_per_s(ours_ns),
            peer_mb_per_s: with_peer(mb_per_s(median(turns.iter().map(|(_, peer)| *peer)))),
            ratio: with_peer(median(turns.iter().map(|(ours, peer)| peer / ours))),
        })
    }

    /// Nanoseconds per reading.
    fn turn(&self, feed: &MadeFeed) -> f64 {
        let begun = Instant::now();
        for _ in 0..self.times {
            assert_eq!(read_all(black_box(feed.text.as_bytes())), Some(feed.entries), "a good feed is read");
        }
        begun.elapsed().as_nanos() as f64 / f64::from(self.times)
    }

    fn peer_turn(&self, program: &Path, file: &Path, entries: u32) -> Result<f64, Failure> {
        let failed = |cause: String| Failure::CannotRun(format!("{}: {cause}", program.display()));
        let run = Command::new(program)
            .arg(file)
            .arg(self.times.to_string())
            .output()
            .map_err(|e| failed(format!("{e}; build it in bench/feed-peers")))?;
        let text = String::from_utf8_lossy(&run.stdout);
        match text.trim().split_once(' ').map(|(ns, found)| (ns.parse(), found.parse::<u32>())) {
            Some((Ok(ns), Ok(found))) if run.status.success() && found == entries => Ok(ns),
            _ => Err(failed(format!("it said {text:?} {:?}", String::from_utf8_lossy(&run.stderr)))),
        }
    }
}

/// Reads a feed as a crawl does, and returns the number of its entries.
#[inline(never)]
fn read_all(bytes: &[u8]) -> Option<u32> {
    let about = FeedSource { url: "http://news.test/feed", content_type: None };
    let facts = read(bytes, &about, &FeedLimits::default(), |entry| drop(black_box(entry))).ok()?;
    Some(facts.entries).filter(|_| facts.damage.is_none())
}

impl FeedsBenchReport {
    fn text(&self) -> String {
        let mut text =
            String::from("               bytes  entries    ours µs   MB/s   feed-rs MB/s   ours / feed-rs\n");
        let shown = |figure: Option<f64>, digits: usize| {
            figure.map_or("-".into(), |figure| format!("{figure:.digits$}"))
        };
        for Measured { name, bytes, entries, ours_us, ours_mb_per_s, peer_mb_per_s, ratio } in &self.feeds {
            text += &format!(
                "{name:<12} {bytes:>7} {entries:>8} {ours_us:>10.1} {ours_mb_per_s:>6.0} {:>14} {:>16}\n",
                shown(*peer_mb_per_s, 0),
                shown(*ratio, 2),
            );
        }
        let Self { rounds, ours_mb_per_s_median, ratio_min, .. } = self;
        text += &format!(
            "\none core, median of {rounds} pairs of turns; ours {ours_mb_per_s_median:.0} MB/s in the middle"
        );
        text + &match ratio_min {
            Some(ratio) => format!(", at least {ratio:.2} x feed-rs\n"),
            None => {
                "\nfeed-rs was not measured (give the program of bench/feed-peers with --peers)\n".to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feed_of_the_bench_is_read_whole() {
        let made = feeds();
        assert_eq!(made.len(), 6);
        for feed in made {
            assert!((18_000..200_000).contains(&feed.text.len()), "{}: {} bytes", feed.name, feed.text.len());
            assert_eq!(read_all(feed.text.as_bytes()), Some(feed.entries), "{}", feed.name);
        }
    }
}
