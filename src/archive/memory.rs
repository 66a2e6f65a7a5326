use super::capture::{Became, Capture};
use super::export::ArchiveError;
use super::output::Output;
use super::warc_files::{FileNames, WarcFiles};
use crate::store_server::{Document, Located};

/// One file, in memory.
#[derive(Default)]
struct MemoryOutput(Vec<u8>);

impl Output for MemoryOutput {
    fn open(&mut self, _name: &str) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        Ok(())
    }
}

/// Records with their documents as a WARC file of this name, which says whether it is packed. The same records make the
/// same bytes.
pub fn warc_of<'a>(
    name: &str,
    agent: Option<&str>,
    records: impl Iterator<Item = (&'a Located, &'a Document)>,
) -> Result<Vec<u8>, ArchiveError> {
    let mut files = WarcFiles::new(MemoryOutput::default(), FileNames::new(name, None), None);
    let (mut main, mut request) = (Vec::new(), Vec::new());
    for (located, document) in records {
        let warcinfo = files.warcinfo(located.record.fetched_unix_ms, agent)?;
        main.clear();
        request.clear();
        let capture = Capture { located, document, original: None, agent, warcinfo: &warcinfo };
        if capture.write(&mut main, &mut request) == Became::Nothing {
            continue;
        }
        files.write(&main)?;
        if !request.is_empty() {
            files.write(&request)?;
        }
    }
    files.finish().map(|(output, ..)| output.0)
}
