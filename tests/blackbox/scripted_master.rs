//! A master that follows a script: a plain TCP server with a queue, which notes what it is told and answers as the test
//! wants it to.

use crate::support::{PATIENCE, Running, nephila, run, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How a scripted master answers a TAKE.
#[derive(Clone, Debug, PartialEq)]
pub enum Mood {
    /// As a master does.
    Good,
    /// Takes the question, and says nothing.
    Silent,
    /// Hangs up.
    Closes,
    /// Half of the entries, and the half of one more; then it hangs up.
    Half,
    /// A line now and then, and never an end.
    Dribbles,
    /// All entries, and then this.
    Ends(String),
    /// This, and then it hangs up.
    Refuses(String),
}

struct State {
    entries: Vec<String>,
    mark: String,
    mood: Mood,
    /// What nodes said.
    told: Vec<String>,
    /// Connections that stand.
    streams: Vec<TcpStream>,
}

pub struct ScriptedMaster {
    pub addr: SocketAddr,
    state: Arc<Mutex<State>>,
    is_over: Arc<AtomicBool>,
}

/// An entry for a URL, asked for at that second of a day.
pub fn entry(url: &str) -> String {
    format!("1\t5\t20260101120000\t17\t{url}\t1\t")
}

impl ScriptedMaster {
    pub fn start() -> ScriptedMaster {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            entries: Vec::new(),
            mark: "20260101120000".to_string(),
            mood: Mood::Good,
            told: Vec::new(),
            streams: Vec::new(),
        }));
        let is_over = Arc::new(AtomicBool::new(false));
        let master = ScriptedMaster { addr, state: state.clone(), is_over: is_over.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (state, is_over) = (state.clone(), is_over.clone());
                state.lock().unwrap().streams.push(stream.try_clone().unwrap());
                std::thread::spawn(move || serve(&stream, &state, &is_over));
            }
        });
        master
    }

    pub fn with(entries: impl IntoIterator<Item = String>) -> ScriptedMaster {
        let master = ScriptedMaster::start();
        master.add(entries);
        master
    }

    pub fn add(&self, entries: impl IntoIterator<Item = String>) {
        self.state.lock().unwrap().entries.extend(entries);
    }

    pub fn mark(&self, mark: &str) {
        self.state.lock().unwrap().mark = mark.to_string();
    }

    pub fn mood(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    pub fn told(&self) -> Vec<String> {
        self.state.lock().unwrap().told.clone()
    }

    /// Forgets what it was told.
    pub fn forget(&self) {
        self.state.lock().unwrap().told.clear();
    }

    /// Says something to every node.
    pub fn say(&self, line: &str) {
        for mut stream in &self.state.lock().unwrap().streams {
            let _ = stream.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Hangs up on every node.
    pub fn hang_up(&self) {
        self.state.lock().unwrap().streams.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    /// The first that it was told that begins so.
    #[track_caller]
    pub fn hears(&self, start: &str) -> String {
        let what = format!("{start} at {}", self.addr);
        wait_for(&what, PATIENCE, || self.told().into_iter().find(|line| line.starts_with(start)))
    }
}

impl Drop for ScriptedMaster {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.hang_up();
        let _ = TcpStream::connect(self.addr);
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>, is_over: &AtomicBool) {
    let mut out = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        state.lock().unwrap().told.push(line.clone());
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] != "TAKE" {
            continue;
        }
        let (from, max) = match words[2] {
            "SINCE" => (0, words[4]),
            seq => (seq.parse().unwrap(), words[3]),
        };
        if take(&mut out, state, is_over, from, max.parse().unwrap()).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn take(
    out: &mut TcpStream,
    state: &Mutex<State>,
    is_over: &AtomicBool,
    from: usize,
    max: usize,
) -> std::io::Result<()> {
    // Well within the silence that the node is told.
    let until = Instant::now() + Duration::from_millis(150);
    let hang_up = || Err(std::io::ErrorKind::ConnectionAborted.into());
    loop {
        let (entries, mark, mood) = {
            let state = state.lock().unwrap();
            let entries: Vec<String> = state.entries.iter().skip(from).take(max).cloned().collect();
            (entries, state.mark.clone(), state.mood.clone())
        };
        let all: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        match mood {
            Mood::Good if entries.is_empty() && Instant::now() < until => {
                if is_over.load(Ordering::Relaxed) {
                    return hang_up();
                }
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            Mood::Good => {
                let upto = from + entries.len();
                out.write_all(format!("{all}UPTO {upto} {mark}\n").as_bytes())?;
            }
            Mood::Silent => {}
            Mood::Closes => return hang_up(),
            Mood::Half => {
                out.write_all(&all.as_bytes()[..all.len() / 2])?;
                return hang_up();
            }
            Mood::Dribbles => {
                for entry in entries.iter().cycle() {
                    out.write_all(format!("{entry}\n").as_bytes())?;
                    std::thread::sleep(Duration::from_millis(300));
                    if is_over.load(Ordering::Relaxed) {
                        return hang_up();
                    }
                }
            }
            Mood::Ends(end) => out.write_all(format!("{all}{end}\n").as_bytes())?,
            Mood::Refuses(text) => {
                out.write_all(format!("{text}\n").as_bytes())?;
                return hang_up();
            }
        }
        return Ok(());
    }
}

// The node --------------------------------------------------------------------------------------------------

/// A crawl that takes for server 7, with a short silence.
pub fn node_command(data: &Path, masters: &[&ScriptedMaster]) -> Command {
    let masters: Vec<String> = masters.iter().map(|master| master.addr.to_string()).collect();
    let config = data.with_extension("toml");
    std::fs::write(&config, "[crawl]\ntimeout_master = \"1500ms\"\n").unwrap();
    let mut command = nephila();
    command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--cores", "0", "--depth", "0"]);
    command.args(["--master", &masters.join(","), "--server", "7"]);
    command.arg("--config").arg(config).arg("--data").arg(data);
    command
}

pub fn start_node(data: &Path, masters: &[&ScriptedMaster]) -> Running {
    Running::start(&mut node_command(data, masters))
}

/// Every URL that the index of a directory knows; nothing may run there.
pub fn known(data: &Path) -> BTreeSet<String> {
    let lines = run([std::ffi::OsStr::new("index"), "export".as_ref(), "--data".as_ref(), data.as_os_str()]);
    let lines = lines.done().json_lines();
    lines.iter().map(|line| line["url"].as_str().unwrap().to_string()).collect()
}

/// `nephila status --json` of a crawl that runs.
pub fn status(data: &Path) -> Value {
    run([std::ffi::OsStr::new("status"), "--json".as_ref(), "--data".as_ref(), data.as_os_str()]).json()
}

/// What `master.position` says of a master.
pub fn position(data: &Path, master: &ScriptedMaster) -> u64 {
    let text = std::fs::read_to_string(data.join("master.position")).unwrap_or_default();
    let start = format!("seq {} ", master.addr);
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |seq| seq.parse().unwrap())
}
