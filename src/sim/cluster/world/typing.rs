use crate::base::Now;

/// A host whose first page is typed at a node.
type Line = (Now, usize, u32);

/// What is typed at which node, and what became of it.
pub struct Typing {
    /// Was not taken yet.
    typed: Vec<Line>,
    /// What was taken, and when: a node that is killed soon after has not told anybody yet that it has it.
    taken: Vec<Line>,
}

/// What was typed is known to every node that says something of all of them within this: two rounds, and the next.
pub const TOLD_US: u64 = 10_000_000;

impl Typing {
    /// The next one is the last of them.
    pub fn new(typed: Vec<Line>) -> Typing {
        Typing { typed, taken: Vec::new() }
    }

    /// What a node takes now, and which; at one that takes nothing it waits until it does.
    pub fn take(&mut self, now: Now, takes: impl Fn(usize) -> bool) -> Option<(usize, u32)> {
        let at = self.typed.iter().rposition(|&(at, node, _)| at <= now && takes(node))?;
        let (_, node, host) = self.typed.remove(at);
        self.taken.push((now, node, host));
        Some((node, host))
    }

    pub fn next_at(&self, now: Now) -> Option<Now> {
        self.typed.iter().map(|(at, ..)| *at).filter(|at| *at > now).min()
    }

    /// What a node had taken at times like these is lost, and typed again when it is back.
    pub fn lose(&mut self, node: usize, until: Now, is_lost: impl Fn(Now) -> bool) {
        let is_its = |(at, of, _): &Line| *of == node && is_lost(*at);
        let (lost, taken): (Vec<_>, Vec<_>) = self.taken.drain(..).partition(is_its);
        self.taken = taken;
        self.typed.extend(lost.into_iter().map(|(_, node, host)| (until, node, host)));
    }

    /// What was to be typed at a node that does not come back is typed at the first one.
    pub fn pass_on(&mut self, node: usize, now: Now) {
        for typed in self.typed.iter_mut().filter(|(_, of, _)| *of == node) {
            *typed = (typed.0.min(now), 0, typed.2);
        }
    }

    /// Whether every node knows of all of it.
    pub fn is_told(&self, now: Now) -> bool {
        self.typed.is_empty() && self.taken.iter().all(|(at, ..)| now.since_us(*at) > TOLD_US)
    }
}
