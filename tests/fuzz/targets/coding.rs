use nephila::proto::coding::{CodingLimits, ContentDecoder, Decoded};

const LIMITS: CodingLimits = CodingLimits { bytes_max: 1 << 16, ratio_max: 200, layers_max: 5 };

/// A Content-Encoding, LF, the coded body.
pub fn run(bytes: &[u8]) {
    let Some(at) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (header, coded) = (&bytes[..at], &bytes[at + 1..]);
    let mut decoder = ContentDecoder::new();
    let mut document = b"head".to_vec();
    let decoded = decoder.decode(header, coded, &LIMITS, &mut document);
    assert!(document.starts_with(b"head"), "what was there stays");
    let document = document.split_off(4);
    assert!(document.len() as u64 <= LIMITS.bytes_max);
    match decoded {
        Decoded::Plain | Decoded::Unknown => assert!(document.is_empty()),
        Decoded::TooLarge => assert_eq!(document.len() as u64, LIMITS.bytes_max),
        Decoded::Whole | Decoded::Broken | Decoded::Bomb => {}
    }
    // What it keeps from the last use does not show in the next.
    let mut again = Vec::new();
    assert_eq!((decoder.decode(header, coded, &LIMITS, &mut again), &again), (decoded, &document));
}
