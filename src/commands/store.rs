use super::Failure;
use super::output::{print, written};
use super::store_care::{self, ToGo};
use crate::base::{rfc3339, shown};
use crate::proto::http1::Flags;
use crate::proto::record::{HttpCode, ResultCode, StatusAction};
use crate::proto::url::CrawlUrl;
use crate::store_server::{Damage, Document, Located, ReadError, Reader};
use clap::{Args, Subcommand};
use serde::Serialize;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// Look into a store, also while a crawl writes it
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila store ls --data ./example --json | head\n  nephila store cat --data ./example http://example.org/"
)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// List documents: the newest record of each URL
    #[command(after_help = "Example:\n  nephila store ls --data ./example --json")]
    Ls {
        #[command(flatten)]
        data: DataArg,
        /// Every record, not only the newest of each URL
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Write the stored document of a URL to stdout
    #[command(after_help = "Example:\n  nephila store cat --data ./example http://example.org/ > page.html")]
    Cat {
        #[command(flatten)]
        data: DataArg,
        /// The URL of the document
        #[arg(required_unless_present = "doc_id")]
        url: Option<String>,
        /// The number of the document (doc_id of store ls --json) in place of its URL
        #[arg(long, value_name = "N", conflicts_with = "url")]
        doc_id: Option<u32>,
        /// Write the response head as received before the document
        #[arg(long)]
        head: bool,
    },
    /// Count segments, records and documents
    #[command(after_help = "Example:\n  nephila store stat --data ./example")]
    Stat {
        #[command(flatten)]
        data: DataArg,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Read every record, unpack every document, follow every reference and compare every index
    #[command(
        after_help = "Example:\n  nephila store verify --data ./example\n\nExit status 1 if anything is damaged. A segment that a killed process left torn is reported,\nand is no damage."
    )]
    Verify {
        #[command(flatten)]
        data: DataArg,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Rebuild every index from the segments
    #[command(after_help = "Example:\n  nephila store reindex --data ./example")]
    Reindex {
        #[command(flatten)]
        data: DataArg,
    },
    /// Remove the oldest segments
    #[command(
        after_help = "Examples:\n  nephila store drop --data ./example --before 2026-01-01\n  nephila store drop --data ./example --to 10000000000\n\nWhole segments are removed, the oldest first; documents that later records refer to (a 304, a\nreference) stay. A running crawl does the same by itself with [store] bytes_max."
    )]
    Drop {
        #[command(flatten)]
        data: DataArg,
        /// Remove segments whose records were all fetched before this day (or time, like 2026-01-01T12:00:00Z), in UTC
        #[arg(long, value_name = "DATE", required_unless_present = "to", conflicts_with = "to")]
        before: Option<String>,
        /// Remove as many as needed until the rest takes no more bytes than this
        #[arg(long, value_name = "BYTES")]
        to: Option<u64>,
    },
    /// Keep only the newest record of each URL, in fewer segments
    #[command(
        after_help = "Example:\n  nephila store repack --data ./example\n\nA running crawl does the same by itself with [store] history = \"newest\"."
    )]
    Repack {
        #[command(flatten)]
        data: DataArg,
    },
    /// Print the result codes, the HTTP codes, and what is done about each HTTP code: kind, value, name
    #[command(after_help = "Example:\n  nephila store codes | grep redirect")]
    Codes,
}

#[derive(Args)]
struct DataArg {
    /// The data directory of a crawl
    #[arg(long, value_name = "DIR", default_value = "./nephila-data")]
    data: PathBuf,
}

/// One line of `store ls --json`.
#[derive(Serialize)]
struct Listed<'a> {
    doc_id: u32,
    url: &'a str,
    new_url: Option<&'a str>,
    success: bool,
    result: &'static str,
    http_status: Option<u16>,
    ms: u32,
    bytes: u32,
    fetched_at: String,
    ip: String,
    flags: Vec<&'static str>,
    sha1: String,
}

