use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a cluster is as it promises, as its nodes found when one of them asked them all. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyView {
    /// Which of those that were asked for since the node began; 0 if there was none.
    pub id: u64,
    /// There is no more to come.
    pub done: bool,
    /// Who asked the others.
    pub node: u16,
    /// The table of that node, and the digest of its bytes.
    pub epoch: u64,
    pub table: String,
    pub nodes: Vec<VerifiedNode>,
    pub short: Vec<ShortView>,
}

/// What one node found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifiedNode {
    pub node: u16,
    pub address: String,
    /// It has told everything.
    pub answered: bool,
    pub epoch: u64,
    pub table: String,
    /// Who has its copy; 0 for nobody.
    pub follower: u16,
    /// Segments of which the copy has the same bytes, and how many bytes those are.
    pub segments: u64,
    pub bytes: u64,
    /// Documents that the copy knows.
    pub documents: u64,
    /// Segments of nodes that are gone, all of whose records can be read.
    pub kept: u64,
}

/// Something that is short of its promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShortView {
    /// The node that it is about; 0 for none.
    pub node: u16,
    /// A word for programs: "copy_differs", "no_answer", …
    pub kind: String,
    /// What is short, and what mends it.
    pub what: String,
    pub mend: String,
}

impl ShortView {
    /// In one line.
    pub fn line(&self) -> String {
        format!("{} ({})", self.what, self.mend)
    }
}

/// The same for other threads to look at, and to ask for.
#[derive(Clone, Default)]
pub struct VerifyReport {
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    /// The last that was asked for.
    asked: u64,
    view: Arc<VerifyView>,
}

impl VerifyReport {
    /// Asks for it, and says its number. One that is under way is not begun again.
    pub fn ask(&self) -> u64 {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.asked == told.view.id && told.view.done || told.asked == 0 {
            told.asked += 1;
        }
        told.asked
    }

    /// What is known of the last.
    pub fn get(&self) -> Arc<VerifyView> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).view.clone()
    }

    /// The number of one that nobody has begun yet.
    pub(crate) fn wanted(&self) -> Option<u64> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.asked > told.view.id).then_some(told.asked)
    }

    pub(crate) fn set(&self, view: VerifyView) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).view = Arc::new(view);
    }
}
