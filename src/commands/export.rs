use super::shared::{DataArg, Failure, Ticker, mb, say_failure, tell};
use super::store::report_damage;
use crate::archive::{ArchiveError, Export, Exported, Fault, export_wacz, index_export, index_files};
use crate::base::shown;
use crate::config::size_in;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Write a store as WARC, CDXJ or WACZ, also while a crawl writes it
#[derive(Args)]
#[command(after_help = "\
Example:
  nephila export warc --data ./example --out example.warc.gz
  nephila export cdxj --data ./example --out example.cdxj
  nephila export wacz --data ./example --out example.wacz")]
pub struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Subcommand)]
enum ExportCommand {
    /// Write WARC 1.1 files
    #[command(after_help = "\
A name that ends in .gz is compressed record by record. Every stored
response is written, with the request that it answers as far as that is known.
Documents are stored without their codings: Content-Encoding and
Transfer-Encoding become X-Archive-Orig-…, and Content-Length is the length of
what follows. A document that was stored once and seen again is a revisit record,
and so is a 304. The same data gives the same bytes each time.

Example:
  nephila export warc --data ./example --out example.warc.gz
  nephila export warc --data ./example --out part.warc.gz --size 1000000000
  nephila export warc --data ./example --out example.warc.gz --newest --json")]
    Warc {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        size: SizeArg,
    },
    /// Write a sorted CDXJ index of the WARC files that `export warc` writes, or of any others
    #[command(after_help = "\
Without --warc, the index is that of the files that `export warc` writes for
the same data, and names them like FILE: example.cdxj goes with
example.warc.gz, and with --size with example-00001.warc.gz and so on. Give
`export warc` the same --size and --newest. Lines are sorted in memory, some
300 bytes and twice the URL each.

Example:
  nephila export cdxj --data ./example --out example.cdxj
  nephila export cdxj --warc a.warc.gz --warc b.warc --out both.cdxj")]
    Cdxj {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        size: SizeArg,
        /// Index this file instead, gzipped by record or plain (repeatable)
        #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "size", "newest"])]
        warc: Vec<PathBuf>,
    },
    /// Write one WACZ file: a WARC, its index and its pages
    #[command(after_help = "Example:\n  nephila export wacz --data ./example --out example.wacz")]
    Wacz {
        #[command(flatten)]
        common: CommonArgs,
    },
}

#[derive(Args)]
struct CommonArgs {
    #[command(flatten)]
    data: DataArg,
    /// The file to write; it appears when it is complete
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Every record of every URL (the default)
    #[arg(long, conflicts_with = "newest")]
    all: bool,
    /// One record of each URL: the newest that has a document
    #[arg(long)]
    newest: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct SizeArg {
    /// Start another file when one has passed this size; a number goes before the extension
    #[arg(long, value_name = "BYTES", value_parser = |text: &str| size_in::<u64>(text, 1, u64::MAX))]
    size: Option<u64>,
}

impl ExportArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ExportCommand::Warc { common, size } => {
                let (export, reader) = (common.export(size.size), common.data.reader()?);
                let exported = watched(|watch| export.to_warc(&reader, &common.out, watch))?;
                common.report(&exported, None)
            }
            ExportCommand::Wacz { common } => {
                let (export, reader) = (common.export(None), common.data.reader()?);
                let exported = watched(|watch| export_wacz(&export, &reader, &common.out, watch))?;
                common.report(&exported, None)
            }
            ExportCommand::Cdxj { common, warc, .. } if !warc.is_empty() => {
                let indexing = index_files(&warc, &common.out, common.force).map_err(failure)?;
                let lines = indexing.lines;
                let object = json!({ "lines": lines, "skipped": indexing.faults_total });
                tell(&object, common.json, |_| {
                    format!("{lines} lines in {}\n", shown(&common.out.display().to_string(), 4_000))
                })?;
                report_faults(&indexing.faults, indexing.faults_total)
            }
            ExportCommand::Cdxj { common, size, .. } => {
                let (export, reader) = (common.export(size.size), common.data.reader()?);
                let indexing = watched(|watch| index_export(&export, &reader, &common.out, watch))?;
                let mut exported = indexing.exported.unwrap_or_default();
                exported.files = vec![common.out.clone()];
                common.report(&exported, Some(indexing.lines))
            }
        }
    }
}

/// Runs an export with a line on a terminal that tells how far it is.
fn watched<T>(
    export: impl FnOnce(&mut dyn FnMut(&Exported)) -> Result<T, ArchiveError>,
) -> Result<T, Failure> {
    let mut ticker = Ticker::new();
    let progress =
        |exported: &Exported| format!("{} responses  {} revisits", exported.responses, exported.revisits);
    let exported = export(&mut |exported| ticker.show(|_| Some(progress(exported))));
    ticker.end();
    exported.map_err(failure)
}

impl CommonArgs {
    fn export(&self, size: Option<u64>) -> Export {
        Export { newest: self.newest, size, force: self.force }
    }

    /// The summary; `lines` of an index.
    fn report(&self, exported: &Exported, lines: Option<u64>) -> Result<(), Failure> {
        let files: Vec<String> = exported.files.iter().map(|file| file.display().to_string()).collect();
        let mut object = json!({
            "files": files,
            "records": exported.records,
            "responses": exported.responses,
            "revisits": exported.revisits,
            "resources": exported.resources,
            "requests": exported.requests,
            "left_out": exported.left_out,
            "bytes": exported.bytes,
        });
        if let Some(lines) = lines {
            object["lines"] = lines.into();
        }
        tell(&object, self.json, |_| summary(exported, lines))?;
        if exported.lost > 0 {
            let lost = exported.lost;
            return Err(Failure::No(format!("{lost} records refer to a document that is not in the store")));
        }
        report_damage(&exported.damaged)
    }
}

fn summary(exported: &Exported, lines: Option<u64>) -> String {
    let files = exported.files.iter().map(|file| shown(&file.display().to_string(), 4_000) + "\n");
    let mut text: String = files.chain(lines.map(|lines| format!("{lines} lines\n"))).collect();
    let Exported { records, responses, revisits, resources, requests, left_out, .. } = exported;
    text += &format!(
        "{records} records: {responses} responses, {revisits} revisits, {resources} resources, {requests} requests; {:.1} MB\n",
        mb(exported.bytes)
    );
    if *left_out > 0 {
        text += &format!("{left_out} records without a response were left out\n");
    }
    text
}

/// A name that is taken is for the user to change; everything else is for the machine.
pub(super) fn failure(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Exists(_) | ArchiveError::Name(_) => Failure::usage(error),
        _ => Failure::cannot_run(error),
    }
}

/// What could not be read, on stderr, line by line.
pub(super) fn report_faults(faults: &[(PathBuf, Fault)], total: u64) -> Result<(), Failure> {
    for (path, Fault { offset, cause, .. }) in faults {
        let (path, cause) = (shown(&path.display().to_string(), 1_000), shown(cause, 500));
        say_failure(format_args!("nephila: {path}: byte {offset}: {cause}"));
    }
    match total {
        0 => Ok(()),
        _ => Err(Failure::No(format!("{total} records could not be read and were skipped"))),
    }
}
