//! The socket by which a running crawl is asked and told things.

use crate::base::write_json;
use crate::engine::inspect::handed::{Handed, PIECE_BYTES_MAX, PIECE_LINES_MAX};
use crate::engine::inspect::node_status::Gauges;
use crate::engine::inspect::questions::{Ask, Questions, Reply};
use crate::engine::runtime::actor::{joined, spawn};
use crate::engine::runtime::counters::Snapshot;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::NodeError;
use crate::engine::runtime::readings::Meter;
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use serde::Serialize;
use serde_json::json;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The socket of a data directory.
pub const CONTROL_SOCKET: &str = "node.sock";
/// Connections at once, each with a thread of its own; more wait.
const CONNECTIONS_MAX: usize = 16;
/// Whoever says nothing for so long is let go.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WRITE_MAX: Duration = Duration::from_secs(1);
/// A word and a URL.
const QUESTION_BYTES_MAX: usize = URL_BYTES_MAX + 64;
/// A question waits no longer for its answer, and URLs no longer for the disk.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const TAKE_MAX: Duration = Duration::from_secs(60);

/// The threads behind the socket. A line is a question, its answer is a line of JSON, or `{"error":"…"}`:
///
/// ```text
///   explain <url>   ──►   {"live":true,"dossier":…,"scope":…,"place":…}
///   status          ──►   {"pid":…,"state":"running",…}
///   stop            ──►   {"state":"stopping"}        the ordinary stop
///   pause, resume   ──►   {"state":"paused"}          no new requests; what is open may end
///   add <bytes>     ──►   {"new":…,"known":…,…}       so many bytes of URLs follow, one a line; they are on disk
///   import <bytes>  ──►   {"new":…,"known":…,…}       the same for lines of an import
/// ```
pub(crate) struct Control {
    path: PathBuf,
    thread: JoinHandle<()>,
    /// Closing this end wakes the thread, which ends.
    _wake: UnixStream,
}

/// What questions are answered from, and who is told what.
pub(crate) struct Desk {
    pub questions: Arc<Questions>,
    pub gauges: Gauges,
    pub meter: Arc<Meter>,
    /// The scheduler's bell.
    pub bell: Arc<Doorbell>,
}

struct Connection {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Control {
    /// Listens in a data directory whose lock is held: a socket that is there is of a process that is gone.
    pub fn start(data: &Path, desk: Desk) -> io::Result<Control> {
        let path = data.join(CONTROL_SOCKET);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(&path)?,
            Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "something else has its name")),
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (wake, end) = UnixStream::pair()?;
        let thread = spawn("control", move || serve(&listener, &end, &Arc::new(desk))).map_err(io_error)?;
        Ok(Control { path, thread, _wake: wake })
    }

    pub fn end(self) {
        let Control { path, thread, _wake } = self;
        drop(_wake);
        joined(thread);
        // Whoever asks from now on reads the files.
        let _ = fs::remove_file(path);
    }
}

fn io_error(error: NodeError) -> io::Error {
    match error {
        NodeError::Thread(cause) => cause,
        other => io::Error::other(other.to_string()),
    }
}

fn serve(listener: &UnixListener, end: &UnixStream, desk: &Arc<Desk>) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        // Without a place for more, those who ask wait for one.
        connections.retain(|connection| !connection.thread.is_finished());
        let (listens, timeout_ms) = match connections.len() < CONNECTIONS_MAX {
            true => (PollFlags::POLLIN, 1_000u16),
            false => (PollFlags::empty(), 20),
        };
        let mut fds = [PollFd::new(end.as_fd(), PollFlags::POLLIN), PollFd::new(listener.as_fd(), listens)];
        match poll(&mut fds, PollTimeout::from(timeout_ms)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => break,
        }
        if fds[0].any().unwrap_or(false) {
            break;
        }
        desk.gauges.sample(Instant::now());
        if fds[1].any().unwrap_or(false) {
            accept(listener, desk, &mut connections);
        }
    }
    for Connection { stream, thread } in connections {
        let _ = stream.shutdown(Shutdown::Both);
        joined(thread);
    }
}

