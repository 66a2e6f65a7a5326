use crate::resolver::Failure;
use rapidhash::fast::RapidHashSet;

/// Whose fault it is that names fail: theirs, or that of whoever resolves them, which may be judged by no URL.
///
/// A name that fails is in doubt until the others tell. One that a server finds clears all: those before it failed by
/// themselves. Without that, and once nothing more is asked or [`IN_A_ROW_MAX`] failed one after the other:
///
/// | names in doubt                  | so far in this run                  | the fault is ours                         |
/// |---------------------------------|-------------------------------------|-------------------------------------------|
/// | one does not exist any more     | no server has found a name          | always: a hosts file may be forgotten     |
/// |                                 | one has                             | if too many failed in a row               |
/// | none does, one never did        | (a server speaks)                   | never                                     |
/// | no server could say of any      | no name is known                    | unless a server answers the test question |
/// |                                 | the hosts file knew names           | the same, if one of them had pages before |
/// |                                 | a server has found a name           | if all were silent, the test question too |
/// |                                 | whatever it was, too many in a row  | unless a server answers the test question |
///
/// The test question is about a name that does not exist, so that a server that speaks must say "no" ([`Verdict::Test`]).
/// One that fails at that, too, has lost whom it asks in turn. What the resolver remembers shows nothing of servers, and
/// a name counts in a row once.
///
/// A name that does not exist and never had a page is no doubt once any name has resolved, or servers were heard to tell
/// such names from others.
#[derive(Default)]
pub(crate) struct NameTrust {
    /// Some name has resolved, or servers were found to answer.
    is_proven: bool,
    /// A server has found a name.
    has_found: bool,
    /// Names that failed since a server found one, as far as they are a reason for doubt.
    in_a_row: usize,
    /// Fingerprints of names that have counted in a row.
    counted: RapidHashSet<u64>,
    doubts: Doubts,
    /// What servers said to the test question, since there are doubts.
    tested: Option<ServerWord>,
    /// A name resolved while others were in doubt.
    has_cleared: bool,
}

/// The names in doubt, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Doubts {
    unsaid: usize,
    absent: usize,
    /// Of each, those whose host had pages before.
    unsaid_missed: usize,
    absent_missed: usize,
    /// The most that a server said to one of them.
    word: Option<ServerWord>,
}

/// A name that has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameFault {
    /// Fingerprint of the name.
    pub name: u64,
    pub word: ServerWord,
    /// Its host had pages before.
    pub missed: bool,
    /// It was known from before: no server was asked.
    pub is_remembered: bool,
}

/// What servers said of a name; the more the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerWord {
    /// Nothing.
    Silence,
    /// That they cannot say.
    Fault,
    /// Where it is, or that it does not exist or has no address.
    Told,
}

/// About the names in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They failed by themselves.
    Theirs,
    /// They failed by our fault.
    Ours,
    /// Servers must be asked for a name that nobody remembers, and the answer [told](NameTrust::tested).
    Test,
}

/// So many in a row do not fail by themselves.
const IN_A_ROW_MAX: usize = 16;
/// With more of them, names may count twice.
const COUNTED_MAX: usize = 65_536;

impl ServerWord {
    pub fn of(failure: Failure) -> ServerWord {
        match failure {
            Failure::TimedOut => ServerWord::Silence,
            Failure::ServersFailed => ServerWord::Fault,
            Failure::BadName | Failure::NoSuchName | Failure::NoAddress => ServerWord::Told,
        }
    }
}

impl NameTrust {
    /// A server found a name.
    pub fn found(&mut self) {
        self.has_cleared |= !self.doubts.is_none();
        (self.is_proven, self.has_found, self.in_a_row) = (true, true, 0);
        self.settle();
    }

    /// Whether names that were in doubt failed by themselves, as others resolve. Told once.
    pub fn has_cleared(&mut self) -> bool {
        std::mem::take(&mut self.has_cleared)
    }

