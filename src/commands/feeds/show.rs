use super::change::named;
use super::desk::book;
use super::feed_told::{FeedTold, time};
use crate::base::{shown, span};
use crate::commands::shared::{DataArg, Failure, tell, with_age};
use crate::doc_index::{DocState, DocumentLine};
use crate::feeds::{PollReason, Polls};
use crate::proto::record::ResultCode;
use clap::Args;
use serde::Serialize;

/// Print everything that is known of a feed: its last polls, when the next one is, and why then
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds show --data ./example 7\n  nephila feeds show --data ./example http://example.org/rss.xml --json\n\nExit status 1 if there is no such feed."
)]
pub struct ShowArgs {
    /// The feed, by its number or URL, also one that it has moved from
    #[arg(value_name = "ID|URL")]
    feed: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Polls that are shown.
const LAST_POLLS: usize = 10;

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    feed: FeedTold,
    /// What the next poll says it has.
    etag: Option<String>,
    last_modified: Option<String>,
    /// Why the rules of the last crawl did not let it be asked.
    left_out: Option<String>,
    last_polls: Vec<PollTold>,
}

#[derive(Serialize)]
struct PollTold {
    at: Option<String>,
    result: Option<ResultCode>,
    status: u16,
    next: Option<String>,
    why: PollReason,
}

impl ShowArgs {
    pub fn run(self) -> Result<(), Failure> {
        let view = book(&self.data.path)?;
        let id = named(&view, &self.feed, &self.data.path)?;
        let feed = view.feed(id).ok_or_else(|| Failure::No("it was removed".into()))?;
        let told = |polls: &Polls| PollTold {
            at: time(polls.attempt_s()),
            result: ResultCode::from_u8(polls.result()),
            status: polls.status(),
            next: time(polls.due_s()),
            why: polls.why(),
        };
        let last_polls = view.last_polls(id, LAST_POLLS).iter().map(told).collect();
        let line = feed.doc_id().and_then(|doc_id| self.document(doc_id));
        let (etag, last_modified, left_out) = line.map_or((None, None, None), |line| {
            let is_left_out = line.state == Some(DocState::Excluded);
            (line.etag, line.last_modified, line.reason.filter(|_| is_left_out))
        });
        let feed = FeedTold::in_full(&view, feed);
        let shown = Shown { feed, etag, last_modified, left_out, last_polls };
        tell(&shown, self.json, Shown::text)
    }
}

impl ShowArgs {
    /// What the doc index has it as. A book that no crawl has opened has none.
    fn document(&self, doc_id: u32) -> Option<DocumentLine> {
        let found = self.data.view().ok()?.document(doc_id).ok()??;
        Some(DocumentLine::of(&found, None))
    }
}

impl Shown {
    fn text(&self) -> String {
        let feed = &self.feed;
        let at = |time: &Option<String>| time.as_deref().map(with_age);
        let text = |text: &str| Some(shown(text, 300)).filter(|text| !text.is_empty());
        let lasting = |seconds: Option<u32>| seconds.map(|seconds| span(u64::from(seconds)));
        let last = feed.last_result.map(|result| match feed.last_status {
            Some(status) => format!("{result} ({status})"),
            None => result.to_string(),
        });
        let failing =
            at(&feed.failing_since).map(|since| format!("{} polls in a row, since {since}", feed.failures));
        let counts = &feed.counts;
        let hours: Vec<String> = (0..24)
            .filter(|hour| feed.hints.skip_hours >> hour & 1 == 1)
            .map(|hour| hour.to_string())
            .collect();
        let days: Vec<&str> = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
            .into_iter()
            .enumerate()
            .filter(|(day, _)| feed.hints.skip_days >> day & 1 == 1)
            .map(|(_, name)| name)
            .collect();
        let names: Vec<String> = feed.names.iter().map(u32::to_string).collect();
        let rows: [(&str, Option<String>); 34] = [
            ("id", Some(feed.id.to_string())),
            ("url", text(&feed.url)),
            ("title", text(&feed.title)),
            ("source", text(&feed.source)),
            ("state", Some(feed.state.name().to_string())),
            ("format", feed.format.map(|format| format.name().to_string())),
            ("language", feed.language.as_deref().and_then(text)),
            ("hub", feed.hub.as_deref().and_then(text)),
            ("doc_id", feed.doc_id.map(|doc_id| doc_id.to_string())),
            ("moved from", text(&feed.moved_from.join(" "))),
            ("merged into", feed.merged_into.map(|feed| feed.to_string())),
            ("named by", feed.named_by.map(|page| format!("{page}, a page"))),
            ("names", text(&names.join(" "))),
            ("added", at(&feed.added)),
            ("next poll", Some(feed.because.clone())),
            ("left out", self.left_out.as_deref().and_then(text)),
            ("asked", feed.unconditional.then(|| "without conditions".to_string())),
            ("last poll", at(&feed.last_attempt)),
            ("result", last),
            ("last success", at(&feed.last_success)),
            ("last new story", at(&feed.last_new)),
            ("failing", failing),
            ("mean gap", lasting(feed.mean_gap_s)),
            ("ttl", lasting(feed.hints.ttl_s)),
            ("update period", lasting(feed.hints.period_s)),
            ("max-age", lasting(feed.max_age_s)),
            ("skip hours", text(&hours.join(" "))),
            ("skip days", text(&days.join(" "))),
            ("ETag", self.etag.as_deref().and_then(text)),
            ("Last-Modified", self.last_modified.as_deref().and_then(text)),
            ("validators", feed.lies.then(|| "lie: only what comes is compared".to_string())),
            ("guids", feed.guids_bad.then(|| "tell nothing, and are not believed".to_string())),
            (
                "polls",
                Some(format!(
                    "{}, {} not modified, {} redundant, {} failed, {} with a gap before them",
                    counts.polls, counts.not_modified, counts.redundant, counts.failed, counts.gaps
                )),
            ),
            (
                "entries",
                Some(format!(
                    "{}, {} new, known by URL {}, by guid {}, by title {}, skipped {}",
                    counts.entries,
                    counts.new,
                    counts.dup_url,
                    counts.dup_guid,
                    counts.dup_title,
                    counts.skipped
                )),
            ),
        ];
        let mut out = String::new();
        for (name, value) in rows {
            if let Some(value) = value {
                out += &format!("{name:<15} {value}\n");
            }
        }
        for poll in &self.last_polls {
            let result = poll.result.map_or("-", ResultCode::name);
            let next = poll.next.as_deref().unwrap_or("never");
            out += &format!(
                "{:<15} {} {result} {}, next {next} ({})\n",
                "  poll",
                poll.at.as_deref().unwrap_or("-"),
                poll.status,
                poll.why.name()
            );
        }
        out
    }
}
