use crate::base::Now;
use crate::proto::job::{Candidate, TransId};
use crate::url_server::niceness::Pace;
use crate::url_server::order::RemoteRobots;

/// The active window of a host: at most `req_host_concurrent` requests that are with a spider.
#[derive(Default)]
pub(crate) struct Window {
    places: Vec<Option<Active>>,
}

/// One request that is with a spider.
pub(crate) struct Active {
    pub(super) generation: u32,
    pub work: Work,
    /// When it was handed out, later when it was sent.
    pub asked_at: Now,
    pub sent: bool,
    /// The latest sign of life from its spider.
    pub last_word: Now,
    pub spider: u16,
    /// Its key in the list of all open requests.
    pub(super) open_key: u32,
    /// The address it was sent to, as a slot; the host may have moved to another since.
    pub address: u32,
    /// The host has other addresses, so the spider waits for the connection for a short time only.
    pub more: bool,
    /// The host's pace before the request, which holds again if nothing was sent.
    pub before: Pace,
    /// When the pauses of the host and of the address were over, before the request, by the rules of that moment.
    pub host_due: Now,
    pub address_due: Now,
}

pub(crate) enum Work {
    Page(Candidate),
    /// /robots.txt, or the URL that it redirected to after this many hops.
    Robots {
        hops: u8,
    },
    /// The robots rules of another host, which redirected here.
    RemoteRobots(Box<RemoteRobots>),
}

impl Window {
    pub(super) fn places(&self) -> &[Option<Active>] {
        &self.places
    }

    pub(super) fn active_mut(&mut self) -> impl Iterator<Item = &mut Active> {
        self.places.iter_mut().filter_map(Option::as_mut)
    }

    /// Puts a request into a free place and returns which.
    pub(super) fn insert(&mut self, active: Active) -> u8 {
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            // One place is the usual window; a vector would make room for four.
            self.places.reserve_exact(1);
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(active);
        place as u8
    }

    pub(super) fn get(&self, trans: TransId) -> Option<&Active> {
        self.places.get(usize::from(trans.active_slot()))?.as_ref().filter(|active| active.is(trans))
    }

    pub(super) fn get_mut(&mut self, trans: TransId) -> Option<&mut Active> {
        self.places.get_mut(usize::from(trans.active_slot()))?.as_mut().filter(|active| active.is(trans))
    }

    pub(super) fn remove(&mut self, trans: TransId) -> Option<Active> {
        self.get(trans)?;
        self.places[usize::from(trans.active_slot())].take()
    }
}

impl Active {
    fn is(&self, trans: TransId) -> bool {
        self.generation == trans.generation()
    }

    pub fn is_page(&self) -> bool {
        matches!(self.work, Work::Page(_))
    }
}
