use super::plan::ClusterPlan;
use crate::base::Now;
use crate::driver::SimClock;
use crate::engine::PeerActor;
use crate::farm::host_name;
use crate::proto::partition::Share;
use crate::proto::peer_wire::TicketKey;
use crate::sim::web::PORT;
use std::sync::Arc;

/// What nodes take for their own, in true time, whether they make use of it or not: the right of a node to a host ends when its
/// own clock says so, and so does a ticket of an address or a host. No two nodes have one of them at a time.
pub struct Claims {
    /// The first page of each host.
    urls: Vec<String>,
    places: Vec<Claim>,
}

#[derive(Clone, Default)]
struct Claim {
    share: Option<Arc<Share>>,
    /// Of each host: whether it is of that share.
    owns: Vec<bool>,
    /// By its own clock, and in true time.
    right: (Now, Now),
    /// The end of each by its own clock, and in true time.
    tickets: Vec<(TicketKey, Now, Now)>,
}

impl Claims {
    pub fn new(plan: &ClusterPlan) -> Claims {
        let url = |host| format!("http://{}:{PORT}/", host_name(host));
        let urls = (0..plan.web.site.hosts).map(url).collect();
        Claims { urls, places: vec![Claim::default(); plan.nodes] }
    }

    /// A node does not run any more.
    pub fn end(&mut self, place: usize) {
        self.places[place] = Claim::default();
    }

    /// Looks at what a node goes by since its peers turned. One that stands still has what it had.
    pub fn look(&mut self, place: usize, peers: &PeerActor, clock: SimClock, now: Now) {
        let Claims { urls, places } = self;
        let claim = &mut places[place];
        let (share, until) = peers.right();
        let is_other = claim.share.as_ref().map(Arc::as_ptr) != share.map(Arc::as_ptr);
        let has_same = claim.tickets.iter().map(|(key, until, _)| (key, *until)).eq(peers.tickets());
        if !is_other && claim.right.0 == until && has_same {
            return;
        }
        if is_other {
            let owns = |url: &String| share.is_some_and(|share| share.owns(share.partition_of(url)));
            claim.owns = urls.iter().map(owns).collect();
            claim.share = share.cloned();
        }
        claim.right = (until, clock.when(until));
        claim.tickets.clear();
        claim.tickets.extend(peers.tickets().map(|(key, until)| (key.clone(), until, clock.when(until))));
        self.judge(now);
    }

    /// What is claimed ends by itself: it is enough to look when a claim is another.
    fn judge<'c>(&'c self, now: Now) {
        let standing = || self.places.iter().enumerate().filter(|(_, claim)| claim.right.1 > now);
        for host in 0..self.urls.len() {
            let mut owners = standing().filter(|(_, claim)| claim.owns.get(host) == Some(&true));
            if let (Some((one, first)), Some((other, second))) = (owners.next(), owners.next()) {
                panic!(
                    "rights overlap: host {host} is node {one}'s until {:?} and node {other}'s until {:?}, at {now:?}",
                    first.right.1, second.right.1
                );
            }
        }
        let holds = |(place, claim): (usize, &'c Claim)| {
            let good = claim.tickets.iter().filter(move |(.., until)| *until > now);
            good.map(move |(key, _, until)| (key, *until, place))
        };
        let mut held: Vec<(&TicketKey, Now, usize)> =
            self.places.iter().enumerate().flat_map(holds).collect();
        held.sort_unstable();
        if let Some(two) = held.windows(2).find(|two| two[0].0 == two[1].0) {
            let [(key, first, one), (_, second, other)] = [two[0], two[1]];
            panic!(
                "tickets overlap: {key} is node {one}'s until {first:?} and node {other}'s until {second:?}, at {now:?}"
            );
        }
    }
}
