use super::cuts;
use nephila::proto::reflog::{
    DIGITS_MAX, ReflogCounts, ReflogReader, Reject, RejectReason, TAG_BYTES_MAX, TEXT_BYTES_MAX, Told,
};

/// Records as lines, and rejects, each with its line.
type Read = (Vec<(u64, Vec<u8>)>, Vec<(u64, RejectReason, Vec<u8>, u32)>, ReflogCounts);

fn read(pieces: &[&[u8]]) -> Read {
    let (mut records, mut rejects) = (Vec::new(), Vec::new());
    let mut reader = ReflogReader::default();
    let mut tell = |told: Told<'_>| match told {
        Told::Record { line, record } => {
            assert!(!record.url.is_empty() && !record.url.iter().any(u8::is_ascii_control));
            assert!(record.tag.len() <= TAG_BYTES_MAX);
            for digits in [record.batch, record.page] {
                assert!((1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit));
            }
            let mut written = Vec::new();
            record.write(&mut written);
            records.push((line, written));
        }
        Told::Reject(Reject { line, why, text, hits }) => {
            assert!(!text.is_empty() && text.len() <= TEXT_BYTES_MAX);
            rejects.push((line, why, text.to_vec(), hits));
        }
    };
    for piece in pieces {
        reader.read(piece, &mut tell);
    }
    reader.end(&mut tell);
    let counts = reader.counts();
    assert_eq!((counts.records, counts.rejects), (records.len() as u64, rejects.len() as u64));
    (records, rejects, counts)
}

pub fn run(bytes: &[u8]) {
    let whole = read(&[bytes]);
    for pieces in cuts(bytes) {
        assert_eq!(read(&pieces), whole);
    }
    let (records, rejects, counts) = &whole;
    assert_eq!(counts.lines as usize, bytes.split_inclusive(|&byte| byte == b'\n').count());
    assert!(counts.records + counts.rejects + counts.unknown <= counts.lines);
    let mut lines: Vec<u64> = records.iter().map(|record| record.0).collect();
    lines.extend(rejects.iter().map(|reject| reject.0));
    lines.sort_unstable();
    assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "one thing begins in a line");
    assert!(lines.iter().all(|&line| (1..=counts.lines).contains(&line)));
    // What is written is a record in one line, and the same.
    let written: Vec<u8> = records.iter().flat_map(|record| record.1.clone()).collect();
    let (again, rejects, _) = read(&[&written]);
    assert!(rejects.is_empty());
    let lines =
        |records: &[(u64, Vec<u8>)]| records.iter().map(|record| record.1.clone()).collect::<Vec<_>>();
    assert_eq!(lines(&again), lines(records));
}
