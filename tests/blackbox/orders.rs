//! A spider that is told by the test what to fetch, and every DONE that it said before its end: the pages that nothing
//! may take away any more.

use crate::support::*;
use nephila::farm::SiteSpec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Far more pages than a test asks for: no URL is ordered twice once it is done.
const HOSTS: u32 = 8;
const PAGES: u32 = 1_000_000;
/// Orders that a spider has at a time.
pub const WINDOW: usize = 64;

/// Segments as small as they may be, so that they are filled, sealed and made all the time.
pub const SMALL_SEGMENTS: &str = "[spider]\nmax_doc_size = 65536\n[store]\nsegment_bytes = 360000\n";

/// A farm, and which of its pages were reported stored.
pub struct Orders {
    pub farm: Farm,
    /// Of pages that were looked at before.
    digests: BTreeMap<String, String>,
    done: BTreeSet<u32>,
    /// Sent and not answered: sent again first.
    open: BTreeSet<u32>,
    /// Answered when the disk was failing: see [`Orders::note_in_doubt`].
    doubt: BTreeSet<u32>,
    next: u32,
}

impl Orders {
    pub fn new(page_bytes: u32) -> Orders {
        let spec = SiteSpec { hosts: HOSTS, pages: PAGES, page_bytes, links: 1, ..SiteSpec::default() };
        let farm = Farm::start(spec);
        let (done, open, doubt) = Default::default();
        Orders { farm, digests: BTreeMap::new(), done, open, doubt, next: 0 }
    }

    /// Another store: nothing is reported of it.
    pub fn forget(&mut self) {
        self.done.clear();
        self.open.clear();
        self.doubt.clear();
    }

    pub fn done(&self) -> usize {
        self.done.len()
    }

    /// The orders that the next spider gets, those that were sent and not answered first.
    fn lines(&self, count: u32) -> VecDeque<(u32, String)> {
        let orders = self.open.iter().copied().chain(self.next..self.next + count);
        orders
            .map(|order| {
                let (host, page) = place(order);
                (order, format!("{order} {order} 127.16.0.{host} {}\n", self.farm.url(host, page)))
            })
            .collect()
    }

    /// Gives a spider `count` orders more than it had open, a window at a time, until it has answered all or is gone.
    pub fn give(&self, addr: SocketAddr, count: u32) -> Talk {
        let lines = self.lines(count);
        let count = lines.len();
        let said = Arc::new(Said::default());
        let talker = std::thread::spawn({
            let said = said.clone();
            move || {
                // It may be dead already: then nothing was said.
                if let Ok(stream) = TcpStream::connect(addr) {
                    let _ = talk(&stream, lines, &said);
                }
            }
        });
        Talk { said, talker, count }
    }

    /// Notes what was answered.
    pub fn note(&mut self, talk: Talk) {
        talk.talker.join().expect("the talk goes by the rules");
        self.hear(&talk.said);
    }

    /// As [`Orders::note`], of a talk that goes on.
    pub fn note_so_far(&mut self, talk: &Talk) {
        self.hear(&talk.said);
    }

    /// Notes what was answered after the power was cut. The kernel itself lies about a sync that was under way at that
    /// moment, so that what hung on it is in doubt until [`Orders::settle`].
    pub fn note_in_doubt(&mut self, talk: Talk) {
        let firm = self.done.clone();
        self.note(talk);
        self.doubt = self.done.difference(&firm).copied().collect();
        self.done = firm;
    }

    /// Says how much of what was in doubt is not in the store. It is ordered again.
    pub fn settle(&mut self, listed: &[Listed]) -> usize {
        let found: BTreeSet<u32> = listed.iter().map(|record| record.doc_id).collect();
        let (kept, lost): (Vec<u32>, Vec<u32>) =
            std::mem::take(&mut self.doubt).into_iter().partition(|order| found.contains(order));
        self.done.extend(kept);
        self.open.extend(&lost);
        lost.len()
    }

    fn hear(&mut self, said: &Said) {
        // In this order: whatever is answered was sent before.
        let done = std::mem::take(&mut *said.done.lock().unwrap());
        for order in said.sent.lock().unwrap().drain(..) {
            self.next = self.next.max(order + 1);
            self.open.insert(order);
        }
        for order in done {
            assert!(self.open.remove(&order), "{order} is answered once");
            self.done.insert(order);
        }
    }

    /// What lies in a store after an end of whatever kind: every record is whole, and every page that was reported is
    /// there. Listed twice, for looking changes nothing.
    #[track_caller]
    pub fn check(&mut self, data: &Path) -> Vec<Listed> {
        if self.done.is_empty() && !data.join("segments").exists() {
            return Vec::new();
        }
        let listed = records(data);
        assert_eq!(listed, records(data), "looking at a store changes nothing");
        let mut found = BTreeSet::new();
        for record in &listed {
            assert_eq!((&*record.result, record.success), ("ok", true), "{record:?}");
            let (host, page) = place(record.doc_id);
            assert_eq!(record.url, self.farm.url(host, page), "{record:?}");
            assert_eq!(record.sha1, *self.digest(&record.url, host, page), "{record:?}");
            found.insert(record.doc_id);
        }
        let lost: Vec<&u32> = self.done.difference(&found).collect();
        assert!(
            lost.is_empty(),
            "{} of {} pages that were DONE are lost: {lost:?}",
            lost.len(),
            self.done.len()
        );
        listed
    }