#[derive(Serialize, Default)]
struct Counted {
    segments: usize,
    file_bytes: u64,
    records: u64,
    urls: u64,
    /// Records whose document another record has.
    references: u64,
    /// Index files that a lookup asks, and segments that it must read itself.
    index_files: usize,
    unindexed: usize,
    document_bytes: u64,
    record_bytes: u64,
    results: BTreeMap<&'static str, u64>,
}

impl Counted {
    fn text(&self) -> String {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let mut text = format!("segments   {} ({:.1} MB on disk)\n", self.segments, mb(self.file_bytes));
        text += &format!(
            "records    {} of {} URLs, {} of them references\n",
            self.records, self.urls, self.references
        );
        text += &format!("indexes    {} files; {} segments in none\n", self.index_files, self.unindexed);
        text += &format!(
            "documents  {:.1} MB in {:.1} MB of records\n",
            mb(self.document_bytes),
            mb(self.record_bytes)
        );
        for (name, count) in &self.results {
            text += &format!("  {name:<16} {count}\n");
        }
        text
    }
}

impl StoreArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            StoreCommand::Ls { data, all, json } => ls(&data.open()?, all, json),
            StoreCommand::Cat { data, url, doc_id, head } => cat(&data.open()?, url.as_deref(), doc_id, head),
            StoreCommand::Verify { data, json } => store_care::verify(&data.data, json),
            StoreCommand::Reindex { data } => store_care::reindex(&data.data),
            StoreCommand::Drop { data, before, to } => {
                let what = before.map(ToGo::Before).or(to.map(ToGo::Beyond)).unwrap_or(ToGo::OutOfDate);
                store_care::let_go(&data.data, &what)
            }
            StoreCommand::Repack { data } => store_care::let_go(&data.data, &ToGo::OutOfDate),
            StoreCommand::Stat { data, json } => stat(&data.open()?, json),
            StoreCommand::Codes => codes(),
        }
    }
}

impl DataArg {
    fn open(&self) -> Result<Reader, Failure> {
        Reader::open(&self.data).map_err(Failure::cannot_run)
    }
}

