use std::path::{Path, PathBuf};

/// Where the search index of a data directory is.
pub(crate) fn search_folder(data: &Path) -> PathBuf {
    data.join("stories").join("search")
}
