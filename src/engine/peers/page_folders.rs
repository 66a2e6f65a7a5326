use super::copies::Copies;
use crate::base::{SortedMap, SortedSet};
use crate::limits::STORES_COPIED_MAX;
use crate::proto::peer_wire::StoreName;
use crate::storage::{make_directory, sync_directory};
use crate::store_server::SegmentCopy;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the pages of other nodes lie: in `copies/` of the data directory, each a store that can be read.
///
/// | folder         | holds                                                                  |
/// |----------------|------------------------------------------------------------------------|
/// | `NODE/`        | the copy of the store of a node                                        |
/// | `NODE/N.K/`    | the copy of a store that this node has of another one, which is gone   |
/// | `N.K.pages/`   | the store of a node that is gone: it is this node's now                |
#[derive(Clone)]
pub(super) struct PageFolders {
    data: PathBuf,
    copies: PathBuf,
}

const SEGMENTS: &str = "segments";
const KEPT: &str = ".pages";

impl PageFolders {
    /// In the data directory.
    pub fn new(data: &Path) -> PageFolders {
        PageFolders { data: data.to_path_buf(), copies: data.join(Copies::FOLDER) }
    }

    /// The stores of this node: its own, and those of nodes that are gone.
    pub fn stores(&self) -> io::Result<SortedMap<StoreName, PathBuf>> {
        let kept = names(&self.copies)?.into_iter().filter_map(|name| {
            let store = store_name(name.to_str()?.strip_suffix(KEPT)?)?;
            Some((store, self.copies.join(&name)))
        });
        let own = (StoreName::OWN, self.data.clone());
        let all: SortedMap<StoreName, PathBuf> = kept.chain([own]).collect();
        Ok(all.into_iter().take(STORES_COPIED_MAX).collect())
    }

    /// The same, and the copies of nodes that are about to leave, under the names that they are going to have here: they are on two
    /// other disks before those nodes go.
    pub fn stores_with(&self, leaving: &SortedSet<u16>) -> io::Result<SortedMap<StoreName, PathBuf>> {
        let mut stores = self.stores()?;
        for &node in leaving {
            let folder = self.copies.join(node.to_string());
            let inside = names(&folder)?.into_iter();
            let inside =
                inside.filter_map(|name| Some((store_name(name.to_str()?)?.node, folder.join(name))));
            for (of, folder) in inside.chain([(node, folder.clone())]) {
                let is_free = |name: &StoreName| !stores.contains_key(name);
                let name = (1..=u16::MAX).map(|count| StoreName { node: of, count }).find(is_free);
                if let Some(name) = name.filter(|_| stores.len() < STORES_COPIED_MAX)
                    && !names(&folder.join(SEGMENTS))?.is_empty()
                {
                    stores.insert(name, folder);
                }
            }
        }
        Ok(stores)
    }

    /// Where the store of this node is.
    pub fn own(&self) -> PathBuf {
        self.data.clone()
    }

    /// Removes a store of a node that was gone, which has nothing any more.
    pub fn remove(&self, store: StoreName) -> io::Result<()> {
        let StoreName { node, count } = store;
        fs::remove_dir_all(self.copies.join(format!("{node}.{count}{KEPT}")))?;
        sync_directory(&self.copies)
    }

    /// Where the copy of a store of a node is; it is made if there is none.
    pub fn copy_of(&self, node: u16, store: StoreName) -> io::Result<PathBuf> {
        let folder = self.place_of(node, store);
        make_directory(&folder)?;
        Ok(folder)
    }

    /// Where the copy of a store of a node is, if there is one.
    pub fn place_of(&self, node: u16, store: StoreName) -> PathBuf {
        let of_node = self.copies.join(node.to_string());
        match store {
            StoreName::OWN => of_node,
            StoreName { node: gone, count } => of_node.join(format!("{gone}.{count}")),
        }
    }

    /// Keeps all stores in the copy of a node that is gone; what else is in it goes. Who is killed meanwhile does it again.
    pub fn keep(&self, folder: &Path, node: u16) -> io::Result<()> {
        // It has its name, and the disk may not know of it.
        if !folder.exists() {
            return sync_directory(&self.copies);
        }
        for name in names(folder)? {
            let path = folder.join(&name);
            match name.to_str().and_then(store_name) {
                Some(store) => self.keep_store(&path, store.node)?,
                None if path.is_file() && name != SegmentCopy::KEY => fs::remove_file(path)?,
                None => {}
            }
        }
        self.keep_store(folder, node)
    }

    /// Keeps one store under a name of its own, if there is something in it.
    fn keep_store(&self, folder: &Path, node: u16) -> io::Result<()> {
        if names(&folder.join(SEGMENTS))?.is_empty() {
            fs::remove_dir_all(folder)?;
            return sync_directory(&self.copies);
        }
        let names = (1..=u16::MAX).map(|count| self.copies.join(format!("{node}.{count}{KEPT}")));
        let Some(kept) = names.into_iter().find(|path| !path.exists()) else {
            return Err(io::Error::other(format!("there are too many stores of node {node}")));
        };
        fs::rename(folder, kept)?;
        sync_directory(&self.copies)
    }
}

/// The stores of other nodes in a data directory, as they are now: copies, and those of nodes that are gone.
pub(crate) fn stores_of_others(data: &Path) -> Vec<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        names(folder).unwrap_or_default().into_iter().map(|name| folder.join(name)).collect()
    };
    let of_nodes = inside(&data.join(Copies::FOLDER));
    let nested = of_nodes.iter().flat_map(|folder| inside(folder));
    let is_store = |folder: &PathBuf| folder.join(SEGMENTS).is_dir();
    nested.chain(of_nodes.iter().cloned()).filter(is_store).collect()
}

fn store_name(text: &str) -> Option<StoreName> {
    let (node, count) = text.split_once('.')?;
    Some(StoreName { node: node.parse().ok()?, count: count.parse().ok()? })
}

fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => {
            let mut names: Vec<OsString> =
                entries?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
            names.sort_unstable();
            Ok(names)
        }
    }
}
