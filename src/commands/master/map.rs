use super::command::MasterData;
use crate::base::{named_enum, rfc3339, shown};
use crate::commands::shared::{Failure, counted, hint, now_ms, stream, tell, write_json};
use crate::engine::{OrderOf, TABLE_NOTE, drained, give_order};
use crate::master::keeping::{Kept, Master, MasterRules};
use crate::master::map::{DomainMap, Server};
use crate::master::moves::{MasterDesk, MoveDesk, MoveError, MoveOrder, Moves};
use crate::master::{By, MapRow, ServerId};
use crate::proto::reflog::Stamp;
use crate::proto::url::CrawlUrl;
use crate::store_server::Holder;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Look into the domain map, bring rows in and take them out
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master map ls --data ./nephila-master\n  nephila master map show example.org\n  nephila master map export > map.tsv"
)]
pub struct MapArgs {
    #[command(subcommand)]
    command: MapCommand,
}

#[derive(Subcommand)]
enum MapCommand {
    /// List domains with their servers, those with the most URLs an hour first
    #[command(after_help = "Example:\n  nephila master map ls --server 7 --limit 20 --data ./nephila-master")]
    Ls {
        /// Only those of this server
        #[arg(long, value_name = "N")]
        server: Option<u16>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        data: MasterData,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Say which server has a domain
    #[command(
        after_help = "Examples:\n  nephila master map show example.org --data ./nephila-master\n  nephila master map show http://www.example.org:8080/page\n\nExit status 1 if no server has it."
    )]
    Show {
        /// The domain; also a host in it, with a port or not, or a URL
        domain: String,
        #[command(flatten)]
        data: MasterData,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Move a domain to another server: the old one closes it and hands over what it has, then the new one gets it
    #[command(
        after_help = "Examples:\n  nephila master map move example.org 7 --data ./nephila-master\n  nephila master map move example.org 7 --force\n\nUntil the old server has closed the domain, nothing of it is sent. A running master is asked; without one it is done in the directory, and goes on when the master starts."
    )]
    Move {
        /// The domain
        domain: String,
        /// The number of the server that gets it
        server: u16,
        /// The node that has it is gone for good: do not wait for it. If it is not, two nodes ask the domain at once
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        data: MasterData,
    },
    /// Move every domain of a server to others, some at a time; it gets no new ones
    #[command(after_help = "Example:\n  nephila master map drain 7 --data ./nephila-master")]
    Drain {
        /// The number of the server
        server: u16,
        #[command(flatten)]
        data: MasterData,
    },
    /// Bring in rows, as export writes them; all of them or none
    #[command(
        after_help = "Examples:\n  nephila master map import map.tsv --data ./nephila-master\n  printf 'example.org\\t7\\n' | nephila master map import -\n\nA line: domain and server, separated by a tab; what export writes behind them may follow. A domain that the map has with another server is moved by map move, and not by this. No master may run on the directory."
    )]
    Import {
        /// The file; - is stdin
        file: PathBuf,
        #[command(flatten)]
        data: MasterData,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print all rows: domain, server, page_id, since, by, fence and where it moves, separated by tabs
    #[command(after_help = "Example:\n  nephila master map export --data ./nephila-master > map.tsv")]
    Export {
        #[command(flatten)]
        data: MasterData,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// A master that is in the middle of an epoch answers after it.
const ORDER_PATIENCE: Duration = Duration::from_secs(60);

named_enum! {
    /// Who says that a domain is with a server, as it is written.
    enum ByName {
        Rule = "rule",
        Person = "person",
        Import = "import",
    }
}

/// A row, as it is told.
#[derive(Serialize)]
struct RowTold {
    domain: String,
    server: u16,
    moving_to: Option<u16>,
    page_id: u64,
    since: String,
    by: ByName,
    fence: u32,
    urls_per_hour: f64,
}

#[derive(Serialize)]
struct Imported {
    rows: u64,
    new: u64,
}

impl MapArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            MapCommand::Ls { server, limit, data, json } => ls(&data, server, limit, json),
            MapCommand::Show { domain, data, json } => show(&data, &domain, json),
            MapCommand::Move { domain, server, force, data } => order(
                &data,
                OrderOf::Move { domain: domain.to_ascii_lowercase(), to: ServerId(server), force },
            ),
            MapCommand::Drain { server, data } => order(&data, OrderOf::Drain(ServerId(server))),
            MapCommand::Import { file, data, json } => import(&data, &file, json),
            MapCommand::Export { data, json } => export(&data, json),
        }
    }
}

