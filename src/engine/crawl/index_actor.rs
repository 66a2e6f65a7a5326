use crate::base::Now;
use crate::config::Sitemaps;
use crate::doc_index::{DocIndex, DossierLine, Link, Origin, Outcome, PRIORITY_USUAL, RejectList};
use crate::engine::crawl::messages::{Found, FromIndex, ToIndex};
use crate::engine::crawl::stored_pages::StoredPages;
use crate::engine::inspect::status::{CountsLine, Place, ScopeLine, Status};
use crate::handler::{Scope, Verdict, WhyOut};
use crate::limits::INDEX_RING_WORDS;
use crate::proto::lines::{Candidate, DocKind};
use crate::proto::record::ResultCode;
use crate::proto::url::{CrawlUrl, RecrawlRules};
use crate::rings::{Doorbell, Receiver, Sender, ring};
use std::io;
use std::sync::Arc;

/// The doc index behind its rings: takes words, answers questions, and hands what is new to the disk.
pub struct IndexActor {
    index: DocIndex,
    words: Receiver<ToIndex>,
    answers: Sender<FromIndex>,
    /// The scheduler's bell.
    scheduler: Arc<Doorbell>,
    /// What was asked and has no answer yet.
    question: Option<Question>,
    unanswered: Option<FromIndex>,
    papers: ProviderRules,
    synced_at: Now,
    /// The disk has no room: no word is taken until it has.
    stalled: bool,
}

/// What a desk goes by.
pub struct ProviderRules {
    /// The time, and the same in seconds since 1970.
    pub clock: Arc<dyn Fn() -> (Now, u32) + Send + Sync>,
    /// Reads pages that have not changed from the store, if the rules for links have since they were read.
    pub rereading: Option<StoredPages>,
    /// What an earlier process found is handed out only if it is in scope today.
    pub scope: Option<Arc<Scope>>,
    /// Documents of earlier processes are numbered below this.
    pub first_new: u32,
    pub sitemaps: Sitemaps,
    /// Fixed intervals.
    pub recrawl: RecrawlRules,
}

/// The scheduler's end.
pub struct IndexPort {
    pub words: Sender<ToIndex>,
    pub answers: Receiver<FromIndex>,
    /// The index thread's bell.
    pub bell: Arc<Doorbell>,
}

/// A sitemap tells of many pages at once: it is read before them.
fn sitemap(via: u32, depth: u16) -> Origin {
    Origin { kind: DocKind::Sitemap, priority: PRIORITY_USUAL + 1, ..Origin::link(via, depth) }
}

/// What a page leads to: where it redirects to, and its links.
fn links_of(found: &Found) -> impl Iterator<Item = Link<'_>> {
    let new = found.new_url.as_ref().map(|new| Link {
        url: new.url.as_str(),
        origin: Origin {
            via: found.doc_id,
            depth: new.depth,
            hops: new.hops,
            seed_chain: new.seed_chain,
            head_only: new.head_only,
            kind: new.kind,
            ..Origin::SEED
        },
        via: &found.url,
    });
    let origin = Origin::link(found.doc_id, found.depth);
    new.into_iter().chain(found.links.iter().map(move |url| Link { url, origin, via: &found.url }))
}

/// What a url server has room for.
struct Question {
    want: usize,
    reject: Arc<RejectList>,
}

/// Times that candidates are looked for in one turn.
const ROUNDS_PER_TURN: usize = 8;
/// Words that are worked off together.
const WORDS_AT_ONCE: usize = 64;
/// A crash of the machine costs no more than this.
const SYNC_US: u64 = 1_000_000;

impl ProviderRules {
    /// Of a crawl that leaves nothing behind.
    pub fn plain(clock: Arc<dyn Fn() -> (Now, u32) + Send + Sync>) -> ProviderRules {
        ProviderRules {
            clock,
            rereading: None,
            scope: None,
            first_new: 0,
            sitemaps: Sitemaps::Off,
            recrawl: RecrawlRules::default(),
        }
    }
}

impl IndexActor {
    pub fn new(
        index: DocIndex,
        papers: ProviderRules,
        scheduler: Arc<Doorbell>,
        bell: Arc<Doorbell>,
    ) -> (IndexActor, IndexPort) {
        let (words, words_in) = ring(INDEX_RING_WORDS);
        let (answers_out, answers) = ring(4);
        let desk = IndexActor {
            index,
            words: words_in,
            answers: answers_out,
            scheduler,
            question: None,
            unanswered: None,
            papers,
            synced_at: Now::ZERO,
            stalled: false,
        };
        (desk, IndexPort { words, answers, bell })
    }

