use super::Sends;
use super::copying::Copying;
use super::pages_out::PagesOut;
use crate::base::{Now, SortedMap};
use crate::proto::peer_wire::PeerWord;

/// What this node says to others that want to let something go which they handed over: all that it has is on a second disk.
///
/// ```text
///   SAFE_ASK ──► what there is now ──► to the follower: COPY, PAGES ──► … ──► on its disk ── SAFE ──►
/// ```
#[derive(Default)]
pub(super) struct Vouching {
    /// One question of each node: the last.
    asked: SortedMap<u16, Asked>,
    /// The last question of an operator here that is answered.
    told: u64,
}

struct Asked {
    id: u64,
    /// Pages count, too.
    pages: bool,
    /// Of a table that tells who leaves, and so who follows whom.
    epoch: u64,
    /// This node goes by such a table since then: what it had then has to be on the other disk.
    since: Option<Now>,
}

/// No node has this number.
const HERE: u16 = 0;

impl Vouching {
    /// A node wants to know; it asks until it is told.
    pub fn asked(&mut self, node: u16, (id, epoch): (u64, u64), pages: bool) {
        if self.asked.get(&node).is_none_or(|asked| asked.id != id) {
            self.asked.insert(node, Asked { id, pages, epoch, since: None });
        }
    }

    /// The last question of an operator here, under numbers that grow, said again and again. One is answered after the other: who
    /// asks anew does not put off the first.
    pub fn asked_here(&mut self, id: u64) {
        if id > self.told && !self.asked.contains_key(&HERE) {
            // What is typed is no page.
            self.asked(HERE, (id, 0), false);
        }
    }

    /// The last question of an operator that is answered.
    pub fn told_here(&self) -> u64 {
        self.told
    }

    pub fn down(&mut self, node: u16) {
        self.asked.remove(&node);
    }

    /// By a table of this epoch, what there is now is what counts. Nobody waits for the next look.
    pub fn begin(&mut self, now: Now, epoch: u64, copying: &mut Copying, pages_out: &mut PagesOut) {
        for asked in self.asked.values_mut().filter(|asked| asked.since.is_none() && asked.epoch <= epoch) {
            asked.since = Some(now);
            copying.look_now(now);
            pages_out.look_now(now);
        }
    }

    /// Tells those for whom it is so by now.
    pub fn turn(&mut self, copying: &Copying, pages_out: &PagesOut, wires: &mut dyn Sends) {
        let told = &mut self.told;
        self.asked.retain(|node, asked| {
            let Some(since) = asked.since else { return true };
            let follower = copying.follower();
            let is_alone = follower.is_none_or(|follower| follower == *node);
            let is_safe = copying.is_safe_since(since) && (!asked.pages || pages_out.is_safe_since(since));
            match follower.is_none() || is_safe {
                false => return true,
                true if *node == HERE => *told = asked.id,
                true => wires.send(*node, &PeerWord::Safe { id: asked.id, is_alone }),
            }
            false
        });
    }
}
