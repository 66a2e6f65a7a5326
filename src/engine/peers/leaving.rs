use super::copy_desk::CopyDesk;
use crate::base::Now;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::peer::NodeState;

/// A node that is drained, on its way out of the table.
#[derive(Default)]
pub(super) struct Leaving {
    /// It has given everything away, but for its pages.
    idle_since: Option<Now>,
    /// It has given everything away, and wants to be none of the nodes any more; and it is.
    is_leaving: bool,
    has_left: bool,
}

impl Leaving {
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Goes on with a node of this state that may have nothing any more. True if it is to leave the table now.
    pub fn turn(
        &mut self,
        state: NodeState,
        has_nothing: bool,
        copies: &mut CopyDesk,
        health: &Health,
        now: Now,
    ) -> bool {
        match state {
            NodeState::Draining if has_nothing => {
                // Nothing is fetched any more: the pages are those that there were then.
                let idle_since = *self.idle_since.get_or_insert(now);
                let is_copied = copies.has_pages_since(idle_since);
                if is_copied {
                    self.is_leaving = true;
                    copies.end();
                }
                is_copied
            }
            NodeState::Left if self.is_leaving && !self.has_left => {
                self.has_left = true;
                let but = if copies.is_on() { "" } else { ", but for its pages" };
                let text = format!(
                    "this node has left its cluster: everything is with others{but}; it can be stopped"
                );
                health.tell(Event::ClusterLeft, Vec::new(), text);
                false
            }
            _ => {
                // What comes meanwhile is to be copied, too.
                self.idle_since = None;
                false
            }
        }
    }
}
