use super::command::{MasterData, while_it_runs};
use crate::base::shown;
use crate::commands::shared::{Failure, stream, write_json};
use crate::master::epoch::{CurrentLog, CurrentRow, Domains, IdKey};
use crate::master::keeping::MasterView;
use crate::master::queue::{BlockKind, Entry, QueueError};
use crate::proto::reflog::{ReflogRecord, Stamp};
use clap::Args;
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Write};

/// Print current_log or filtered_log as text
#[derive(Args)]
#[command(after_help = "\
Lines are fields separated by tabs, times as a reflog writes them:
  --filtered   url, domain, time, hits, updatetag, server
  --current    url, domain, sent, seen, hits since sent, updatetag; where a URL is not kept any more, # and its id

Examples:
  nephila master log --filtered --data ./nephila-master
  nephila master log --filtered --epoch 17 | sort
  nephila master log --current --json

Exit status 1 if the epoch was not committed, or what it sent was let go.")]
pub struct LogArgs {
    /// What is remembered of URLs that came lately
    #[arg(long, conflicts_with_all = ["filtered", "epoch"])]
    current: bool,
    /// What an epoch has sent
    #[arg(long)]
    filtered: bool,
    /// This epoch instead of the last
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
    #[command(flatten)]
    data: MasterData,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FilteredLine<'a> {
    url: &'a str,
    domain: &'a str,
    time: String,
    hits: u32,
    updatetag: &'a str,
    server: u16,
}

#[derive(Serialize)]
struct CurrentLine<'a> {
    id: String,
    url: Option<&'a str>,
    domain: Option<&'a str>,
    sent: Option<String>,
    seen: String,
    hits: u32,
    /// `null` if it is too long to be kept.
    updatetag: Option<String>,
}

/// Rows of current_log whose URLs are looked up at once.
const ROWS_AT_ONCE: usize = 1 << 20;

fn digits(unix_s: u32) -> String {
    String::from_utf8_lossy(&Stamp::from_s(unix_s).digits()).into_owned()
}

impl LogArgs {
    pub fn run(self) -> Result<(), Failure> {
        match (self.filtered, self.current) {
            (true, _) => filtered(self.data.view()?, self.epoch, self.json),
            (false, true) => current(&self.data, self.json),
            (false, false) => {
                let text = "which log? --filtered prints what an epoch has sent, --current what is remembered of URLs";
                Err(Failure::Usage(text.to_string()))
            }
        }
    }
}

fn filtered(mut view: MasterView, epoch: Option<u64>, json: bool) -> Result<(), Failure> {
    let (last, _) = view.epoch();
    let epoch = epoch.unwrap_or(last);
    if epoch == 0 || epoch > last {
        return Err(Failure::No(format!("epoch {epoch} was not committed; the last one is {last}")));
    }
    let sent = view.history().find(|told| told.epoch == epoch).map(|told| told.counts.sent);
    let mut domains = Domains::new(view.rules().by());
    // A reader that has seen enough leaves it unfinished.
    let (mut written, mut failed, mut is_whole) = (0u64, None, false);
    stream(|out| {
        failed = each_sent(&mut view, epoch, |record, server| {
            written += 1;
            write_filtered(out, record, server, &mut domains, json)
        })?;
        is_whole = true;
        Ok(())
    })?;
    match failed {
        Some(QueueError::Io(e)) => Err(e.into()),
        Some(e) => Err(Failure::CannotRun(e.to_string())),
        None if is_whole && sent.is_some_and(|sent| sent != written) => {
            Err(Failure::No(format!("a part of what epoch {epoch} sent was let go")))
        }
        None => Ok(()),
    }
}

