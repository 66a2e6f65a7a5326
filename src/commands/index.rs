use super::index_hosts::hosts;
use super::index_import::import;
use super::index_stat::stat;
use super::shared::{
    DataArg, Failure, FilterArgs, OwnedView, Standing, hint, now_ms, parse_url, stream, tell, with_age,
    write_json,
};
use crate::base::{rfc3339, shown};
use crate::doc_index::{Discovered, DocState, DocumentInfo, DocumentLine, IndexView, Row};
use crate::engine::{CrawlRules, index_folder};
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::CrawlUrl;
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Look into a doc index, also while a crawl writes it; import and export it
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila index stat --data ./example\n  nephila index show --data ./example http://example.org/\n  nephila index export --data ./example > index.jsonl"
)]
pub struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Subcommand)]
enum IndexCommand {
    /// Count what is known
    #[command(after_help = "Example:\n  nephila index stat --data ./example")]
    Stat {
        #[command(flatten)]
        data: DataArg,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// List hosts, those with the most to fetch first
    #[command(
        after_help = "Examples:\n  nephila index hosts --data ./example\n  nephila index hosts --data ./example --host example.org --json"
    )]
    Hosts {
        #[command(flatten)]
        data: DataArg,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Only this host, by its name or its origin
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print everything that is known of a URL
    #[command(
        after_help = "Example:\n  nephila index show --data ./example http://example.org/\n\nExit status 1 if the URL is not known."
    )]
    Show {
        #[command(flatten)]
        data: DataArg,
        /// The URL
        url: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// List URLs that are to be fetched, in the order they were found
    #[command(
        after_help = "Examples:\n  nephila index pending --data ./example --limit 10\n  nephila index pending --data ./example --waiting --host example.org\n\nWhat --since asks is when a URL was found."
    )]
    Pending {
        #[command(flatten)]
        data: DataArg,
        #[command(flatten)]
        filter: FilterArgs,
        /// Also those that wait for a retry or for their next visit: until when, and after what result
        #[arg(long)]
        waiting: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Add URLs: a plain list, lines of index export, or lines of a reflog
    #[command(
        after_help = "Examples:\n  nephila index import --data ./example urls.txt\n  nephila index export --data ./one | nephila index import --data ./other -\n\nA plain URL counts as a seed. A line of an export brings what was known of its URL, without the\ndocument. A line of a reflog has batch, priority, time, page, URL, hits and update tag, with tabs\nbetween them: a pending URL moves up by a higher priority or more hits, and a fetched one is due\nat once by another update tag. A running crawl takes them up at once."
    )]
    Import {
        #[command(flatten)]
        data: DataArg,
        /// The file, or - for stdin
        file: PathBuf,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write everything as JSON Lines, one object a URL
    #[command(after_help = "Example:\n  nephila index export --data ./example > index.jsonl")]
    Export {
        #[command(flatten)]
        data: DataArg,
        /// Changes nothing: the output is JSON in any case
        #[arg(long)]
        json: bool,
    },
}

impl IndexArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            IndexCommand::Stat { data, json } => stat(&data, json),
            IndexCommand::Hosts { data, limit, host, json } => hosts(&data, limit, host.as_deref(), json),
            IndexCommand::Show { data, url, json } => show(&data.view()?, &typed(&url, &data.path)?, json),
            IndexCommand::Pending { data, filter, waiting, json } => {
                pending(&data.view_of_pending()?, &filter, waiting, json)
            }
            IndexCommand::Import { data, file, json } => import(&data.path, &file, json),
            IndexCommand::Export { data, json: _ } => export(&data.view()?),
        }
    }
}

/// A URL as it was typed, in the form that the last crawl gave to URLs.
pub(super) fn typed(url: &str, data: &Path) -> Result<CrawlUrl, Failure> {
    let parsed = parse_url(url)?;
    let rules = CrawlRules::read(&index_folder(data))?;
    let canon = rules.unwrap_or_default().doc_index.canon();
    CrawlUrl::from_normal(canon.apply(parsed.as_str(), &mut String::new()))
        .map_err(|e| Failure::Usage(format!("{}: {e}", shown(url, 200))))
}

/// To be fetched as soon as may be, and not only when it is due.
pub(super) fn is_pending(row: Option<&Row>, now_s: u64) -> bool {
    row.is_none_or(|row| row.state == DocState::Pending && u64::from(row.due_s) <= now_s)
}

/// Goes through an index, and makes lines of its documents. The page that named one most often named the next as well.
struct Lines<'a> {
    view: &'a IndexView,
    via: (u32, Option<Box<str>>),
}

impl Lines<'_> {
    fn of(&mut self, doc_id: u32, discovered: &Discovered, row: Option<&Row>) -> io::Result<DocumentLine> {
        let via = discovered.origin.via;
        if via != self.via.0 {
            let found = if via == 0 { None } else { self.view.document(via)? };
            self.via = (via, found.map(|found| found.discovered.url));
        }
        let note = row.map_or(Ok(Default::default()), |row| self.view.note(doc_id, row))?;
        let dossier = DocumentInfo { doc_id, discovered: discovered.clone(), row: row.copied(), note };
        Ok(DocumentLine::of(&dossier, self.via.1.as_deref()))
    }
}