impl RowTold {
    fn of(map: &DomainMap, index: u32, now_s: u32) -> Option<RowTold> {
        let row = map.row(index)?;
        Some(RowTold {
            urls_per_hour: (map.per_hour(index, now_s) * 1_000.0).round() / 1_000.0,
            domain: row.domain.into(),
            server: row.server.0,
            moving_to: row.moving_to.map(|server| server.0),
            page_id: row.page,
            since: rfc3339(u64::from(row.since_s) * 1_000),
            by: match row.by {
                By::Rule => ByName::Rule,
                By::Person => ByName::Person,
                By::Import => ByName::Import,
            },
            fence: row.fence,
        })
    }

    fn text(&self) -> String {
        let moves = self.moving_to.map_or(String::new(), |to| format!(", moves to server {to}"));
        format!(
            "domain     {}\nserver     {}{moves}\nsince      {} by {}\npage_id    {}\nfence      {}\nlately     {:.1} URLs an hour\n",
            shown(&self.domain, 253),
            self.server,
            self.since,
            self.by.name(),
            self.page_id,
            self.fence,
            self.urls_per_hour
        )
    }
}

fn ls(data: &MasterData, server: Option<u16>, limit: usize, json: bool) -> Result<(), Failure> {
    let view = data.view()?;
    let ((_, now_s), map) = (view.epoch(), view.map());
    let of_server = |index: &u32| match server {
        Some(server) => map.row(*index).is_some_and(|row| row.server.0 == server),
        None => true,
    };
    let mut order: Vec<u32> = (0..map.len() as u32).filter(of_server).collect();
    order.sort_by(|a, b| map.per_hour(*b, now_s).total_cmp(&map.per_hour(*a, now_s)).then(a.cmp(b)));
    stream(|out| {
        if !json {
            writeln!(out, "{:>10} {:>6}  {:<24}  domain", "URLs/h", "server", "since")?;
        }
        for told in order.iter().take(limit).filter_map(|index| RowTold::of(map, *index, now_s)) {
            if json {
                write_json(out, &told)?;
                continue;
            }
            let moves = match told.moving_to {
                Some(to) if to == told.server => "  (held: its row in the table cannot be so)".to_string(),
                Some(to) => format!("  (moves to {to}, waits for {} to close it)", told.server),
                None => String::new(),
            };
            writeln!(
                out,
                "{:>10.1} {:>6}  {:<24}  {}{moves}",
                told.urls_per_hour,
                told.server,
                told.since,
                shown(&told.domain, 253)
            )?;
        }
        Ok(())
    })
}

fn show(data: &MasterData, domain: &str, json: bool) -> Result<(), Failure> {
    let view = data.view()?;
    let (_, now_s) = view.epoch();
    let found = names(domain).iter().find_map(|name| view.map().find(name));
    match found.and_then(|at| RowTold::of(view.map(), at.index, now_s)) {
        Some(told) => tell(&told, json, RowTold::text),
        None => Err(Failure::No(format!(
            "no server has {} (nephila master map ls lists domains)",
            shown(domain, 253)
        ))),
    }
}

/// What a domain may be called in the map, by what somebody pasted: as it stands, its host, and the domain of that.
fn names(pasted: &str) -> Vec<String> {
    let pasted = pasted.trim().to_ascii_lowercase();
    let url = if pasted.contains("://") { pasted.clone() } else { format!("http://{pasted}/") };
    let mut names = vec![pasted];
    if let Ok(url) = CrawlUrl::parse(&url) {
        names.extend([url.host().to_string(), url.registrable_domain().to_string()]);
    }
    names
}