fn accept(listener: &UnixListener, desk: &Arc<Desk>, connections: &mut Vec<Connection>) {
    while connections.len() < CONNECTIONS_MAX
        && let Ok((stream, _)) = listener.accept()
    {
        if !is_ours(&stream) {
            continue;
        }
        let (Ok(theirs), desk) = (stream.try_clone(), desk.clone()) else { continue };
        // An error is the end of a connection, and of nothing else.
        let conversation = move || drop(converse(&theirs, &desk));
        if let Ok(thread) = spawn("control", conversation) {
            connections.push(Connection { stream, thread });
        }
    }
}

/// Whether the other end is of the same user, or of root: the mode of the socket says so, too, once it is set.
fn is_ours(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}

/// Answers whole lines until the other end goes away, falls silent or says something that has no end.
fn converse(stream: &UnixStream, desk: &Desk) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(WRITE_MAX))?;
    let (mut reader, mut writer, mut line) = (BufReader::new(stream), stream, Vec::new());
    loop {
        line.clear();
        (&mut reader).take(QUESTION_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&line);
        let (verb, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let answer = match verb {
            "add" | "import" => take(&mut reader, verb == "add", rest, desk)?,
            _ => desk.answer(verb, rest),
        };
        writer.write_all(answer.as_bytes())?;
        writer.write_all(b"\n")?;
    }
}

/// Takes in URLs that follow. What is announced and too much is not read: the connection ends.
fn take(reader: &mut impl Read, are_seeds: bool, bytes: &str, desk: &Desk) -> io::Result<String> {
    let bytes = bytes.parse().ok().filter(|&bytes| bytes <= PIECE_BYTES_MAX);
    let mut piece = vec![0; bytes.ok_or(ErrorKind::InvalidData)?];
    reader.read_exact(&mut piece)?;
    let Some(handed) = Handed::read(&String::from_utf8_lossy(&piece), are_seeds) else {
        return Ok(error(&format!("more than {PIECE_LINES_MAX} lines at once")));
    };
    Ok(match desk.questions.ask(Ask::Take(Box::new(handed)), TAKE_MAX) {
        Some(Reply::Taken(taken)) => said(&taken),
        _ => error("no word yet: the crawl is ending, or waits for its disk; it may still take them"),
    })
}

impl Desk {
    fn answer(&self, verb: &str, rest: &str) -> String {
        match verb {
            "explain" => self.explain(rest),
            "status" => {
                let snapshot = Snapshot::of(&self.gauges.table);
                let counted = match self.questions.ask(Ask::Count, ANSWER_MAX) {
                    Some(Reply::Counted(stats)) => Some(stats),
                    _ => None,
                };
                said(&self.gauges.status(&snapshot, counted))
            }
            "stop" => {
                if !self.gauges.stop.swap(true, Ordering::Relaxed) {
                    let text = "stopping, as nephila stop asked: open fetches may end (5 s at most)";
                    self.gauges.health.tell(Event::Stopping, vec![("by", "nephila stop".into())], text);
                }
                self.bell.ring_if_asleep();
                json!({ "state": "stopping" }).to_string()
            }
            "pause" | "resume" => {
                let paused = verb == "pause";
                let state = if paused { "paused" } else { "running" };
                match self.questions.ask(Ask::Pause(paused), ANSWER_MAX) {
                    Some(_) => {
                        let open = Snapshot::of(&self.gauges.table).open;
                        json!({ "state": state, "pid": std::process::id(), "open": open }).to_string()
                    }
                    None => busy(),
                }
            }
            _ => error(
                "unknown question: explain <url>, status, stop, pause, resume, add <bytes> and import <bytes> are known",
            ),
        }
    }

    fn explain(&self, url: &str) -> String {
        match CrawlUrl::parse(url).map(|url| self.questions.ask(Ask::Explain(url), ANSWER_MAX)) {
            Ok(Some(Reply::Explained(looked))) => said(&*looked),
            Ok(_) => busy(),
            Err(e) => error(&e.to_string()),
        }
    }
}

fn said(answer: &impl Serialize) -> String {
    let mut json = Vec::new();
    match write_json(&mut json, answer) {
        Ok(()) => String::from_utf8_lossy(&json).into_owned(),
        Err(e) => error(&e.to_string()),
    }
}

fn error(text: &str) -> String {
    json!({ "error": text }).to_string()
}

fn busy() -> String {
    error("no answer within 2 s: the node is busy, or ending")
}
