use super::shared::{
    DataArg, Failure, FilterArgs, age, counted, hint, now_ms, parse_url, print, sized, stream, tell,
    write_json,
};
use super::store_care::{self, ToGo};
use super::store_follow::FollowArgs;
use crate::base::{SortedMap, fingerprint, rfc3339, shown};
use crate::config::size;
use crate::engine::stores_of_others;
use crate::proto::http1::Flags;
use crate::proto::record::{HttpCode, ResultCode, StatusAction};
use crate::store_server::{Damage, Document, Located, Reader};
use clap::{Args, Subcommand};
use rapidhash::fast::RapidHashSet;
use serde::Serialize;
use sha1::{Digest, Sha1};
use std::io::{self, Write};
use std::path::Path;

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
    #[command(
        after_help = "Examples:\n  nephila store ls --data ./example --json\n  nephila store ls --data ./example --host example.org --result http_error --since 2h --limit 10"
    )]
    Ls {
        #[command(flatten)]
        data: DataArg,
        #[command(flatten)]
        filter: FilterArgs,
        /// Every record, not only the newest of each URL
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Write the stored document of a URL to stdout
    #[command(
        after_help = "Example:\n  nephila store cat --data ./example http://example.org/ > page.html\n\nA node of a cluster also has pages of others: copies of theirs, and those of nodes that are gone."
    )]
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
        #[arg(long, value_name = "BYTES", value_parser = size::<u64>)]
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
    Follow(FollowArgs),
    /// Print the result codes, the HTTP codes, and what is done about each HTTP code: kind, value, name
    #[command(after_help = "Example:\n  nephila store codes | grep redirect")]
    Codes,
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
    results: SortedMap<&'static str, u64>,
}

impl Counted {
    fn text(&self) -> String {
        let Self { segments, records, urls, references, index_files, unindexed, .. } = self;
        let [files, documents, in_records] =
            [self.file_bytes, self.document_bytes, self.record_bytes].map(sized);
        let mut text = format!(
            "segments   {segments} ({files} on disk)\n\
             records    {records} of {}, {references} of them references\n\
             indexes    {}; {} in none\n\
             documents  {documents} in {in_records} of records\n",
            counted(*urls, "URL"),
            counted(*index_files as u64, "file"),
            counted(*unindexed as u64, "segment")
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
            StoreCommand::Ls { data, filter, all, json } => ls(&data.reader()?, &filter, all, json),
            StoreCommand::Cat { data, url, doc_id, head } => cat(&data, url.as_deref(), doc_id, head),
            StoreCommand::Verify { data, json } => store_care::verify(&data, json),
            StoreCommand::Reindex { data } => store_care::reindex(&data),
            StoreCommand::Drop { data, before, to } => {
                let what = before.map(ToGo::Before).or(to.map(ToGo::Beyond)).unwrap_or(ToGo::OutOfDate);
                store_care::let_go(&data, &what)
            }
            StoreCommand::Repack { data } => store_care::let_go(&data, &ToGo::OutOfDate),
            StoreCommand::Stat { data, json } => stat(&data.reader()?, json),
            StoreCommand::Follow(args) => args.run(),
            StoreCommand::Codes => codes(),
        }
    }
}

fn ls(reader: &Reader, filter: &FilterArgs, all: bool, json: bool) -> Result<(), Failure> {
    let newest = if all { None } else { Some(reader.newest()?) };
    let (mut left, mut is_none) = (filter.limit(), true);
    let mut damaged = Ok(Vec::new());
    stream(|out| {
        let mut done = Ok(());
        damaged = reader.each(|located, bytes| {
            let record = &located.record;
            if left > 0
                && done.is_ok()
                && newest.as_ref().is_none_or(|newest| newest.is_newest(&located))
                && filter.takes(&record.url, Some(record.result), record.fetched_unix_ms)
            {
                (left, is_none) = (left - 1, false);
                done = write_line(out, reader, &located, bytes, json);
            }
        });
        done
    })?;
    if is_none && filter.is_set() {
        hint(filter.why_none());
    }
    report_damage(&damaged?)
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
            "{} {:>10} {:<15} {status:>3} {:>9} {:>6} ms  {}",
            rfc3339(record.fetched_unix_ms),
            age(record.fetched_unix_ms, now_ms()),
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
    write_json(out, &listed)
}

fn cat(data: &DataArg, url: Option<&str>, doc_id: Option<u32>, head: bool) -> Result<(), Failure> {
    let asked = url.map_or_else(|| format!("document {}", doc_id.unwrap_or(0)), |url| shown(url, 200));
    let reader = data.reader()?;
    let found = match url {
        Some(url) => match find(&reader, url)? {
            None => find_of_others(&data.path, url)?,
            found => found,
        },
        None => reader.find_document(doc_id.unwrap_or(0))?,
    };
    let Some((located, document)) = found else {
        return Err(Failure::No(format!("{asked} is not in the store (nephila store ls shows what is)")));
    };
    let Some(document) = document else {
        return Err(Failure::CannotRun(format!(
            "the document of {asked} is not there: its record is in segment {} (nephila store verify tells more)",
            located.segment
        )));
    };
    let head = if head { &document.head[..] } else { &[] };
    stream(|out| out.write_all(head).and_then(|()| out.write_all(&document.body)))
}

/// As it stands first, in normal form second: both are what a user may have at hand.
fn find(reader: &Reader, url: &str) -> Result<Option<(Located, Option<Document>)>, Failure> {
    match (reader.find(url)?, parse_url(url)) {
        (None, Ok(normal)) if normal.as_str() != url => Ok(reader.find(normal.as_str())?),
        (found, _) => Ok(found),
    }
}

/// In the stores of other nodes of a cluster that this one has: whichever has it newest.
fn find_of_others(data: &Path, url: &str) -> Result<Option<(Located, Option<Document>)>, Failure> {
    let mut newest: Option<(Located, Option<Document>)> = None;
    let mut trouble = None;
    for folder in stores_of_others(data) {
        // One that is renamed meanwhile, or damaged, hides nothing that another has.
        let found = Reader::open(&folder).map_err(Failure::from).and_then(|reader| find(&reader, url));
        let Some(found) = found.unwrap_or_else(|failure| {
            trouble = Some(failure);
            None
        }) else {
            continue;
        };
        let fetched = |(located, document): &(Located, Option<Document>)| {
            (document.is_some(), located.record.fetched_unix_ms)
        };
        if newest.as_ref().is_none_or(|known| fetched(known) < fetched(&found)) {
            newest = Some(found);
        }
    }
    match (newest, trouble) {
        (None, Some(failure)) => Err(failure),
        (newest, _) => Ok(newest),
    }
}

fn stat(reader: &Reader, json: bool) -> Result<(), Failure> {
    let (index_files, unindexed) = reader.index_files()?;
    let (segments, file_bytes) = (reader.segments(), reader.file_bytes());
    let mut counted = Counted { segments, file_bytes, index_files, unindexed, ..Counted::default() };
    let mut urls = RapidHashSet::default();
    let damaged = reader.each(|located, _| {
        let record = &located.record;
        counted.records += 1;
        counted.references += u64::from(record.is_reference);
        counted.document_bytes += u64::from(record.document_len);
        counted.record_bytes += u64::from(record.record_bytes);
        *counted.results.entry(record.result.name()).or_default() += 1;
        urls.insert(fingerprint(record.url.as_bytes()));
    })?;
    counted.urls = urls.len() as u64;
    tell(&counted, json, Counted::text)?;
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