fn export(data: &MasterData, json: bool) -> Result<(), Failure> {
    let view = data.view()?;
    let (_, now_s) = view.epoch();
    stream(|out| {
        for index in 0..view.map().len() as u32 {
            if json {
                RowTold::of(view.map(), index, now_s).map_or(Ok(()), |told| write_json(out, &told))?;
            } else if let Some(row) = view.map().row(index) {
                out.write_all(line_of(&row).as_bytes())?;
            }
        }
        Ok(())
    })
}

/// Has it done, and says where to look: it takes as long as the node needs to close what it has open.
fn order(data: &MasterData, what: OrderOf) -> Result<(), Failure> {
    let text = match &what {
        OrderOf::Move { domain, to, .. } => {
            let domain = shown(domain, 253);
            format!("{domain} goes to server {} (nephila master map show {domain} tells how far it is)", to.0)
        }
        OrderOf::Drain(server) => format!(
            "server {} gets no new domains, and those that it has go to others (nephila master map ls lists them)",
            server.0
        ),
    };
    give(data, what)?;
    hint(text);
    Ok(())
}

/// A running master does it, or the directory is changed.
fn give(data: &MasterData, what: OrderOf) -> Result<(), Failure> {
    data.view()?;
    if Holder::of(&data.path)?.is_some() {
        return give_order(&data.path, &what, ORDER_PATIENCE)?.map_err(Failure::No);
    }
    let (mut master, _) = Master::open(&data.path, MasterRules::default())?;
    if master.note(TABLE_NOTE).is_some() {
        let text =
            "this master shares its map over PostgreSQL, and does not run: start it, or ask the other master";
        return Err(Failure::CannotRun(text.to_string()));
    }
    let has_queue = |number: &u16| master.reader(ServerId(*number)).is_some();
    let servers = (0..u16::MAX).filter(has_queue).map(Server::new).collect();
    let by = master.by();
    master.configure(MasterRules { servers, ..MasterRules::default() })?;
    let now_s = u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX);
    let mut desk = MasterDesk { master: &mut master, by, now_s };
    let done = match what {
        OrderOf::Drain(server) if !desk.knows(server) => {
            Err(MoveError::Refused(format!("server {} has no queue here", server.0)))
        }
        OrderOf::Drain(server) if desk.drains(server) => Ok(()),
        OrderOf::Drain(server) => match Moves::new(&desk).may_drain(server, &mut desk) {
            Ok(()) => Ok(desk.master.keep(&drained(&[server]), now_s)?),
            refused => refused,
        },
        OrderOf::Move { domain, to, force } => {
            let order = MoveOrder { domain: &domain, to, force };
            Moves::new(&desk).order(order, &mut desk, None)
        }
    };
    done.map_err(|error| match error {
        MoveError::Refused(why) => Failure::No(shown(&why, 500)),
        other => Failure::CannotRun(other.to_string()),
    })
}

fn line_of(row: &MapRow) -> String {
    let since = Stamp::from_s(row.since_s).digits();
    let by = match row.by {
        By::Rule => "rule",
        By::Person => "person",
        By::Import => "import",
    };
    format!(
        "{}\t{}\t{}\t{}\t{by}\t{}\t{}\n",
        shown(&row.domain, 253),
        row.server.0,
        row.page,
        String::from_utf8_lossy(&since),
        row.fence,
        row.moving_to.map_or("-".to_string(), |to| to.0.to_string())
    )
}

