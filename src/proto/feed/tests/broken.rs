use super::formats::{ATOM, JSON, RSS};
use super::support::*;
use crate::base::Rng;

/// Documents that are wrong somewhere, the titles that are read of them, and whether the damage is told.
#[test]
fn what_is_broken_is_read_as_far_as_it_makes_sense() {
    for (text, expected, is_told) in [
        (
            "\n\n<?xml version='1.0'?><rss><channel><item><title>a</title></item></channel></rss>",
            &["a"][..],
            false,
        ),
        (
            "<!-- first --><?xml version='1.0'?><rss><channel><item><title>a</title></item></channel></rss>",
            &["a"],
            false,
        ),
        (
            "<rss><channel><item><title>a</title><item><title>b</title></item></channel></rss>",
            &["a", "b"],
            true,
        ),
        ("<rss><channel><item><title>a</title></channel></rss>", &["a"], true),
        (
            "<rss><channel><item><title>a</item><item><title>b</title></item></channel></rss>",
            &["a", "b"],
            true,
        ),
        ("<rss><channel><item><x><y></item><item><title>b</title></item></channel></rss>", &["", "b"], true),
        ("<rss><channel><image><title>no</title><item><title>a</title></item></channel></rss>", &["a"], true),
        ("<rss><channel><item><title>a</b></title></item></channel></rss>", &["a"], false),
        ("<rss><channel><item><title>a < b</title></item></channel></rss>", &["a < b"], false),
        ("<rss><channel><item><title>a\0b\u{1}</title></item></channel></rss>", &["ab"], false),
        ("<rss><channel><item><title>a</title></item></channel>", &["a"], true),
        ("<rss><channel><item><title>a</title></item><item><title>b", &["a"], true),
        (
            "<rss><channel><item><title>a</title></item><item><title><![CDATA[b</title></item></channel></rss>",
            &["a"],
            true,
        ),
        (
            "<rss><channel><item><title>a</title></item></channel></rss><rss><channel><item/></channel></rss>",
            &["a"],
            true,
        ),
        ("<rss><channel><item><title>a</title></item></channel></rss><!-- fine -->\n", &["a"], false),
        ("<rss version='2.0'><channel><item><title x='>'>a</title></item></channel></rss>", &["a"], false),
        (
            "<feed><entry><title>a</title><content><item><title>no</title></item></content></entry></feed>",
            &["a"],
            false,
        ),
        (
            "<feed><entry><title>a</title><content><entry><title>no</title></entry></content></entry></feed>",
            &["a"],
            false,
        ),
        (
            "<?xml version='1.0'?><x><rss><channel><item><title>a</title></item></channel></rss></x>",
            &["a"],
            false,
        ),
    ] {
        let (entries, facts) = all(text.as_bytes());
        let titles: Vec<&str> = entries.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!((&titles[..], facts.damage.is_some()), (expected, is_told), "{text}: {:?}", facts.damage);
    }
}

#[test]
fn nothing_that_is_declared_is_expanded() {
    let laughs: String =
        (1..10).map(|n| format!("<!ENTITY lol{n} '{}'>", format!("&lol{};", n - 1).repeat(10))).collect();
    let text = format!(
        "<!DOCTYPE rss SYSTEM 'file:///etc/passwd' [<!ENTITY lol0 'lol'>{laughs}<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\
         <rss><channel><item><title>&lol9;&x;&nbsp;&copy;</title><link>http://h.test/&lol9;</link></item></channel></rss>"
    );
    let (entries, facts) = all(text.as_bytes());
    assert_eq!((entries[0].title.as_str(), facts.damage), ("&lol9;&x; ©", None));
    assert_eq!(entries[0].url.as_deref(), Some("http://h.test/&lol9;"));
    for doctype in [
        "<!DOCTYPE rss [",
        "<!DOCTYPE rss [<!ENTITY a ']>'>",
        "<!DOCTYPE rss PUBLIC '-//x' 'y'>",
        "<!DOCTYPE rss [ ] >",
    ] {
        let _ = read_with(format!("{doctype}<rss/>").as_bytes(), None, &FeedLimits::default());
    }
}

#[test]
fn depth_and_length_cost_no_more_than_reading() {
    let others = ["<item>", "<entry>", "<author>", "<media:group>", "<channel>", "<!--", "<a x='"];
    let deepest = ["<a>", "<title>", "<description>"].map(|tag| (tag, 1_000_000));
    for (deep, times) in deepest.into_iter().chain(others.map(|tag| (tag, 50_000))) {
        let text = format!("<rss><channel><item><title>first</title></item>{}", deep.repeat(times));
        let (entries, facts) = all(text.as_bytes());
        assert_eq!((entries[0].title.as_str(), facts.damage.is_some()), ("first", true), "{deep}");
    }
    let text = format!(
        "<rss><channel><item><link href='http://h.test/' x='{}'/><guid>{}</guid></item></channel></rss>",
        "y".repeat(100 << 20),
        "z".repeat(1 << 20)
    );
    let found = &all(text.as_bytes()).0[0];
    assert_eq!(found.url.as_deref(), Some("http://h.test/"));
    assert_eq!(found.guid.as_ref().map(String::len), Some(FeedLimits::default().text_bytes_max));
}

#[test]
fn a_feed_cut_anywhere_tells_what_came_before() {
    for text in [RSS, ATOM, JSON] {
        let (whole, facts) = all(text.as_bytes());
        for at in 0..text.len() {
            let (part, cut) = read_with(&text.as_bytes()[..at], None, &FeedLimits::default());
            assert!(whole.starts_with(&part), "{part:?} of {}", &text[..text.floor_char_boundary(at)]);
            if let Ok(cut) = cut {
                assert_eq!(cut.entries as usize, part.len());
                assert!(cut.damage.is_some() || text[at..].trim().is_empty(), "at {at}");
                assert!([Some("".to_string()), Some(facts.title.clone())].contains(&Some(cut.title)));
                assert!(cut.link.is_none() || cut.link == facts.link);
                assert!(cut.hub.is_none() || cut.hub == facts.hub);
            }
        }
        assert!(all(&text.as_bytes()[..text.len() - 40]).1.damage.is_some());
    }
}

#[test]
fn bytes_that_are_flipped_break_no_bound() {
    let mut rng = Rng::new(7);
    for text in [RSS, ATOM, JSON] {
        for _ in 0..500 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=rng.below(8) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            let (entries, facts) = read_with(&bytes, None, &FeedLimits::default());
            assert!(entries.len() <= 8, "{entries:?}");
            if let Ok(facts) = facts {
                assert_eq!(facts.entries as usize, entries.len());
            }
        }
    }
}

#[test]
fn a_feed_in_gzip_is_unpacked_by_its_first_bytes() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(RSS.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(all(&packed), all(RSS.as_bytes()));
    let (entries, facts) = all(&packed[..packed.len() - 8]);
    assert_eq!((entries.len(), facts.damage.is_some()), (2, true));
}
