use super::cuts;
use nephila::commands::parse::{ParseError, Reading, Response};
use nephila::proto::http1::Method;

fn read(pieces: &[&[u8]], method: Method) -> Result<Response, ParseError> {
    let mut reading = Reading::new(method);
    for piece in pieces {
        reading.push(piece);
        if reading.is_settled() {
            break;
        }
    }
    reading.end()
}

pub fn run(bytes: &[u8]) {
    for method in [Method::Get, Method::Head] {
        let whole = read(&[bytes], method);
        for pieces in cuts(bytes) {
            assert_eq!(read(&pieces, method), whole);
        }
        let Ok(response) = whole else { continue };
        assert!(response.complete || !response.keep_alive);
        assert!(response.body_bytes < bytes.len() as u64);
        assert!(method == Method::Get || (response.framing == "none" && response.body_bytes == 0));
        if response.keep_alive {
            // Exactly this response: a byte more is one too many, a byte less is not the whole.
            let more = read(&[bytes, b"x"], method);
            assert_eq!(more.map(|more| (more.complete, more.keep_alive)), Ok((true, false)));
            let less = read(&[&bytes[..bytes.len() - 1]], method);
            assert!(less.is_err() || less.is_ok_and(|less| !less.complete));
        }
    }
}
