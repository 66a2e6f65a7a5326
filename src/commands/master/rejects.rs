use super::command::{MasterData, plain_line};
use crate::commands::shared::{Failure, stream, write_json};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};

/// Print lines that could not be read, with file, line and reason
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master rejects --data ./nephila-master\n  nephila master rejects --epoch 17 --json\n\nA line: file, line, reason, hits and how it begins, separated by tabs. Exit status 1 if an epoch that is named was not committed."
)]
pub struct RejectsArgs {
    /// Only those of this epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
    #[command(flatten)]
    data: MasterData,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Rejected<'a> {
    epoch: u64,
    file: &'a str,
    line: Option<u64>,
    reason: &'a str,
    hits: Option<u64>,
    text: &'a str,
}

impl RejectsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let view = self.data.view()?;
        let (last, _) = view.epoch();
        if let Some(epoch) = self.epoch.filter(|epoch| *epoch > last || *epoch == 0) {
            return Err(Failure::No(format!("epoch {epoch} was not committed; the last one is {last}")));
        }
        let epochs: Vec<u64> = view
            .rejects()?
            .into_iter()
            .filter(|epoch| self.epoch.is_none_or(|only| only == *epoch))
            .collect();
        stream(|out| {
            for epoch in epochs {
                let file = match File::open(view.rejects_path(epoch)) {
                    // It was let go meanwhile.
                    Err(e) if e.kind() == ErrorKind::NotFound => continue,
                    file => file?,
                };
                for line in BufReader::new(file).split(b'\n') {
                    write(out, epoch, &line?, self.json)?;
                }
            }
            Ok(())
        })
    }
}

fn write(out: &mut impl Write, epoch: u64, line: &[u8], json: bool) -> io::Result<()> {
    let text = plain_line(line);
    if !json {
        return writeln!(out, "{text}");
    }
    let mut fields = text.splitn(5, '\t');
    let mut next = || fields.next().unwrap_or_default();
    let (file, number, reason, hits, text) = (next(), next(), next(), next(), next());
    let (line, hits) = (number.parse().ok(), hits.parse().ok());
    write_json(out, &Rejected { epoch, file, line, reason, hits, text })
}
