use crate::proto::job::Candidate;

/// The waiting URLs of all hosts in one arena. The URLs of one host are linked through it, so that an empty queue costs
/// its host eight bytes and a full one no allocation of its own.
#[derive(Default)]
pub(super) struct UrlArena {
    rows: Vec<Row>,
    /// First of the rows that are free.
    free: Option<u32>,
    len: usize,
}

struct Row {
    candidate: Option<Candidate>,
    /// The row behind this one; of the last row in a queue the first, of a free row the next free one.
    next: u32,
}

/// One host's queue: the last of its rows, whose `next` is the first.
#[derive(Clone, Copy, Default)]
pub(super) struct Queue {
    last: u32,
    len: u32,
}

impl Queue {
    pub fn len(self) -> usize {
        self.len as usize
    }

    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl UrlArena {
    /// URLs in all queues.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push_back(&mut self, queue: &mut Queue, candidate: Candidate) {
        self.push_front(queue, candidate);
        // In a ring, what was put before the first is the new last once the mark moves on.
        queue.last = self.rows[queue.last as usize].next;
    }

    pub fn push_front(&mut self, queue: &mut Queue, candidate: Candidate) {
        let row = self.take_free(candidate);
        if queue.len == 0 {
            self.rows[row as usize].next = row;
            queue.last = row;
        } else {
            let first = std::mem::replace(&mut self.rows[queue.last as usize].next, row);
            self.rows[row as usize].next = first;
        }
        queue.len += 1;
        self.len += 1;
    }

    pub fn pop_front(&mut self, queue: &mut Queue) -> Option<Candidate> {
        if queue.len == 0 {
            return None;
        }
        let first = self.rows[queue.last as usize].next;
        let row = &mut self.rows[first as usize];
        let candidate = row.candidate.take();
        debug_assert!(candidate.is_some(), "a queued row holds a URL");
        let second = std::mem::replace(&mut row.next, self.free.unwrap_or(first));
        self.free = Some(first);
        if queue.len > 1 {
            self.rows[queue.last as usize].next = second;
        }
        queue.len -= 1;
        self.len -= 1;
        candidate
    }

    pub fn front(&self, queue: Queue) -> Option<&Candidate> {
        if queue.len == 0 {
            return None;
        }
        let first = self.rows[queue.last as usize].next;
        self.rows[first as usize].candidate.as_ref()
    }

    /// How many URLs of a queue are before the first that `is` says yes to. It walks the queue.
    pub fn position(&self, queue: Queue, is: impl Fn(&Candidate) -> bool) -> Option<usize> {
        let mut row = self.rows.get(queue.last as usize)?.next;
        for before in 0..queue.len() {
            let Row { candidate, next } = self.rows.get(row as usize)?;
            if candidate.as_ref().is_some_and(&is) {
                return Some(before);
            }
            row = *next;
        }
        None
    }

    fn take_free(&mut self, candidate: Candidate) -> u32 {
        match self.free {
            Some(free) => {
                let row = &mut self.rows[free as usize];
                // The last free row names itself.
                self.free = Some(row.next).filter(|&next| next != free);
                row.candidate = Some(candidate);
                free
            }
            None => {
                self.rows.push(Row { candidate: Some(candidate), next: 0 });
                (self.rows.len() - 1) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::proto::url::CrawlUrl;
    use std::collections::VecDeque;

    #[test]
    fn many_queues_in_one_arena_are_as_many_queues() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut waiting = UrlArena::default();
            let mut queues = [Queue::default(); 5];
            let mut model: [VecDeque<u32>; 5] = Default::default();
            for doc_id in 0..4_000 {
                let n = rng.below(5) as usize;
                let url = CrawlUrl::parse("http://a/").unwrap();
                let candidate = Candidate { doc_id, ..Candidate::seed(0, url) };
                match rng.below(5) {
                    0 | 1 => {
                        waiting.push_back(&mut queues[n], candidate);
                        model[n].push_back(doc_id);
                    }
                    2 => {
                        waiting.push_front(&mut queues[n], candidate);
                        model[n].push_front(doc_id);
                    }
                    _ => {
                        let popped = waiting.pop_front(&mut queues[n]).map(|candidate| candidate.doc_id);
                        assert_eq!(popped, model[n].pop_front(), "seed {seed}");
                    }
                }
                assert_eq!(waiting.front(queues[n]).map(|c| c.doc_id), model[n].front().copied());
                assert_eq!(queues[n].len(), model[n].len());
                assert_eq!(waiting.len(), model.iter().map(VecDeque::len).sum::<usize>());
            }
            assert!(waiting.rows.len() < 2_000, "rows are used again");
        }
    }
}
