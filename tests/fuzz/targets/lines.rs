use super::cuts;
use nephila::limits::{LINE_BYTES_MAX, MASTER_LINE_BYTES_MAX};
use nephila::proto::lines::{
    Dialect, LineBuffer, LineError, MasterWord, NodeWord, SpiderWord, WorkLine, WorkOrder,
};

fn lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Option<LineError>) {
    let (mut buffer, mut lines) = (LineBuffer::default(), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        loop {
            match buffer.next_line() {
                Ok(Some(line)) => lines.push(line.to_vec()),
                Ok(None) => break,
                Err(error) => return (lines, Some(error)),
            }
        }
    }
    (lines, None)
}

pub fn run(bytes: &[u8]) {
    let (whole, error) = lines(&[bytes]);
    for pieces in cuts(bytes) {
        assert_eq!(lines(&pieces), (whole.clone(), error.clone()));
    }
    assert!(error.is_some() || whole.len() == bytes.iter().filter(|byte| **byte == b'\n').count());
    for line in &whole {
        assert!(line.len() < LINE_BYTES_MAX && !line.contains(&b'\n'));
        word(line);
        work(line);
        master(line);
    }
}

fn master(line: &[u8]) {
    let mut written = Vec::new();
    if let Ok(word) = NodeWord::parse(line) {
        // What came may be longer only by spaces between its words.
        word.write(&mut written).expect("it came in a line");
        assert!(written.len() <= MASTER_LINE_BYTES_MAX && written.pop() == Some(b'\n'));
        assert_eq!(NodeWord::parse(&written), Ok(word));
    }
    written.clear();
    if let Ok(word) = MasterWord::parse(line) {
        word.write(&mut written).expect("it came in a line");
        assert!(written.len() <= MASTER_LINE_BYTES_MAX && written.pop() == Some(b'\n'));
        assert_eq!(MasterWord::parse(&written), Ok(word));
    }
}

fn word(line: &[u8]) {
    let Ok(word) = SpiderWord::parse(line) else { return };
    for dialect in [Dialect::Push, Dialect::Pull] {
        let mut written = Vec::new();
        word.write(dialect, &mut written);
        assert_eq!(written.pop(), Some(b'\n'));
        assert_eq!(SpiderWord::parse(&written), Ok(word));
    }
}

fn work(line: &[u8]) {
    match WorkLine::parse(line) {
        Ok(WorkLine::Work { trans, doc_id, ip, url, dialect, .. }) => {
            let mut written = Vec::new();
            let order = WorkOrder { trans, doc_id, ip, url: &url };
            if order.write(dialect, &mut written).is_err() {
                assert!(written.is_empty());
                return;
            }
            assert!(written.len() <= LINE_BYTES_MAX && written.pop() == Some(b'\n'));
            let again = WorkLine::parse(&written).expect("what was written can be read");
            let WorkLine::Work { trans: t, doc_id: d, ip: i, url: u, dialect: l, .. } = again else {
                panic!("{again:?}");
            };
            assert_eq!((t, d, i, u, l), (trans, doc_id, ip, url, dialect));
        }
        Ok(WorkLine::Bad { url_text, .. }) => assert!(!url_text.chars().any(char::is_control)),
        Err(_) => {}
    }
}