    /// A name needed no server: some do resolve, but nothing is known of servers.
    pub fn known(&mut self) {
        self.is_proven = true;
    }

    /// A name has failed. True if it is in doubt, false if it failed by itself.
    pub fn failed(&mut self, fault: NameFault) -> bool {
        let NameFault { name, word, missed, is_remembered } = fault;
        let (is_absent, doubts) = (word == ServerWord::Told, &mut self.doubts);
        let is_its_own = is_absent && !missed && self.is_proven;
        // Before the first doubt it shows nothing of what servers do after it.
        if is_its_own && doubts.is_none() {
            return false;
        }
        if !is_remembered {
            doubts.word = doubts.word.max(Some(word));
        }
        if is_its_own {
            return false;
        }
        let (count, count_missed) = match is_absent {
            true => (&mut doubts.absent, &mut doubts.absent_missed),
            false => (&mut doubts.unsaid, &mut doubts.unsaid_missed),
        };
        *count += 1;
        *count_missed += usize::from(missed);
        if missed || !is_absent {
            if self.counted.len() >= COUNTED_MAX {
                self.counted.clear();
            }
            self.in_a_row += usize::from(self.counted.insert(name));
        }
        true
    }

    /// What servers said to the test question.
    pub fn tested(&mut self, word: ServerWord) {
        if !self.doubts.is_none() {
            self.tested = Some(word);
        }
    }

    /// About the names in doubt; `None` while that is open. `is_idle` says that no question is.
    pub fn verdict(&mut self, is_idle: bool) -> Option<Verdict> {
        let Doubts { unsaid, absent, unsaid_missed, absent_missed, word } = self.doubts;
        let too_many = self.in_a_row >= IN_A_ROW_MAX;
        if self.doubts.is_none() || !(is_idle || too_many || absent >= IN_A_ROW_MAX) {
            return None;
        }
        if absent_missed > 0 && (too_many || !self.has_found) {
            return Some(Verdict::Ours);
        }
        let word = if too_many { self.tested } else { word.max(self.tested) };
        let is_single = !too_many
            && match self.has_found {
                true => word >= Some(ServerWord::Fault),
                false => self.is_proven && unsaid_missed == 0,
            };
        if unsaid == 0 || is_single || word == Some(ServerWord::Told) {
            // What fails after them still comes after them.
            self.is_proven = true;
            self.in_a_row = if too_many { 0 } else { self.in_a_row };
            self.settle();
            return Some(Verdict::Theirs);
        }
        Some(if self.tested.is_some() { Verdict::Ours } else { Verdict::Test })
    }

    /// The names in doubt are asked for anew.
    pub fn ask_anew(&mut self) {
        self.in_a_row = 0;
        self.counted.clear();
        self.settle();
    }

    fn settle(&mut self) {
        (self.doubts, self.tested) = (Doubts::default(), None);
    }
}

