use std::ops::AddAssign;

/// What a run came to, of a crawl in one process, split over several, with masters, or of feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimReport {
    pub requests: u64,
    pub documents: u64,
    pub success: u64,
    /// Shards that died, or processes that were killed.
    pub deaths: u64,
    /// Pauses of the whole crawl that came to their end.
    pub pauses: u64,
    /// Changes of the rules while it ran.
    pub changes: u64,
    pub slots_reused: u64,
    /// Requests that went to another address because nobody was at the first.
    pub moved_on: u64,
    /// Links cut, delayed or reset.
    pub broken: u64,
    /// Requests for pages that the URL server had given up.
    pub left_behind: u64,
    /// Records that a spider answered for, all of them found.
    pub stored: u64,
    /// Lines that masters were given, or URLs typed at nodes.
    pub lines: u64,
    /// How often nodes went from one master to another, or an address from one node to another.
    pub fail_overs: u64,
    /// Orders to move a domain.
    pub moves: u64,
    /// Nodes whose disks were lost.
    pub lost: u64,
    /// Pages that whoever took over had to know, as it had them in a copy.
    pub known: u64,
    /// Pages of disks that were lost, which others have.
    pub restored: u64,
    /// Nodes that were drained and have left.
    pub drained: u64,
    /// Questions for feeds; those that were due to the second, with nothing that could hold them up.
    pub polls: u64,
    pub on_time: u64,
    /// Stories of all sources; polls that shared nothing with the one before; feeds whose 304s were found to lie.
    pub stories: u64,
    pub gaps: u64,
    pub liars: u64,
    /// Nodes of a cluster that stood still; hosts that went to another node because theirs was silent; nodes that came back
    /// and found it so.
    pub stalls: u64,
    pub takeovers: u64,
    pub begun_anew: u64,
    /// Questions to an etcd that had no answer.
    pub unanswered: u64,
    pub virtual_seconds: u64,
    pub steps: u64,
}

impl AddAssign for SimReport {
    fn add_assign(&mut self, other: SimReport) {
        self.requests += other.requests;
        self.documents += other.documents;
        self.success += other.success;
        self.deaths += other.deaths;
        self.pauses += other.pauses;
        self.changes += other.changes;
        self.slots_reused += other.slots_reused;
        self.moved_on += other.moved_on;
        self.broken += other.broken;
        self.left_behind += other.left_behind;
        self.stored += other.stored;
        self.lines += other.lines;
        self.fail_overs += other.fail_overs;
        self.moves += other.moves;
        self.lost += other.lost;
        self.known += other.known;
        self.restored += other.restored;
        self.drained += other.drained;
        self.polls += other.polls;
        self.on_time += other.on_time;
        self.stories += other.stories;
        self.gaps += other.gaps;
        self.stalls += other.stalls;
        self.takeovers += other.takeovers;
        self.begun_anew += other.begun_anew;
        self.unanswered += other.unanswered;
        self.liars += other.liars;
        self.virtual_seconds += other.virtual_seconds;
        self.steps += other.steps;
    }
}
