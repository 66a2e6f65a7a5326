use super::cuts;
use nephila::limits::{URL_BATCH_ITEMS_MAX, URL_BYTES_MAX};
use nephila::proto::peer_wire::{Frame, FrameBuffer, FrameError, FrameKind, PeerWord, UrlBatchBuilder};

/// The first byte says what the rest is: an even one a stream as it stands; an odd one bodies, each a byte for its kind and
/// two for its length before it, that are put into frames with sound checksums.
pub fn run(bytes: &[u8]) {
    let [mode, rest @ ..] = bytes else { return };
    if mode % 2 == 0 {
        let _ = check(rest);
        return;
    }
    let (mut stream, mut rest) = (Vec::new(), rest);
    while let [kind, low, high, after @ ..] = rest {
        let kind = FrameKind::ALL[usize::from(*kind) % FrameKind::ALL.len()];
        let (body, behind) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(after.len()));
        Frame { kind, body }.write(&mut stream);
        rest = behind;
    }
    let frames = check(&stream);
    // Sound frames are all there, whatever is in them.
    assert_eq!(frames, Ok(0));
    if let Some(at) = stream.len().checked_sub(1).map(|last| bytes.len() * 31 % (last + 1)) {
        stream[at] ^= 1 << (bytes.len() % 8);
        // A length that is too large may wait for more.
        assert!(check(&stream) != Ok(0), "byte {at}");
    }
}

/// The frames of a stream, and how it ends.
type Frames = (Vec<(FrameKind, Vec<u8>)>, Result<usize, FrameError>);

fn frames(pieces: &[&[u8]]) -> Frames {
    let (mut buffer, mut frames) = (FrameBuffer::default(), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => frames.push((frame.kind, frame.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(buffer.held()))
}

/// Bytes that are left, or why there are no more frames.
fn check(stream: &[u8]) -> Result<usize, FrameError> {
    let whole = frames(&[stream]);
    for pieces in cuts(stream) {
        assert_eq!(frames(&pieces), whole);
    }
    for (kind, body) in &whole.0 {
        let frame = Frame { kind: *kind, body };
        let Ok(word) = frame.word() else { continue };
        assert_eq!(word.kind(), *kind);
        let mut written = Vec::new();
        word.write(&mut written);
        let mut again = FrameBuffer::default();
        again.push(&written);
        let frame = again.next_frame().expect("a sound frame").expect("all of it");
        assert_eq!(frame.word().as_ref(), Ok(&word));
        match word {
            PeerWord::Urls(batch) => {
                let (mut items, mut count, mut builder) = (batch.items(), 0, UrlBatchBuilder::default());
                while let Some(item) = items.next() {
                    assert!(item.url.len() <= URL_BYTES_MAX && item.partition.index() < 4_096);
                    assert_eq!(builder.push(&item), Ok(()));
                    count += 1;
                }
                assert!(count == batch.count() && count <= URL_BATCH_ITEMS_MAX);
                let (mut items, ours) = (batch.items(), builder.batch(batch.batch));
                let mut read = ours.items();
                while let Some(item) = items.next() {
                    assert_eq!(read.next(), Some(item));
                }
            }
            // It may have been packed in another way.
            PeerWord::Table { .. } => {}
            _ => assert_eq!(frame.body, body),
        }
    }
    whole.1
}