    /// Works off what has come, and says how many words that were. A disk that is full is an error that passes: what is
    /// not written is in memory, and nothing more is taken until it is.
    pub fn turn(&mut self) -> io::Result<usize> {
        let (now, now_s) = (self.papers.clock)();
        let mut words = 0;
        while !self.stalled && !self.index.is_troubled() && self.unanswered.is_none() {
            if self.question.is_some() {
                words += 1;
                self.answer(now_s);
                break;
            }
            let taken = self.gather();
            if taken.is_empty() {
                break;
            }
            words += taken.len();
            self.discover(&taken, now_s);
            taken.into_iter().for_each(|word| self.take(word, now_s));
        }
        // What is handed out is in the files: after a kill, whoever has fetched it finds it by its number.
        if self.index.is_dirty() {
            self.flush(false)?;
        }
        if let Some(answer) = self.unanswered.take() {
            match self.answers.push(answer) {
                Ok(()) => self.scheduler.ring_if_asleep(),
                Err(back) => self.unanswered = Some(back),
            }
        }
        if now.since_us(self.synced_at) >= SYNC_US {
            self.flush(true)?;
            self.synced_at = now;
        }
        Ok(words)
    }

    fn flush(&mut self, sync: bool) -> io::Result<()> {
        self.stalled = true;
        self.index.flush(sync)?;
        self.stalled = false;
        Ok(())
    }

    /// Works off words that came by no ring, and hands what is new to the disk.
    pub(crate) fn work_off(&mut self, words: Vec<ToIndex>) -> io::Result<()> {
        let (_, now_s) = (self.papers.clock)();
        self.discover(&words, now_s);
        words.into_iter().for_each(|word| self.take(word, now_s));
        self.index.flush(false)
    }

    /// Whoever asked is gone.
    pub fn forget_answer(&mut self) {
        (self.question, self.unanswered) = (None, None);
    }

    pub fn is_idle(&self) -> bool {
        let is_waiting = self.words.is_empty() && self.question.is_none();
        (is_waiting || self.stalled) && self.unanswered.is_none()
    }

    pub fn index(&self) -> &DocIndex {
        &self.index
    }

    pub fn index_mut(&mut self) -> &mut DocIndex {
        &mut self.index
    }

    fn take(&mut self, word: ToIndex, now_s: u32) {
        match word {
            ToIndex::Seeds { urls, head_only } => {
                urls.iter().for_each(|url| self.index.seed(url, head_only, now_s));
            }
            // Done before, with those that came along.
            ToIndex::Discover(_) => {}
            ToIndex::Record(outcome) => self.record(&outcome, now_s),
            ToIndex::Scope(url) => {
                if let Some(scope) = &mut self.papers.scope {
                    Arc::make_mut(scope).add(&url);
                }
                if let Some(rereading) = &mut self.papers.rereading {
                    rereading.extend_scope(&url);
                }
                self.index.into_scope(&url, now_s);
            }
            ToIndex::Sitemaps { origin, urls } => self.sitemaps(&origin, &urls, now_s),
            ToIndex::PutBack(doc_id) => self.index.put_back(doc_id),
            ToIndex::Ask { want, reject } => self.question = Some(Question { want, reject }),
            ToIndex::Look { id, url } => {
                let looked = Box::new(self.look(&url));
                self.unanswered = Some(FromIndex::Status { id, looked });
            }
        }
    }

    /// Answers what was asked. New rules may keep out all of very many: some of them, and then those are written before
    /// the next.
    fn answer(&mut self, now_s: u32) {
        let Some(question) = self.question.take() else { return };
        for _ in 0..ROUNDS_PER_TURN {
            let mut candidates = self.index.candidates(question.want, &question.reject, now_s);
            let given = candidates.len();
            candidates.retain(|candidate| self.is_in_scope(candidate, now_s));
            // An answer that is empty says that there is nothing, and not that all of it is out of scope.
            if !candidates.is_empty() || given == 0 {
                self.unanswered = Some(FromIndex::Candidates { candidates, stats: self.index.stats() });
                return;
            }
        }
        self.question = Some(question);
    }

