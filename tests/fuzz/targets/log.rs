use nephila::proto::crawl_log::{LogLine, RunRules};

pub fn run(bytes: &[u8]) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n').take(64) {
        entry(line);
        rules(line);
    }
}

/// What was read is written as a line that reads the same.
fn entry(line: &[u8]) {
    let Ok(read) = LogLine::parse(line) else { return };
    let mut written = Vec::new();
    read.write(&mut written);
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(written.iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte)));
    let again = LogLine::parse(&written).expect("what was written can be read");
    // Of a type only what may stand in one is written.
    let expected = LogLine { media_type: again.media_type, ..read.clone() };
    assert_eq!(again, expected, "{}", written.escape_ascii());
    let mut twice = Vec::new();
    again.write(&mut twice);
    assert_eq!(twice, written);
    let origin = read.origin();
    assert!(origin.is_none_or(|origin| !origin.contains(' ') && !origin.contains(',')));
}

fn rules(line: &[u8]) {
    let Ok(Some(read)) = RunRules::parse(line) else { return };
    let mut written = Vec::new();
    read.write(&mut written);
    assert_eq!(RunRules::parse(&written), Ok(Some(read)));
}
