use super::cuts;
use nephila::proto::http1::{Head, HeadError, HeadLimits, HeadParser, HeadStep, Method};

/// Small enough that short inputs reach every limit.
const SMALL: HeadLimits = HeadLimits { head_bytes_max: 256, header_lines_max: 6, interim_max: 2 };

/// What became of the bytes; `None` if the head goes on.
fn read(pieces: &[&[u8]], limits: HeadLimits, method: Method) -> Result<Option<Head>, HeadError> {
    let mut parser = HeadParser::new(limits, method);
    let mut received = Vec::new();
    for piece in pieces {
        received.extend_from_slice(piece);
        if let HeadStep::Done(head) = parser.parse(&received)? {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

pub fn run(bytes: &[u8]) {
    for limits in [SMALL, HeadLimits::default()] {
        for method in [Method::Get, Method::Head] {
            let whole = read(&[bytes], limits, method);
            for pieces in cuts(bytes) {
                assert_eq!(read(&pieces, limits, method), whole);
            }
            if let Ok(Some(head)) = whole {
                holds(&head, limits, bytes);
            }
        }
    }
    beside_httparse(bytes);
}

fn holds(head: &Head, limits: HeadLimits, bytes: &[u8]) {
    assert!((200..1_000).contains(&head.status) || head.status < 100);
    assert!(head.version_minor <= 9);
    assert!(head.head_start < head.head_bytes && head.head_bytes <= limits.head_bytes_max);
    assert!(head.headers(bytes).count() <= usize::from(limits.header_lines_max));
    for (name, value) in head.headers(bytes) {
        assert!(!name.contains(&b':') && !name.contains(&b'\n') && !value.contains(&b'\n'));
        assert!(!value.contains(&0) && !value.contains(&b'\r'));
    }
    for span in [head.content_type, head.location, head.etag, head.last_modified, head.x_robots_tag] {
        assert!(span.range().is_empty() || (head.head_start as usize) < span.range().start);
        assert!(span.range().end < head.head_bytes as usize);
    }
    // What is noted is the first header of its name.
    let first = head.headers(bytes).find(|(name, _)| name.eq_ignore_ascii_case(b"location"));
    let noted = nephila::proto::http1::unfold(head.location.of(bytes));
    assert_eq!(first.map_or_else(Vec::new, |(_, value)| value.into_owned()), &*noted);
}

/// Where both take a head, they read the same; where only one does, the reason is known.
fn beside_httparse(bytes: &[u8]) {
    let ours = read(&[bytes], HeadLimits::default(), Method::Get);
    let mut headers = [httparse::EMPTY_HEADER; 300];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head_bytes)) = response.parse(bytes) else { return };
    let status = response.code.expect("a whole head has one");
    if (100..200).contains(&status) {
        // Ours is the head after it.
        return;
    }
    match ours {
        Ok(Some(head)) => {
            assert_eq!((head.status, head.head_bytes as usize), (status, head_bytes));
            assert_eq!(Some(head.version_minor), response.version);
            let theirs = response.headers.iter().map(|header| (header.name.as_bytes(), header.value));
            assert!(
                head.headers(bytes)
                    .map(|(name, value)| (name, value.into_owned()))
                    .eq(theirs.map(|(name, value)| (name, value.to_vec())))
            );
        }
        Ok(None) => panic!("httparse has a whole head, we wait for more"),
        Err(HeadError::NotHttp1) => assert!(bytes.starts_with(b"\r") || bytes.starts_with(b"\n")),
        Err(HeadError::BadContentLength | HeadError::UnequalContentLength) => {}
        Err(HeadError::HeadTooLarge | HeadError::TooManyHeaderLines) => {
            assert!(head_bytes > 64 * 1024 || response.headers.len() > 256);
        }
        Err(error) => panic!("httparse takes it, we do not: {error}"),
    }
}
