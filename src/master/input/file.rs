use super::raw::{InputSum, Raw};
use super::reader::{InputBounds, InputReader};
use nix::libc::{O_CLOEXEC, O_NOCTTY, O_NONBLOCK};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file of a reflog that is to be read, perhaps more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    path: PathBuf,
    /// The directory that it must lie in, wherever its name leads to.
    within: Option<PathBuf>,
    bounds: InputBounds,
}

/// Why a file, or the rest of it, cannot be had.
#[derive(Debug, Error)]
#[error("{}: {fault}", path.display())]
pub struct InputError {
    pub path: PathBuf,
    pub fault: InputFault,
}

#[derive(Debug, Error)]
pub enum InputFault {
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("a directory, not a file (name the files in it)")]
    Directory,
    #[error("a {0}, not a file (stdin is -)")]
    NotAFile(&'static str),
    #[error("leads out of its directory; put the file itself there")]
    Outside,
    #[error("became shorter while it was read (rename files in when they are whole)")]
    Shrunk,
    #[error("its {packing} breaks off after {bytes} bytes of text; what came is taken")]
    Cut { packing: &'static str, bytes: u64 },
    #[error("its {packing} is damaged after {bytes} bytes of text: {cause}; what came before is taken")]
    Damaged { packing: &'static str, bytes: u64, cause: String },
    #[error("{bytes} bytes that are none follow its {packing}; what came before is taken")]
    Rubbish { packing: &'static str, bytes: u64 },
    #[error("a bomb: {raw} bytes of {packing} hold more than {bytes} bytes; what came before is taken")]
    Bomb { packing: &'static str, raw: u64, bytes: u64 },
}

impl InputFault {
    /// The file is what is wrong, whenever it is read: what came of it is taken, and it is not tried again.
    pub fn is_of_content(&self) -> bool {
        match self {
            InputFault::Cut { .. }
            | InputFault::Damaged { .. }
            | InputFault::Rubbish { .. }
            | InputFault::Bomb { .. } => true,
            InputFault::Unreadable(_)
            | InputFault::Directory
            | InputFault::NotAFile(_)
            | InputFault::Outside
            | InputFault::Shrunk => false,
        }
    }
}

impl InputFile {
    /// A file by a name that a person gave.
    pub fn new(path: impl Into<PathBuf>) -> InputFile {
        InputFile { path: path.into(), within: None, bounds: InputBounds::default() }
    }

    /// A file of a directory that others write to: a link that leads out of it is refused.
    pub fn in_spool(spool: &Path, path: impl Into<PathBuf>) -> io::Result<InputFile> {
        Ok(InputFile { within: Some(fs::canonicalize(spool)?), ..InputFile::new(path) })
    }

    pub fn bounded(self, bounds: InputBounds) -> InputFile {
        InputFile { bounds, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, and looks how it is packed.
    pub fn open(&self) -> Result<InputReader, InputError> {
        let (file, bytes) = self.file()?;
        InputReader::new(self.path.clone(), Box::new(file), Some(bytes), self.bounds)
    }

    /// Reads it all, for its digest alone.
    pub fn sum(&self) -> Result<InputSum, InputError> {
        let (file, bytes) = self.file()?;
        match Raw::new(Box::new(file), Some(bytes)).sum() {
            Ok((sum, false)) => Ok(sum),
            Ok((_, true)) => Err(self.error(InputFault::Shrunk)),
            Err(error) => Err(self.error(InputFault::Unreadable(error))),
        }
    }

    /// The file and its length now: what is written behind that does not count.
    fn file(&self) -> Result<(File, u64), InputError> {
        let unreadable = |error| self.error(InputFault::Unreadable(error));
        // Never waits for whoever writes to a pipe.
        let flags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        let file = File::options().read(true).custom_flags(flags).open(&self.path).map_err(unreadable)?;
        let known = file.metadata().map_err(unreadable)?;
        let kind = known.file_type();
        let fault = match () {
            () if kind.is_dir() => InputFault::Directory,
            () if kind.is_fifo() => InputFault::NotAFile("pipe"),
            () if kind.is_socket() => InputFault::NotAFile("socket"),
            () if !kind.is_file() => InputFault::NotAFile("device"),
            () if !self.is_within(&file).map_err(unreadable)? => InputFault::Outside,
            () => return Ok((file, known.len())),
        };
        Err(self.error(fault))
    }

    /// Asks what was opened, not its name, which may lead elsewhere by now.
    fn is_within(&self, file: &File) -> io::Result<bool> {
        let Some(within) = &self.within else { return Ok(true) };
        Ok(fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?.starts_with(within))
    }

    fn error(&self, fault: InputFault) -> InputError {
        InputError { path: self.path.clone(), fault }
    }
}

impl InputReader {
    /// What comes from a pipe, by a name for it.
    pub fn from_pipe(name: &str, input: impl Read + Send + 'static) -> Result<InputReader, InputError> {
        InputReader::new(name.into(), Box::new(input), None, InputBounds::default())
    }
}
