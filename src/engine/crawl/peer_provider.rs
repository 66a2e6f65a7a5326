//! What the peers of a node ask its index.

use crate::engine::crawl::provider::Provider;
use crate::engine::inspect::peer_words::{Adopted, PeerAsk, PeerTold, PeerUrl, Standing};
use crate::proto::url::{CrawlUrl, is_normal};

/// Answers, and says what is in scope because of it. What the disk refuses is told by the next flush.
pub(crate) fn answer(provider: &mut Provider, ask: PeerAsk, now_s: u32) -> (PeerTold, Vec<CrawlUrl>) {
    match ask {
        PeerAsk::Adopt(urls) => {
            let (adopted, into_scope) = adopt(provider, &urls, now_s);
            (PeerTold::Adopted(adopted), into_scope)
        }
        PeerAsk::Outbox { from, until, nodes } => {
            let outbox = provider.index().outbox(from, until, |node| nodes.contains(&node));
            (PeerTold::Outbox(outbox.map_err(|cause| cause.to_string())), Vec::new())
        }
        PeerAsk::Share(share) => {
            let set = provider.index_mut().set_share(share);
            (PeerTold::Shared(set.map_err(|cause| cause.to_string())), Vec::new())
        }
        PeerAsk::Empty(mut partitions) => {
            partitions.retain(|&partition| provider.index().partition_docs(partition) == 0);
            (PeerTold::Empty(partitions), Vec::new())
        }
        PeerAsk::Stand => {
            let index = provider.index();
            let standing = Standing { stats: index.stats(), ledger_end: index.ledger_end() };
            (PeerTold::Standing(standing), Vec::new())
        }
    }
}

fn adopt(provider: &mut Provider, urls: &[PeerUrl], now_s: u32) -> (Adopted, Vec<CrawlUrl>) {
    let (mut adopted, mut into_scope) = (Adopted::default(), Vec::new());
    for PeerUrl { url, found } in urls {
        let Some(parsed) = CrawlUrl::from_normal(url).ok().filter(|_| is_normal(url.as_bytes())) else {
            adopted.bad += 1;
            continue;
        };
        let Some(origin) = *found else {
            if provider.index_mut().adopt_scope(&parsed, now_s) {
                adopted.new += 1;
                provider.extend_scope(&parsed);
                into_scope.push(parsed);
            } else {
                adopted.known += 1;
            }
            continue;
        };
        let share = provider.index().share();
        if let Some(share) = share.filter(|share| !share.is_ours(url)) {
            let partition = share.partition_of(url);
            if !adopted.not_ours.contains(&partition) {
                adopted.not_ours.push(partition);
            }
            continue;
        }
        let is_new = provider.index_mut().adopt(&parsed, origin, now_s);
        *(if is_new { &mut adopted.new } else { &mut adopted.known }) += 1;
        if origin.provenance.is_seed() && provider.spans_new(&parsed) {
            provider.extend_scope(&parsed);
            into_scope.push(parsed);
        }
    }
    (adopted, into_scope)
}
