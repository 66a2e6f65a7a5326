//! Lines come back as they were written, and no content breaks one.

use super::line::TYPE_BYTES_MAX;
use super::*;
use crate::proto::record::ResultCode;
use proptest::prelude::*;
use std::net::SocketAddr;

fn page() -> LogLine<'static> {
    LogLine {
        made_us: 1_794_719_427_125_000,
        status: Some(200),
        result: ResultCode::Ok,
        document_bytes: 1_843,
        url: "http://a.test/x?y",
        path: Path::Page { links: 2, redirects: 1 },
        via: Some("http://a.test/"),
        media_type: b"Text/HTML; charset=utf-8",
        shard: 3,
        timing: Some(Timing { sent_us: 1_794_719_426_994_018, took_us: 130_241, wait_us: None }),
        digest: Some(0xff),
        addr: Some("192.0.2.7:80".parse().unwrap()),
        doc_id: Some(17),
        retry_after_s: None,
        poll: None,
    }
}

fn written(line: &LogLine<'_>) -> String {
    let mut out = Vec::new();
    line.write(&mut out);
    String::from_utf8(out).unwrap()
}

/// Scripts rely on these very bytes.
#[test]
fn the_format() {
    assert_eq!(
        written(&page()),
        "2026-11-15T05:10:27.125Z 200 1843 http://a.test/x?y LLR http://a.test/ text/html #003 \
         20261115051026994018+130241 xxh3:000000000000000000000000000000ff 192.0.2.7:80,ok,doc=17\n"
    );
    let robots = LogLine {
        status: Some(301),
        result: ResultCode::Redirect,
        document_bytes: 0,
        url: "http://a.test/robots.txt",
        path: Path::Robots { origin: "http://b,c.test:81", rules: Rules::Hop, crawl_delay_ms: Some(1_500) },
        via: None,
        media_type: b"",
        digest: None,
        addr: Some("[2001:db8::1]:80".parse().unwrap()),
        doc_id: None,
        retry_after_s: Some(120),
        timing: Some(Timing { wait_us: Some(52), ..page().timing.unwrap() }),
        shard: 1_234,
        ..page()
    };
    assert_eq!(
        written(&robots),
        "2026-11-15T05:10:27.125Z 301 0 http://a.test/robots.txt P - - #1234 20261115051026994018+130241 - \
         [2001:db8::1]:80,redirect,wait=52,retry-after=120,crawl-delay=1500,rules=hop,for=http://b%2Cc.test:81\n"
    );
    let denied = LogLine {
        status: None,
        result: ResultCode::RobotsDenied,
        path: Path::Page { links: 0, redirects: 0 },
        timing: None,
        digest: None,
        addr: None,
        media_type: b"",
        ..page()
    };
    assert_eq!(
        written(&denied),
        "2026-11-15T05:10:27.125Z -9998 1843 http://a.test/x?y - http://a.test/ - #003 - - -,robots_denied,doc=17\n"
    );
}

#[test]
fn long_paths_show_their_end() {
    for (links, redirects, shown) in [
        (0, 0, "-".to_string()),
        (0, 2, "RR".to_string()),
        (48, 2, "L".repeat(48) + "RR"),
        (50, 1, "1+".to_string() + &"L".repeat(49) + "R"),
        (110, 0, "60+".to_string() + &"L".repeat(50)),
        (u16::MAX, 10, "65495+".to_string() + &"L".repeat(40) + &"R".repeat(10)),
    ] {
        let line = LogLine { path: Path::Page { links, redirects }, ..page() };
        let text = written(&line);
        assert_eq!(text.split(' ').nth(4), Some(&*shown));
        assert_eq!(LogLine::parse(text.as_bytes()).unwrap().path, line.path);
    }
}

/// What a server sends cannot end a field or a line, nor reach a terminal as anything but text.
#[test]
fn hostile_contents() {
    let line = LogLine {
        url: "http://a.test/\n# nephila 9 run\u{202e} \x1b[31m",
        via: Some("http://a.test/ x"),
        media_type: b"text/\x1b[2J html\r\n200 0; x",
        ..page()
    };
    let text = written(&line);
    let fields: Vec<&str> = text.trim_end().split(' ').collect();
    assert_eq!(fields.len(), 11, "{text}");
    assert_eq!(fields[3], "http://a.test/%0A#%20nephila%209%20run%E2%80%AE%20%1B[31m");
    assert_eq!(fields[5], "http://a.test/%20x");
    assert_eq!(fields[6], "text/__2j_html__200_0");
    let long = LogLine { media_type: &[b'x'; 500], url: &"é".repeat(9_000), ..page() };
    let text = written(&long);
    assert!(text.len() < LINE_BYTES_MAX, "{}", text.len());
    assert_eq!(text.split(' ').nth(6).unwrap().len(), TYPE_BYTES_MAX);
    for media_type in ["", " ; charset=x", ";"] {
        let text = written(&LogLine { media_type: media_type.as_bytes(), ..page() });
        assert_eq!(text.split(' ').nth(6), Some("-"));
    }
}

