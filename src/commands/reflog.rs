use super::shared::{Failure, Ticker, counted, stream, write_json};
use crate::base::{SortedMap, shown};
use crate::master::{InputError, InputFile, InputReader};
use crate::proto::reflog::{ReflogCounts, ReflogReader, ReflogRecord, Reject, RejectReason, Stamp, Told};
use crate::proto::url::CrawlUrl;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{self, Write};

/// Check files of a reflog before a master takes them
#[derive(Args)]
#[command(after_help = "Example:\n  nephila reflog check today.reflog.gz")]
pub struct ReflogArgs {
    #[command(subcommand)]
    command: ReflogCommand,
}

#[derive(Subcommand)]
enum ReflogCommand {
    Check(CheckArgs),
}

/// Say what a master would make of files: records, unknown lines, and rejects with line and reason
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila reflog check today.reflog.gz\n  zcat old/*.gz | nephila reflog check --json -\n\nFiles may be plain, gzip or zstd. A record is batch, priority, time, page, URL, hits and update tag, with tabs between them; broken before its URL or its hits it is joined again. Lines of another shape are unknown, and do no harm. Exit status 1 if a record is rejected or a file breaks off."
)]
struct CheckArgs {
    /// One JSON object: counts, reasons, and the rejects
    #[arg(long)]
    json: bool,
    /// Name every reject, not the first 20 only
    #[arg(long)]
    all: bool,
    /// Files of a reflog; - reads stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// Rejects that are named unless all are asked for.
const NAMED_MAX: u64 = 20;

/// What all files come to.
#[derive(Default, Serialize)]
struct Summary {
    files: u64,
    lines: u64,
    records: u64,
    unknown: u64,
    rejects: u64,
    hits: u64,
    hits_rejected: u64,
    /// More than a line has room for.
    hits_capped: u64,
    #[serde(serialize_with = "digits")]
    first: Option<Stamp>,
    #[serde(serialize_with = "digits")]
    last: Option<Stamp>,
    reasons: SortedMap<&'static str, u64>,
    /// Files that could be read in part only, and why.
    cut: Vec<String>,
}

#[derive(Serialize)]
struct Named<'a> {
    file: &'a str,
    line: u64,
    why: RejectReason,
    hits: u32,
    text: &'a str,
}

impl ReflogArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ReflogCommand::Check(args) => args.run(),
        }
    }
}

impl CheckArgs {
    fn run(self) -> Result<(), Failure> {
        // All are opened before the first is read, so that a name in error is told at once.
        let mut inputs = Vec::new();
        for name in &self.files {
            let opened = match &**name {
                "-" => InputReader::from_pipe("stdin", io::stdin()),
                path => InputFile::new(path).open(),
            };
            inputs.push((&**name, opened.map_err(Failure::usage)?));
        }
        let mut check = Check { json: self.json, all: self.all, summary: Summary::default() };
        let mut failed = None;
        stream(|out| {
            if self.json {
                out.write_all(b"{\"rejected\":[")?;
            }
            for (name, input) in inputs {
                if let Some(error) = check.file(name, input, out)? {
                    failed = Some(error);
                    break;
                }
            }
            check.end(out)
        })?;
        match failed {
            Some(error) => Err(Failure::cannot_run(error)),
            None if check.summary.rejects > 0 || !check.summary.cut.is_empty() => {
                Err(Failure::No(String::new()))
            }
            None => Ok(()),
        }
    }
}

struct Check {
    json: bool,
    all: bool,
    summary: Summary,
}

impl Check {
    /// Reads a file. What comes back is a fault of the machine.
    fn file(
        &mut self,
        name: &str,
        mut input: InputReader,
        out: &mut impl Write,
    ) -> io::Result<Option<InputError>> {
        let mut reader = ReflogReader::default();
        let mut ticker = Ticker::new();
        let mut wrote = Ok(());
        let mut tell = |told: Told<'_>| {
            let reject = match told {
                Told::Record { line, record } => match self.record(&record) {
                    None => return,
                    Some(why) => Reject { line, why, text: record.url, hits: record.hits },
                },
                Told::Reject(reject) => reject,
            };
            if wrote.is_ok() {
                wrote = self.reject(name, &reject, out);
            }
        };
        let fault = loop {
            match input.chunk() {
                Ok(Some(chunk)) => reader.read(chunk, &mut tell),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            ticker.show(|_| Some(format!("{name}: {} lines", reader.counts().lines)));
        };
        reader.end(&mut tell);
        wrote?;
        ticker.end();
        let ReflogCounts { lines, unknown, hits_beyond, .. } = reader.counts();
        self.summary.hits_capped += hits_beyond;
        self.summary.files += 1;
        self.summary.lines += lines;
        self.summary.unknown += unknown;
        match fault {
            Some(error) if error.fault.is_of_content() => {
                let text = shown(&error.to_string(), 1_000);
                if !self.json {
                    writeln!(out, "{text}")?;
                }
                self.summary.cut.push(text);
                Ok(None)
            }
            fault => Ok(fault),
        }
    }

    /// Counts a record, or says why a master would not take its URL.
    fn record(&mut self, record: &ReflogRecord<'_>) -> Option<RejectReason> {
        let url = match str::from_utf8(record.url) {
            Ok(url) => url,
            Err(_) => return Some(RejectReason::UrlBytes),
        };
        match CrawlUrl::parse(url) {
            Err(error) => return Some((&error).into()),
            Ok(url) => {
                if let Some(why) = RejectReason::of_normal(url.as_str().as_bytes()) {
                    return Some(why);
                }
            }
        }
        let Summary { records, hits, first, last, .. } = &mut self.summary;
        *records += 1;
        *hits += u64::from(record.hits);
        *first = Some(first.map_or(record.at, |first| first.min(record.at)));
        *last = (*last).max(Some(record.at));
        None
    }

    fn reject(&mut self, file: &str, reject: &Reject<'_>, out: &mut impl Write) -> io::Result<()> {
        let Reject { line, why, text, hits } = *reject;
        self.summary.rejects += 1;
        self.summary.hits_rejected += u64::from(hits);
        *self.summary.reasons.entry(why.name()).or_default() += 1;
        if !self.all && self.summary.rejects > NAMED_MAX {
            return Ok(());
        }
        let text = shown(&String::from_utf8_lossy(text), 200);
        if self.json {
            if self.summary.rejects > 1 {
                out.write_all(b",")?;
            }
            return crate::base::write_json(out, &Named { file, line, why, hits, text: &text });
        }
        writeln!(out, "{}:{line}: {}: {}: {text}", shown(file, 1_000), why.name(), why.about())
    }

    fn end(&self, out: &mut impl Write) -> io::Result<()> {
        let summary = &self.summary;
        if self.json {
            let mut rest = Vec::new();
            write_json(&mut rest, summary)?;
            out.write_all(b"],")?;
            return out.write_all(&rest[1..]);
        }
        let Summary { lines, records, unknown, rejects, hits, first, last, .. } = summary;
        if !self.all && *rejects > NAMED_MAX {
            writeln!(out, "{} more; --all names them", rejects - NAMED_MAX)?;
        }
        let times = match (first, last) {
            (Some(first), Some(last)) => {
                let text = |stamp: &Stamp| String::from_utf8_lossy(&stamp.digits()).into_owned();
                format!(" from {} to {}", text(first), text(last))
            }
            _ => String::new(),
        };
        let capped = match summary.hits_capped {
            0 => String::new(),
            hits => format!(", {hits} hits more than a line has room for"),
        };
        writeln!(
            out,
            "{}: {} with {}{times}, {} unknown, {} rejected{capped}",
            counted(*lines, "line"),
            counted(*records, "record"),
            counted(*hits, "hit"),
            unknown,
            rejects
        )
    }
}

fn digits<S: serde::Serializer>(stamp: &Option<Stamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match stamp {
        Some(stamp) => serializer.serialize_str(&String::from_utf8_lossy(&stamp.digits())),
        None => serializer.serialize_none(),
    }
}
