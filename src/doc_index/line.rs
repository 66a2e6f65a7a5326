use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;

/// Pending documents, in a line per host, and the hosts in turn: one host can never clog an answer.
#[derive(Default)]
pub(super) struct Lines {
    by_host: RapidHashMap<u64, VecDeque<u32>>,
    /// Hosts with pending documents, in the order of their turns.
    turns: VecDeque<u64>,
    len: usize,
}

impl Lines {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn hosts(&self) -> usize {
        self.turns.len()
    }

    pub fn push_back(&mut self, host: u64, doc_id: u32) {
        self.line(host).push_back(doc_id);
    }

    pub fn push_front(&mut self, host: u64, doc_id: u32) {
        self.line(host).push_front(doc_id);
    }

    fn line(&mut self, host: u64) -> &mut VecDeque<u32> {
        self.len += 1;
        let line = self.by_host.entry(host).or_default();
        if line.is_empty() {
            self.turns.push_back(host);
        }
        line
    }

    /// Takes up to `want` documents, a few from each host in turn, none from hosts that `rejected` names.
    pub fn take(&mut self, want: usize, rejected: impl Fn(u64) -> bool, mut give: impl FnMut(u32)) {
        let mut left = want;
        let mut passed_over = 0;
        while left > 0 && passed_over < self.turns.len() {
            let Some(host) = self.turns.pop_front() else {
                return;
            };
            if rejected(host) {
                self.turns.push_back(host);
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            let Some(line) = self.by_host.get_mut(&host) else {
                continue;
            };
            for doc_id in line.drain(..line.len().min(PER_TURN).min(left)) {
                give(doc_id);
                left -= 1;
                self.len -= 1;
            }
            if line.is_empty() {
                self.by_host.remove(&host);
            } else {
                self.turns.push_back(host);
            }
        }
    }
}

/// Documents of one host in one turn.
const PER_TURN: usize = 8;