/// A dossier with the URL of the page that named it.
pub(super) fn line_of(view: &IndexView, dossier: &DocumentInfo) -> io::Result<DocumentLine> {
    Lines { view, via: (0, None) }.of(dossier.doc_id, &dossier.discovered, dossier.row.as_ref())
}

fn show(view: &IndexView, url: &CrawlUrl, json: bool) -> Result<(), Failure> {
    let Some(found) = view.find(url.as_str())? else {
        return Err(Failure::No(format!(
            "{} is not known (nephila explain says what would become of it)",
            shown(url.as_str(), 200)
        )));
    };
    tell(&line_of(view, &found)?, json, text_of)
}

/// What is told of a URL, a line each.
fn text_of(line: &DocumentLine) -> String {
    let number = |count: u64| Some(count).filter(|&count| count > 0).map(|count| count.to_string());
    let flag = |set: bool| set.then(|| "yes".to_string());
    let rows: [(&str, Option<String>); 27] = [
        ("url", Some(line.url.clone())),
        ("doc_id", Some(line.doc_id.to_string())),
        ("kind", Some(line.kind.clone())),
        ("state", line.state.map(|state| state.name().to_string())),
        ("discovered", line.discovered_at.as_deref().map(with_age)),
        ("via", line.via.clone()),
        ("depth", Some(line.depth.to_string())),
        ("hops", number(line.hops.into())),
        ("seed", flag(line.seed_chain)),
        ("head only", flag(line.head_only || line.only_head_known)),
        ("priority", Some(line.priority.to_string())),
        ("hits", number(line.hits.into())),
        ("fetched", line.fetched_at.as_deref().map(with_age)),
        ("result", line.result.map(|result| result.name().to_string())),
        ("status", line.http_status.map(|status| status.to_string())),
        ("retries", number(line.retries.into())),
        ("due", line.due_at.as_deref().map(with_age)),
        ("interval", line.interval_s.map(|seconds| format!("{seconds} s"))),
        ("fetches", number(line.fetches.into())),
        (
            "changes",
            line.changed_at.as_ref().map(|at| format!("{}, the last at {}", line.changes, with_age(at))),
        ),
        ("digest", line.digest.clone()),
        ("ETag", line.etag.clone()),
        ("modified", line.last_modified.clone()),
        ("segment", line.segment.map(|segment| segment.to_string())),
        ("new url", line.new_url.clone()),
        ("canonical", line.canonical.clone()),
        ("reason", line.reason.clone()),
    ];
    let told = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
    told.map(|(name, value)| format!("{name:<10} {}\n", shown(&value, URL_BYTES_MAX))).collect()
}

fn pending(owned: &OwnedView, filter: &FilterArgs, waiting: bool, json: bool) -> Result<(), Failure> {
    let now_s = now_ms() / 1_000;
    let (mut left, mut is_none) = (filter.limit(), true);
    let listed = lines(&owned.view, |lines, doc_id, discovered, row, out| {
        if left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        let Standing::Here(row) = owned.standing(&discovered.url, row) else {
            return Ok(ControlFlow::Continue(()));
        };
        let row = row.as_ref();
        let is_due = is_pending(row, now_s);
        let is_listed = is_due || (waiting && row.is_some_and(|row| row.due_s > 0));
        let (result, found_ms) = (row.and_then(|row| row.result), u64::from(discovered.at_s) * 1_000);
        if is_listed && filter.takes(&discovered.url, result, found_ms) {
            (left, is_none) = (left - 1, false);
            let url = shown(&discovered.url, URL_BYTES_MAX);
            match row {
                row if json => write_json(out, &lines.of(doc_id, discovered, row)?)?,
                Some(row) if !is_due => {
                    let due = with_age(&rfc3339(u64::from(row.due_s) * 1_000));
                    let result = row.result.map_or("nothing yet", |result| result.name());
                    writeln!(out, "{url}  waits until {due}, after {result}")?;
                }
                _ => writeln!(out, "{url}")?,
            }
        }
        Ok(ControlFlow::Continue(()))
    });
    if is_none && filter.is_set() && listed.is_ok() {
        hint("no pending URL matches");
    }
    listed
}

fn export(view: &IndexView) -> Result<(), Failure> {
    lines(view, |lines, doc_id, discovered, row, out| {
        write_json(out, &lines.of(doc_id, discovered, row)?)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Writes a line for each document that `each` chooses.
fn lines(
    view: &IndexView,
    mut each: impl FnMut(
        &mut Lines<'_>,
        u32,
        &Discovered,
        Option<&Row>,
        &mut dyn Write,
    ) -> io::Result<ControlFlow<()>>,
) -> Result<(), Failure> {
    let mut read = Ok(());
    stream(|out| {
        let mut lines = Lines { view, via: (0, None) };
        let mut done = Ok(());
        read = view.each(|doc_id, discovered, row| {
            each(&mut lines, doc_id, discovered, row, out).unwrap_or_else(|error| {
                done = Err(error);
                ControlFlow::Break(())
            })
        });
        done
    })?;
    Ok(read?)
}
