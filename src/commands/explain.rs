use super::cluster::AskedNode;
use super::index::{line_of, typed};
use super::index_stat::origin_of;
use super::shared::{DataArg, Failure, RunningCrawl, now_ms, tell, with_age};
use crate::base::{Wall, shown};
use crate::doc_index::{DocumentLine, IndexView, QueryVariants};
use crate::engine::{
    Circumstances, CrawlRules, Explained, HostLine, NodeState, NodeStatus, OwnerView, RobotsLine,
    RobotsState, Said, ScopeLine, Status, index_folder, remembered, scope_of,
};
use crate::feeds::{FeedState, FeedsView, Known, PollReason, StoriesView, Story, StoryState};
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::CrawlUrl;
use clap::Args;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Say why a URL was fetched, is not fetched yet, or never will be
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila explain http://example.org/ --data ./example\n  nephila explain http://example.org/private --data ./example --json\n\nA running crawl answers for itself; otherwise its files are read.\nExit status 1: the URL is not fetched, and by these rules never will be."
)]
pub struct ExplainArgs {
    /// The URL to explain
    url: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    pub fn run(self) -> Result<(), Failure> {
        let url = typed(&self.url, &self.data.path)?;
        let asking = Asking::of(&self.data)?;
        let status = asking.look(&url)?;
        let there = match status.target() {
            Some(target) => {
                let status = asking.look(&target)?;
                Some((target, status))
            }
            None => None,
        };
        let is_paused = status.live && asking.is_paused();
        let around = Circumstances { rules: &asking.rules, now_ms: asking.now_ms, is_paused };
        let explained = Explained::of(&url, status, there, &around);
        let is_no = explained.answer.is_no;
        let (feed, stories) = of_feeds(&url, &self.data.path)?;
        let owner = AskedNode::at(&self.data.path).ok().and_then(|node| node.try_owner(&url));
        tell(&Told { explained, owner, feed, stories }, self.json, text_of)?;
        match is_no {
            true => Err(Failure::No(String::new())),
            false => Ok(()),
        }
    }
}

/// What is told: of the URL, and of feeds and stories by it.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    explained: Explained,
    /// Of a node that runs: the node that the URL belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feed: Option<FeedAtUrl>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stories: Vec<StoryAtUrl>,
}

/// The feed that a URL is of.
#[derive(Serialize)]
struct FeedAtUrl {
    id: u32,
    source: String,
    state: FeedState,
    /// When it is asked next, in seconds since 1970, 0 for never; why then, in a word and in words.
    due_s: u32,
    why: PollReason,
    next_poll: String,
}

/// A story that a URL is of, or is another way to.
#[derive(Serialize)]
struct StoryAtUrl {
    id: u32,
    source: String,
    /// `None` of a duplicate.
    state: Option<StoryState>,
    said: String,
}

/// What feeds have to do with a URL, by the files of the crawl, whether it runs or not.
fn of_feeds(url: &CrawlUrl, data: &Path) -> io::Result<(Option<FeedAtUrl>, Vec<StoryAtUrl>)> {
    let Some(book) = FeedsView::open(data)? else { return Ok((None, Vec::new())) };
    let name = |source| book.source(source).map_or(String::new(), |source| source.name.to_string());
    let feed = book.by_url(url.as_str()).and_then(|feed| book.feed(feed)).map(|feed| {
        let next = feed.polls().next();
        FeedAtUrl {
            id: feed.id().0,
            source: name(feed.source()),
            state: feed.state(),
            due_s: next.due_s,
            why: next.why,
            next_poll: next.text(feed.polls().attempt_s()),
        }
    });
    let known =
        StoriesView::open(data)?.map_or(Ok(Vec::new()), |view| view.by_url(url.as_str(), book.sources()))?;
    let story = |known: Known| match known {
        Known::Story(Story { id, source, state, .. }) => StoryAtUrl {
            id: id.0,
            source: name(source),
            state: Some(state),
            said: format!("story {id} of {}: {}", name(source), state.name()),
        },
        Known::Duplicate { of, by, source, .. } => StoryAtUrl {
            id: of.0,
            source: name(source),
            state: None,
            said: format!("the same as story {of} of {}, by its {}", name(source), by.name()),
        },
    };
    Ok((feed, known.into_iter().map(story).collect()))
}