fn ls(reader: &Reader, all: bool, json: bool) -> Result<(), Failure> {
    let newest = match all {
        true => None,
        false => Some(reader.newest().map_err(Failure::cannot_run)?),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut done = Ok(());
    let damaged = reader
        .each(|located, bytes| {
            if done.is_ok() && newest.as_ref().is_none_or(|newest| newest.is_newest(&located)) {
                done = write_line(&mut out, reader, &located, bytes, json);
            }
        })
        .map_err(Failure::cannot_run)?;
    written(done.and_then(|()| out.flush()))?;
    report_damage(&damaged)
}

fn write_line(
    out: &mut impl Write,
    reader: &Reader,
    located: &Located,
    bytes: &[u8],
    json: bool,
) -> io::Result<()> {
    let record = &located.record;
    let status = (record.status != 0).then_some(record.status);
    if !json {
        let status = status.map_or("-".to_string(), |status| status.to_string());
        return writeln!(
            out,
            "{} {:<15} {status:>3} {:>9} {:>6} ms  {}",
            rfc3339(record.fetched_unix_ms),
            record.result.name(),
            record.document_len,
            record.took_ms,
            shown(&record.url, 2_000)
        );
    }
    let document = reader.document_of(located, bytes).map_err(io::Error::other)?;
    let body = document.as_ref().map_or(&[][..], |document| &document.body);
    let listed = Listed {
        doc_id: record.doc_id,
        url: &record.url,
        new_url: record.new_url.as_deref(),
        success: record.success,
        result: record.result.name(),
        http_status: status,
        ms: record.took_ms,
        bytes: record.document_len,
        fetched_at: rfc3339(record.fetched_unix_ms),
        ip: record.ip.to_string(),
        flags: Flags::from_bits(record.flags)
            .names()
            .chain(record.is_reference.then_some("reference"))
            .collect(),
        sha1: Sha1::digest(body).iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    serde_json::to_writer(&mut *out, &listed)?;
    out.write_all(b"\n")
}

fn cat(reader: &Reader, url: Option<&str>, doc_id: Option<u32>, head: bool) -> Result<(), Failure> {
    let asked = url.map_or_else(|| format!("document {}", doc_id.unwrap_or(0)), |url| shown(url, 200));
    let found = match (url, doc_id) {
        (Some(url), _) => find(reader, url),
        (None, doc_id) => reader.find_document(doc_id.unwrap_or(0)),
    };
    let Some((located, document)) = found.map_err(Failure::cannot_run)? else {
        return Err(Failure::No(format!("{asked} is not in the store (nephila store ls shows what is)")));
    };
    let Some(document) = document else {
        return Err(Failure::CannotRun(format!(
            "the document of {asked} is not there: its record is in segment {} (nephila store verify tells more)",
            located.segment
        )));
    };
    let mut out = io::stdout().lock();
    let head = if head { &document.head[..] } else { &[] };
    written(out.write_all(head).and_then(|()| out.write_all(&document.body)).and_then(|()| out.flush()))
}

/// As it stands first, in normal form second: both are what a user may have at hand.
fn find(reader: &Reader, url: &str) -> Result<Option<(Located, Option<Document>)>, ReadError> {
    let found = reader.find(url)?;
    let normal = CrawlUrl::parse(url).ok().map(|url| url.to_string()).filter(|normal| normal != url);
    match (found, normal) {
        (None, Some(normal)) => reader.find(&normal),
        (found, _) => Ok(found),
    }
}

fn stat(reader: &Reader, json: bool) -> Result<(), Failure> {
    let (index_files, unindexed) = reader.index_files().map_err(Failure::cannot_run)?;
    let mut counted = Counted {
        segments: reader.segments(),
        file_bytes: reader.file_bytes(),
        index_files,
        unindexed,
        ..Counted::default()
    };
    let mut urls = rapidhash::fast::RapidHashSet::default();
    let damaged = reader
        .each(|located, _| {
            let record = &located.record;
            counted.records += 1;
            counted.references += u64::from(record.is_reference);
            counted.document_bytes += u64::from(record.document_len);
            counted.record_bytes += u64::from(record.record_bytes);
            *counted.results.entry(record.result.name()).or_default() += 1;
            urls.insert(crate::base::fingerprint(record.url.as_bytes()));
        })
        .map_err(Failure::cannot_run)?;
    counted.urls = urls.len() as u64;
    let text = match json {
        true => serde_json::to_string(&counted).map_err(Failure::cannot_run)? + "\n",
        false => counted.text(),
    };
    print(&text)?;
    report_damage(&damaged)
}

fn codes() -> Result<(), Failure> {
    let mut text = String::new();
    let mut line = |kind: &str, value: u8, name: &str| text += &format!("{kind} {value} {name}\n");
    for &code in ResultCode::ALL {
        line("result", code as u8, code.name());
    }
    line("http", HttpCode::NONE.as_u8(), "none");
    for status in HttpCode::TABLE {
        line("http", HttpCode::from_status(status).as_u8(), &status.to_string());
    }
    line("http", HttpCode::OTHER.as_u8(), "other");
    for status in HttpCode::TABLE.into_iter().filter(|&status| status >= 200) {
        line("action", HttpCode::from_status(status).as_u8(), StatusAction::of(status).name());
    }
    line("action", HttpCode::OTHER.as_u8(), StatusAction::Drop.name());
    print(&text)
}

pub(super) fn report_damage(damaged: &[Damage]) -> Result<(), Failure> {
    match damaged {
        [] => Ok(()),
        [Damage { path, bytes }, ..] => Err(Failure::No(format!(
            "{} place(s) in sealed segments are damaged; the first: {} from byte {} to {}; everything else was read",
            damaged.len(),
            path.display(),
            bytes.start,
            bytes.end
        ))),
    }
}
