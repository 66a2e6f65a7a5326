//! WACZ 1.1.1: a WARC, its index and its pages in one ZIP.

use super::export::{ArchiveError, Export, Exported, split_path};
use super::index::Index;
use super::output::{FileOutput, Output};
use super::warc_files::{FileNames, WarcFiles};
use crate::base::{rfc3339, write_json};
use crate::proto::zip::{ZipEntry, directory};
use crate::store_server::Reader;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Index lines that are compressed together, and found together.
const LINES_PER_BLOCK: usize = 300;

/// Writes a store as one WACZ file. The WARC goes straight into it: there is never a second copy on disk.
pub fn export_wacz(
    export: &Export,
    reader: &Reader,
    out: &Path,
    watch: &mut dyn FnMut(&Exported),
) -> Result<Exported, ArchiveError> {
    let (folder, name) = split_path(out)?;
    let mut output = FileOutput::new(&folder, export.force);
    output.open(&name)?;
    let mut newest_ms = 0;
    reader.each(|located, _| newest_ms = newest_ms.max(located.record.fetched_unix_ms))?;
    let zip = ZipOutput {
        output,
        at: 0,
        entries: Vec::new(),
        open: None,
        resources: Vec::new(),
        unix_ms: newest_ms,
    };
    let mut index = Index::with_pages();
    let files = WarcFiles::new(zip, FileNames::new("data.warc.gz", None), Some(&mut index));
    let (mut zip, mut exported) = export.write_to(reader, files, watch)?;
    write_index(&mut zip, &mut index)?;
    write_pages(&mut zip, index.pages.unwrap_or_default())?;
    let package = json!({
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "software": format!("nephila/{}", env!("CARGO_PKG_VERSION")),
        // Of what is in it: the same data has the same bytes.
        "created": rfc3339(newest_ms)[..19].to_string() + "Z",
        "resources": zip.resources,
    });
    let package = format!("{package:#}\n");
    zip.put("datapackage.json", package.as_bytes())?;
    let digest = json!({ "path": "datapackage.json", "hash": label(Sha256::digest(&package).as_slice()) });
    zip.put("datapackage-digest.json", format!("{digest:#}\n").as_bytes())?;
    let end = directory(&zip.entries, zip.at);
    zip.output.write(&end)?;
    exported.bytes = zip.at + end.len() as u64;
    zip.output.close()?;
    exported.files = zip.output.finish()?;
    Ok(exported)
}

/// Blocks of lines, each a gzip member, and a list of where each begins.
fn write_index(zip: &mut ZipOutput, index: &mut Index) -> Result<(), ArchiveError> {
    let meta = json!({ "format": "cdxj-gzip-1.0", "filename": "index.cdx.gz" });
    let mut list = format!("!meta 0 {meta}\n");
    let mut offset = 0;
    zip.begin("indexes/index.cdx.gz")?;
    for block in index.sorted().chunks(LINES_PER_BLOCK) {
        let mut member = GzEncoder::new(Vec::new(), Compression::new(6));
        // Writing to memory does not fail.
        let packed = member.write_all(block.concat().as_bytes()).and_then(|()| member.finish());
        let packed = packed.expect("memory takes what is written to it");
        let key = block[0].split(" {").next().unwrap_or_default();
        let place = json!({ "offset": offset, "length": packed.len() });
        list += &format!("{key} {place}\n");
        offset += packed.len();
        zip.write(&packed)?;
    }
    zip.end()?;
    zip.put("indexes/index.idx", list.as_bytes())
}

fn write_pages(zip: &mut ZipOutput, pages: Vec<(String, String)>) -> Result<(), ArchiveError> {
    zip.begin("pages/pages.jsonl")?;
    let first = json!({ "format": "json-pages-1.0", "id": "pages", "title": "All Pages" });
    zip.write(format!("{first}\n").as_bytes())?;
    for (url, ts) in pages {
        let id = format!("{:016x}", xxh3_64(format!("{ts} {url}").as_bytes()));
        // Titles are not parsed, and a list of pages without titles is of no use.
        let page = json!({ "id": id, "url": url, "title": url, "ts": ts });
        let mut line = Vec::new();
        write_json(&mut line, &page).expect("memory takes what is written to it");
        line.push(b'\n');
        zip.write(&line)?;
    }
    zip.end()
}

/// A ZIP that grows.
struct ZipOutput {
    output: FileOutput,
    at: u64,
    entries: Vec<ZipEntry>,
    open: Option<Open>,
    resources: Vec<serde_json::Value>,
    /// The date of entries.
    unix_ms: u64,
}

/// An entry that grows.
struct Open {
    entry: ZipEntry,
    crc: Crc,
    hash: Sha256,
}

impl ZipOutput {
    fn begin(&mut self, name: &str) -> Result<(), ArchiveError> {
        let entry =
            ZipEntry { name: name.to_string(), offset: self.at, bytes: 0, crc32: 0, unix_ms: self.unix_ms };
        let header = entry.local_header();
        self.output.write(&header)?;
        self.at += header.len() as u64;
        self.open = Some(Open { entry, crc: Crc::new(), hash: Sha256::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), ArchiveError> {
        let Open { mut entry, crc, hash } = self.open.take().expect("an entry is open");
        entry.crc32 = crc.sum();
        self.output.patch(entry.offset, &entry.local_header())?;
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        let hash = label(hash.finalize().as_slice());
        self.resources.push(json!({ "name": name, "path": entry.name, "hash": hash, "bytes": entry.bytes }));
        self.entries.push(entry);
        Ok(())
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.begin(name)?;
        self.write(bytes)?;
        self.end()
    }
}

impl Output for ZipOutput {
    fn open(&mut self, name: &str) -> Result<(), ArchiveError> {
        self.begin(&format!("archive/{name}"))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let open = self.open.as_mut().expect("an entry is open");
        open.crc.update(bytes);
        open.hash.update(bytes);
        open.entry.bytes += bytes.len() as u64;
        self.at += bytes.len() as u64;
        self.output.write(bytes)
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        self.end()
    }
}

fn label(hash: &[u8]) -> String {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