fn import(data: &MasterData, file: &Path, json: bool) -> Result<(), Failure> {
    let now_s = u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX);
    let cannot = |e: io::Error| Failure::CannotRun(format!("{}: {e}", file.display()));
    let input: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(
            File::open(file)
                .map_err(|e| Failure::Usage(format!("{}: {e} (name a file of rows)", file.display())))?,
        ),
    };
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(input).split(b'\n')) {
        let line = line.map_err(cannot)?;
        let text = std::str::from_utf8(&line).unwrap_or("\u{fffd}").trim_end_matches('\r');
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        rows.push(row_of(text, now_s).map_err(|what| {
            Failure::Usage(format!("{}:{number}: {what} (a line is domain, tab, server)", file.display()))
        })?);
    }
    if rows.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no rows (a line is domain, tab, server)",
            file.display()
        )));
    }
    let (mut master, _) = Master::open(&data.path, MasterRules::default())?;
    for row in &rows {
        if let Some(known) = master.map().get(&row.domain)
            && known.server != row.server
        {
            return Err(Failure::No(format!(
                "{} is with server {}, not {}: nothing was brought in (nephila master map move moves it)",
                shown(&row.domain, 253),
                known.server.0,
                row.server.0
            )));
        }
    }
    let total = rows.len() as u64;
    rows.retain(|row| master.map().get(&row.domain).is_none());
    let mut servers = crate::base::SortedMap::new();
    for row in &rows {
        if let Some(other) = servers.insert(&row.domain, row.server)
            && other != row.server
        {
            let (domain, one, two) = (shown(&row.domain, 253), other.0, row.server.0);
            return Err(Failure::Usage(format!(
                "{domain} stands there with server {one} and with server {two}"
            )));
        }
    }
    let imported = Imported { rows: total, new: servers.len() as u64 };
    let kept = Kept { rows: rows.clone(), ..Kept::default() };
    master.keep(&kept, now_s)?;
    tell(&imported, json, |told| format!("{} of {} new to the map\n", told.new, counted(told.rows, "row")))
}

/// A row as export writes it, or its first two fields.
fn row_of(line: &str, now_s: u32) -> Result<MapRow, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [domain, server, more @ ..] = fields.as_slice() else {
        return Err(format!("{} has no server", shown(line, 100)));
    };
    let is_name = !domain.is_empty()
        && domain.len() <= 253
        && domain.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    if !is_name {
        return Err(format!("{} is no domain in lower case", shown(domain, 100)));
    }
    let server: u16 =
        server.parse().map_err(|_| format!("{} is no number of a server", shown(server, 100)))?;
    if server == u16::MAX {
        return Err("the highest number of a server is 65534".to_string());
    }
    let page = more.first().map_or(Ok(0), |page| page.parse());
    let since = more.get(1).map_or(Some(now_s), |since| Stamp::parse(since.as_bytes()).map(Stamp::s));
    let (Ok(page), Some(since_s)) = (page, since) else {
        return Err("the third field is a page_id, the fourth a time like 20110727200841".to_string());
    };
    Ok(MapRow {
        domain: (*domain).into(),
        server: ServerId(server),
        moving_to: None,
        page,
        since_s,
        by: By::Import,
        fence: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_paste_names_a_domain() {
        for pasted in [
            "www.Example.org:8080",
            "http://www.example.org:8080/a?b",
            " www.example.org ",
            "www.example.org.",
        ] {
            assert!(names(pasted).contains(&"example.org".to_string()), "{pasted}");
        }
        assert_eq!(names("a b"), ["a b"]);
        assert!(names("127.0.0.1:80").contains(&"127.0.0.1".to_string()));
    }

    #[test]
    fn a_row_is_read_as_it_is_written() {
        let row = row_of("example.org\t7\t4599\t20110727200841\trule\t3\t-", 5).unwrap();
        assert_eq!((row.server, row.page, row.since_s), (ServerId(7), 4_599, 1_311_797_321));
        assert_eq!(line_of(&row), "example.org\t7\t4599\t20110727200841\timport\t0\t-\n");
        assert_eq!(row_of("example.org\t7", 5).unwrap().since_s, 5);
        for bad in [
            "example.org",
            "Example.org\t7",
            "\t7",
            "a b\t7",
            "a\t70000",
            "a\t65535",
            "a\t7\tx",
            "a\t7\t1\t2",
        ] {
            assert!(row_of(bad, 5).is_err(), "{bad}");
        }
    }
}