/// Whom to ask: a node that runs, and the files.
struct Asking<'a> {
    data: &'a Path,
    view: IndexView,
    rules: CrawlRules,
    now_ms: u64,
}

impl Asking<'_> {
    fn of(data: &DataArg) -> Result<Asking<'_>, Failure> {
        let rules = CrawlRules::read(&index_folder(&data.path))?.unwrap_or_default();
        Ok(Asking { data: &data.path, view: data.view()?, rules, now_ms: now_ms() })
    }

    fn look(&self, url: &CrawlUrl) -> io::Result<Status> {
        let asked = match RunningCrawl::at(self.data) {
            Ok(Some(mut crawl)) => crawl.get(&format!("/api/v1/explain?url={}", escaped(url))),
            _ => Ok(None),
        };
        match asked {
            Ok(Some(status)) => Ok(status),
            Ok(None) => self.read_files(url),
            Err(trouble) => Ok(Status { trouble: Some(trouble.to_string()), ..self.read_files(url)? }),
        }
    }

    /// What the files say, as a node would.
    fn read_files(&self, url: &CrawlUrl) -> io::Result<Status> {
        let mut looked = Status::default();
        if let Some(found) = self.view.find(url.as_str())? {
            looked.dossier = Some(line_of(&self.view, &found)?);
        }
        let seeds = self.view.scope_urls()?;
        let depth = looked.dossier.as_ref().and_then(DocumentLine::links_followed);
        let depth = depth.filter(|_| !seeds.contains(url));
        // What a feed tells of is fetched wherever links may lead.
        if !looked.dossier.as_ref().is_some_and(DocumentLine::is_of_feeds) {
            let scope = scope_of(&self.rules.config(), &seeds);
            looked.scope = Some(ScopeLine::of(&scope.judge_at(url, depth)));
        }
        let rules = &self.rules;
        let has_query = url.path_and_query().contains('?');
        let limited = rules.doc_index.pages_per_host > 0
            || rules.doc_index.pages_per_domain > 0
            || (rules.doc_index.query_variants_max > 0 && has_query);
        if looked.dossier.is_none() && limited {
            self.count(url, &mut looked)?;
        }
        // The journal tells whole seconds, and so does this.
        let wall = Wall { unix_ms_at_zero: self.now_ms / 1_000 * 1_000 };
        looked.remembered(
            &remembered(self.data, &self.rules.user_agent, wall)?,
            url.origin(),
            url.path_and_query(),
            wall,
        );
        Ok(looked)
    }

    /// How much of the budgets is used.
    fn count(&self, url: &CrawlUrl, looked: &mut Status) -> io::Result<()> {
        let (mut host, mut domain) = (HostLine::default(), 0);
        let mut variants = QueryVariants::new(self.rules.doc_index.query_variants_max);
        self.view.each(|_, discovered, _| {
            host.counts.known += u32::from(origin_of(&discovered.url) == url.origin());
            if !discovered.origin.provenance.seed_chain {
                variants.admit(&discovered.url);
            }
            let same = |found: &CrawlUrl| found.registrable_domain() == url.registrable_domain();
            domain += u32::from(
                self.rules.doc_index.pages_per_domain > 0
                    && !discovered.origin.provenance.seed_chain
                    && CrawlUrl::from_normal(&discovered.url).is_ok_and(|found| same(&found)),
            );
            ControlFlow::Continue(())
        })?;
        looked.host = Some(host);
        looked.domain_known = (self.rules.doc_index.pages_per_domain > 0).then_some(domain);
        looked.variants_known = Some(variants.count(url.as_str()));
        Ok(())
    }

    fn is_paused(&self) -> bool {
        let asked = RunningCrawl::at(self.data)
            .ok()
            .flatten()
            .map(|mut crawl| crawl.get::<NodeStatus>("/api/v1/status"));
        matches!(asked, Some(Ok(Some(NodeStatus { state: NodeState::Paused, .. }))))
    }
}

