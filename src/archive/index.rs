use super::export::{ArchiveError, Export, Exported, split_path};
use super::output::{CountOutput, FileOutput, Output};
use super::warc_files::{FileNames, WarcFiles};
use super::warc_source::{Fault, Seen, Step, WarcSource};
use crate::proto::warc::{CdxjLine, Indexed, Place, WarcHead, WarcParser, WarcStep, sha1_label};
use crate::store_server::Reader;
use memchr::memchr;
use sha1::{Digest, Sha1};
use std::path::{Path, PathBuf};

/// Lines of a CDXJ index, in memory until all are there: a line is some 250 bytes and its URL twice, and 24 bytes more.
#[derive(Default)]
pub(super) struct Index {
    lines: Vec<String>,
    /// URL and date of the pages among the records, if they are wanted.
    pub pages: Option<Vec<(String, String)>>,
}

/// The result of indexing.
#[derive(Debug, Default)]
pub struct Indexing {
    pub lines: u64,
    /// The first places that could not be read, and how many there are.
    pub faults: Vec<(PathBuf, Fault)>,
    pub faults_total: u64,
    /// Of an index of a store.
    pub exported: Option<Exported>,
}

/// Faults that are reported one by one.
pub(super) const FAULTS_TOLD: usize = 100;
/// Bytes of a response head that are read.
const RESPONSE_HEAD_BYTES_MAX: usize = 1 << 20;

impl Index {
    /// An index that notes pages.
    pub fn with_pages() -> Index {
        Index { lines: Vec::new(), pages: Some(Vec::new()) }
    }

    /// Adds a whole record of an export.
    pub fn add_record(&mut self, record: &[u8], place: &Place<'_>) {
        let mut parser = WarcParser::new(u64::MAX);
        let mut looking = None;
        let mut rest = record;
        while let Ok((taken, step)) = parser.step(rest) {
            rest = &rest[taken..];
            match step {
                WarcStep::Head(head) => looking = Looking::at(head),
                WarcStep::Block(bytes) => {
                    if let Some(looking) = &mut looking {
                        looking.push(bytes);
                    }
                }
                WarcStep::NeedMore | WarcStep::End => break,
            }
        }
        if let Some(looking) = looking {
            self.add(looking, place);
        }
    }

    fn add(&mut self, looking: Looking, place: &Place<'_>) {
        let Some((head, line)) = looking.line() else { return };
        let mut text = String::new();
        line.write(place, &mut text);
        self.lines.push(text);
        if let (Some(pages), true, Some(url)) = (&mut self.pages, line.is_page(), head.target()) {
            pages.push((url.into_owned(), head.get("WARC-Date").unwrap_or_default().to_string()));
        }
    }

    /// The lines in order, each once.
    pub fn sorted(&mut self) -> &[String] {
        self.lines.sort_unstable();
        self.lines.dedup();
        &self.lines
    }
}

/// A record that is being indexed, while its block is read.
struct Looking {
    head: WarcHead,
    /// The head of the response, until its blank line.
    response: Vec<u8>,
    in_response: bool,
    /// Of the payload, if the record does not name its digest.
    hash: Option<Sha1>,
}

impl Looking {
    fn at(head: WarcHead) -> Option<Looking> {
        let Indexed::Yes { http } = Indexed::of(&head) else { return None };
        let is_told = head.get("WARC-Payload-Digest").is_some_and(|digest| !digest.is_empty());
        let hash = (!is_told).then(Sha1::new);
        Some(Looking { head, response: Vec::new(), in_response: http, hash })
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while self.in_response && !bytes.is_empty() {
            let end = memchr(b'\n', bytes).map_or(bytes.len(), |lf| lf + 1);
            let (piece, rest) = bytes.split_at(end);
            bytes = rest;
            let line_start = self.response.iter().rposition(|&byte| byte == b'\n').map_or(0, |lf| lf + 1);
            let is_open = !self.response.ends_with(b"\n") && !self.response.is_empty();
            self.response.extend_from_slice(piece);
            let line = if is_open { &self.response[line_start..] } else { piece };
            let is_blank = line.ends_with(b"\n") && line.trim_ascii().is_empty();
            self.in_response = !is_blank && self.response.len() < RESPONSE_HEAD_BYTES_MAX;
        }
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
    }

    fn line(self) -> Option<(WarcHead, CdxjLine)> {
        let response = (!self.response.is_empty()).then_some(&self.response[..]);
        let hash = self.hash.unwrap_or_default();
        let line = CdxjLine::of(&self.head, response, || sha1_label(hash))?;
        Some((self.head, line))
    }
}

/// Writes the index of the WARC files that an export of a store would write. They are named like `out`, with another
/// extension.
pub fn index_export(
    export: &Export,
    reader: &Reader,
    out: &Path,
    watch: &mut dyn FnMut(&Exported),
) -> Result<Indexing, ArchiveError> {
    let (folder, name) = split_path(out)?;
    check_free(&folder.join(&name), export.force)?;
    let stem = name.strip_suffix(".cdxj").unwrap_or(&name);
    let names = FileNames::new(&format!("{stem}.warc.gz"), export.size);
    let mut index = Index::default();
    let files = WarcFiles::new(CountOutput, names, Some(&mut index));
    let (CountOutput, exported) = export.write_to(reader, files, watch)?;
    let lines = write_lines(&mut index, &folder, &name, export.force)?;
    Ok(Indexing { lines, exported: Some(exported), ..Indexing::default() })
}

/// Writes the index of WARC files of any origin.
pub fn index_files(paths: &[PathBuf], out: &Path, force: bool) -> Result<Indexing, ArchiveError> {
    let (folder, name) = split_path(out)?;
    check_free(&folder.join(&name), force)?;
    let mut index = Index::default();
    let mut indexing = Indexing::default();
    for path in paths {
        let (_, file) = split_path(path)?;
        let mut source = WarcSource::open(path)?;
        loop {
            let mut looking: Option<Looking> = None;
            let step = source.next(&mut |seen| match seen {
                Seen::Head(head) => looking = Looking::at(head.clone()),
                Seen::Block(bytes) => {
                    if let Some(looking) = &mut looking {
                        looking.push(bytes);
                    }
                }
            });
            let fault = match step {
                Step::End => break,
                Step::Fault(fault) => fault,
                Step::Record { at, length: Some(length) } => {
                    if let Some(looking) = looking {
                        index.add(looking, &Place { file: &file, offset: at.offset, length });
                    }
                    continue;
                }
                Step::Record { at, length: None } => Fault {
                    offset: at.offset,
                    cause: "several records in one gzip member cannot be found one by one".to_string(),
                },
            };
            indexing.faults_total += 1;
            if indexing.faults.len() < FAULTS_TOLD {
                indexing.faults.push((path.clone(), fault));
            }
        }
    }
    indexing.lines = write_lines(&mut index, &folder, &name, force)?;
    Ok(indexing)
}

fn check_free(path: &Path, force: bool) -> Result<(), ArchiveError> {
    if !force && path.exists() { Err(ArchiveError::Exists(path.to_path_buf())) } else { Ok(()) }
}

fn write_lines(index: &mut Index, folder: &Path, name: &str, force: bool) -> Result<u64, ArchiveError> {
    let mut output = FileOutput::new(folder, force);
    output.open(name)?;
    let lines = index.sorted();
    for line in lines {
        output.write(line.as_bytes())?;
    }
    let count = lines.len() as u64;
    output.close()?;
    output.finish()?;
    Ok(count)
}
