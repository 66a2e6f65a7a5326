use super::{PARTITIONS, Partition, Partitioner, Spread};
use crate::proto::url::CrawlUrl;
use proptest::prelude::*;

const SEED: u64 = 0x6e65_7068_696c_6131;

fn of(spread: Spread, seed: u64, url: &str) -> u16 {
    Partitioner::new(spread, seed).of(url).get()
}

#[test]
fn a_key_is_the_domain_the_host_or_the_url() {
    for (url, domain, host) in [
        ("http://www.example.co.uk/x?y", "example.co.uk", "www.example.co.uk"),
        ("https://a.b.example.com:8443/", "example.com", "a.b.example.com"),
        ("http://me.github.io/", "me.github.io", "me.github.io"),
        ("http://www.me.blogspot.com/", "me.blogspot.com", "www.me.blogspot.com"),
        ("http://github.io/", "github.io", "github.io"),
        ("http://localhost:7180/a", "localhost", "localhost"),
        ("http://com/", "com", "com"),
        ("http://192.0.2.7:81/", "192.0.2.7", "192.0.2.7"),
        ("https://[2001:db8::7]:81/", "[2001:db8::7]", "[2001:db8::7]"),
        ("http://www.example.com./", "example.com", "www.example.com"),
    ] {
        let key = |spread| Partitioner::new(spread, SEED).key(url);
        assert_eq!([key(Spread::Domain), key(Spread::Host), key(Spread::Url)], [domain, host, url]);
    }
}

/// By the reference implementation in C: nodes of all builds must agree.
#[test]
fn known_answers() {
    let long = format!("http://example.com/{}", "a".repeat(280));
    for (spread, url, unseeded, seeded) in [
        (Spread::Domain, "http://www.example.com/", 2_230, 1_172),
        (Spread::Domain, "https://[2001:db8::7]:444/", 1_203, 4_040),
        (Spread::Host, "https://www.example.co.uk:444/x", 2_017, 500),
        (Spread::Host, "http://localhost/", 353, 1_476),
        (Spread::Host, "http://com/", 3_577, 3_364),
        (Spread::Url, "https://example.com/a/page?of=it", 2_584, 2_660),
        (Spread::Url, "", 0x2d0, 1_405),
    ] {
        assert_eq!([of(spread, 0, url), of(spread, SEED, url)], [unseeded, seeded], "{spread} {url}");
    }
    assert_eq!(of(Spread::Url, SEED, &long), 3_503);
}

#[test]
fn a_site_stays_together() {
    let urls = ["http://a.example.org/", "https://a.example.org:444/x", "https://b.c.example.org/y?z"];
    let all = |spread| urls.map(|url| of(spread, SEED, url));
    assert!(all(Spread::Domain).iter().all(|&one| one == all(Spread::Domain)[0]));
    let [one, same, other] = all(Spread::Host);
    assert!(one == same && one != other);
    let [one, two, three] = all(Spread::Url);
    assert!(one != two && two != three && three != one);
    assert_ne!(of(Spread::Domain, SEED, urls[0]), of(Spread::Domain, SEED + 1, urls[0]));
}

/// Chi-square over all partitions: its mean is 4,095 and its deviation 90 where every partition is as likely.
#[test]
fn partitions_are_balanced() {
    for spread in Spread::ALL.iter().copied() {
        let partitioner = Partitioner::new(spread, SEED);
        let mut counts = vec![0u32; PARTITIONS];
        let urls = 100_000;
        for number in 0..urls {
            counts[partitioner.of(&format!("https://www.site{number}.com/page")).index()] += 1;
        }
        let mean = f64::from(urls) / PARTITIONS as f64;
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - mean).powi(2) / mean).sum();
        assert!((3_700.0..4_500.0).contains(&chi_square), "{spread}: {chi_square}");
    }
}

#[test]
fn names_come_back() {
    for (spread, name) in [(Spread::Domain, "domain"), (Spread::Host, "host"), (Spread::Url, "url")] {
        assert_eq!((spread.to_string().as_str(), name.parse()), (name, Ok(spread)));
    }
    let wrong = "Domain\n".parse::<Spread>().unwrap_err();
    assert_eq!(wrong.to_string(), "\"Domain\\u{a}\" is no spread: give domain, host or url");
    assert_eq!(Spread::default(), Spread::Domain);
}

#[test]
fn partitions_are_numbers_below_4096() {
    assert_eq!(Partition::new(4_095).map(Partition::get), Some(4_095));
    assert_eq!(Partition::new(4_096), None);
    let all: Vec<Partition> = Partition::all().collect();
    assert_eq!((all.len(), all[0].index(), all[4_095].index()), (PARTITIONS, 0, 4_095));
    let debug = format!("{:?}", Partitioner::new(Spread::Host, SEED));
    assert!(!debug.contains(&SEED.to_string()), "{debug}");
}

proptest! {
    #[test]
    fn the_key_is_what_the_parts_of_a_url_say(
        https: bool,
        host in "([a-z0-9]{1,9}\\.){0,4}(com|co\\.uk|github\\.io|test|localhost)|[0-9]{1,3}\\.1\\.2\\.3|\\[::[1-9a-f]\\]",
        port in prop::option::of(1u16..),
        path in "/[a-z:/?.]{0,9}",
    ) {
        let scheme = if https { "https" } else { "http" };
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let url = CrawlUrl::parse(&format!("{scheme}://{host}{port}{path}"));
        prop_assume!(url.is_ok());
        let url = url.unwrap();
        let key = |spread| Partitioner::new(spread, SEED).key(url.as_str());
        prop_assert_eq!(key(Spread::Domain), url.registrable_domain());
        prop_assert_eq!(key(Spread::Host), url.host());
        prop_assert_eq!(key(Spread::Url), url.as_str());
    }

    #[test]
    fn whatever_text_it_is(text in "(https?://)?\\PC{0,20}", seed: u64) {
        for spread in Spread::ALL {
            prop_assert!(usize::from(of(*spread, seed, &text)) < PARTITIONS);
        }
    }
}
