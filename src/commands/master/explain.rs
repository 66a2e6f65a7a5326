use super::command::MasterData;
use crate::base::{rfc3339, shown};
use crate::commands::shared::{Failure, now_ms, parse_url, tell};
use crate::master::explain::{Explained, SentAt};
use crate::proto::reflog::Stamp;
use clap::Args;
use serde::Serialize;

/// Say when a URL came and was sent, to whom, and why not now
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master explain http://example.org/ --data ./nephila-master\n  nephila master explain http://example.org/ --now 20110727210000 --json\n\nExit status 1 if this master has not met the URL lately."
)]
pub struct ExplainArgs {
    /// The URL, in any spelling
    url: String,
    /// Judge by this time, like 20110727200841, instead of the clock
    #[arg(long, value_name = "T", value_parser = stamp)]
    now: Option<Stamp>,
    #[command(flatten)]
    data: MasterData,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ExplainTold {
    url: String,
    /// Without parameters that make no other document.
    counts_as: Option<String>,
    /// In hexadecimal digits.
    id: Option<String>,
    domain: String,
    server: Option<u16>,
    moving_to: Option<u16>,
    sent: Option<String>,
    seen: Option<String>,
    hits_waiting: u32,
    hits_held: u64,
    sendings: Vec<SendingTold>,
    verdict: String,
}

#[derive(Serialize)]
struct SendingTold {
    at: String,
    server: u16,
    seq: u64,
    epoch: u64,
    hits: u32,
    tag: String,
}

/// A time as a reflog writes it.
pub(super) fn stamp(text: &str) -> Result<Stamp, String> {
    Stamp::parse(text.as_bytes()).ok_or_else(|| "a time is fourteen digits, like 20110727200841".to_string())
}

fn time(unix_s: u32) -> String {
    rfc3339(u64::from(unix_s) * 1_000)
}

impl ExplainArgs {
    pub fn run(self) -> Result<(), Failure> {
        let url = parse_url(&self.url)?;
        let mut view = self.data.view()?;
        let now_s = self.now.map_or(u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX), Stamp::s);
        let explained = Explained::of(&mut view, &url, now_s)?;
        let is_known = explained.is_known();
        tell(&ExplainTold::from(explained), self.json, ExplainTold::text)?;
        if is_known { Ok(()) } else { Err(Failure::No(String::new())) }
    }
}

impl From<Explained> for ExplainTold {
    fn from(explained: Explained) -> ExplainTold {
        let sent =
            |current: &crate::master::epoch::CurrentRow| (current.sent_s > 0).then(|| time(current.sent_s));
        ExplainTold {
            id: explained.id.map(|id| format!("{id:016x}")),
            server: explained.row.as_ref().map(|row| row.server.0),
            moving_to: explained.row.as_ref().and_then(|row| row.moving_to).map(|to| to.0),
            sent: explained.current.as_ref().and_then(sent),
            seen: explained.current.map(|current| time(current.seen_s)),
            hits_waiting: explained.current.map_or(0, |current| current.hits),
            hits_held: explained.held_hits,
            sendings: explained.sent.into_iter().map(SendingTold::from).collect(),
            url: explained.url,
            counts_as: explained.counts_as,
            domain: explained.domain,
            verdict: explained.verdict,
        }
    }
}

impl From<SentAt> for SendingTold {
    fn from(SentAt { server, seq, epoch, at_s, hits, tag }: SentAt) -> SendingTold {
        SendingTold { at: time(at_s), server: server.0, seq, epoch, hits, tag }
    }
}

impl ExplainTold {
    fn text(&self) -> String {
        let server = match (self.server, self.moving_to) {
            (Some(server), Some(to)) => format!("server {server}, moves to {to}"),
            (Some(server), None) => format!("server {server}"),
            (None, _) => "no server yet".to_string(),
        };
        let mut text = format!(
            "url        {}\nid         {}\ndomain     {} ({server})\n",
            shown(&self.url, 2_000),
            self.id.as_deref().unwrap_or("-"),
            shown(&self.domain, 253)
        );
        if let Some(counts_as) = &self.counts_as {
            let (counts_as, domain) = (shown(counts_as, 2_000), shown(&self.domain, 253));
            text += &format!("counts as  {counts_as} (nephila master args {domain} says why)\n");
        }
        if let Some(seen) = &self.seen {
            text += &format!("came       {seen}\n");
        }
        for SendingTold { at, server, seq, epoch, hits, tag } in &self.sendings {
            let tag = if tag.is_empty() { String::new() } else { format!(", tag {}", shown(tag, 128)) };
            text +=
                &format!("sent       {at} to server {server} as {seq} in epoch {epoch}, hits {hits}{tag}\n");
        }
        text + &format!("now        {}\n", self.verdict)
    }
}