    /// A few of the pages that were reported read as the farm serves them.
    #[track_caller]
    pub fn check_some_by_cat(&mut self, data: &Path, count: usize) {
        let step = (self.done.len() / count.max(1)).max(1);
        for &order in self.done.iter().step_by(step) {
            let (host, page) = place(order);
            let document = self.farm.site.document(host, page, self.farm.port);
            assert!(cat(data, &self.farm.url(host, page)) == document, "order {order}");
        }
    }

    fn digest(&mut self, url: &str, host: u32, page: u32) -> &String {
        let farm = &self.farm;
        let make = || sha1_hex(&farm.site.document(host, page, farm.port));
        self.digests.entry(url.to_string()).or_insert_with(make)
    }
}

/// Host and page of an order.
fn place(order: u32) -> (u32, u32) {
    (order % HOSTS, order / HOSTS)
}

#[derive(Default)]
struct Said {
    sent: Mutex<Vec<u32>>,
    done: Mutex<Vec<u32>>,
    count: AtomicUsize,
}

/// A talk with one spider, in a thread of its own.
pub struct Talk {
    said: Arc<Said>,
    talker: JoinHandle<()>,
    /// Orders to be answered.
    count: usize,
}

impl Talk {
    /// Orders that were answered so far.
    pub fn done(&self) -> usize {
        self.said.count.load(Ordering::Acquire)
    }

    pub fn is_answered(&self) -> bool {
        self.done() == self.count
    }

    pub fn is_over(&self) -> bool {
        self.talker.is_finished()
    }
}

/// Ends when all is answered, or with the error that the spider's end is.
fn talk(stream: &TcpStream, mut lines: VecDeque<(u32, String)>, said: &Said) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut words = BufReader::new(stream);
    let mut sender = stream;
    let mut open = 0;
    loop {
        let room = lines.len().min(WINDOW - open);
        let batch: Vec<(u32, String)> = lines.drain(..room).collect();
        open += batch.len();
        if open == 0 {
            return Ok(());
        }
        said.sent.lock().unwrap().extend(batch.iter().map(|(order, _)| order));
        let text: String = batch.into_iter().map(|(_, line)| line).collect();
        let sent = sender.write_all(text.as_bytes());
        let mut word = String::new();
        // What it said before its end is read even if it takes no more.
        words.read_line(&mut word)?;
        if !word.ends_with('\n') {
            return sent;
        }
        if let Some(order) = word.trim_end().strip_suffix(" DONE") {
            said.done.lock().unwrap().push(order.parse().expect("an order"));
            said.count.fetch_add(1, Ordering::Release);
            open -= 1;
        }
    }
}

// Spiders ---------------------------------------------------------------------------------------------------

/// A spider on two cores that waits for orders, with these settings; `before` stands before its command line.
pub fn spider_command(before: &[String], data: &Path, config: &Path) -> Command {
    let program = env!("CARGO_BIN_EXE_nephila");
    let mut words: Vec<&str> = before.iter().map(String::as_str).collect();
    words.push(program);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["spider", "--json", "--allow-net", "127.0.0.0/8"]);
    command.args(["--listen", "127.0.0.1:0", "--fetches-max", "64", "--config"]).arg(config);
    command.arg("--data").arg(data).stdin(std::process::Stdio::null());
    command
}

/// Where it listens; `None` if it ended before it did.
#[track_caller]
pub fn listens(spider: &mut Running) -> Option<SocketAddr> {
    wait_for("it listens or ends", PATIENCE, || {
        let ended = spider.has_ended();
        let stderr = spider.stderr();
        let line = stderr.lines().find(|line| line.starts_with("spider: listening on "));
        match line.and_then(|line| line.rsplit(' ').next()?.parse().ok()) {
            Some(addr) => Some(Some(addr)),
            None if ended => Some(None),
            None => None,
        }
    })
}

/// The words before a command that is killed when one of its threads is about to make a system call for this time.
pub fn killed_at(call: &str, time: u32) -> Vec<String> {
    injected(call, &format!("signal=KILL:when={time}"))
}

/// The same of one whose call does nothing, and fails as if the disk had.
pub fn refused_at(call: &str, time: u32) -> Vec<String> {
    injected(call, &format!("error=EIO:when={time}"))
}

/// The same of one to which something else happens.
pub fn injected(call: &str, what: &str) -> Vec<String> {
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null"];
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{what}"));
    let words = words.into_iter().chain(["-e", &trace, "-e", &inject]);
    words.map(str::to_string).collect()
}

/// Whether programs can be killed at a system call here; that they cannot is said.
pub fn can_trace() -> bool {
    let words = killed_at("openat", 1);
    let run = Command::new(&words[0]).args(&words[1..]).arg("true").output();
    let can = run.is_ok_and(|run| run.status.code().is_none());
    if !can {
        println!("strace cannot trace here: skipped");
    }
    can
}

/// Copies a directory with everything in it but sockets.
pub fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match path.is_dir() {
            true => copy_tree(&path, &to),
            false if path.metadata().is_ok_and(|found| found.file_type().is_socket()) => {}
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Chances from a seed, which is printed: a failure can be had again.
pub struct Chance(u64);

impl Chance {
    /// From `NEPHILA_SEED`, or from the clock.
    pub fn new() -> Chance {
        let given = std::env::var("NEPHILA_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| crate::link::now_ns() as u64);
        println!("NEPHILA_SEED={seed}");
        Chance(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
