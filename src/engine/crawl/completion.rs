use crate::doc_index::{Note, Outcome};
use crate::engine::crawl::messages::{Found, NewUrl};
use crate::handler::Handled;
use crate::limits::REDIRECTS_MAX;
use crate::proto::http1::Validators;
use crate::proto::lines::{Candidate, DocKind, Held};
use crate::proto::record::ResultCode;

/// A page that is stored and read: what the doc index is told of it, whether it was fetched just now or by a process that
/// was killed before it could tell.
pub(crate) struct Completion<'a> {
    pub candidate: &'a Candidate,
    /// As its record has it.
    pub result: ResultCode,
    /// 0 without a response.
    pub status: u16,
    /// Seconds since 1970.
    pub at_s: u32,
    /// Of its document, under the store's key; 0 without one.
    pub digest: u128,
    /// How the server can be asked whether the document has changed, and the segment that has it.
    pub validators: Option<Validators>,
    pub segment: u64,
}

impl Completion<'_> {
    /// What became of the page, and what it leads to if that is anything.
    pub fn tell(self, handled: Handled) -> (Outcome, Option<Box<Found>>) {
        let Completion { candidate, segment, .. } = self;
        let note = Note {
            held: self.validators.map(|validators| Held { validators, segment }),
            head_only: candidate.head_only,
            new_url: handled.new_url.as_ref().map(|url| url.as_str().into()),
            canonical: handled.canonical.as_ref().map(|url| url.as_str().into()),
            reason: None,
        };
        let outcome = Outcome {
            status: self.status,
            digest: self.digest as u64,
            note: (!note.is_empty()).then(|| Box::new(note)),
            ..Outcome::new(candidate.doc_id, self.result, self.at_s)
        };
        (outcome, found_of(candidate, handled))
    }
}

/// The result of a page: a redirect that leads nowhere has one of its own.
pub(crate) fn result_of(candidate: &Candidate, result: ResultCode, handled: &Handled) -> ResultCode {
    match result {
        ResultCode::Redirect if candidate.hops >= REDIRECTS_MAX => ResultCode::TooManyRedirects,
        ResultCode::Redirect if is_loop(candidate, handled) => ResultCode::RedirectLoop,
        result => result,
    }
}

fn is_loop(candidate: &Candidate, handled: &Handled) -> bool {
    handled.new_url.as_ref().is_some_and(|target| candidate.is_loop(target))
}

fn found_of(candidate: &Candidate, handled: Handled) -> Option<Box<Found>> {
    let follow = handled.follow && !is_loop(candidate, &handled);
    let new_url = handled.new_url.filter(|_| follow).map(|url| NewUrl {
        url,
        depth: candidate.depth,
        hops: candidate.hops + 1,
        seed_chain: candidate.seed_chain,
        head_only: candidate.head_only,
        kind: candidate.kind,
    });
    let has_links = !handled.links.is_empty() || !handled.sitemaps.is_empty();
    let depth = if candidate.kind == DocKind::Sitemap { 0 } else { candidate.depth };
    (has_links || new_url.is_some() || handled.into_scope).then(|| {
        Box::new(Found {
            doc_id: candidate.doc_id,
            url: candidate.url.as_str().into(),
            links: handled.links,
            lastmods: handled.lastmods,
            sitemaps: handled.sitemaps,
            depth: depth.saturating_add(1),
            new_url,
            into_scope: handled.into_scope.then(|| candidate.url.clone()),
        })
    })
}