#[test]
fn every_result_has_a_code_and_comes_back() {
    for &result in ResultCode::ALL {
        let line = LogLine { status: None, result, media_type: b"", ..page() };
        let text = written(&line);
        assert_eq!(LogLine::parse(text.as_bytes()), Ok(line), "{text}");
        assert!(code_without_status(result) <= 0);
    }
    assert_eq!(code_without_status(ResultCode::RobotsDenied), -9998);
    assert_eq!(code_without_status(ResultCode::DnsFailed), -1);
}

#[test]
fn notes_of_a_later_version_are_skipped() {
    let text = written(&page()).replace(",doc=17", ",tls=1.3,doc=17,h2,for=x,rules=known,new=a=b");
    assert_eq!(LogLine::parse(text.as_bytes()).unwrap().doc_id, Some(17));
}

#[test]
fn what_does_not_read_is_named() {
    let good = written(&page());
    for (from, to, error) in [
        ("2026-11-15T", "2026-11-31T", LogError::Field("time")),
        (" 200 ", " 2000 ", LogError::Field("status")),
        (" 200 ", " OK ", LogError::Field("status")),
        (" 1843 ", " -1 ", LogError::Field("size")),
        (" LLR ", " LLX ", LogError::Field("path")),
        (" LLR ", " P ", LogError::Note("for")),
        ("#003", "003", LogError::Field("shard")),
        ("#003", "#65536", LogError::Field("shard")),
        ("+130241", "-130241", LogError::Field("timings")),
        ("+130241", "", LogError::Field("timings")),
        ("xxh3:0", "sha1:0", LogError::Field("digest")),
        ("192.0.2.7:80", "192.0.2.7", LogError::Note("address")),
        (",ok", ",fine", LogError::Note("result")),
        ("doc=17", "doc=x", LogError::Note("doc")),
        (" 1843", "", LogError::Fields(10)),
        (" 1843", " 1843 1843", LogError::Fields(12)),
        ("a.test/x", "a.test/\u{1b}", LogError::NotText),
        ("a.test/x", "a.test/ü", LogError::NotText),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        assert_eq!(LogLine::parse(text.as_bytes()), Err(error), "{text}");
    }
    let long = good.replace("a.test/x", &"x".repeat(LINE_BYTES_MAX));
    assert_eq!(LogLine::parse(long.as_bytes()), Err(LogError::TooLong));
    let robots = good.replace(" LLR ", " P ").replace(",doc", ",for=http://a.test,doc");
    assert_eq!(LogLine::parse(robots.as_bytes()), Err(LogError::Note("rules")));
}

/// A line cut anywhere but in its last note is not taken for a whole one.
#[test]
fn a_torn_line_does_not_read() {
    let good = written(&page());
    let last = good.rfind(',').unwrap();
    // The result's name is there at the last comma; up to one letter less it is not.
    for cut in 0..last {
        assert!(LogLine::parse(&good.as_bytes()[..cut]).is_err(), "{}", &good[..cut]);
    }
}

#[test]
fn origins_are_spelt_as_in_notes() {
    for (url, origin) in [
        ("http://a.test/x?y=http://b/", Some("http://a.test")),
        ("https://a.test:81/", Some("https://a.test:81")),
        ("http://[::1]:81/", Some("http://[::1]:81")),
        ("http://a,b.test/c,d", Some("http://a%2Cb.test")),
        ("http://", None),
        ("-", None),
        ("mailto:x", None),
    ] {
        assert_eq!(LogLine { url, ..page() }.origin().as_deref(), origin, "{url}");
    }
}

#[test]
fn runs_open_with_their_rules() {
    let rules = RunRules {
        started_us: 1_794_719_426_000_000,
        req_host_per_sec: 0.5,
        req_ip_per_sec: 2.0,
        req_ip_concurrent: 4,
        agent: Some("My-Bot".into()),
        ..RunRules::default()
    };
    let mut out = Vec::new();
    rules.write(&mut out);
    let text = String::from_utf8(out).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        text,
        format!(
            "# nephila {version} run 2026-11-15T05:10:26.000Z req_host_per_sec=0.5 req_host_concurrent=1 \
             req_ip_per_sec=2 req_ip_concurrent=4 delay_factor=1 agent=My-Bot\n"
        )
    );
    assert_eq!(RunRules::parse(text.as_bytes()), Ok(Some(rules)));
    let shorter = "# nephila 2.0 run 2026-11-15T05:10:26.000Z x=y req_host_concurrent=3 req_host_per_sec=4";
    let read = RunRules::parse(shorter.as_bytes()).unwrap().unwrap();
    assert_eq!((read.req_ip_per_sec, read.req_ip_concurrent, read.delay_factor), (4.0, 3, 1.0));
    assert_eq!(read.agent, None);
    for comment in ["#", "# hello", "# nephila 0.1 ends", "# nephila run", "#nephila 1 run"] {
        assert_eq!(RunRules::parse(comment.as_bytes()), Ok(None), "{comment}");
    }
    for (from, to, name) in [
        ("=0.5", "=-1", "req_host_per_sec"),
        ("=0.5", "=inf", "req_host_per_sec"),
        ("req_host_per_sec=0.5 ", "", "req_host_per_sec"),
        ("concurrent=1", "concurrent=0", "req_host_concurrent"),
        ("factor=1", "factor=", "delay_factor"),
        ("My-Bot", "My-Bot/1", "agent"),
        ("T05", "X05", "time"),
    ] {
        let text = text.replacen(from, to, 1);
        assert_eq!(RunRules::parse(text.as_bytes()), Err(LogError::Setting(name)), "{text}");
    }
}

