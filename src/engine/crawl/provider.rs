use crate::base::{fingerprint, shown};
use crate::config::Config;
use crate::doc_index::{
    DocIndex, DocumentLine, Import, Link, MOVED, Mention, Origin, Outcome, PRIORITY_USUAL, RejectList,
};
use crate::engine::crawl::away_domains::{AwayDomains, origins_of};
use crate::engine::crawl::entering::{Entering, mention, next_line, plain_mention};
use crate::engine::crawl::feed_polls::FeedPolls;
use crate::engine::crawl::feeds_home::FeedsHome;
use crate::engine::crawl::messages::{Found, ToIndex};
use crate::engine::crawl::settings::index_rules;
use crate::engine::crawl::stored_pages::StoredPages;
use crate::engine::inspect::entries::{DomainMove, Entered, Entries, HandedOver};
use crate::engine::inspect::feed_words::{FeedWord, FeedsTold, NamedFeed};
use crate::engine::inspect::handed::{Handed, Taken};
use crate::engine::inspect::questions::Leaves;
use crate::engine::inspect::status::{HostLine, Place, ScopeLine, Status};
use crate::feeds::Told;
use crate::handler::{Discover, Scope, Verdict};
use crate::proto::auth::MissingAuth;
use crate::proto::job::{Candidate, DocKind, Provenance};
use crate::proto::lines::MasterWord;
use crate::proto::record::ResultCode;
use crate::proto::sitemap::Sitemaps;
use crate::proto::url::{CrawlUrl, RecrawlRules};
use crate::store_server::ShardShare;
use rapidhash::fast::RapidHashSet;
use std::io;
use std::sync::Arc;

/// What is to be fetched next: the doc index, and the rules by which this crawl takes from it and adds to it.
pub struct Provider {
    index: DocIndex,
    rules: ProviderRules,
    away: AwayDomains,
    /// Where there are any.
    polls: Option<FeedPolls>,
    feeds_home: Option<FeedsHome>,
    named_feeds: NamedFeeds,
}

/// Feeds that pages name and that are only told of, each once.
#[derive(Default)]
struct NamedFeeds {
    told: RapidHashSet<u64>,
    /// Feeds and the pages that name them, which nobody was told of yet.
    untold: Vec<(CrawlUrl, Box<str>)>,
}

/// Feeds that pages name are told of up to this many.
const NAMED_FEEDS_MAX: usize = 10_000;
/// Feeds in a book that pages add to.
const DISCOVERED_FEEDS_MAX: usize = 100_000;

/// What a provider goes by.
pub struct ProviderRules {
    /// Reads pages that have not changed from the store, if the rules for links have since they were read.
    pub stored_pages: Option<StoredPages>,
    /// What an earlier process found is handed out only if it is in scope today.
    pub scope: Option<Arc<Scope>>,
    /// Documents of earlier processes are numbered below this.
    pub first_new: u32,
    pub sitemaps: Sitemaps,
    /// Fixed intervals.
    pub recrawl: RecrawlRules,
    /// Where nothing is fetched, for want of credentials.
    pub locked: MissingAuth,
}

/// A sitemap tells of many pages at once: it is read before them.
fn sitemap(via: u32, depth: u16) -> Origin {
    let provenance = Provenance { kind: DocKind::Sitemap, ..Provenance::link(depth) };
    Origin { priority: PRIORITY_USUAL + 1, ..Origin::new(via, provenance) }
}

/// What a page leads to: where it redirects to, and its links.
fn links_of(found: &Found) -> impl Iterator<Item = Link<'_>> {
    let new = found.new_url.as_ref().map(|new| Link {
        url: new.url.as_str(),
        origin: Origin::new(found.doc_id, new.provenance),
        via: found.url.as_str(),
    });
    let origin = Origin::link(found.doc_id, found.depth);
    new.into_iter().chain(found.links.iter().map(move |url| Link { url, origin, via: found.url.as_str() }))
}

/// Entries that are looked up together.
const MENTIONS_AT_ONCE: usize = 64;