    /// What is known of a URL at this moment.
    fn look(&self, url: &CrawlUrl) -> Status {
        let mut looked = Status { live: true, ..Status::default() };
        let found = self.index.look(url.as_str()).and_then(|found| match found {
            Some(found) => {
                let via = self.index.document(found.discovered.origin.via)?;
                Ok(Some(DossierLine::of(&found, via.as_ref().map(|via| &*via.discovered.url))))
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
        looked.scope = self.papers.scope.as_ref().map(|scope| ScopeLine::of(&scope.judge(url)));
        looked.host = self.index.host(url.origin()).map(CountsLine::from);
        looked.domain_known = self.index.domain_known(url);
        looked.variants_known = self.index.variants_known(url);
        looked
    }

    /// Some of the words that wait, up to a question: one that is asked has its answer before the next.
    fn gather(&mut self) -> Vec<ToIndex> {
        let mut taken = Vec::new();
        while taken.len() < WORDS_AT_ONCE
            && let Some(word) = self.words.pop()
        {
            let is_question = matches!(word, ToIndex::Ask { .. } | ToIndex::Look { .. });
            taken.push(word);
            if is_question {
                break;
            }
        }
        taken
    }

    /// The links of all pages among these words at once, before anything else of them: it is cheaper so, and a page's
    /// links are known before the page is done.
    fn discover(&mut self, words: &[ToIndex], now_s: u32) {
        let found = || {
            words.iter().filter_map(|word| match word {
                ToIndex::Discover(found) => Some(&**found),
                _ => None,
            })
        };
        self.index.discover_links(found().flat_map(links_of), now_s);
        for found in found().filter(|found| !found.lastmods.is_empty() || !found.sitemaps.is_empty()) {
            for (url, &lastmod_s) in found.links.iter().zip(&found.lastmods) {
                self.index.changed(url, lastmod_s, now_s);
            }
            if self.papers.sitemaps != Sitemaps::Off {
                // One more sitemap led to these; the handler stops at some depth.
                let depth = self.index.document(found.doc_id).ok().flatten();
                let depth = depth.map_or(0, |found| found.discovered.origin.depth);
                self.index.discover(found.sitemaps.iter(), sitemap(found.doc_id, depth + 1), now_s);
            }
        }
    }

    fn record(&mut self, outcome: &Outcome, now_s: u32) {
        let fixed_s = self.fixed_interval(outcome.doc_id);
        // Its links are known before it is done.
        let doc_id = outcome.doc_id;
        if outcome.result == ResultCode::NotModified
            && self.index.is_open(doc_id)
            && self.index.was_read_by_other_rules(doc_id)
            && self.read_again(doc_id, now_s)
        {
            self.index.was_read_again(doc_id);
        }
        self.index.record(outcome, fixed_s);
    }

    /// The interval that a rule gives a document.
    fn fixed_interval(&mut self, doc_id: u32) -> Option<u32> {
        if self.papers.recrawl.is_empty() {
            return None;
        }
        let url = self.index.url(doc_id)?;
        let every_s = self.papers.recrawl.every_s(&url)?;
        Some(u32::try_from(every_s).unwrap_or(u32::MAX))
    }

    /// What an earlier process found may be out of the scope of this one.
    fn is_in_scope(&mut self, candidate: &Candidate, now_s: u32) -> bool {
        let Some(scope) = &self.papers.scope else { return true };
        // What somebody typed is in scope, but for a rule that denies it.
        let why = match candidate.seed_chain {
            true => scope.denies(&candidate.url).map(|rule| Verdict::Out(WhyOut::Denied(rule))),
            false if candidate.doc_id >= self.papers.first_new || scope.holds(&candidate.url) => None,
            false => Some(scope.judge(&candidate.url)),
        };
        let Some(Verdict::Out(why)) = why else { return true };
        self.index.exclude(candidate.doc_id, &why.to_string(), now_s);
        false
    }

    fn sitemaps(&mut self, origin: &str, urls: &[Box<str>], now_s: u32) {
        let mut urls: Vec<CrawlUrl> = urls.iter().filter_map(|url| CrawlUrl::parse(url).ok()).collect();
        match self.papers.sitemaps {
            Sitemaps::Off => return,
            Sitemaps::All if urls.is_empty() => {
                urls.extend(CrawlUrl::parse(&format!("{origin}/sitemap.xml")).ok());
            }
            Sitemaps::Robots | Sitemaps::All => {}
        }
        let scope = self.papers.scope.as_deref();
        let is_theirs = |url: &CrawlUrl| url.origin() == origin || scope.is_none_or(|scope| scope.holds(url));
        urls.retain(is_theirs);
        self.index.discover(urls.iter().map(CrawlUrl::as_str), sitemap(0, 0), now_s);
    }

    /// The server did not send the page again; what it leads to is to be looked at all the same. False if the store has
    /// it no more, or it has no links.
    fn read_again(&mut self, doc_id: u32, now_s: u32) -> bool {
        let Some(rereading) = &mut self.papers.rereading else { return false };
        let Some(candidate) = self.index.candidate(doc_id).filter(|found| !found.head_only) else {
            return false;
        };
        let Some(handled) = rereading.read(&candidate) else { return false };
        let (depth, seed_chain) = (candidate.depth, candidate.seed_chain);
        if let Some(url) = handled.new_url.filter(|_| handled.follow) {
            let hops = candidate.hops + 1;
            let origin = Origin { via: doc_id, depth, hops, seed_chain, ..Origin::SEED };
            self.index.discover([url.as_str()], origin, now_s);
        }
        let origin = Origin::link(doc_id, depth.saturating_add(1));
        self.index.discover(handled.links.iter(), origin, now_s);
        true
    }
}
