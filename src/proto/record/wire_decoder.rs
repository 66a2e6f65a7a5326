use super::wire::{BadRecord, WIRE_HEADER_BYTES, WireLengths, WireRecord};

/// Cuts a stream into records. However the bytes come in pieces, the same records come out, and the same error after
/// them.
///
/// It holds no more than the piece last pushed and one unfinished record, if its owner takes every record before it
/// pushes again; and never more than came: a header that promises much makes no room for it.
pub struct WireDecoder {
    doc_bytes_max: u64,
    bytes: Vec<u8>,
    /// Records up to here were handed out. `taken <= bytes.len()`
    taken: usize,
}

/// Memory beyond this is given back once it is not in use: a large document is rare.
const KEPT_BYTES_MAX: usize = 256 * 1_024;

impl WireDecoder {
    pub fn new(doc_bytes_max: u64) -> WireDecoder {
        WireDecoder { doc_bytes_max, bytes: Vec::new(), taken: 0 }
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.len() + piece.len() <= KEPT_BYTES_MAX && self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        }
        self.bytes.extend_from_slice(piece);
    }

    /// The next whole record; `None` until more bytes come. It stays the next one until it is taken.
    pub fn peek(&self) -> Result<Option<WireRecord<'_>>, BadRecord> {
        let rest = &self.bytes[self.taken..];
        let Some(header) = rest.first_chunk::<WIRE_HEADER_BYTES>() else {
            return Ok(None);
        };
        let lengths = WireLengths::of(header, self.doc_bytes_max)?;
        match rest.get(..lengths.record()) {
            Some(record) => WireRecord::read(record, lengths).map(Some),
            None => Ok(None),
        }
    }

    /// Lets go of the record that `peek` showed, which took so many bytes.
    pub fn take(&mut self, wire_bytes: usize) {
        assert!(wire_bytes <= self.held());
        self.taken += wire_bytes;
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        (self.bytes, self.taken) = (Vec::new(), 0);
    }

    /// Bytes that came and were not taken.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::record::{HttpCode, ResultCode};
    use proptest::prelude::*;

    const DOC_BYTES_MAX: u64 = 1_000;

    /// What a record says, apart from its bytes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Said {
        doc_id: u32,
        success: bool,
        result: u8,
        http_code: u8,
        took_ms: u32,
        url: String,
        new_url: String,
        document: Vec<u8>,
    }

    impl Said {
        fn of(record: &WireRecord<'_>) -> Said {
            assert_ne!(record.new_url, Some(""));
            Said {
                doc_id: record.doc_id,
                success: record.success,
                result: record.result as u8,
                http_code: record.http_code.as_u8(),
                took_ms: record.took_ms,
                url: record.url.to_string(),
                new_url: record.new_url.unwrap_or_default().to_string(),
                document: record.document.to_vec(),
            }
        }

        /// The plainest encoder there is.
        fn bytes(&self) -> Vec<u8> {
            let mut out = self.doc_id.to_be_bytes().to_vec();
            out.extend([u8::from(self.success), self.result, self.http_code, 0]);
            out.extend(self.took_ms.to_be_bytes());
            out.extend((self.url.len() as u16).to_be_bytes());
            out.extend((self.new_url.len() as u16).to_be_bytes());
            out.extend((self.document.len() as u32).to_be_bytes());
            out.extend(self.url.bytes().chain(self.new_url.bytes()));
            out.extend(&self.document);
            out
        }

        fn wire(&self) -> WireRecord<'_> {
            WireRecord {
                doc_id: self.doc_id,
                success: self.success,
                result: ResultCode::from_u8(self.result).unwrap_or(ResultCode::Other),
                http_code: HttpCode::from(self.http_code),
                took_ms: self.took_ms,
                url: &self.url,
                new_url: (!self.new_url.is_empty()).then_some(&self.new_url),
                document: &self.document,
            }
        }
    }

    /// Records, the error that ended them, and the bytes that are left.
    fn records<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Said>, Result<usize, BadRecord>) {
        let (mut decoder, mut records) = (WireDecoder::new(DOC_BYTES_MAX), Vec::new());
        for piece in pieces {
            decoder.push(piece);
            loop {
                match decoder.peek() {
                    Ok(Some(record)) => {
                        records.push(Said::of(&record));
                        let bytes = record.wire_bytes();
                        decoder.take(bytes);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(decoder.peek(), Err(error), "for good");
                        return (records, Err(error));
                    }
                }
            }
        }
        (records, Ok(decoder.held()))
    }

    fn said(url: &str, new_url: &str, document: &[u8]) -> Said {
        let (url, new_url, document) = (url.to_string(), new_url.to_string(), document.to_vec());
        Said { doc_id: 7, success: true, result: 1, http_code: 5, took_ms: 12, url, new_url, document }
    }

    #[test]
    fn cut_at_every_byte() {
        let expected = [said("http://a.test/", "", b"page"), said("", "", b""), said("u", "n", &[0xff; 99])];
        let mut stream: Vec<u8> = expected.iter().flat_map(Said::bytes).collect();
        stream.extend(&expected[0].bytes()[..30]);
        for at in 0..=stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(records([head, tail]), (expected.to_vec(), Ok(30)), "cut at {at}");
        }
        assert_eq!(records(stream.chunks(1)), (expected.to_vec(), Ok(30)));
    }

    #[test]
    fn a_bad_header_is_seen_when_its_last_byte_is_there() {
        let good = said("http://a.test/", "", b"page").bytes();
        let bad_success = [&good[..4], &[2], &good[5..20]].concat();
        let too_large = [&good[..16], &1_001u32.to_be_bytes()].concat();
        let huge = [&good[..16], &[0xff; 4]].concat();
        for (header, error) in [
            (bad_success, BadRecord::Success(2)),
            (too_large, BadRecord::TooLarge { bytes: 1_001, bytes_max: 1_000 }),
            (huge, BadRecord::TooLarge { bytes: u32::MAX, bytes_max: 1_000 }),
        ] {
            let stream = [&good[..], &header].concat();
            assert_eq!(records([&stream[..stream.len() - 1]]).1, Ok(19));
            let (before, ended) = records(stream.chunks(3));
            assert_eq!((before.len(), ended), (1, Err(error)));
        }
    }

    #[test]
    fn urls_are_text() {
        let good = said("http://a.test/", "http://b.test/", b"page");
        for (at, error) in [(33, BadRecord::UrlText), (47, BadRecord::NewUrlText)] {
            let mut stream = [good.bytes(), good.bytes()].concat();
            let one = stream.len() / 2;
            stream[one + at] = 0xc3;
            assert_eq!(records([&stream[..]]), (vec![good.clone()], Err(error)));
            assert_eq!(
                records([&stream[..stream.len() - 1]]).1,
                Ok(one - 1),
                "not before the record is whole"
            );
        }
    }

    #[test]
    fn the_longest_fields_and_the_unused_byte() {
        let long = said(&"u".repeat(65_535), &"n".repeat(65_535), &[b'd'; 1_000]);
        let mut stream = long.bytes();
        stream[7] = 0xaa;
        assert_eq!(records(stream.chunks(4_096)), (vec![long], Ok(0)));
    }

    #[test]
    fn codes_in_no_table_are_told_apart_from_known_ones() {
        let mut bytes = said("u", "", b"").bytes();
        (bytes[5], bytes[6]) = (200, 254);
        let mut decoder = WireDecoder::new(DOC_BYTES_MAX);
        decoder.push(&bytes);
        let record = decoder.peek().unwrap().unwrap();
        assert_eq!((record.result, record.http_code.status()), (ResultCode::Other, None));
        assert_eq!(record.http_code.as_u8(), 254);
    }

    #[test]
    fn memory_follows_what_came_and_is_given_back() {
        let mut decoder = WireDecoder::new(64 << 20);
        let mut header = said("", "", b"").bytes();
        header[16..20].copy_from_slice(&(32u32 << 20).to_be_bytes());
        decoder.push(&header);
        assert_eq!(decoder.peek(), Ok(None));
        assert!(decoder.bytes.capacity() < 1_024, "a promise takes no memory");
        let document = vec![1; 32 << 20];
        document.chunks(1 << 16).for_each(|piece| decoder.push(piece));
        let bytes = decoder.peek().unwrap().unwrap().wire_bytes();
        decoder.take(bytes);
        decoder.push(&header);
        assert!(decoder.bytes.capacity() <= KEPT_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            records_said in prop::collection::vec(
                (
                    (any::<u32>(), any::<bool>(), 1u8..10, any::<u8>(), any::<u32>()),
                    ("\\PC{0,40}", "\\PC{0,20}", prop::collection::vec(any::<u8>(), 0..200)),
                )
                    .prop_map(|((doc_id, success, result, http_code, took_ms), (url, new_url, document))| {
                        Said { doc_id, success, result, http_code, took_ms, url, new_url, document }
                    }),
                0..6,
            ),
            piece in 1usize..400,
        ) {
            let plain: Vec<u8> = records_said.iter().flat_map(Said::bytes).collect();
            let mut written = Vec::new();
            records_said.iter().for_each(|said| said.wire().write(&mut written));
            prop_assert_eq!(&written, &plain);
            prop_assert_eq!(records(plain.chunks(piece)), (records_said, Ok(0)));
        }

        #[test]
        fn pieces_make_no_difference(
            stream in prop::collection::vec(prop_oneof![3 => 0u8..3, 1 => any::<u8>()], 0..300),
            piece in 1usize..50,
        ) {
            let (whole, pieces) = (records([&stream[..]]), records(stream.chunks(piece)));
            prop_assert_eq!(&whole.0, &pieces.0);
            prop_assert_eq!(whole.1, pieces.1);
        }
    }
}
