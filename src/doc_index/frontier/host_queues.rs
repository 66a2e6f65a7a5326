use super::host_queue::HostQueue;

/// The queues of one host, by rank. Most hosts have one at a time, and there may be millions of them: the first has its
/// place in the host.
#[derive(Default)]
pub(super) struct HostQueues {
    first: Option<HostQueue>,
    /// The others, in order. Empty lists are not kept. Boxed: to most hosts it is a null of eight bytes.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<HostQueue>>>,
}

impl HostQueues {
    pub fn first(&self) -> Option<&HostQueue> {
        self.first.as_ref()
    }

    pub fn first_mut(&mut self) -> Option<&mut HostQueue> {
        self.first.as_mut()
    }

    /// The one that links of today go to, most likely.
    pub fn last(&self) -> Option<&HostQueue> {
        self.more.as_ref().map_or(self.first.as_ref(), |more| more.last())
    }

    /// The queue of a rank, which is made if there is none.
    pub fn of(&mut self, rank: u16) -> &mut HostQueue {
        if self.first.as_ref().is_some_and(|first| rank < first.rank) {
            let before = self.first.replace(HostQueue::new(rank));
            let more = self.more.get_or_insert_default();
            before.into_iter().for_each(|queue| more.insert(0, queue));
        }
        let first = self.first.get_or_insert_with(|| HostQueue::new(rank));
        if first.rank == rank {
            return first;
        }
        let more = self.more.get_or_insert_default();
        let at = match more.binary_search_by_key(&rank, |queue| queue.rank) {
            Ok(at) => at,
            Err(at) => {
                more.insert(at, HostQueue::new(rank));
                at
            }
        };
        &mut more[at]
    }

    /// Lets go of the first, which is empty: the next takes its place.
    pub fn remove_first(&mut self) {
        self.first = self.more.as_mut().map(|more| more.remove(0));
        self.more.take_if(|more| more.is_empty());
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut HostQueue> {
        self.first.iter_mut().chain(self.more.iter_mut().flat_map(|more| more.iter_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_in_the_order_of_their_ranks() {
        let mut queues = HostQueues::default();
        for rank in [5, 3, 9, 3, 4, 1, 9] {
            assert_eq!(queues.of(rank).rank, rank);
        }
        assert_eq!(queues.iter_mut().map(|queue| queue.rank).collect::<Vec<_>>(), [1, 3, 4, 5, 9]);
        assert_eq!(queues.last().map(|queue| queue.rank), Some(9));
        for rank in [1, 3, 4, 5, 9] {
            assert_eq!(queues.first().map(|queue| queue.rank), Some(rank));
            queues.remove_first();
        }
        assert!(queues.first().is_none() && queues.more.is_none() && queues.last().is_none());
    }
}
