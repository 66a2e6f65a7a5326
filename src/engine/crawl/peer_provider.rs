//! What the peers of a node ask its index.

use crate::base::SortedSet;
use crate::engine::crawl::provider::Provider;
use crate::engine::inspect::peer_words::{
    Adopted, MovedDoc, MovedDocs, PeerAsk, PeerNews, PeerTold, PeerUrl, Standing,
};
use crate::proto::partition::{Partition, Share, Spread};
use crate::proto::url::{CrawlUrl, is_normal};

/// Answers, and says what else is to be known of it. What the disk refuses is told by the next flush.
pub(crate) fn answer(provider: &mut Provider, ask: PeerAsk, now_s: u32) -> (PeerTold, PeerNews) {
    let mut news = PeerNews::default();
    let told = match ask {
        PeerAsk::Adopt(urls) => {
            let (adopted, into_scope) = adopt(provider, &urls, now_s);
            news.into_scope = into_scope;
            PeerTold::Adopted(adopted)
        }
        PeerAsk::Outbox { from, until, nodes } => {
            let outbox = provider.index().outbox(from, until, |node| nodes.contains(&node));
            PeerTold::Outbox(outbox.map_err(|cause| cause.to_string()))
        }
        PeerAsk::Share(share) => {
            let gained = gained(provider.index().share().map(|share| &**share), &share);
            let is_of_many = share.partitioner().spread() == Spread::Url;
            let set = provider.index_mut().set_share(share);
            if let Ok(Ok(())) = set {
                let index = provider.index();
                news.opened = match (is_of_many, index.leaving().is_none()) {
                    // What has left was a part of its hosts.
                    (true, true) => index.origins().map(Box::from).collect(),
                    // They are opened by what ends it.
                    (true, false) => Vec::new(),
                    (false, _) => index.origins_in(&gained).map(Box::from).collect(),
                };
            }
            PeerTold::Shared(set.map_err(|cause| cause.to_string()))
        }
        PeerAsk::Empty(mut partitions) => {
            partitions.retain(|&partition| provider.index().partition_docs(partition) == 0);
            PeerTold::Empty(partitions)
        }
        PeerAsk::IsOut(partitions) => PeerTold::IsOut(provider.index().is_out(&partitions)),
        PeerAsk::Moving { from, partitions } => {
            let moving = provider.index_mut().moving(from, &partitions);
            PeerTold::Moving(moving.map_err(|cause| cause.to_string()))
        }
        PeerAsk::Stay(partitions) => {
            provider.index_mut().stay(&partitions);
            news.opened = provider.index().origins_in(&partitions).map(Box::from).collect();
            PeerTold::Stays
        }
        PeerAsk::TakeMoved(moved) => {
            news.nice = moved.nice.clone();
            news.into_scope = take_over_scope(provider, &moved.in_scope, now_s);
            PeerTold::TookMoved { bad: take_moved(provider, &moved, now_s) }
        }
        PeerAsk::Copying { from } => {
            let copying = provider.index_mut().copying(from);
            PeerTold::Copying(copying.map_err(|cause| cause.to_string()))
        }
        PeerAsk::Stand => {
            let index = provider.index();
            let epoch = index.share().map_or(0, |share| share.epoch());
            PeerTold::Standing(Standing { stats: index.stats(), ledger_end: index.ledger_end(), epoch })
        }
    };
    (told, news)
}

/// Partitions that a node has by the next share, and had not before.
fn gained(before: Option<&Share>, next: &Share) -> SortedSet<Partition> {
    before.map_or_else(SortedSet::new, |before| next.lost_in(before).collect())
}

/// Takes in what another node hands over; says how many of the documents could not be read.
fn take_moved(provider: &mut Provider, moved: &MovedDocs, now_s: u32) -> u64 {
    let mut bad = 0;
    for MovedDoc { url, origin, row } in &moved.docs {
        let taken = normal(url).and_then(|url| provider.index_mut().take_moved(&url, *origin, row, now_s));
        bad += u64::from(taken.is_none());
    }
    bad
}

/// Takes in what a node that is taken over had in scope; says what of it is new.
fn take_over_scope(provider: &mut Provider, urls: &[Box<str>], now_s: u32) -> Vec<CrawlUrl> {
    let mut into_scope = Vec::new();
    for url in urls.iter().filter_map(|url| normal(url)) {
        if provider.index_mut().take_over_scope(&url, now_s) {
            provider.extend_scope(&url);
            into_scope.push(url);
        }
    }
    into_scope
}

/// A URL in normal form, as a peer tells it. Most are known by their bytes; of the others it is seen whether they would stay.
fn normal(text: &str) -> Option<CrawlUrl> {
    match is_normal(text.as_bytes()) {
        true => CrawlUrl::from_normal(text).ok(),
        false => CrawlUrl::parse(text).ok().filter(|url| url.as_str() == text),
    }
}

fn adopt(provider: &mut Provider, urls: &[PeerUrl], now_s: u32) -> (Adopted, Vec<CrawlUrl>) {
    let (mut adopted, mut into_scope) = (Adopted::default(), Vec::new());
    for PeerUrl { url, found } in urls {
        let Some(parsed) = normal(url) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stays_as_it_is_when_it_is_read_is_taken() {
        for text in [
            "http://a.test/",
            "http://xn--e1afmkfd.xn--p1ai/",
            "http://192.0.2.7/x",
            "http://[2001:db8::1]:81/",
            "http://a_b.test/",
            "http://a.test/.well-known/x",
            "http://a.test/it's|so^",
            "http://a.test/?q={x|y}",
        ] {
            let parsed = CrawlUrl::parse(text).unwrap();
            assert_eq!(normal(parsed.as_str()).as_ref(), Some(&parsed), "{text}");
        }
        for text in [
            "http://A.test/",
            "http://a.test",
            "http://a.test:80/",
            "ftp://a.test/",
            "",
            "http://a.test/a/../b",
        ] {
            assert_eq!(normal(text), None, "{text}");
        }
    }
}
