use super::super::partner_domain::{MapRow, ServerId};

/// What a row of the table calls for at a master that goes by another one of the same domain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Transition {
    /// The domain has left this server, which was not told by this master: CLOSE, with its fence.
    pub leaves: Option<(ServerId, u32)>,
    /// The domain came to the server of the row: NICE, OPEN and URLs.
    pub arrives: Option<Arrival>,
    /// The domain has to leave the server of the row: CLOSE, after it was opened there.
    pub closes: Option<ServerId>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The fence of OPEN.
    pub fence: u32,
    /// The handover is kept under this fence.
    pub handover: u32,
    /// Without a handover nobody knows whether the old server has let go.
    pub is_needed: bool,
    /// Lines of this master that lie in the queue of a server that had closed the domain meanwhile.
    pub lines_at: Option<ServerId>,
}

/// CLOSE is in the queue of the row's server, if the row is a master's own.
pub(super) fn is_closing(row: &MapRow) -> bool {
    row.moving_to.is_some_and(|to| to != row.server)
}

/// A row that nothing is sent by although its domain moves nowhere: the table says what cannot be.
pub(super) fn held(row: &MapRow) -> MapRow {
    MapRow { moving_to: Some(row.server), ..row.clone() }
}

/// The fence with which the domain came to the server of the row.
pub(super) fn arrived(row: &MapRow) -> u32 {
    if is_closing(row) { row.fence.saturating_sub(1) } else { row.fence }
}

/// `None` if there is nothing to do.
pub(super) fn transition(own: Option<&MapRow>, told: &MapRow) -> Option<Transition> {
    if own.is_some_and(|own| own.fence >= told.fence) {
        return None;
    }
    let is_new = arrived(told) > own.map_or(0, arrived);
    let moved_from = own.map(|own| own.server).filter(|server| *server != told.server);
    let untold = own.filter(|own| !is_closing(own));
    let arrives = is_new.then(|| Arrival {
        fence: arrived(told),
        handover: arrived(told).saturating_sub(1),
        is_needed: !is_closing(told),
        lines_at: own.map(|own| own.server),
    });
    let is_told_to_close = own.is_some_and(|own| is_closing(own) && own.server == told.server && !is_new);
    Some(Transition {
        leaves: untold.and(moved_from).map(|server| (server, arrived(told).saturating_sub(1))),
        arrives,
        closes: (is_closing(told) && !is_told_to_close).then_some(told.server),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::partner_domain::By;
    use super::*;

    fn row(server: u16, moving_to: Option<u16>, fence: u32) -> MapRow {
        let moving_to = moving_to.map(ServerId);
        MapRow {
            domain: "a.ru".into(),
            server: ServerId(server),
            moving_to,
            page: 0,
            since_s: 0,
            by: By::Rule,
            fence,
        }
    }

    #[track_caller]
    fn check(
        own: Option<MapRow>,
        told: MapRow,
        leaves: Option<u16>,
        arrives: Option<(u32, bool, Option<u16>)>,
        closes: Option<u16>,
    ) {
        let arrives = arrives.map(|(handover, is_needed, lines_at)| Arrival {
            fence: handover + 1,
            handover,
            is_needed,
            lines_at: lines_at.map(ServerId),
        });
        let leaves =
            leaves.zip(arrives.as_ref()).map(|(server, arrival)| (ServerId(server), arrival.handover));
        let closes = closes.map(ServerId);
        assert_eq!(transition(own.as_ref(), &told), Some(Transition { leaves, arrives, closes }));
    }

    #[test]
    fn each_step_of_a_move_calls_for_its_entries_and_missed_ones_are_made_up_for() {
        let (here, moving, there) = (row(1, None, 0), row(1, Some(2), 1), row(2, None, 2));
        check(None, here.clone(), None, None, None);
        check(Some(here.clone()), moving.clone(), None, None, Some(1));
        check(Some(moving.clone()), there.clone(), None, Some((1, true, Some(1))), None);
        // Not there while it was moved.
        check(Some(here.clone()), there.clone(), Some(1), Some((1, true, Some(1))), None);
        check(Some(here.clone()), row(2, Some(3), 3), Some(1), Some((1, false, Some(1))), Some(2));
        check(Some(moving.clone()), row(2, Some(3), 3), None, Some((1, false, Some(1))), Some(2));
        // There and back.
        check(Some(here.clone()), row(1, None, 4), None, Some((3, true, Some(1))), None);
        check(Some(here.clone()), row(1, Some(3), 5), None, Some((3, false, Some(1))), Some(1));
        // A master without a past.
        check(None, moving.clone(), None, None, Some(1));
        check(None, there.clone(), None, Some((1, true, None)), None);
        // Called off by force.
        check(Some(moving.clone()), row(1, None, 2), None, Some((1, true, Some(1))), None);
        // What is known calls for nothing.
        assert_eq!(transition(Some(&there), &moving), None);
        assert_eq!(transition(Some(&there), &there), None);
        // A row that was held is no CLOSE.
        check(Some(held(&here)), there, Some(1), Some((1, true, Some(1))), None);
    }
}
