use super::export::{failure, report_faults};
use super::shared::{Failure, Ticker, mb, now_ms, tell};
use crate::archive::{Import, Imported};
use crate::config::{StoreSettings, size_in};
use crate::store_server::Dedup;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Read archives of any crawler into a store
#[derive(Args)]
#[command(after_help = "Example:\n  nephila import warc --data ./example old-crawl.warc.gz")]
pub struct ImportArgs {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Subcommand)]
enum ImportCommand {
    /// Read WARC files: responses, revisits and resources
    #[command(after_help = "\
Versions 0.17 to 1.1, plain or gzipped. Chunks and content codings are decoded,
as a fetch does. A revisit gets the document that it refers to, which must
be in one of the files. What cannot be read is reported with its place and
skipped, and the exit status is then 1. What is counted is on disk.

Example:
  nephila import warc --data ./example a.warc.gz b.warc
  nephila import warc --data ./example --json *.warc.gz")]
    Warc {
        /// WARC files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The data directory to write; no crawl may be using it
        #[arg(long, value_name = "DIR", default_value = "./nephila-data")]
        data: PathBuf,
        /// Longer documents are cut at this size
        #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = |text: &str| size_in::<u64>(text, 1, 1 << 30))]
        max_doc_size: u64,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

impl ImportArgs {
    pub fn run(self) -> Result<(), Failure> {
        let ImportCommand::Warc { files, data, max_doc_size, json } = self.command;
        let import = Import {
            files,
            doc_bytes_max: max_doc_size,
            // A segment holds any record whole.
            segment_bytes: StoreSettings::default().segment_bytes.0.max(2 * max_doc_size + (1 << 20)),
            dedup: Dedup::default(),
        };
        let mut ticker = Ticker::new();
        let mut watch = |imported: &Imported| ticker.show(|_| Some(format!("{} records", imported.records)));
        let imported = import.run(&data, now_ms(), &mut watch);
        ticker.end();
        let imported = imported.map_err(failure)?;
        let Imported { files, records, responses, revisits, resources, left_out, skipped, .. } = &imported;
        let bytes = imported.document_bytes;
        let object = json!({
            "files": files, "records": records, "responses": responses, "revisits": revisits,
            "resources": resources, "left_out": left_out, "skipped": skipped, "document_bytes": bytes,
        });
        tell(&object, json, |_| {
            format!(
                "{records} records from {files} files: {responses} responses, {revisits} revisits, {resources} resources; {:.1} MB of documents\n",
                mb(bytes)
            )
        })?;
        report_faults(&imported.faults, imported.skipped)
    }
}