fn text_of(told: &Told) -> String {
    let explained = &told.explained;
    let status = &explained.status;
    let mut rows = vec![("url", explained.url.clone()), ("answer", explained.answer.said.clone())];
    rows.extend(told.owner.as_ref().map(|owner| ("owner", owner_text(owner))));
    if let Some(Said { url: Some(target), said, .. }) = &explained.redirect {
        rows.push(("there", format!("{target}: {said}")));
    }
    if let Some(dossier) = &status.dossier {
        let since = dossier.discovered_at.as_deref().map_or("some time".to_string(), with_age);
        let via = dossier.via.as_deref().map_or("as a seed".to_string(), |via| format!("via {via}"));
        rows.push(("known", format!("since {since}, {via}, depth {}", dossier.depth)));
        rows.extend(dossier.canonical.clone().map(|canonical| ("canonical", canonical)));
    }
    rows.extend(told.feed.as_ref().map(|feed| {
        let FeedAtUrl { id, source, state, next_poll, .. } = feed;
        ("feed", format!("feed {id} of {source}, {}; asked next {next_poll}", state.name()))
    }));
    rows.extend(told.stories.iter().map(|story| ("story", story.said.clone())));
    rows.extend(status.scope.as_ref().map(|scope| ("scope", scope.said.clone())));
    let budgets = [
        (explained.pages_per_host, status.host.map(|host| host.counts.known), "host"),
        (explained.pages_per_domain, status.domain_known, "domain"),
    ];
    for (max, known, whose) in budgets {
        let known = known.filter(|_| max > 0);
        rows.extend(known.map(|known| ("budget", format!("{known} of {max} URLs of its {whose}"))));
    }
    rows.extend(status.robots.as_ref().map(|robots| ("robots", robots_text(robots))));
    let pause = status.niceness.as_ref().and_then(|niceness| niceness.pause_until.as_ref());
    rows.extend(
        pause.map(|until| ("pause", format!("nothing is asked of its host before {}", with_age(until)))),
    );
    rows.extend(status.trouble.clone().map(|trouble| ("trouble", trouble)));
    let by = if status.live { "the running crawl" } else { "the files of the crawl" };
    rows.push(("source", by.to_string()));
    rows.iter().map(|(name, said)| format!("{name:<10} {}\n", shown(said, 2 * URL_BYTES_MAX))).collect()
}

fn owner_text(owner: &OwnerView) -> String {
    match owner.node {
        0 => "nobody, at this moment".to_string(),
        node if owner.here => format!("this node, {node}"),
        node => format!("node {node} at {}: what becomes of it is decided and known there", owner.address),
    }
}

/// A URL as the value of a query.
fn escaped(url: &CrawlUrl) -> String {
    url::form_urlencoded::byte_serialize(url.as_str().as_bytes()).collect()
}

fn robots_text(robots: &RobotsLine) -> String {
    let until = robots.until.as_deref().map_or(String::new(), |until| format!(", until {}", with_age(until)));
    let rule = robots.rule.as_deref().map_or(String::new(), |rule| format!(" by \"{rule}\""));
    match (robots.state, robots.allowed) {
        (RobotsState::Known, Some(true)) => format!("allowed{rule}{until}"),
        (RobotsState::Known, _) => format!("denied{rule}{until}"),
        (RobotsState::Unreachable, _) => {
            format!("robots.txt cannot be fetched, so nothing may be asked{until}")
        }
        (RobotsState::Asked, _) => "robots.txt is being fetched".to_string(),
        (RobotsState::Unknown, _) => "robots.txt is not known".to_string(),
    }
}