/// Times that candidates are looked for, before what was excluded on the way is written.
const ROUNDS: usize = 8;

impl ProviderRules {
    /// Whether URLs are left in their normal form.
    fn is_plain(&self) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.canon().is_identity())
    }

    /// Of a crawl that leaves nothing behind.
    pub fn plain() -> ProviderRules {
        ProviderRules {
            stored_pages: None,
            scope: None,
            first_new: 0,
            sitemaps: Sitemaps::Off,
            recrawl: RecrawlRules::default(),
            locked: MissingAuth::default(),
        }
    }
}

impl Provider {
    pub fn new(index: DocIndex, rules: ProviderRules) -> Provider {
        Provider {
            index,
            rules,
            away: AwayDomains::default(),
            polls: None,
            feeds_home: None,
            named_feeds: NamedFeeds::default(),
        }
    }

    /// Feeds may be polled. Those of the book are, and these; what an operator should hear is returned.
    pub(crate) fn begin_feeds(
        &mut self,
        home: FeedsHome,
        new: &[NamedFeed],
        now_s: u32,
    ) -> io::Result<Vec<Told>> {
        let is_wanted = home.has_feeds() || !new.is_empty();
        self.feeds_home = Some(home);
        if !is_wanted {
            return Ok(Vec::new());
        }
        let told = self.open_feeds(now_s)?;
        if let Some(polls) = &mut self.polls {
            for feed in new {
                polls.learn(feed, &mut self.index, now_s);
            }
        }
        self.flush(true)?;
        Ok(told)
    }

    fn open_feeds(&mut self, now_s: u32) -> io::Result<Vec<Told>> {
        let Some(home) = self.feeds_home.as_ref().filter(|_| self.polls.is_none()) else {
            return Ok(Vec::new());
        };
        let (feeds, told) = home.open()?;
        self.polls = Some(FeedPolls::begin(feeds, &mut self.index, now_s));
        Ok(told)
    }

    /// Does what somebody asks of feeds. `None` where there can be none.
    pub(crate) fn obey(&mut self, word: &FeedWord, now_s: u32) -> io::Result<Option<FeedsTold>> {
        if matches!(word, FeedWord::Add { .. }) {
            self.open_feeds(now_s)?;
        }
        let Provider { polls, index, .. } = self;
        Ok(polls.as_mut().map(|polls| polls.obey(word, index, now_s)))
    }

    /// A document of a feed is one, however it was discovered.
    pub(crate) fn mark_feed(&self, candidate: &mut Candidate) {
        if let Some(polls) = &self.polls {
            polls.mark(candidate);
        }
    }

    /// Feeds that pages name, and those pages: a user is to be told.
    pub(crate) fn take_named_feeds(&mut self) -> Vec<(CrawlUrl, Box<str>)> {
        std::mem::take(&mut self.named_feeds.untold)
    }

    pub(crate) fn polls(&self) -> Option<&FeedPolls> {
        self.polls.as_ref()
    }

    /// Whether there is something to hand to the disk.
    pub(crate) fn is_dirty(&self) -> bool {
        self.index.is_dirty() || self.polls.as_ref().is_some_and(FeedPolls::is_dirty)
    }