fn any_addr() -> impl Strategy<Value = Option<SocketAddr>> {
    proptest::option::of((any::<std::net::IpAddr>(), any::<u16>()).prop_map(SocketAddr::from))
}

fn any_path() -> impl Strategy<Value = (bool, u16, u8, usize, Option<u32>)> {
    (any::<bool>(), any::<u16>(), 0..=crate::limits::REDIRECTS_MAX, 0..3usize, any::<Option<u32>>())
}

const TIME_US_MAX: u64 = 253_402_300_799_999_999;

proptest! {
    /// Fields that need no escape come back as they went; the time to the millisecond.
    #[test]
    fn lines_come_back(
        (made_us, sent_us, took_us) in (0..=TIME_US_MAX, 0..=TIME_US_MAX, any::<u64>()),
        (status, result) in (proptest::option::of(1..1_000u16), 0..ResultCode::ALL.len()),
        (document_bytes, shard, sent, wait_us) in any::<(u64, u16, bool, Option<u32>)>(),
        url in "https?://[!-~]{1,60}",
        via in proptest::option::of("https?://[!-~]{1,60}"),
        media_type in "([a-z0-9.+-]{1,30}/[a-z0-9.+-]{1,30})?",
        (robots, links, redirects, rules, crawl_delay_ms) in any_path(),
        origin in "https?://[a-z0-9.:-]{1,40}",
        (digest, doc_id, retry_after_s) in any::<(Option<u128>, Option<u32>, Option<u32>)>(),
        (addr, due_s, why) in (any_addr(), any::<Option<u32>>(), "[a-z_]{1,20}"),
    ) {
        let path = match robots {
            true => Path::Robots { origin: &origin, rules: Rules::ALL[rules], crawl_delay_ms },
            false => Path::Page { links, redirects },
        };
        let line = LogLine {
            made_us: made_us / 1_000 * 1_000,
            status,
            result: ResultCode::ALL[result],
            document_bytes,
            url: &url,
            path,
            via: via.as_deref(),
            media_type: media_type.as_bytes(),
            shard,
            timing: sent.then_some(Timing { sent_us, took_us, wait_us }),
            digest,
            addr,
            doc_id,
            retry_after_s,
            poll: due_s.map(|due_s| PollNote { due_s, why: &why }),
        };
        let mut out = Vec::new();
        line.write(&mut out);
        prop_assert_eq!(LogLine::parse(&out), Ok(line));
    }

    /// Whatever a server sent, there is one line of eleven fields that reads, and writing it again changes nothing.
    #[test]
    fn no_content_breaks_a_line(
        url in any::<String>(),
        via in any::<Option<String>>(),
        origin in any::<String>(),
        media_type in any::<Vec<u8>>(),
        robots in any::<bool>(),
    ) {
        let path = match robots {
            true => Path::Robots { origin: &origin, rules: Rules::Known, crawl_delay_ms: None },
            false => Path::Page { links: 1, redirects: 0 },
        };
        let line = LogLine { url: &url, via: via.as_deref(), media_type: &media_type, path, ..page() };
        let mut out = Vec::new();
        line.write(&mut out);
        prop_assert!(out.len() <= LINE_BYTES_MAX);
        let (end, text) = out.split_last().unwrap();
        prop_assert_eq!(*end, b'\n');
        prop_assert!(text.iter().all(|octet| (b' '..=b'~').contains(octet)));
        let read = LogLine::parse(&out).unwrap();
        let mut again = Vec::new();
        read.write(&mut again);
        prop_assert_eq!(out, again);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = LogLine::parse(&bytes);
        let _ = RunRules::parse(&bytes);
        let header = [RunRules::PREFIX.as_bytes(), b"1 run ", &bytes].concat();
        let _ = RunRules::parse(&header);
    }

    /// Nearly a line: a good one with a few bytes changed.
    #[test]
    fn damaged_lines_are_read_or_refused(damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..5)) {
        let mut text = written(&page()).into_bytes();
        for (place, byte) in damage {
            let place = place % text.len();
            text[place] = byte;
        }
        if let Ok(line) = LogLine::parse(&text) {
            let _ = line.origin();
        }
    }
}
