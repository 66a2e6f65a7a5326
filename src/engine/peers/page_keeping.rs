use super::page_folders::PageFolders;
use crate::base::{Now, SortedMap};
use std::io;
use std::path::{Path, PathBuf};

/// The copies of nodes that are gone, out of which the index has all that was known: their pages become stores of this node. What
/// the disk refuses is tried again, as nobody copies them on before.
pub(super) struct PageKeeping {
    folders: PageFolders,
    /// Those that were not kept yet, and whose they are.
    waiting: SortedMap<PathBuf, u16>,
    again_at: Now,
}

/// From one try to the next.
const AGAIN_US: u64 = 10_000_000;

impl PageKeeping {
    pub fn new(folders: PageFolders) -> PageKeeping {
        PageKeeping { folders, waiting: SortedMap::new(), again_at: Now::ZERO }
    }

    /// Keeps the pages in the copy of a node that is gone.
    pub fn keep(&mut self, folder: PathBuf, node: u16, now: Now) -> io::Result<()> {
        let kept = self.folders.keep(&folder, node);
        if kept.is_err() {
            self.waiting.insert(folder, node);
            self.again_at = now.plus_us(AGAIN_US);
        }
        kept
    }

    /// Whether the pages in a folder wait to be kept: nothing else is to be done with it.
    pub fn has(&self, folder: &Path) -> bool {
        self.waiting.contains_key(folder)
    }

    pub fn next_due(&self) -> Option<Now> {
        (!self.waiting.is_empty()).then_some(self.again_at)
    }

    /// Tries again what the disk refused. True if something was kept.
    pub fn turn(&mut self, now: Now) -> io::Result<bool> {
        if self.waiting.is_empty() || now < self.again_at {
            return Ok(false);
        }
        let (before, mut trouble) = (self.waiting.len(), Ok(()));
        for (folder, node) in std::mem::take(&mut self.waiting) {
            trouble = trouble.and(self.keep(folder, node, now));
        }
        let is_kept = self.waiting.len() < before;
        trouble.map(|()| is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_the_disk_refused_is_kept_as_soon_as_it_lets() {
        let data = std::env::temp_dir().join(format!("nephila-keeping-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        let taken = data.join("copies/3.1.taken");
        fs::create_dir_all(taken.join("segments")).unwrap();
        fs::write(taken.join("segments/0000000001-000.seg"), "").unwrap();
        // There is a file where a folder is to be.
        fs::write(taken.join("7.1"), "").unwrap();
        let at = |s: u64| Now::from_us(s * 1_000_000);
        let mut keeping = PageKeeping::new(PageFolders::new(&data));
        assert!(keeping.keep(taken.clone(), 3, at(1)).is_err() && keeping.has(&taken));
        assert_eq!(keeping.next_due(), Some(at(11)));
        assert!(!keeping.turn(at(10)).unwrap(), "not yet");
        assert!(keeping.turn(at(11)).is_err() && keeping.has(&taken));
        fs::remove_file(taken.join("7.1")).unwrap();
        assert!(!keeping.turn(at(12)).unwrap() && keeping.turn(at(21)).unwrap());
        assert!(!keeping.has(&taken) && keeping.next_due().is_none() && !taken.exists());
        assert!(data.join("copies/3.1.pages/segments/0000000001-000.seg").exists());
        // It was kept, and only then the disk refused something.
        keeping.keep(taken.clone(), 3, at(30)).unwrap();
        assert!(!data.join("copies/3.2.pages").exists());
        fs::remove_dir_all(&data).unwrap();
    }
}
