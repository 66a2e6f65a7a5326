use crate::base::shown;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an index cannot be used, each with its mend.
#[derive(Debug, Error)]
pub enum SearchError {
    #[error(
        "{} has no search index (a crawl with feeds and extraction makes it; nephila search reindex makes it from what was extracted)", .0.display()
    )]
    None(PathBuf),
    #[error("the search index in {} was made by another version of nephila (make it anew: nephila search reindex)", .0.display())]
    OtherVersion(PathBuf),
    #[error("the search index in {} is damaged: {} (make it anew: nephila search reindex)", .0.display(), .1)]
    Damaged(PathBuf, String),
    #[error("the search index in {} is of other texts than those that are there (make it anew: nephila search reindex)", .0.display())]
    OtherStories(PathBuf),
    #[error("another process writes the search index in {} (stop that crawl first: nephila stop)", .0.display())]
    InUse(PathBuf),
    #[error("search index in {}: {} (make room, or look at the disk)", .0.display(), .1)]
    Disk(PathBuf, io::Error),
    #[error("stories cannot be read: {0}")]
    Source(io::Error),
}

impl SearchError {
    /// It may be over by itself; all others need somebody.
    pub fn is_passing(&self) -> bool {
        matches!(self, SearchError::InUse(_) | SearchError::Disk(..) | SearchError::Source(_))
    }

    /// What the system says of a file of the index in a folder; what it did not say is said of the bytes that were read.
    pub(super) fn of_disk(folder: &Path, error: io::Error) -> SearchError {
        match error.raw_os_error() {
            Some(_) => SearchError::Disk(folder.to_path_buf(), error),
            None => SearchError::Damaged(folder.to_path_buf(), shown(&error.to_string(), 200)),
        }
    }

    /// The same of one file that the manifest names.
    pub(super) fn of_file(folder: &Path, path: &Path, error: io::Error) -> SearchError {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let said = match error.kind() {
            io::ErrorKind::NotFound => "it is missing".to_string(),
            io::ErrorKind::UnexpectedEof => "it is cut".to_string(),
            _ if error.raw_os_error().is_some() => return SearchError::Disk(folder.to_path_buf(), error),
            _ => error.to_string(),
        };
        SearchError::Damaged(folder.to_path_buf(), shown(&format!("{name}: {said}"), 200))
    }
}