impl Doubts {
    fn is_none(&self) -> bool {
        self.unsaid + self.absent == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerWord::{Fault, Silence, Told};
    use Verdict::{Ours, Test, Theirs};

    /// Names of their own; the flag says whether they had pages before.
    fn fail(trust: &mut NameTrust, from: u64, faults: &[(ServerWord, bool)]) {
        for (name, &(word, missed)) in (from..).zip(faults) {
            trust.failed(NameFault { name, word, missed, is_remembered: false });
        }
    }

    /// Before any name resolves; after one of the hosts file; after one that a server found.
    fn trusts(faults: &[(ServerWord, bool)]) -> [NameTrust; 3] {
        let mut trusts: [NameTrust; 3] = Default::default();
        trusts[1].known();
        trusts[2].found();
        trusts.iter_mut().for_each(|trust| fail(trust, 0, faults));
        trusts
    }

    #[test]
    fn the_fault_is_told_from_what_others_do() {
        let (row, row_missed) = ([(Fault, false); IN_A_ROW_MAX], [(Told, true); IN_A_ROW_MAX]);
        for (faults, expected) in [
            (&[(Silence, false)][..], [Some(Test), Some(Theirs), Some(Test)]),
            (&[(Fault, false)], [Some(Test), Some(Theirs), Some(Theirs)]),
            (&[(Silence, true)], [Some(Test), Some(Test), Some(Test)]),
            (&[(Fault, true)], [Some(Test), Some(Test), Some(Theirs)]),
            (&[(Told, false)], [Some(Theirs), None, None]),
            (&[(Told, true)], [Some(Ours), Some(Ours), Some(Theirs)]),
            (&[(Silence, true), (Told, false)], [Some(Theirs), Some(Theirs), Some(Theirs)]),
            (&[(Told, false), (Told, false), (Told, true)], [Some(Ours), Some(Ours), Some(Theirs)]),
            (&row, [Some(Test), Some(Test), Some(Test)]),
            (&row_missed, [Some(Ours), Some(Ours), Some(Ours)]),
        ] {
            let mut trusts = trusts(faults);
            if faults.len() < IN_A_ROW_MAX {
                assert_eq!(trusts.each_mut().map(|trust| trust.verdict(false)), [None; 3], "more may come");
            }
            let is_idle = faults.len() < IN_A_ROW_MAX;
            assert_eq!(trusts.each_mut().map(|trust| trust.verdict(is_idle)), expected, "{faults:?}");
        }
        assert_eq!(trusts(&[(Told, false); IN_A_ROW_MAX])[0].verdict(false), Some(Theirs));
    }

    #[test]
    fn the_test_question_tells_servers_that_are_there() {
        let (one, row) = ([(Silence, true)], [(Fault, false); IN_A_ROW_MAX]);
        for (faults, word, expected) in [
            (&one[..], Told, [Theirs; 3]),
            (&one, Fault, [Ours, Ours, Theirs]),
            (&one, Silence, [Ours; 3]),
            (&row, Told, [Theirs; 3]),
            (&row, Fault, [Ours; 3]),
            (&row, Silence, [Ours; 3]),
        ] {
            let mut trusts = trusts(faults);
            trusts.iter_mut().for_each(|trust| trust.tested(word));
            let verdicts = trusts.each_mut().map(|trust| trust.verdict(true));
            assert_eq!(verdicts, expected.map(Some), "{faults:?} {word:?}");
        }
    }

    #[test]
    fn a_name_that_is_found_clears_all_before_it() {
        let mut trust = NameTrust::default();
        fail(&mut trust, 0, &[(Silence, true), (Told, true)]);
        trust.tested(Silence);
        trust.found();
        assert_eq!(trust.verdict(true), None);
        assert!(trust.has_cleared() && !trust.has_cleared());
        trust.tested(Told);
        fail(&mut trust, 2, &[(Silence, false)]);
        assert_eq!(trust.verdict(true), Some(Test), "what was said before it tells nothing");
    }

    #[test]
    fn those_that_were_judged_count_in_the_row_once() {
        let [.., mut trust] = trusts(&[(Fault, false); IN_A_ROW_MAX - 1]);
        for _ in 0..IN_A_ROW_MAX {
            assert_eq!(trust.verdict(true), Some(Theirs));
            fail(&mut trust, 0, &[(Fault, false)]);
        }
        fail(&mut trust, 99, &[(Fault, false)]);
        assert_eq!(trust.verdict(false), Some(Test));
        trust.ask_anew();
        assert_eq!(trust.verdict(true), None);
        fail(&mut trust, 0, &[(Fault, false); IN_A_ROW_MAX]);
        assert_eq!(trust.verdict(false), Some(Test), "they are asked for anew, and count anew");
    }

    #[test]
    fn what_is_remembered_tells_nothing_of_servers() {
        let [.., mut trust] = trusts(&[(Silence, false)]);
        trust.known();
        trust.failed(NameFault { name: 9, word: Told, missed: true, is_remembered: true });
        assert_eq!(trust.verdict(true), Some(Test));
    }
}
