use crate::base::shown;
use std::io;
use std::path::PathBuf;
use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};
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

    /// What the library underneath says, of an index in a folder.
    pub(super) fn told(path: &std::path::Path, error: TantivyError) -> SearchError {
        let path = path.to_path_buf();
        match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => SearchError::InUse(path),
            TantivyError::LockFailure(LockError::IoError(error), _) | TantivyError::IoError(error) => {
                SearchError::of_disk(path, &error)
            }
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => {
                SearchError::of_disk(path, &io_error)
            }
            // A thread of the writer ends over what the disk refuses, and does not say what that was.
            TantivyError::ErrorInThread(said) => SearchError::Disk(path, io::Error::other(shown(&said, 200))),
            TantivyError::OpenDirectoryError(OpenDirectoryError::DoesNotExist(_)) => SearchError::None(path),
            TantivyError::IncompatibleIndex(_) | TantivyError::SchemaError(_) => {
                SearchError::OtherVersion(path)
            }
            other => SearchError::Damaged(path, shown(&other.to_string(), 200)),
        }
    }

    /// What the system did not say is said of the bytes that were read.
    fn of_disk(path: PathBuf, error: &io::Error) -> SearchError {
        match error.raw_os_error() {
            Some(code) => SearchError::Disk(path, io::Error::from_raw_os_error(code)),
            None => SearchError::Damaged(path, shown(&error.to_string(), 200)),
        }
    }
}
