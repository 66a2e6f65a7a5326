use super::capture::{Became, Capture};
use super::originals::Originals;
use super::output::{FileOutput, Output};
use super::selection::Selection;
use super::warc_files::{FileNames, WarcFiles};
use crate::storage::mend;
use crate::store_server::{Damage, Located, ReadError, Reader};
use rapidhash::fast::RapidHashMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is exported from a store.
#[derive(Clone, Debug)]
pub struct Export {
    /// One record of each URL, not all of them.
    pub newest: bool,
    /// A file that has passed this size is followed by another.
    pub size: Option<u64>,
    /// Files that are there already are replaced.
    pub force: bool,
}

/// The result of an export.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// By their names.
    pub files: Vec<PathBuf>,
    /// WARC records, those that describe files and requests included.
    pub records: u64,
    pub responses: u64,
    pub revisits: u64,
    pub resources: u64,
    pub requests: u64,
    /// Stored records without a response.
    pub left_out: u64,
    /// Stored records whose document could not be found.
    pub lost: u64,
    /// Of all files.
    pub bytes: u64,
    /// Where sealed segments are damaged.
    pub damaged: Vec<Damage>,
}

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("{0} exists (give another name, or --force to replace it)")]
    Exists(PathBuf),
    #[error("cannot write {path}: {cause}{}", mend(.cause))]
    Write { path: PathBuf, cause: io::Error },
    #[error("{0} is no name for a file")]
    Name(PathBuf),
    #[error("cannot read {path}: {cause}")]
    Source { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Store(#[from] ReadError),
    #[error(transparent)]
    Open(#[from] crate::store_server::OpenError),
    #[error(transparent)]
    Keep(#[from] crate::store_server::KeeperError),
    #[error(transparent)]
    Library(#[from] crate::store_server::MaintenanceError),
}

impl ArchiveError {
    pub(super) fn write(path: &Path, cause: io::Error) -> ArchiveError {
        ArchiveError::Write { path: path.to_path_buf(), cause }
    }
}

impl Export {
    /// Writes WARC files. `watch` sees how far it is, record by record.
    pub fn to_warc(
        &self,
        reader: &Reader,
        out: &Path,
        watch: &mut dyn FnMut(&Exported),
    ) -> Result<Exported, ArchiveError> {
        let (folder, name) = split_path(out)?;
        let names = FileNames::new(&name, self.size);
        // Before hours of work, not after.
        let first = folder.join(names.nth(1));
        if !self.force && first.exists() {
            return Err(ArchiveError::Exists(first));
        }
        let files = WarcFiles::new(FileOutput::new(&folder, self.force), names, None);
        let (output, mut exported) = self.write_to(reader, files, watch)?;
        exported.files = output.finish()?;
        Ok(exported)
    }

    /// Writes what is selected to files, and ends the last of them.
    pub(super) fn write_to<S: Output>(
        &self,
        reader: &Reader,
        mut files: WarcFiles<'_, S>,
        watch: &mut dyn FnMut(&Exported),
    ) -> Result<(S, Exported), ArchiveError> {
        let selection = if self.newest { Selection::newest(reader)? } else { Selection::All };
        let mut writing = Writing {
            reader,
            originals: Originals::find(reader, &selection)?,
            agents: RapidHashMap::default(),
            exported: Exported::default(),
            main: Vec::new(),
            request: Vec::new(),
        };
        let mut failed = None;
        let damaged = reader.each(|located, bytes| {
            if failed.is_none() && selection.holds(&located) {
                failed = writing.write(&located, bytes, &mut files).err();
                watch(&writing.exported);
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let (output, count, bytes) = files.finish()?;
        let mut exported = writing.exported;
        exported.records += u64::from(count);
        exported.bytes = bytes;
        exported.damaged = damaged;
        Ok((output, exported))
    }
}

/// An export in progress.
struct Writing<'a> {
    reader: &'a Reader,
    originals: Originals,
    /// By segment.
    agents: RapidHashMap<u64, Option<String>>,
    exported: Exported,
    /// Records before they go out; kept for their memory.
    main: Vec<u8>,
    request: Vec<u8>,
}

impl Writing<'_> {
    fn write<S: Output>(
        &mut self,
        located: &Located,
        bytes: &[u8],
        files: &mut WarcFiles<'_, S>,
    ) -> Result<(), ArchiveError> {
        let record = &located.record;
        if !super::capture::has_response(record) {
            self.exported.left_out += 1;
            return Ok(());
        }
        let original = self.originals.of(located).filter(|_| record.is_reference);
        // A reference to what is not archived is archived with the document.
        let document = match record.is_reference && original.is_none() {
            true => self.reader.document_of(located, bytes)?,
            false => self.reader.unpack(located, bytes)?,
        };
        let Some(document) = document else {
            self.exported.lost += 1;
            return Ok(());
        };
        let agent = self.agents.entry(located.segment).or_insert_with(|| self.reader.agent(located.segment));
        let agent = agent.as_deref();
        let warcinfo = files.warcinfo(record.fetched_unix_ms, agent)?;
        self.main.clear();
        self.request.clear();
        let capture = Capture { located, document: &document, original, agent, warcinfo: &warcinfo };
        match capture.write(&mut self.main, &mut self.request) {
            Became::Response => self.exported.responses += 1,
            Became::Revisit => self.exported.revisits += 1,
            Became::Resource => self.exported.resources += 1,
            Became::Nothing => {
                self.exported.left_out += 1;
                return Ok(());
            }
        }
        files.write(&self.main)?;
        self.exported.records += 1;
        if !self.request.is_empty() {
            files.write(&self.request)?;
            self.exported.requests += 1;
            self.exported.records += 1;
        }
        Ok(())
    }
}

/// The folder of a file, and its name in it.
pub(super) fn split_path(path: &Path) -> Result<(PathBuf, String), ArchiveError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| ArchiveError::Name(path.to_path_buf()))?;
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    Ok((folder.to_path_buf(), name.to_string()))
}
