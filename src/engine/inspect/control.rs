//! The socket by which a running crawl is asked questions.

use crate::base::write_json;
use crate::engine::inspect::questions::Questions;
use crate::engine::runtime::actor::{joined, spawn};
use crate::engine::runtime::health::NodeError;
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::CrawlUrl;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The socket of a data directory.
pub const CONTROL_SOCKET: &str = "node.sock";
/// Connections at once; more are closed.
const CONNECTIONS_MAX: usize = 8;
/// Whoever says nothing for so long is let go.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WRITE_MAX: Duration = Duration::from_secs(1);
/// A word and a URL.
const QUESTION_BYTES_MAX: usize = URL_BYTES_MAX + 64;
/// A question waits no longer for its answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The thread behind the socket. A line is a question, its answer is a line of JSON:
///
/// ```text
///   explain <url>   ──►   {"live":true,"dossier":…,"scope":…,"place":…}   or   {"error":"…"}
/// ```
pub(crate) struct Control {
    path: PathBuf,
    thread: JoinHandle<()>,
    /// Closing this end wakes the thread, which ends.
    _wake: UnixStream,
}

struct Connection {
    stream: UnixStream,
    line: Vec<u8>,
    heard: Instant,
}

impl Control {
    /// Listens in a data directory whose lock is held: a socket that is there is of a process that is gone.
    pub fn start(data: &Path, questions: Arc<Questions>) -> io::Result<Control> {
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
        let thread =
            spawn("control", move || serve(&listener, &end, &questions)).map_err(|error| match error {
                NodeError::Thread(cause) => cause,
                other => io::Error::other(other.to_string()),
            })?;
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

fn serve(listener: &UnixListener, end: &UnixStream, questions: &Questions) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut fds = vec![
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
        ];
        fds.extend(connections.iter().map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, PollTimeout::from(1_000u16)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
        let has = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        if has(&fds[0]) {
            return;
        }
        let asks = has(&fds[1]);
        let mut ready = fds[2..].iter().map(has).collect::<Vec<_>>().into_iter();
        connections.retain_mut(|connection| match ready.next() {
            Some(true) => connection.hear(questions).is_ok(),
            _ => connection.heard.elapsed() < SILENCE_MAX,
        });
        if asks {
            accept(listener, &mut connections);
        }
    }
}

fn accept(listener: &UnixListener, connections: &mut Vec<Connection>) {
    while let Ok((stream, _)) = listener.accept() {
        let sound =
            stream.set_nonblocking(false).is_ok() && stream.set_write_timeout(Some(WRITE_MAX)).is_ok();
        if connections.len() < CONNECTIONS_MAX && sound {
            connections.push(Connection { stream, line: Vec::new(), heard: Instant::now() });
        }
    }
}

impl Connection {
    /// Reads what has come and answers whole lines. An error is the end of it.
    fn hear(&mut self, questions: &Questions) -> io::Result<()> {
        let mut bytes = [0; QUESTION_BYTES_MAX];
        let read = self.stream.read(&mut bytes)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.heard = Instant::now();
        for &byte in &bytes[..read] {
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() >= QUESTION_BYTES_MAX {
                    return Err(ErrorKind::InvalidData.into());
                }
                continue;
            }
            let mut answer = answer(&String::from_utf8_lossy(&self.line), questions);
            self.line.clear();
            answer.push('\n');
            self.stream.write_all(answer.as_bytes())?;
        }
        Ok(())
    }
}

fn answer(line: &str, questions: &Questions) -> String {
    let error = |text: &str| json!({ "error": text }).to_string();
    let Some(url) = line.trim().strip_prefix("explain ") else {
        return error("unknown question: explain <url> is one");
    };
    let url = match CrawlUrl::parse(url) {
        Ok(url) => url,
        Err(e) => return error(&e.to_string()),
    };
    match questions.ask(url, ANSWER_MAX) {
        Some(looked) => {
            let mut json = Vec::new();
            match write_json(&mut json, &*looked) {
                Ok(()) => String::from_utf8_lossy(&json).into_owned(),
                Err(e) => error(&e.to_string()),
            }
        }
        None => error("no answer within 2 s: the node is busy, or ending"),
    }
}
