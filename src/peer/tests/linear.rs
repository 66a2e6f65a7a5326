//! A linearizability search in the manner of Wing and Gong: is there an order of the operations that a single register, asked one
//! after the other, would have answered alike, and in which nobody comes before who ended before him?

use std::collections::HashSet;

/// What was asked of the register, and what was heard. A register that was never written holds 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Read(u8),
    Swapped {
        expect: u8,
        new: u8,
    },
    Differs {
        expect: u8,
        held: u8,
    },
    /// Done at any time after it was asked for, or never.
    Unknown {
        expect: u8,
        new: u8,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) called: u64,
    pub(super) returned: u64,
    pub(super) did: Did,
}

pub(super) fn linearizable(history: &[Operation]) -> bool {
    assert!(history.len() <= 64, "a search of small histories");
    search(history, 0, 0, &mut HashSet::new())
}

fn search(history: &[Operation], done: u64, value: u8, been: &mut HashSet<(u64, u8)>) -> bool {
    let open = || history.iter().enumerate().filter(|(at, _)| done & 1 << at == 0);
    if open().all(|(_, operation)| matches!(operation.did, Did::Unknown { .. })) {
        return true;
    }
    if !been.insert((done, value)) {
        return false;
    }
    let end = |operation: &Operation| match operation.did {
        Did::Unknown { .. } => u64::MAX,
        _ => operation.returned,
    };
    let first_end = open().map(|(_, operation)| end(operation)).min().unwrap_or(u64::MAX);
    open().filter(|(_, operation)| operation.called <= first_end).any(|(at, operation)| {
        let after = match operation.did {
            Did::Read(held) => (held == value).then_some(value),
            Did::Swapped { expect, new } => (expect == value).then_some(new),
            Did::Differs { expect, held } => (held == value && held != expect).then_some(value),
            Did::Unknown { expect, new } => Some(if expect == value { new } else { value }),
        };
        after.is_some_and(|after| search(history, done | 1 << at, after, been))
    })
}

#[test]
fn the_search_knows_right_from_wrong() {
    let operation = |called, returned, did| Operation { called, returned, did };
    let swap = |expect, new| Did::Swapped { expect, new };
    let ok = [operation(0, 9, swap(0, 1)), operation(1, 3, Did::Read(0)), operation(4, 5, Did::Read(1))];
    assert!(linearizable(&ok));
    let stale = [operation(0, 2, swap(0, 1)), operation(3, 4, Did::Read(0))];
    assert!(!linearizable(&stale));
    let back = [operation(0, 9, swap(0, 1)), operation(1, 2, Did::Read(1)), operation(3, 4, Did::Read(0))];
    assert!(!linearizable(&back));
    let both = [operation(0, 5, swap(0, 1)), operation(1, 6, swap(0, 2))];
    assert!(!linearizable(&both));
    let unknown = |did| {
        [
            operation(0, 1, Did::Unknown { expect: 0, new: 1 }),
            operation(5, 6, Did::Read(0)),
            operation(7, 8, did),
        ]
    };
    assert!(linearizable(&unknown(Did::Read(1))), "what is not known may come late");
    assert!(linearizable(&unknown(Did::Read(0))));
    assert!(!linearizable(&unknown(Did::Read(2))));
    assert!(!linearizable(&unknown(Did::Differs { expect: 1, held: 1 })));
}
