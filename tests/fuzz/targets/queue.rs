use nephila::master::ServerId;
use nephila::master::queue::{BlockHeader, BlockKind, Entry, segment_entries, segment_header};

const FIRST: u64 = 1_000;

/// The first byte says what the rest is: 0 a segment as it stands, 1 lines that are packed into blocks, else a payload with
/// sound checksums that is unpacked as if we had written it, the second byte being how much it says to hold.
pub fn run(bytes: &[u8]) {
    let [mode, rest @ ..] = bytes else { return };
    match mode % 3 {
        0 => drop(check(rest)),
        1 => packed(rest),
        _ => {
            let [plain, payload @ ..] = rest else { return };
            let header = header(payload, u32::from(*plain) * 7 + 1, u32::from(*plain) % 5 + 1);
            let segment = [&segment_header(ServerId(7), FIRST)[..], &header.write(), payload].concat();
            drop(check(&segment));
        }
    }
}

fn header(payload: &[u8], plain_bytes: u32, entries: u32) -> BlockHeader {
    BlockHeader {
        payload_crc: crc32c::crc32c(payload),
        payload_bytes: payload.len() as u32,
        plain_bytes,
        entries,
        first_seq: FIRST,
        epoch: 3,
        earliest_s: 1,
        latest_s: 2,
        before_s: 0,
        at_s: 3,
        kind: BlockKind::Epoch,
    }
}

/// What is read is entries that are lines, with numbers that rise by one.
fn check(segment: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut lines, mut next) = (Vec::new(), None);
    let read = segment_entries(segment, |seq, line| {
        assert!(next.is_none_or(|next| next == seq) && !line.contains(&b'\n'));
        next = Some(seq + 1);
        // Any bytes are an entry of some kind.
        let _ = Entry::read(line);
        lines.push(line.to_vec());
    });
    match read {
        Ok(end) => {
            assert!(next.is_none_or(|next| next == end));
            Some(lines)
        }
        Err(damage) => {
            assert!(damage.at <= segment.len() as u64);
            None
        }
    }
}

/// Lines come back as they were packed, and no byte may be another.
fn packed(text: &[u8]) {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return;
    }
    let plain: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
    let payload = lz4_flex::block::compress(&plain);
    let header = header(&payload, plain.len() as u32, lines.len() as u32);
    let mut segment = [&segment_header(ServerId(7), FIRST)[..], &header.write(), &payload].concat();
    assert_eq!(check(&segment).expect("it is whole"), lines);
    let at = text.len() * 31 % segment.len();
    segment[at] ^= 1 << (text[0] % 8);
    assert_eq!(check(&segment), None, "byte {at}");
    segment[at] ^= 1 << (text[0] % 8);
    let cut = segment.len() - 1 - text.len() % payload.len();
    assert_eq!(check(&segment[..cut]), None, "cut to {cut}");
}
