use super::export::ArchiveError;
use super::index::Index;
use super::output::Output;
use crate::proto::warc::{Place, RECORD_END, record_id, sha1_label, warc_date, write_record};
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use sha1::{Digest, Sha1};

/// Names and size of the files of an export.
#[derive(Clone, Debug)]
pub(super) struct FileNames {
    /// Up to its first dot, and from it on.
    stem: String,
    extensions: String,
    size: Option<u64>,
}

impl FileNames {
    /// With a size there may be several, which are numbered: `out-00001.warc.gz`.
    pub fn new(name: &str, size: Option<u64>) -> FileNames {
        let lower = name.to_ascii_lowercase();
        let known = [".warc.gz", ".warc", ".gz"].into_iter().find(|ending| lower.ends_with(ending));
        let (stem, extensions) = name.split_at(name.len() - known.map_or(0, str::len));
        FileNames { stem: stem.to_string(), extensions: extensions.to_string(), size }
    }

    pub fn nth(&self, number: u32) -> String {
        match self.size {
            Some(_) => format!("{}-{number:05}{}", self.stem, self.extensions),
            None => format!("{}{}", self.stem, self.extensions),
        }
    }

    fn is_packed(&self) -> bool {
        self.extensions.to_ascii_lowercase().ends_with(".gz")
    }
}

/// Writes records to files, each in a gzip member of its own where the name says so, and begins a new file when one has
/// passed the size.
pub(super) struct WarcFiles<'a, S: Output> {
    output: S,
    names: FileNames,
    index: Option<&'a mut Index>,
    packer: Option<Packer>,
    file: u32,
    offset: u64,
    /// The first record of the file.
    warcinfo: Option<String>,
    bytes: u64,
}

impl<'a, S: Output> WarcFiles<'a, S> {
    pub fn new(output: S, names: FileNames, index: Option<&'a mut Index>) -> WarcFiles<'a, S> {
        let packer = names.is_packed().then(Packer::new);
        WarcFiles { output, names, index, packer, file: 0, offset: 0, warcinfo: None, bytes: 0 }
    }

    /// The id of the first record of the file that the next record goes to. Begins that file if need be.
    pub fn warcinfo(&mut self, unix_ms: u64, agent: Option<&str>) -> Result<String, ArchiveError> {
        let is_full = self.names.size.is_some_and(|size| self.offset > size);
        if is_full && self.warcinfo.take().is_some() {
            self.output.close()?;
        }
        if let Some(id) = &self.warcinfo {
            return Ok(id.clone());
        }
        self.file += 1;
        self.offset = 0;
        let name = self.names.nth(self.file);
        self.output.open(&name)?;
        let id = record_id(&[b"warcinfo", name.as_bytes(), &unix_ms.to_le_bytes()]);
        let text = description(agent);
        let mut hash = Sha1::new();
        hash.update(&text);
        let fields = [
            ("WARC-Type", "warcinfo"),
            ("WARC-Date", &warc_date(unix_ms)),
            ("WARC-Record-ID", &id),
            ("WARC-Filename", &name),
            ("Content-Type", "application/warc-fields"),
            ("WARC-Block-Digest", &sha1_label(hash)),
        ];
        let mut record = Vec::new();
        write_record(&mut record, &fields, &[text.as_bytes()]);
        self.warcinfo = Some(id.clone());
        self.write(&record)?;
        Ok(id)
    }

    /// Writes one record to the file that is open.
    pub fn write(&mut self, record: &[u8]) -> Result<(), ArchiveError> {
        debug_assert!(self.warcinfo.is_some(), "a file begins with its description");
        let bytes = match &mut self.packer {
            Some(packer) => packer.pack(record),
            None => record,
        };
        self.output.write(bytes)?;
        let length = bytes.len() as u64;
        if let Some(index) = &mut self.index {
            let shown = if self.packer.is_some() { length } else { length - RECORD_END.len() as u64 };
            let name = self.names.nth(self.file);
            index.add_record(record, &Place { file: &name, offset: self.offset, length: shown });
        }
        self.offset += length;
        self.bytes += length;
        Ok(())
    }

    /// Ends the last file. The output, how many files there are, and their bytes.
    pub fn finish(mut self) -> Result<(S, u32, u64), ArchiveError> {
        // An empty archive is valid, too.
        if self.warcinfo.is_none() {
            self.warcinfo(0, None)?;
        }
        self.output.close()?;
        Ok((self.output, self.file, self.bytes))
    }
}

fn description(agent: Option<&str>) -> String {
    let mut text = format!("software: nephila/{}\r\n", env!("CARGO_PKG_VERSION"));
    text += "format: WARC File Format 1.1\r\n";
    text += "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n";
    if let Some(agent) = agent {
        let agent: String = agent.chars().filter(|c| !c.is_control()).collect();
        text += &format!("http-header-user-agent: {agent}\r\n");
    }
    text += "robots: obey\r\n";
    text += "description: Documents are stored without transfer and content coding. Request records are rebuilt from \
             what is stored: they hold no credentials, cookies or validators.\r\n";
    text
}

/// Makes gzip members.
struct Packer {
    deflate: Compress,
    out: Vec<u8>,
}

/// No name, no date, made by an unknown system: the same bytes each time.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

impl Packer {
    fn new() -> Packer {
        Packer { deflate: Compress::new(Compression::new(6), false), out: Vec::new() }
    }

    fn pack(&mut self, plain: &[u8]) -> &[u8] {
        self.deflate.reset();
        self.out.clear();
        self.out.extend_from_slice(&GZIP_HEADER);
        self.out.reserve(plain.len() / 2 + 64);
        loop {
            let taken = self.deflate.total_in() as usize;
            let status = self.deflate.compress_vec(&plain[taken..], &mut self.out, FlushCompress::Finish);
            match status.expect("the state of the compressor is sound") {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError => self.out.reserve(plain.len() / 4 + 64),
            }
        }
        let mut crc = Crc::new();
        crc.update(plain);
        self.out.extend_from_slice(&crc.sum().to_le_bytes());
        self.out.extend_from_slice(&crc.amount().to_le_bytes());
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn numbers_stand_before_the_extensions() {
        assert_eq!(FileNames::new("a.b.warc.gz", Some(1)).nth(1), "a.b-00001.warc.gz");
        assert_eq!(FileNames::new("a.b.warc.gz", None).nth(1), "a.b.warc.gz");
        assert_eq!(FileNames::new("a.WARC", Some(1)).nth(12), "a-00012.WARC");
        assert_eq!(FileNames::new("plain", Some(1)).nth(2), "plain-00002");
        assert!(FileNames::new("a.warc.GZ", None).is_packed() && !FileNames::new("a.warc", None).is_packed());
    }

    #[test]
    fn a_member_unpacks_to_what_was_packed() {
        let mut packer = Packer::new();
        let mut rng = crate::base::Rng::new(3);
        for bytes in [0, 1, 100, 70_000, 1_000_000] {
            for plain in [vec![b'x'; bytes], (0..bytes).map(|_| rng.next_u64() as u8).collect()] {
                let packed = packer.pack(&plain).to_vec();
                let mut back = Vec::new();
                flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut back).unwrap();
                assert!(back == plain, "{bytes}");
                assert_eq!(packer.pack(&plain), packed, "the same each time");
            }
        }
    }
}
