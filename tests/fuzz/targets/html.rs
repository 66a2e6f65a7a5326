use nephila::proto::html::{Fact, REFRESH_DELAY_S_MAX, scan};

fn facts(body: &[u8]) -> Vec<Fact<'_>> {
    let mut facts = Vec::new();
    scan(body, |fact| facts.push(fact));
    facts
}

pub fn run(body: &[u8]) {
    let whole = facts(body);
    // A tag tells one fact; the link that names the page tells two.
    let canonicals = whole.iter().filter(|fact| matches!(fact, Fact::Canonical(_))).count();
    assert!(whole.len() - canonicals <= body.iter().filter(|byte| **byte == b'<').count());
    assert!(canonicals <= 1);
    assert!(whole.iter().filter(|fact| matches!(fact, Fact::Base(_))).count() <= 1);
    for fact in &whole {
        match fact {
            Fact::Base(target) | Fact::Canonical(target) | Fact::Link { target, .. } => clean(target, body),
            Fact::Refresh { delay_s, target } => {
                assert!(*delay_s <= REFRESH_DELAY_S_MAX);
                clean(target, body);
            }
            Fact::Robots(robots) => assert!(robots.nofollow || robots.noindex),
        }
    }
    // Whatever is cut off at the end takes facts away from there, and changes none before.
    let step = body.len() / 24 + 1;
    for at in (0..body.len()).step_by(step) {
        let part = facts(&body[..at]);
        assert!(whole.starts_with(&part), "{part:?} of the first {at} bytes, {whole:?} of all");
    }
    // Text before a page is text.
    let later = [b"text ", body].concat();
    assert_eq!(facts(&later), whole);
}

fn clean(target: &[u8], body: &[u8]) {
    // A NUL becomes three bytes; a character reference is at least as long as what it stands for.
    assert!(target.len() <= 3 * body.len());
    assert!(!target.iter().any(|byte| b"\t\r\n".contains(byte)), "{}", target.escape_ascii());
}
