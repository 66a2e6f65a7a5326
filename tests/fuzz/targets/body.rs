use super::cuts;
use nephila::proto::http1::{BodyDecoder, BodyEnd, BodyError, BodyLimits, BodyStep, Flags, Framing};

/// Everything there is to say about a body.
#[derive(Debug, PartialEq)]
struct Seen {
    document: Vec<u8>,
    step: Result<BodyStep, BodyError>,
    /// Bytes taken before the end; all of them while it goes on.
    taken: usize,
    end: BodyEnd,
    keep_alive: bool,
    flags: Flags,
}

fn decode(pieces: &[&[u8]], framing: Framing, limits: BodyLimits) -> Seen {
    let mut decoder = BodyDecoder::new(framing, limits);
    let mut document = Vec::new();
    let (mut taken, mut last) = (0, Ok(BodyStep::NeedMore));
    for piece in pieces {
        last = decoder.push(piece, &mut document);
        match last {
            Ok(BodyStep::NeedMore) => taken += piece.len(),
            Ok(BodyStep::Done { consumed }) => {
                taken += consumed;
                // How much of the last piece it was depends on the cut.
                last = Ok(BodyStep::Done { consumed: 0 });
                break;
            }
            Ok(BodyStep::TooLarge) | Err(_) => break,
        }
    }
    if !matches!(last, Ok(BodyStep::NeedMore | BodyStep::Done { .. })) {
        taken = 0;
    }
    assert_eq!(decoder.doc_bytes(), document.len() as u64);
    // Over is over.
    let before = document.len();
    if last != Ok(BodyStep::NeedMore) {
        assert_eq!(decoder.push(b"5\r\nagain\r\n", &mut document), last);
        assert_eq!(document.len(), before);
    }
    Seen {
        document,
        step: last,
        taken,
        end: decoder.end(),
        keep_alive: decoder.keep_alive(),
        flags: decoder.flags(),
    }
}

pub fn run(bytes: &[u8]) {
    let [kind, limit, bytes @ ..] = bytes else { return };
    let framing = match kind % 8 {
        0 => Framing::None,
        1 => Framing::Length(u64::from(kind / 8)),
        2 => Framing::Close,
        _ => Framing::Chunked,
    };
    let limits =
        BodyLimits { doc_bytes_max: u64::from(*limit) * 4, chunk_ext_bytes_max: 24, trailer_bytes_max: 24 };
    let whole = decode(&[bytes], framing, limits);
    for pieces in cuts(bytes) {
        let pieces: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { pieces };
        assert_eq!(decode(&pieces, framing, limits), whole);
    }
    assert!(whole.document.len() <= bytes.len() && whole.document.len() as u64 <= limits.doc_bytes_max);
    match framing {
        Framing::None => assert!(whole.document.is_empty() && whole.taken == 0),
        Framing::Length(_) | Framing::Close => assert!(bytes.starts_with(&whole.document)),
        Framing::Chunked => chunked(bytes, &whole, limits),
    }
}

/// A body that was read to its end says the same when it is put in chunks again, and cut short it is not complete.
fn chunked(bytes: &[u8], whole: &Seen, limits: BodyLimits) {
    if !matches!(whole.step, Ok(BodyStep::Done { .. })) {
        assert_eq!(whole.end, BodyEnd::Truncated);
        return;
    }
    assert_eq!(whole.end, BodyEnd::Complete);
    let again: Vec<u8> = whole
        .document
        .chunks(11)
        .flat_map(|chunk| [format!("{:X}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
        .chain(*b"0\r\n\r\n")
        .collect();
    let again = decode(&[&again], Framing::Chunked, limits);
    assert_eq!((&again.document, again.flags, again.keep_alive), (&whole.document, Flags::NONE, true));
    let short = decode(&[&bytes[..whole.taken - 1]], Framing::Chunked, limits);
    assert_eq!((short.step, short.end), (Ok(BodyStep::NeedMore), BodyEnd::Truncated));
    assert_eq!(short.document, whole.document);
}
