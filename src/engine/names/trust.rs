/// Whose fault it is that names fail: theirs, or that of whoever resolves them, which may be judged by no URL.
///
/// A name that fails is in doubt until the others tell. One that resolves clears all: those before it failed by
/// themselves. Without that, and once nothing more is asked or [`IN_A_ROW_MAX`] failed one after the other:
///
/// | so far               | the fault is ours if                                                                  |
/// |----------------------|---------------------------------------------------------------------------------------|
/// | no name has resolved | no server could say anything of any name, or one does not exist that had pages before |
/// | some have            | too many failed in a row, or among those that did is one that had pages before        |
///
/// A name that does not exist and never had a page is no doubt once any name has resolved, or servers were heard to tell
/// such names from others.
#[derive(Default)]
pub(crate) struct NameTrust {
    /// A name has resolved, or servers were found to answer.
    is_proven: bool,
    /// Names that failed since one resolved, as far as they are a reason for doubt.
    in_a_row: usize,
    doubts: Doubts,
    /// A name resolved while others were in doubt.
    has_cleared: bool,
}

/// The names in doubt, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Doubts {
    unsaid: usize,
    absent: usize,
    /// Of both, those whose host had pages before.
    missed: usize,
}

/// What became of a name that has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFault {
    /// No server could say.
    Unsaid,
    /// It does not exist, or has no address: a server said so.
    Absent,
}

/// So many in a row do not fail by themselves.
const IN_A_ROW_MAX: usize = 16;

impl NameTrust {
    /// A server found a name.
    pub fn resolved(&mut self) {
        let has_cleared = self.has_cleared || self.doubts != Doubts::default();
        *self = NameTrust { is_proven: true, has_cleared, ..NameTrust::default() };
    }

    /// Whether names that were in doubt failed by themselves, as others resolve. Told once.
    pub fn has_cleared(&mut self) -> bool {
        std::mem::take(&mut self.has_cleared)
    }

    /// A name needed no server: some do resolve, but nothing is known of servers.
    pub fn known(&mut self) {
        self.is_proven = true;
    }

    /// A name has failed; `missed` if its host had pages before. True if it is in doubt, false if it failed by itself.
    pub fn failed(&mut self, fault: NameFault, missed: bool) -> bool {
        if fault == NameFault::Absent && !missed && self.is_proven {
            return false;
        }
        self.in_a_row += 1;
        let Doubts { unsaid, absent, missed: all_missed } = &mut self.doubts;
        *(if fault == NameFault::Unsaid { unsaid } else { absent }) += 1;
        *all_missed += usize::from(missed);
        true
    }

    /// Whether the names in doubt failed by our fault; `None` while that is open. `is_idle` says that no question is.
    pub fn is_ours(&mut self, is_idle: bool) -> Option<bool> {
        let Doubts { unsaid, absent, missed } = self.doubts;
        if unsaid + absent == 0 || !(is_idle || self.in_a_row >= IN_A_ROW_MAX) {
            return None;
        }
        let is_ours = match self.is_proven {
            false => absent == 0 || missed > 0,
            true => missed > 0 || self.in_a_row >= IN_A_ROW_MAX,
        };
        if !is_ours {
            // They are judged. What fails after them still comes after them.
            (self.is_proven, self.doubts) = (true, Doubts::default());
        }
        Some(is_ours)
    }

    /// The names in doubt are asked for anew.
    pub fn ask_anew(&mut self) {
        (self.in_a_row, self.doubts) = (0, Doubts::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NameFault::{Absent, Unsaid};

    fn trust(is_proven: bool, faults: &[(NameFault, bool)]) -> NameTrust {
        let mut trust = NameTrust { is_proven, ..NameTrust::default() };
        faults.iter().for_each(|&(fault, missed)| _ = trust.failed(fault, missed));
        trust
    }

    #[test]
    fn before_a_name_has_resolved_nothing_is_judged_until_all_have_answered() {
        for (faults, expected) in [
            (&[(Unsaid, false)][..], true),
            (&[(Absent, false)], false),
            (&[(Absent, true)], true),
            (&[(Unsaid, false), (Absent, false)], false),
            (&[(Absent, false), (Absent, false), (Absent, true)], true),
        ] {
            let mut trust = trust(false, faults);
            assert_eq!(trust.is_ours(false), None, "{faults:?}: more may come");
            assert_eq!(trust.is_ours(true), Some(expected), "{faults:?}");
        }
        assert_eq!(trust(false, &[(Absent, false); IN_A_ROW_MAX]).is_ours(false), Some(false));
        assert_eq!(trust(false, &[(Unsaid, false); IN_A_ROW_MAX]).is_ours(false), Some(true));
    }

    #[test]
    fn a_name_that_resolves_clears_all_before_it() {
        let mut trust = trust(false, &[(Unsaid, true), (Absent, true)]);
        trust.resolved();
        assert_eq!(trust.is_ours(true), None);
        assert!(trust.has_cleared() && !trust.has_cleared());
        assert!(!trust.failed(Absent, false), "a new name that does not exist is its own fault");
        assert!(trust.failed(Unsaid, false));
        assert_eq!(trust.is_ours(true), Some(false), "one alone is its own fault");
    }

    #[test]
    fn those_that_were_judged_count_in_the_row() {
        let mut trust = trust(true, &[(Unsaid, false); IN_A_ROW_MAX - 1]);
        assert_eq!(trust.is_ours(true), Some(false));
        assert!(trust.failed(Unsaid, false));
        assert_eq!(trust.is_ours(false), Some(true));
        trust.ask_anew();
        assert_eq!(trust.is_ours(true), None);
    }
}