/// Tells what an epoch sent, as far as it can be read: why not further, if so.
fn each_sent(
    view: &mut MasterView,
    epoch: u64,
    mut each: impl FnMut(&ReflogRecord<'_>, u16) -> io::Result<()>,
) -> io::Result<Option<QueueError>> {
    for (server, queue) in view.queues() {
        let Some((from, upto)) = queue.of_epoch(epoch) else { continue };
        let mut done = Ok(());
        let read = queue.blocks(from, |header, lines| {
            if header.first_seq >= upto {
                return false;
            }
            if header.epoch != epoch || header.kind != BlockKind::Epoch {
                return true;
            }
            for line in lines[..lines.len() - 1].split(|byte| *byte == b'\n') {
                if let Entry::Url(record) = Entry::read(line)
                    && done.is_ok()
                {
                    done = each(&record, server.0);
                }
            }
            done.is_ok()
        });
        done?;
        if let Err(e) = read {
            return Ok(Some(e));
        }
    }
    Ok(None)
}

/// What an epoch sent, as texts of `master once` have it: URL, domain, time, hits, tag.
pub(super) fn write_filtered_text(view: &mut MasterView, epoch: u64, out: &mut impl Write) -> io::Result<()> {
    let mut domains = Domains::new(view.rules().by());
    let failed = each_sent(view, epoch, |record, _| {
        let domain = domains.place(record.url);
        let parts = [
            record.url,
            &record.url[domain],
            &record.at.digits(),
            record.hits.to_string().as_bytes(),
            record.tag,
        ]
        .join(&b'\t');
        out.write_all(&parts)?;
        out.write_all(b"\n")
    })?;
    failed.map_or(Ok(()), |error| Err(io::Error::other(error.to_string())))
}

fn write_filtered(
    out: &mut impl Write,
    record: &ReflogRecord<'_>,
    server: u16,
    domains: &mut Domains,
    json: bool,
) -> io::Result<()> {
    let url = String::from_utf8_lossy(record.url);
    let domain = String::from_utf8_lossy(&record.url[domains.place(record.url)]).into_owned();
    let (tag, time, hits) = (String::from_utf8_lossy(record.tag), digits(record.at.s()), record.hits);
    if json {
        let (url, domain, updatetag) = (url.as_ref(), domain.as_str(), tag.as_ref());
        return write_json(out, &FilteredLine { url, domain, time, hits, updatetag, server });
    }
    let (url, domain, tag) = (shown(&url, 16_384), shown(&domain, 253), shown(&tag, 256));
    writeln!(out, "{url}\t{domain}\t{time}\t{hits}\t{tag}\t{server}")
}

/// A master that runs may replace the file before it is open; once it is, it can be read to its end.
fn current(data: &MasterData, json: bool) -> Result<(), Failure> {
    let (mut view, log) = while_it_runs(|| {
        let view = data.view()?;
        Ok(view.current().map(|log| (view, log)))
    })?;
    stream(|out| write_log(&mut view, log.as_ref(), json, out))
}

/// What is remembered: URL, domain, sent, seen, hits since it was sent, tag.
pub(super) fn write_current_log(view: &mut MasterView, json: bool, out: &mut impl Write) -> io::Result<()> {
    let log = view.current()?;
    write_log(view, log.as_ref(), json, out)
}

fn write_log(
    view: &mut MasterView,
    log: Option<&CurrentLog>,
    json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let (Some(log), Some(key)) = (log, view.key()?) else { return Ok(()) };
    let mut domains = Domains::new(view.rules().by());
    let mut partition = 0u16;
    while partition < 256 {
        let mut rows = Vec::new();
        let first = partition as u8;
        while partition < 256 && rows.len() < ROWS_AT_ONCE {
            rows_of(log, partition as u8, &mut rows)?;
            partition += 1;
        }
        let urls = urls_of(view, &key, first, (partition - 1) as u8)?;
        for row in &rows {
            write_current(out, row, urls.get(&row.id).map(|url| url.as_ref()), &mut domains, json)?;
        }
    }
    Ok(())
}

fn rows_of(log: &CurrentLog, partition: u8, rows: &mut Vec<CurrentRow>) -> io::Result<()> {
    let mut some = log.partition(partition);
    while let Some(row) = some.next()? {
        rows.push(row);
    }
    Ok(())
}

/// URLs of some partitions that queues and held lines have, by their ids.
fn urls_of(
    view: &mut MasterView,
    key: &IdKey,
    first: u8,
    last: u8,
) -> io::Result<RapidHashMap<u64, Box<[u8]>>> {
    let mut urls: RapidHashMap<u64, Box<[u8]>> = RapidHashMap::default();
    let mut add = |line: &[u8]| {
        if let Entry::Url(record) = Entry::read(line) {
            let id = key.id(record.url);
            if (first..=last).contains(&((id >> 56) as u8)) {
                urls.entry(id).or_insert_with(|| record.url.into());
            }
        }
    };
    for (_, queue) in view.queues() {
        let mut from = queue.first_seq();
        loop {
            match queue.read(from, u64::MAX, 1 << 20, &mut add) {
                Ok(next) if next == from => break,
                Ok(next) => from = next,
                Err(QueueError::Damaged { seq, next, .. }) => from = next.max(seq + 1),
                Err(e) => return Err(io::Error::other(e.to_string())),
            }
        }
    }
    if let Some(path) = view.held_path() {
        for line in BufReader::new(std::fs::File::open(path)?).split(b'\n') {
            add(&line?);
        }
    }
    Ok(urls)
}

fn write_current(
    out: &mut impl Write,
    row: &CurrentRow,
    url: Option<&[u8]>,
    domains: &mut Domains,
    json: bool,
) -> io::Result<()> {
    let text = url.map(String::from_utf8_lossy);
    let domain = url.map(|url| String::from_utf8_lossy(&url[domains.place(url)]).into_owned());
    let mut room = [0; 8];
    let tag = row.tag.text(&mut room).map(|tag| String::from_utf8_lossy(tag).into_owned());
    let (sent, seen, hits) = (digits(row.sent_s), digits(row.seen_s), row.hits);
    let id = format!("{:016x}", row.id);
    if json {
        let sent = (row.sent_s > 0).then_some(sent);
        let (url, domain) = (text.as_deref(), domain.as_deref());
        return write_json(out, &CurrentLine { id, url, domain, sent, seen, hits, updatetag: tag });
    }
    let url = text.map_or_else(|| format!("#{id}"), |url| shown(&url, 16_384));
    let (domain, tag) =
        (shown(domain.as_deref().unwrap_or("-"), 16_384), shown(tag.as_deref().unwrap_or("…"), 256));
    writeln!(out, "{url}\t{domain}\t{sent}\t{seen}\t{hits}\t{tag}")
}
