use super::command::{MasterData, plain_line};
use crate::base::rfc3339;
use crate::commands::shared::{Failure, sized, stream, write_json};
use crate::master::ServerId;
use crate::master::queue::{QueueError, QueueReader};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{self, Write};

/// List the queues of the nodes, and print what is in one
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master queue ls --data ./nephila-master\n  nephila master queue cat 7 --from 1200 --data ./nephila-master"
)]
pub struct QueueArgs {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Subcommand)]
enum QueueCommand {
    /// List the queues: what is in each, and how far its node is
    #[command(after_help = "Example:\n  nephila master queue ls --data ./nephila-master --json")]
    Ls {
        #[command(flatten)]
        data: MasterData,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print the entries of a queue, as they are sent
    #[command(
        after_help = "Examples:\n  nephila master queue cat 7 --data ./nephila-master\n  nephila master queue cat 7 --from 1200 --limit 10 --json\n\nExit status 1 if the server has no queue, or the queue does not have that number."
    )]
    Cat {
        /// The number of the server
        server: u16,
        /// Begin at this number instead of the first that is kept
        #[arg(long, value_name = "SEQ")]
        from: Option<u64>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        limit: u64,
        #[command(flatten)]
        data: MasterData,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// A queue, as it is listed.
#[derive(Serialize)]
struct Listed {
    server: u16,
    first: u64,
    next: u64,
    /// Below it the node has everything.
    position: u64,
    waiting: u64,
    bytes: u64,
    waiting_bytes: u64,
    mark: Option<String>,
}

#[derive(Serialize)]
struct EntryLine<'a> {
    seq: u64,
    line: &'a str,
}

impl QueueArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            QueueCommand::Ls { data, json } => ls(&data, json),
            QueueCommand::Cat { server, from, limit, data, json } => cat(&data, server, from, limit, json),
        }
    }
}

fn ls(data: &MasterData, json: bool) -> Result<(), Failure> {
    let mut view = data.view()?;
    stream(|out| {
        if !json {
            writeln!(
                out,
                "{:>6} {:>14} {:>14} {:>14} {:>12} {:>12}  everything up to",
                "server", "first", "next", "position", "waiting", "on disk"
            )?;
        }
        for (server, queue) in view.queues() {
            let listed = Listed::of(server, queue);
            if json {
                write_json(out, &listed)?;
                continue;
            }
            let Listed { server, first, next, position, waiting, bytes, mark, .. } = listed;
            let mark = mark.as_deref().unwrap_or("-");
            writeln!(
                out,
                "{server:>6} {first:>14} {next:>14} {position:>14} {waiting:>12} {:>12}  {mark}",
                sized(bytes)
            )?;
        }
        Ok(())
    })
}

impl Listed {
    fn of(server: ServerId, queue: &QueueReader) -> Listed {
        let (bytes, waiting_bytes) = queue.bytes();
        let (next, position) = (queue.next_seq(), queue.position());
        let mark = queue.mark(position).s();
        Listed {
            server: server.0,
            first: queue.first_seq(),
            next,
            position,
            waiting: next - position,
            bytes,
            waiting_bytes,
            mark: (mark > 0).then(|| rfc3339(u64::from(mark) * 1_000)),
        }
    }
}

/// Entries that are read at once.
const AT_ONCE: u64 = 1_000;

fn cat(data: &MasterData, server: u16, from: Option<u64>, limit: u64, json: bool) -> Result<(), Failure> {
    let mut view = data.view()?;
    let Some(queue) = view.queue(ServerId(server)) else {
        return Err(Failure::No(format!("server {server} has no queue (nephila master queue ls lists all)")));
    };
    let mut from = from.unwrap_or_else(|| queue.first_seq());
    let (mut left, mut failed) = (limit, None);
    stream(|out| {
        while left > 0 {
            let mut seq = from;
            let mut written: io::Result<()> = Ok(());
            let read = queue.read(from, left.min(AT_ONCE), 1 << 20, |line| {
                let text = plain_line(line);
                let write = match json {
                    true => write_json(out, &EntryLine { seq, line: &String::from_utf8_lossy(line) }),
                    false => writeln!(out, "{text}"),
                };
                seq += 1;
                if written.is_ok() {
                    written = write;
                }
            });
            written?;
            match read {
                Ok(next) if next == from => break,
                Ok(next) => (left, from) = (left - (next - from), next),
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        Ok(())
    })?;
    match failed {
        None => Ok(()),
        Some(e @ (QueueError::Beyond { .. } | QueueError::Gone { .. })) => {
            Err(Failure::No(format!("server {server}: {e}")))
        }
        Some(e) => Err(Failure::CannotRun(format!("server {server}: {e}"))),
    }
}