    /// Hands everything to the disk: what was discovered, then what feeds told, then what became of documents.
    pub(crate) fn flush(&mut self, sync: bool) -> io::Result<()> {
        let Provider { index, polls, .. } = self;
        match polls {
            Some(polls) => index.flush_with(sync, |sync| polls.flush(sync)),
            None => index.flush(sync),
        }
    }

    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.flush(true)?;
        self.polls.as_mut().map_or(Ok(()), FeedPolls::close)?;
        self.index.close()
    }

    /// These domains are not ours.
    pub(crate) fn set_away(&mut self, away: AwayDomains) {
        self.away = away;
    }

    /// Shards that refer to what is stored are told if it is gone.
    pub fn tell(&mut self, shares: Vec<Arc<ShardShare>>) {
        if let Some(stored_pages) = &mut self.rules.stored_pages {
            stored_pages.tell(shares);
        }
    }

    pub fn index(&self) -> &DocIndex {
        &self.index
    }

    pub fn index_mut(&mut self) -> &mut DocIndex {
        &mut self.index
    }

    /// Takes messages in their order, but the links of all pages among them at once and first.
    pub(crate) fn receive(&mut self, messages: Vec<ToIndex>, now_s: u32) {
        self.discover(&messages, now_s);
        messages.into_iter().for_each(|message| self.take(message, now_s));
    }

    /// As [`Provider::receive`], and hands what is new to the disk.
    pub(crate) fn work_off(&mut self, messages: Vec<ToIndex>, now_s: u32) -> io::Result<()> {
        self.receive(messages, now_s);
        self.flush(false)
    }

    /// Candidates that are in scope. New rules may keep out all of very many: then `None`, and those are to be written
    /// before the next call. An empty answer says that there is nothing.
    pub(crate) fn candidates(
        &mut self,
        want: usize,
        reject: &RejectList,
        now_s: u32,
    ) -> Option<Vec<Candidate>> {
        for _ in 0..ROUNDS {
            let to_others = self.index.leaving();
            let mut candidates = match self.away.are_settled() && to_others.is_none() {
                true => self.index.candidates(want, reject, now_s),
                false => {
                    let leaves = |origin: &str| {
                        self.away.is_leaving(origin)
                            || to_others.as_ref().is_some_and(|leaving| leaving.holds(origin))
                    };
                    let is_full = |origin: &str| reject.contains(&fingerprint(origin.as_bytes()));
                    let rejected = |origin: &str| is_full(origin) || leaves(origin);
                    self.index.candidates_but(want, rejected, now_s)
                }
            };
            let given = candidates.len();
            candidates.retain(|candidate| self.is_in_scope(candidate, now_s));
            if let Some(polls) = &mut self.polls {
                candidates.retain_mut(|candidate| polls.admit(candidate, &mut self.index, now_s));
            }
            candidates.iter_mut().for_each(|candidate| self.drop_held(candidate));
            if !candidates.is_empty() || given == 0 {
                return Some(candidates);
            }
        }
        None
    }

    fn take(&mut self, message: ToIndex, now_s: u32) {
        match message {
            ToIndex::Seeds { urls, head_only } => {
                urls.iter().for_each(|url| self.index.seed(url, head_only, now_s));
            }
            // The rest was done before, with those that came along.
            ToIndex::Discover(mut found) => self.take_feeds(&mut found, now_s),
            ToIndex::Record(outcome) => self.record(&outcome, now_s),
            ToIndex::Scope(url) => {
                self.extend_scope(&url);
                self.index.add_to_scope(&url, now_s);
            }
            ToIndex::Sitemaps { origin, urls } => self.sitemaps(&origin, &urls, now_s),
            ToIndex::PutBack(doc_id) => self.index.put_back(doc_id),
            ToIndex::Rules(config) => self.set_rules(&config),
            ToIndex::Ask { .. }
            | ToIndex::Look { .. }
            | ToIndex::Count { .. }
            | ToIndex::Take { .. }
            | ToIndex::Enter { .. }
            | ToIndex::Origins { .. }
            | ToIndex::HandOver { .. }
            | ToIndex::Feeds { .. }
            | ToIndex::Peers { .. } => unreachable!("questions are answered by the actor"),
        }
    }

    /// Documents that are answered for from now on are tried and visited again by these rules. An index that leaves nothing
    /// behind has none.
    fn set_rules(&mut self, config: &Config) {
        if let Some(home) = &mut self.feeds_home {
            home.rules = config.feeds.rules();
            self.polls.iter_mut().for_each(|polls| polls.set_rules(home.rules.clone()));
        }
        if self.rules.first_new > 0 {
            self.index.set_schedule(index_rules(config).schedule);
            self.rules.recrawl = config.recrawl.clone();
        }
    }

    /// Takes in what somebody hands in while the crawl runs, and says what is in scope because of it. What the disk
    /// refuses is told by the next flush.
    pub(crate) fn take_in(&mut self, handed: &Handed, head_only: bool, now_s: u32) -> (Taken, Vec<CrawlUrl>) {
        let (mut taken, mut into_scope) = (Taken { bad: handed.bad, ..Taken::default() }, Vec::new());
        for line in &handed.lines {
            taken.count(match handed.are_seeds {
                true => self.index.add_seed(&line.url, head_only, now_s),
                false => self.index.take_in(line, now_s),
            });
            if line.is_seed() && self.spans_new(&line.url) {
                self.extend_scope(&line.url);
                into_scope.push(line.url.clone());
            }
        }
        (taken, into_scope)
    }

    /// Takes in entries of a master's queue, and says what is in scope because of them. What a master hands in counts as
    /// asked for by name, wherever links may lead.
    pub(crate) fn enter(&mut self, entries: &Entries, now_s: u32) -> (Entered, Vec<CrawlUrl>) {
        let mut entering = Entering::default();
        let (mut mentions, mut said) = (Vec::with_capacity(MENTIONS_AT_ONCE), Vec::new());
        let mut rest = &entries.text[..];
        while !rest.is_empty() {
            mentions.clear();
            // Those in normal form, up to one that is not: what is said already need not be made a URL of.
            while mentions.len() < MENTIONS_AT_ONCE
                && let Some((line, behind)) = next_line(rest)
                && let Some(mention) = plain_mention(line)
            {
                mentions.push(mention);
                rest = behind;
            }
            if mentions.is_empty() {
                let Some((line, behind)) = next_line(rest) else { break };
                rest = behind;
                self.enter_line(line, &mut entering, now_s);
                continue;
            }
            self.index.are_said(mentions.iter(), &mut said);
            for (mention, &is_said) in mentions.iter().zip(&said) {
                match is_said && self.rules.is_plain() {
                    true => entering.entered.taken.known += 1,
                    false => self.enter_mention(mention, &mut entering, now_s),
                }
            }
        }
        (entering.entered, entering.into_scope)
    }

    /// An entry that is not a plain URL in normal form.
    fn enter_line(&mut self, line: &[u8], entering: &mut Entering, now_s: u32) {
        match MasterWord::parse(line) {
            Ok(MasterWord::Close { domain, fence }) => {
                if self.away.closes(domain, fence) {
                    entering.entered.moves.push(DomainMove::Closed { domain: domain.into(), fence });
                }
                return;
            }
            Ok(MasterWord::Open { domain, fence }) => {
                if self.away.opens(domain, fence) {
                    // What was left out is taken up again when it is handed in.
                    self.index.forget_said();
                    entering.entered.moves.push(DomainMove::Opened { domain: domain.into(), fence });
                }
                return;
            }
            // It comes before its OPEN: of a domain that has come it comes a second time, and may be out of date.
            Ok(MasterWord::Nice { domain, .. }) if self.away.has_come(domain) => return,
            Ok(MasterWord::Nice { line, .. }) => {
                return match str::from_utf8(line) {
                    Ok(line) => {
                        entering.entered.nice.push_str(line);
                        entering.entered.nice.push('\n');
                    }
                    Err(error) => entering.bad(line, &error.to_string()),
                };
            }
            _ => {}
        }
        match mention(line) {
            Ok((url, mention)) => {
                let mention = Mention { url: url.as_str(), ..mention };
                self.enter_mention(&mention, entering, now_s);
            }
            Err(why) => entering.bad(line, &why),
        }
    }

    /// A URL in normal form.
    fn enter_mention(&mut self, mention: &Mention<'_>, entering: &mut Entering, now_s: u32) {
        let url = match &self.rules.scope {
            Some(scope) => scope.canon().apply(mention.url, &mut entering.scratch),
            None => mention.url,
        };
        match CrawlUrl::from_normal(url) {
            Ok(url) => {
                let import = Import::mentioned(url, mention);
                entering.entered.taken.count(self.index.take_in(&import, now_s));
                self.bring_along(&import.url, &mut entering.into_scope);
            }
            Err(error) => entering.bad(mention.url.as_bytes(), &error.to_string()),
        }
    }

    /// Hosts that leave; of partitions nothing is handed out from now on.
    pub(crate) fn leave(&mut self, leaves: &Leaves) -> Vec<Box<str>> {
        match leaves {
            Leaves::Domain(domain) => origins_of(&self.index, domain),
            Leaves::Partitions(partitions) => {
                self.index.begin_to_leave(partitions);
                self.index.origins_in(partitions).map(Box::from).collect()
            }
        }
    }

    /// See [`AwayDomains::hand_over`].
    pub(crate) fn hand_over(&mut self, domain: &str, nice: &str, now_s: u32) -> HandedOver {
        self.away.hand_over(&mut self.index, domain, nice, now_s)
    }

    /// The host, domain or prefix of what a master hands in is in scope, if links are followed at all.
    fn bring_along(&mut self, url: &CrawlUrl, into_scope: &mut Vec<CrawlUrl>) {
        let scope = self.rules.scope.as_ref().filter(|scope| scope.depth_max() > 0);
        if scope.is_some_and(|scope| !scope.spans(url)) {
            self.extend_scope(url);
            into_scope.push(url.clone());
        }
    }

    /// Whether the host, domain or prefix of a URL is not in scope yet.
    pub(crate) fn spans_new(&self, url: &CrawlUrl) -> bool {
        self.rules.scope.as_ref().is_some_and(|scope| !scope.spans(url))
    }

    pub(crate) fn extend_scope(&mut self, url: &CrawlUrl) {
        if let Some(scope) = &mut self.rules.scope {
            Arc::make_mut(scope).add(url);
        }
        if let Some(stored_pages) = &mut self.rules.stored_pages {
            stored_pages.extend_scope(url);
        }
    }

    /// What is known of a URL at this moment.
    pub(crate) fn look(&self, url: &CrawlUrl) -> Status {
        let mut looked = Status { live: true, ..Status::default() };
        let found = self.index.look(url.as_str()).and_then(|found| match found {
            Some(found) => {
                let via = self.index.document(found.discovered.origin.via)?;
                Ok(Some(DocumentLine::of(&found, via.as_ref().map(|via| &*via.discovered.url))))
            }
            None => Ok(None),
        });
        match found {
            Ok(dossier) => looked.dossier = dossier,
            Err(error) => looked.trouble = Some(error.to_string()),
        }
        if looked.dossier.is_none() && self.index.is_parked(url.as_str()) {
            looked.place.at = Place::Parked;
        }
        let depth = looked.dossier.as_ref().and_then(DocumentLine::links_followed);
        let depth = depth.filter(|_| !self.index.was_typed(url.as_str()));
        let is_named = looked.dossier.as_ref().is_some_and(DocumentLine::is_of_feeds);
        looked.scope = self.rules.scope.as_ref().and_then(|scope| match is_named {
            true => scope.denies(url).map(|rule| ScopeLine::of(&Verdict::Denied(rule))),
            false => Some(ScopeLine::of(&scope.judge_at(url, depth))),
        });
        looked.host = self.index.host(url.origin()).map(|counts| HostLine { counts, open: None });
        looked.domain_known = self.index.domain_known(url);
        looked.variants_known = self.index.variants_known(url);
        looked
    }

    /// The links of all pages among these messages at once, before anything else of them: it is cheaper so, and a page's
    /// links are known before the page is done.
    fn discover(&mut self, messages: &[ToIndex], now_s: u32) {
        let found = || {
            messages.iter().filter_map(|message| match message {
                ToIndex::Discover(found) => Some(&**found),
                _ => None,
            })
        };
        self.index.discover_links(found().flat_map(links_of), now_s);
        for found in found().filter(|found| !found.lastmods.is_empty() || !found.sitemaps.is_empty()) {
            for (url, &lastmod_s) in found.links.iter().zip(&found.lastmods) {
                self.index.changed(url, lastmod_s, now_s);
            }
            if self.rules.sitemaps != Sitemaps::Off {
                // One more sitemap led to these; the handler stops at some depth.
                let depth = self.index.document(found.doc_id).ok().flatten();
                let depth = depth.map_or(0, |found| found.discovered.origin.provenance.depth);
                self.index.discover(found.sitemaps.iter(), sitemap(found.doc_id, depth + 1), now_s);
            }
        }
    }

    /// What a feed told, and feeds that a page names.
    fn take_feeds(&mut self, found: &mut Found, now_s: u32) {
        let is_poll = found.feed.is_some();
        if let Some(polls) = &mut self.polls {
            polls.heard(found, &mut self.index, now_s);
        }
        // What a page names that was a feed once is proposed, and no more.
        let discover = match is_poll {
            true => Discover::Note,
            false => self.feeds_home.as_ref().map_or(Discover::Off, |home| home.discover),
        };
        if discover == Discover::Note {
            for link in found.feeds.drain(..) {
                let NamedFeeds { told, untold } = &mut self.named_feeds;
                if told.len() < NAMED_FEEDS_MAX && told.insert(link.url.fingerprint()) {
                    untold.push((link.url, found.url.as_str().into()));
                }
            }
        }
        if !found.feeds.is_empty() && discover == Discover::Add {
            let opened = self.open_feeds(now_s);
            if opened.is_ok()
                && let Some(polls) = &mut self.polls
            {
                // Pages without end may name feeds without end.
                let room = DISCOVERED_FEEDS_MAX.saturating_sub(polls.count());
                for link in found.feeds.drain(..).take(room) {
                    let feed = NamedFeed { url: link.url, source: String::new(), title: link.title.into() };
                    polls.learn(&feed, &mut self.index, now_s);
                }
            }
        }
    }

    fn record(&mut self, outcome: &Outcome, now_s: u32) {
        if let Some(polls) = &mut self.polls
            && polls.record(outcome, &mut self.index, now_s)
        {
            return;
        }
        if outcome.result == ResultCode::BlockedAddress {
            let reason = outcome.note.as_ref().and_then(|note| note.reason.as_deref());
            self.keep_out(outcome.doc_id, reason.unwrap_or("its address is not allowed"), now_s);
            return;
        }
        let fixed_s = self.fixed_interval(outcome.doc_id);
        // Its links are known before it is done.
        let doc_id = outcome.doc_id;
        if outcome.result == ResultCode::NotModified && self.index.is_open(doc_id) {
            if self.stands_on_nothing(doc_id) {
                return self.index.ask_whole(doc_id);
            }
            if self.index.was_read_by_other_rules(doc_id) && self.read_again(doc_id, now_s) {
                self.index.was_read_again(doc_id);
            }
        }
        if self.index.record(outcome, fixed_s)
            && let Some(polls) = &mut self.polls
        {
            polls.story_ended(outcome, &mut self.index);
        }
    }

    /// The interval that a rule gives a document.
    fn fixed_interval(&mut self, doc_id: u32) -> Option<u32> {
        if self.rules.recrawl.is_empty() {
            return None;
        }
        let url = self.index.url(doc_id)?;
        let every_s = self.rules.recrawl.every_s(&url)?;
        Some(u32::try_from(every_s).unwrap_or(u32::MAX))
    }

    /// A server is asked about what can be read alone: what else it calls unchanged would be lost.
    fn drop_held(&mut self, candidate: &mut Candidate) {
        // What a feed told of is kept: a 304 needs nothing to stand on.
        if let (Some(held), Some(stored_pages)) = (&candidate.held, &mut self.rules.stored_pages)
            && candidate.poll.is_none()
            && !candidate.provenance.head_only
            && !stored_pages.holds(&candidate.url, held)
        {
            candidate.held = None;
        }
    }

    /// A document has not changed, but what was stored of it went away. Asked for whole, it is noted as held no more: one
    /// whose server says so again and again is not asked again and again.
    fn stands_on_nothing(&mut self, doc_id: u32) -> bool {
        let Some(stored_pages) = &mut self.rules.stored_pages else { return false };
        if !self.index.is_noted_as_held(doc_id) {
            return false;
        }
        let Some(candidate) = self.index.candidate(doc_id).filter(|found| !found.provenance.head_only) else {
            return false;
        };
        candidate.held.is_none_or(|held| !stored_pages.stands(&candidate.url, &held))
    }

    /// What an earlier process found may be out of the scope of this one, or need what this one was not given.
    fn is_in_scope(&mut self, candidate: &Candidate, now_s: u32) -> bool {
        if self.away.is_closed(&candidate.url) {
            self.index.exclude(candidate.doc_id, MOVED, now_s);
            return false;
        }
        let url = &candidate.url;
        if let Some(place) = self.rules.locked.of(url.origin(), url.path_and_query()) {
            let place = shown(&place.to_string(), 200);
            let why =
                format!("credentials for {place} are missing (give the file with [[auth]] by --config)");
            self.keep_out(candidate.doc_id, &why, now_s);
            return false;
        }
        let Some(scope) = &self.rules.scope else { return true };
        // What somebody typed is in scope, and what a feed tells of, but for a rule that denies it.
        let is_named = candidate.provenance.seed_chain || candidate.provenance.is_story();
        let why = match is_named {
            true => scope.denies(&candidate.url).map(Verdict::Denied),
            false if candidate.doc_id >= self.rules.first_new => None,
            false => {
                let depth = candidate.provenance.links_followed();
                let is_deep =
                    depth > Some(scope.depth_max()) && !self.index.was_typed(candidate.url.as_str());
                match !is_deep && scope.holds(&candidate.url) {
                    true => None,
                    false => Some(scope.judge_at(&candidate.url, depth.filter(|_| is_deep))),
                }
            }
        };
        let Some(why) = why.filter(|why| !why.is_in()) else { return true };
        self.keep_out(candidate.doc_id, &why.reason(), now_s);
        false
    }

    /// The rules of this run refuse a document. That is no failure: with other rules it is pending.
    fn keep_out(&mut self, doc_id: u32, reason: &str, now_s: u32) {
        self.index.exclude(doc_id, reason, now_s);
        self.left_out(doc_id, now_s);
    }

    /// Feeds are told that the rules of this crawl keep a document out.
    fn left_out(&mut self, doc_id: u32, now_s: u32) {
        if let Some(polls) = &mut self.polls {
            polls.left_out(doc_id, &mut self.index, now_s);
        }
    }

    fn sitemaps(&mut self, origin: &str, urls: &[Box<str>], now_s: u32) {
        let mut urls: Vec<CrawlUrl> = urls.iter().filter_map(|url| CrawlUrl::parse(url).ok()).collect();
        match self.rules.sitemaps {
            Sitemaps::Off => return,
            Sitemaps::All if urls.is_empty() => {
                urls.extend(CrawlUrl::parse(&format!("{origin}/sitemap.xml")).ok());
            }
            Sitemaps::Robots | Sitemaps::All => {}
        }
        let scope = self.rules.scope.as_deref();
        let is_theirs = |url: &CrawlUrl| url.origin() == origin || scope.is_none_or(|scope| scope.holds(url));
        urls.retain(is_theirs);
        self.index.discover(urls.iter().map(CrawlUrl::as_str), sitemap(0, 0), now_s);
    }

    /// The server did not send the page again; what it leads to is to be looked at all the same. False if the store has
    /// it no more, or it has no links.
    fn read_again(&mut self, doc_id: u32, now_s: u32) -> bool {
        let Some(stored_pages) = &mut self.rules.stored_pages else { return false };
        let Some(candidate) = self.index.candidate(doc_id).filter(|found| !found.provenance.head_only) else {
            return false;
        };
        let Some(handled) = stored_pages.read(&candidate) else { return false };
        if let Some(url) = handled.new_url.filter(|_| handled.follow) {
            let origin = Origin::new(doc_id, candidate.provenance.next_hop());
            self.index.discover([url.as_str()], origin, now_s);
        }
        let origin = Origin::link(doc_id, candidate.provenance.links_depth());
        self.index.discover(handled.links.iter(), origin, now_s);
        true
    }
}
