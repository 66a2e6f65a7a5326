//! The set against a map, through everything that can be done to it.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Ask,
    Resolve,
    Find,
    Flush,
    /// After a crash: what is in no run is gone, and is inserted again.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u32..120).prop_map(Step::Insert),
        2 => Just(Step::Ask),
        2 => Just(Step::Resolve),
        1 => Just(Step::Find),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

/// Fingerprints asked for that nobody inserted.
const STRANGERS: u32 = 200;

struct Checked {
    folder: Folder,
    sizes: Sizes,
    seen: Seen,
    model: BTreeMap<u64, u32>,
    last: u32,
}

impl Checked {
    fn new(sizes: Sizes) -> Checked {
        let folder = Folder::new();
        Checked { seen: folder.open(sizes), folder, sizes, model: BTreeMap::new(), last: 0 }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Insert(count) => {
                for doc_id in self.last + 1..=self.last + count {
                    self.seen.insert(fingerprint_of(doc_id), doc_id).unwrap();
                    self.model.insert(fingerprint_of(doc_id), doc_id);
                }
                self.last += count;
            }
            Step::Ask => self.ask(),
            Step::Resolve => self.resolve(),
            Step::Find => self.find(),
            Step::Flush => {
                self.seen.flush().unwrap();
                assert_eq!(self.seen.covered(), self.last);
            }
            Step::Reopen => self.reopen(),
        }
        assert_eq!(self.seen.len(), self.model.len() as u64);
    }

    fn fingerprints(&self) -> Vec<u64> {
        (1..=self.last + STRANGERS).map(fingerprint_of).collect()
    }

    fn ask(&mut self) {
        let fingerprints = self.fingerprints();
        let mut answers = vec![Answer::New; 3];
        self.seen.ask(&fingerprints, &mut answers);
        assert_eq!(answers.len(), fingerprints.len());
        for (fingerprint, answer) in fingerprints.iter().zip(answers) {
            let expected = match (self.model.contains_key(fingerprint), self.seen.is_complete()) {
                (true, true) => answer == Answer::Known,
                (false, true) => answer == Answer::New,
                (true, false) => answer != Answer::New,
                (false, false) => answer == Answer::Unresolved,
            };
            assert!(expected, "{fingerprint:x}: {answer:?}");
        }
    }

    fn resolve(&mut self) {
        let fingerprints = self.fingerprints();
        let query = |(index, &fingerprint)| Query { fingerprint, index: index as u32, known: false };
        let mut many: Vec<Query> = fingerprints.iter().enumerate().map(query).collect();
        let mut few: Vec<Query> = many.iter().copied().step_by(997).collect();
        for queries in [&mut many, &mut few] {
            self.seen.resolve(queries).unwrap();
            for query in queries {
                assert_eq!(query.fingerprint, fingerprints[query.index as usize]);
                assert_eq!(query.known, self.model.contains_key(&query.fingerprint));
                if query.known {
                    self.seen.note(query.fingerprint);
                }
            }
        }
    }

    fn find(&mut self) {
        let reader = self.folder.reader();
        assert_eq!(reader.covered(), self.seen.covered());
        for fingerprint in self.fingerprints().into_iter().step_by(7) {
            let doc_id = self.model.get(&fingerprint).copied();
            assert_eq!(self.seen.find(fingerprint).unwrap(), doc_id);
            let in_run = doc_id.filter(|&doc_id| doc_id <= reader.covered());
            assert_eq!(reader.find(fingerprint).unwrap(), in_run);
        }
    }

    fn reopen(&mut self) {
        let covered = self.seen.covered();
        self.seen = self.folder.open(self.sizes);
        assert_eq!(self.seen.covered(), covered);
        assert!(self.seen.removed().is_empty());
        assert_eq!(self.seen.len(), u64::from(covered));
        insert(&mut self.seen, self.last);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn it_is_a_set(
        steps in prop::collection::vec(step(), 1..40),
        table_bytes_max in prop_oneof![Just(0), 33_000..80_000_usize, Just(1 << 20)],
        unwritten_max in 1..100_usize,
    ) {
        let mut checked = Checked::new(Sizes { table_bytes_max, unwritten_max });
        for step in steps {
            checked.apply(&step);
        }
        checked.apply(&Step::Ask);
        checked.apply(&Step::Resolve);
    }
}
