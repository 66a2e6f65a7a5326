use crate::engine::crawl::placement::Place;
use crate::proto::url::CrawlUrl;
use crate::url_server::RemoteRobots;
use rapidhash::fast::RapidHashMap;

/// Robots rules that are asked for at another host than theirs, and so perhaps on another shard.
#[derive(Default)]
pub(crate) struct RobotsExchange {
    open: RapidHashMap<u64, OpenRequest>,
    next: u64,
}

/// Whose rules they are: the shard that wants them, and the origin they are for.
pub(crate) struct Asker {
    pub shard: usize,
    pub origin: Box<str>,
}

struct OpenRequest {
    asker: Asker,
    /// The shard that asks.
    at: usize,
    request: RemoteRobots,
}

impl RobotsExchange {
    /// Whether the same was asked for already. A shard that died may have done so; the answer is for the one that took its
    /// place.
    pub fn is_open(&self, asker: usize, origin: &str, url: &CrawlUrl) -> bool {
        self.open.values().any(|open| {
            open.asker.shard == asker && *open.asker.origin == *origin && open.request.url == *url
        })
    }

    pub fn send(&mut self, asker: Asker, url: CrawlUrl, place: Place) -> RemoteRobots {
        self.next += 1;
        let request = RemoteRobots { id: self.next, url, ip: place.ip, others: place.others };
        self.open.insert(request.id, OpenRequest { asker, at: place.shard, request: request.clone() });
        request
    }

    /// Who waits for an answer that has come.
    pub fn answered(&mut self, id: u64) -> Option<Asker> {
        self.open.remove(&id).map(|open| open.asker)
    }

    /// A shard died: what it was to ask for others is asked by the next.
    pub fn lost_with(&self, shard: usize) -> Vec<RemoteRobots> {
        let lost = self.open.values().filter(|open| open.at == shard);
        let mut lost: Vec<RemoteRobots> = lost.map(|open| open.request.clone()).collect();
        lost.sort_unstable_by_key(|request| request.id);
        lost
    }
}
