use super::cuts;
use nephila::proto::record::{BadRecord, WireDecoder};

/// Small, so that documents over it are found.
const DOC_BYTES_MAX: u64 = 300;

/// Every record written anew, where the stream ends, and how.
fn records(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Result<usize, BadRecord>) {
    let (mut decoder, mut records) = (WireDecoder::new(DOC_BYTES_MAX), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            let record = match decoder.peek() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(bad) => return (records, Err(bad)),
            };
            assert!(record.document.len() as u64 <= DOC_BYTES_MAX && record.new_url != Some(""));
            let mut written = Vec::new();
            record.write(&mut written);
            assert_eq!(written.len(), record.wire_bytes());
            decoder.take(written.len());
            records.push(written);
        }
    }
    (records, Ok(decoder.held()))
}

pub fn run(bytes: &[u8]) {
    let (whole, end) = records(&[bytes]);
    for pieces in cuts(bytes) {
        assert_eq!(records(&pieces), (whole.clone(), end));
    }
    let mut rest = bytes;
    for written in &whole {
        let (record, after) = rest.split_at(written.len());
        rest = after;
        // A code in no table is written as the one for that; the unused byte as 0.
        assert!(written[5] == record[5] || written[5] == 255);
        assert_eq!(written[7], 0);
        for (at, (ours, theirs)) in written.iter().zip(record).enumerate() {
            assert!(ours == theirs || at == 5 || at == 7, "byte {at}");
        }
    }
    match end {
        Ok(held) => assert_eq!(held, rest.len()),
        Err(BadRecord::Success(value)) => assert!(value > 1 && rest[4] == value),
        Err(BadRecord::TooLarge { bytes, bytes_max }) => {
            assert!(u64::from(bytes) > bytes_max && rest[16..20] == bytes.to_be_bytes());
        }
        Err(bad @ (BadRecord::UrlText | BadRecord::NewUrlText)) => {
            let (url, after) = rest[20..].split_at(usize::from(u16::from_be_bytes([rest[12], rest[13]])));
            let new_url = &after[..usize::from(u16::from_be_bytes([rest[14], rest[15]]))];
            let text = if bad == BadRecord::UrlText { url } else { new_url };
            assert!(str::from_utf8(text).is_err());
        }
    }
}
