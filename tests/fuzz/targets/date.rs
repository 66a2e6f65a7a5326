use nephila::proto::feed::date::{parse, plausible};

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = parse(&text);
    // Within the years that have four digits, and whatever blanks are around it.
    assert!(found.is_none_or(|date_s| (0..253_402_387_200).contains(&date_s)), "{text:?}: {found:?}");
    assert_eq!(parse(&format!("\n {text}\t")), found.filter(|_| text.trim().len() <= 100), "{text:?}");
    if let Some(date_s) = found {
        assert_eq!(plausible(date_s, date_s), Some(date_s));
        assert_eq!(plausible(date_s, date_s - 86_401), None);
    }
}
