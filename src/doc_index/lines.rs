use super::line::Line;

/// The lines of one host, by rank. Most hosts have one at a time, and there may be millions of them: the first has its
/// place in the host.
#[derive(Default)]
pub(super) struct Lines {
    first: Option<Line>,
    /// The others, in order. Empty lists are not kept. Boxed: to most hosts it is a null of eight bytes.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<Line>>>,
}

impl Lines {
    pub fn first(&self) -> Option<&Line> {
        self.first.as_ref()
    }

    pub fn first_mut(&mut self) -> Option<&mut Line> {
        self.first.as_mut()
    }

    /// The one that links of today go to, most likely.
    pub fn last(&self) -> Option<&Line> {
        self.more.as_ref().map_or(self.first.as_ref(), |more| more.last())
    }

    /// The line of a rank, which is made if there is none.
    pub fn of(&mut self, rank: u16) -> &mut Line {
        if self.first.as_ref().is_some_and(|first| rank < first.rank) {
            let before = self.first.replace(Line::new(rank));
            let more = self.more.get_or_insert_default();
            before.into_iter().for_each(|line| more.insert(0, line));
        }
        let first = self.first.get_or_insert_with(|| Line::new(rank));
        if first.rank == rank {
            return first;
        }
        let more = self.more.get_or_insert_default();
        let at = match more.binary_search_by_key(&rank, |line| line.rank) {
            Ok(at) => at,
            Err(at) => {
                more.insert(at, Line::new(rank));
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

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        self.first.iter_mut().chain(self.more.iter_mut().flat_map(|more| more.iter_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_in_the_order_of_their_ranks() {
        let mut lines = Lines::default();
        for rank in [5, 3, 9, 3, 4, 1, 9] {
            assert_eq!(lines.of(rank).rank, rank);
        }
        assert_eq!(lines.iter_mut().map(|line| line.rank).collect::<Vec<_>>(), [1, 3, 4, 5, 9]);
        assert_eq!(lines.last().map(|line| line.rank), Some(9));
        for rank in [1, 3, 4, 5, 9] {
            assert_eq!(lines.first().map(|line| line.rank), Some(rank));
            lines.remove_first();
        }
        assert!(lines.first().is_none() && lines.more.is_none() && lines.last().is_none());
    }
}
