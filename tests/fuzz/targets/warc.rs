use super::cuts;
use nephila::proto::warc::{
    CdxjLine, HEAD_BYTES_MAX, Place, WarcError, WarcHead, WarcParser, WarcStep, read_date, surt, write_record,
};

const LENGTH_MAX: u64 = 1 << 20;

/// What a file comes to, and how it ends.
type Read = (Vec<(WarcHead, Vec<u8>)>, Option<WarcError>);

pub fn run(bytes: &[u8]) {
    let whole = read(&[bytes]);
    for cut in cuts(bytes) {
        let cut = read(&cut);
        // A head that is refused is refused as soon as that is certain, which may be sooner or later.
        assert_eq!(cut.0, whole.0);
        assert_eq!(cut.1.is_some(), whole.1.is_some());
    }
    let kept: usize = whole.0.iter().map(|(_, block)| block.len()).sum();
    assert!(kept <= bytes.len(), "no byte of a block is made up");
    for (head, block) in &whole.0 {
        assert!(head.length() <= LENGTH_MAX);
        assert!(block.len() as u64 <= head.length());
        let _ = head.get("WARC-Date").and_then(read_date);
        let mut line = String::new();
        if let Some(entry) = CdxjLine::of(head, Some(block), || "sha1:X".to_string()) {
            entry.write(&Place { file: "f", offset: 1, length: 2 }, &mut line);
            assert!(line.ends_with("\"filename\": \"f\"}\n"));
        }
        if let Some(target) = head.target() {
            let key = surt(&target);
            assert!(!key.is_empty());
        }
        let mut again = Vec::new();
        write_record(&mut again, &[("WARC-Type", head.get("WARC-Type").unwrap_or_default())], &[block]);
        if again.len() < HEAD_BYTES_MAX {
            let (back, end) = read(&[&again]);
            assert_eq!((back.len(), end), (1, None));
            assert_eq!(back[0].1, *block);
            assert_eq!(back[0].0.kind(), head.kind());
        }
    }
}

fn read(pieces: &[&[u8]]) -> Read {
    let mut parser = WarcParser::new(LENGTH_MAX);
    let mut records: Vec<(WarcHead, Vec<u8>)> = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let (taken, step) = match parser.step(rest) {
                Ok(step) => step,
                Err(error) => {
                    assert_eq!(parser.step(rest), Err(error), "an error stays");
                    return (records, Some(error));
                }
            };
            rest = &rest[taken..];
            match step {
                WarcStep::NeedMore => break,
                WarcStep::Head(head) => records.push((head, Vec::new())),
                WarcStep::Block(bytes) => {
                    let (_, block) = records.last_mut().expect("a block has its head");
                    block.extend_from_slice(bytes);
                }
                WarcStep::End => {
                    let (head, block) = records.last().expect("an end has its head");
                    assert_eq!(block.len() as u64, head.length());
                }
            }
        }
        assert!(rest.is_empty());
    }
    (records, parser.end().err())
}
