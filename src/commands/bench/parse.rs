use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use crate::commands::shared::{Failure, cores, on_cores};
use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};
use clap::Args;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// Read response heads with our parser and with httparse, and print what a head costs each
///
/// Both get the whole head in one slice. httparse checks every byte and lists the headers; ours looks for line ends and
/// colons, and also knows the headers a crawl acts upon and what they say: framing, keep-alive, spans of the others.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench parse --rounds 101 --record bench/runs/my-machine-parse.json\n\nThe two take turns on one core; the figure to look at is the ratio, the median over all pairs of turns."
)]
pub(super) struct ParseBenchArgs {
    /// Pairs of turns for each kind of head; the median is reported
    #[arg(long, value_name = "N", default_value_t = 51)]
    rounds: usize,
    /// Heads read in one turn
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    heads: u32,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct ParseBenchReport {
    rounds: usize,
    heads_per_turn: u32,
    kinds: Vec<Kind>,
    /// Over all kinds, each counted once: the geometric mean of their ratios.
    ratio: f64,
}

/// What one kind of head came to.
#[derive(Serialize)]
struct Kind {
    name: &'static str,
    head_bytes: usize,
    headers: usize,
    ours_ns: f64,
    httparse_ns: f64,
    ours_mb_per_s: f64,
    httparse_mb_per_s: f64,
    /// Our time over httparse's; below 1 ours is faster.
    ratio: f64,
}

/// As httparse's own documentation has it, with room for what the longest of these heads needs.
const HTTPARSE_HEADERS: usize = 100;

/// Heads as servers send them: a name behind `# `, then the head up to its blank line.
const HEADS: &str = include_str!("heads.txt");

pub(super) fn heads() -> impl Iterator<Item = (&'static str, String)> {
    HEADS
        .split("# ")
        .filter_map(|part| part.split_once('\n'))
        .map(|(name, head)| (name, head.replace('\n', "\r\n")))
}

impl ParseBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.rounds == 0 || self.heads == 0 {
            return Err(Failure::Usage("measure at least once (--rounds, --heads)".into()));
        }
        let measure = || heads().map(|(name, head)| self.measure(name, head.as_bytes()));
        let kinds: Vec<Kind> = on_cores(&cores()[..1], || measure().collect::<Result<_, Failure>>())??;
        let ratio = kinds.iter().map(|kind| kind.ratio.ln()).sum::<f64>() / kinds.len() as f64;
        let report =
            ParseBenchReport { rounds: self.rounds, heads_per_turn: self.heads, kinds, ratio: ratio.exp() };
        self.record.tell(&report, ParseBenchReport::text)
    }

    fn measure(&self, name: &'static str, head: &[u8]) -> Result<Kind, Failure> {
        let turns = |round| {
            in_turns(round, |side| {
                Ok(if side == 0 { self.turn(head, ours) } else { self.turn(head, theirs) })
            })
        };
        // One turn each to warm up.
        turns(0)?;
        let turns = (0..self.rounds).map(turns).collect::<Result<Vec<_>, Failure>>()?;
        let ours_ns = median(turns.iter().map(|(ours, _)| *ours));
        let httparse_ns = median(turns.iter().map(|(_, theirs)| *theirs));
        let mb_per_s = |ns: f64| head.len() as f64 * 1e3 / ns;
        Ok(Kind {
            name,
            head_bytes: head.len(),
            headers: head.split(|byte| *byte == b'\n').count() - 3,
            ours_ns,
            httparse_ns,
            ours_mb_per_s: mb_per_s(ours_ns),
            httparse_mb_per_s: mb_per_s(httparse_ns),
            ratio: median(turns.iter().map(|(ours, theirs)| ours / theirs)),
        })
    }

    /// Nanoseconds per head.
    fn turn(&self, head: &[u8], read: impl Fn(&[u8]) -> bool) -> f64 {
        let begun = Instant::now();
        let mut whole = 0;
        for _ in 0..self.heads {
            whole += u32::from(read(black_box(head)));
        }
        let ns = begun.elapsed().as_nanos() as f64;
        assert_eq!(whole, self.heads, "a good head is read");
        ns / f64::from(self.heads)
    }
}

#[inline(never)]
fn ours(head: &[u8]) -> bool {
    let mut parser = HeadParser::new(HeadLimits::default(), Method::Get);
    matches!(black_box(parser.parse(head)), Ok(HeadStep::Done(_)))
}

#[inline(never)]
fn theirs(head: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; HTTPARSE_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let status = response.parse(head);
    black_box(&response);
    matches!(status, Ok(httparse::Status::Complete(_)))
}

impl ParseBenchReport {
    fn text(&self) -> String {
        let mut text = String::from(
            "              bytes  headers    ours ns   MB/s    httparse ns   MB/s    ours / httparse\n",
        );
        for Kind {
            name,
            head_bytes,
            headers,
            ours_ns,
            httparse_ns,
            ours_mb_per_s,
            httparse_mb_per_s,
            ratio,
        } in &self.kinds
        {
            text += &format!(
                "{name:<13} {head_bytes:>5} {headers:>8} {ours_ns:>10.0} {ours_mb_per_s:>6.0} {httparse_ns:>14.0} {httparse_mb_per_s:>6.0} {ratio:>18.2}\n"
            );
        }
        let Self { rounds, ratio, .. } = self;
        text += &format!("\none core, median of {rounds} pairs of turns; over all kinds {ratio:.2} x\n");
        text + "httparse checks every byte and lists the headers; ours knows what framing, keep-alive and the headers a crawl\nacts upon say, and leaves the list to whoever walks it\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_read_every_head_whole() {
        assert_eq!(heads().count(), 7);
        for (name, head) in heads() {
            assert!(ours(head.as_bytes()) && theirs(head.as_bytes()), "{name}");
        }
    }
}
