use nephila::limits::SEGMENT_HEADER_BYTES;
use nephila::store_server::{DataDir, Reader};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const SEGMENT: u64 = 7;
const HEADER_BYTES: usize = 112;

/// A data directory with one segment in it, gone with the value.
struct Store(PathBuf);

impl Store {
    fn with(segment: &[u8], extension: &str) -> Store {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-fuzz-{}-{count}", std::process::id()));
        fs::create_dir_all(path.join("segments")).expect("a directory");
        let name = format!("segments/{SEGMENT:010}-000.{extension}");
        fs::write(path.join(name), segment).expect("a file");
        Store(path)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The first byte says what the rest is: bit 0 a sealed segment, bit 1 as it stands, else with sound checksums.
pub fn run(bytes: &[u8]) {
    let [mode, records @ ..] = bytes else { return };
    let mut records = records.to_vec();
    if mode & 2 == 0 {
        mend(&mut records);
    }
    let mut segment = vec![0; SEGMENT_HEADER_BYTES];
    segment[..8].copy_from_slice(b"NEPHSEG2");
    segment[8..16].copy_from_slice(&SEGMENT.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&segment[..20]), &segment[24..]);
    segment[20..24].copy_from_slice(&crc.to_le_bytes());
    segment.extend_from_slice(&records);
    let sealed = mode & 1 == 1;
    let store = Store::with(&segment, if sealed { "seg" } else { "open" });
    let before = read(&store.0, &segment);
    // A start after a crash keeps every record that was whole.
    let opened = DataDir::open(&store.0).expect("any segment is opened");
    drop(opened);
    let after = read(&store.0, &segment);
    assert_eq!(before.0, after.0);
    assert!(sealed || after.1 == 0, "what was cut after a crash is not damaged");
}

/// Urls of the records, and how many places are damaged.
fn read(path: &Path, segment: &[u8]) -> (Vec<String>, usize) {
    let mut urls = Vec::new();
    let mut next = SEGMENT_HEADER_BYTES;
    let reader = Reader::open(path).expect("a store");
    let damaged = reader.each(|located, bytes| {
        let at = located.offset as usize;
        assert_eq!(at, next, "records stand end to end");
        assert_eq!(bytes, &segment[at..at + bytes.len()]);
        assert_eq!(located.record.record_bytes as usize, bytes.len());
        next += bytes.len();
        let payload_bytes = payload_bytes(bytes).expect("a record has its lengths");
        assert_eq!(u32_at(bytes, 4), crc32c::crc32c(&bytes[8..HEADER_BYTES]));
        assert_eq!(u32_at(bytes, 8), crc32c::crc32c(&bytes[HEADER_BYTES..HEADER_BYTES + payload_bytes]));
        let record = &located.record;
        if let Some(document) = reader.unpack(&located, bytes).expect("a file that can be read") {
            assert_eq!(document.head.len(), record.head_len as usize);
            assert_eq!(document.body.len(), record.document_len as usize);
            if bytes[51] == 0 {
                let url_bytes = u16_at(bytes, 74) + u16_at(bytes, 76);
                let block = &bytes[HEADER_BYTES + url_bytes..HEADER_BYTES + payload_bytes];
                assert_eq!([document.head, document.body].concat(), block);
            }
        }
        urls.push(record.url.clone());
    });
    (urls, damaged.expect("a file that can be read").len())
}

/// Gives what is laid out as records their magic, segment, length and checksums.
fn mend(mut records: &mut [u8]) {
    while records.len() >= HEADER_BYTES {
        let Some(payload_bytes) = payload_bytes(records) else { return };
        let record_bytes = (HEADER_BYTES + payload_bytes).next_multiple_of(8);
        if record_bytes > records.len() {
            return;
        }
        let (record, rest) = records.split_at_mut(record_bytes);
        record[..4].copy_from_slice(b"NREC");
        record[12..16].copy_from_slice(&(record_bytes as u32).to_le_bytes());
        record[24..32].copy_from_slice(&SEGMENT.to_le_bytes());
        let payload_crc = crc32c::crc32c(&record[HEADER_BYTES..HEADER_BYTES + payload_bytes]);
        record[8..12].copy_from_slice(&payload_crc.to_le_bytes());
        let header_crc = crc32c::crc32c(&record[8..HEADER_BYTES]);
        record[4..8].copy_from_slice(&header_crc.to_le_bytes());
        records = rest;
    }
}

fn payload_bytes(record: &[u8]) -> Option<usize> {
    let header = record.get(..HEADER_BYTES)?;
    (u16_at(header, 74) + u16_at(header, 76)).checked_add(u32_at(header, 88) as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
