use super::*;
use crate::master::epoch::UrlCanon;
use crate::proto::url::{Canon, CrawlUrl, QueryDrop};
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nephila-args-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn open(&self) -> Args {
        Args::open(&self.0, Canon::default()).unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.0.join("args.journal")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A site whose articles have a session in their URLs, and whose lists have pages.
fn visit(args: &mut Args, articles: std::ops::Range<u64>) {
    for id in articles {
        for sid in ["aa", "bb", "cc"] {
            args.saw_page(&format!("http://www.a.ru/news/{id}?id={id}&sid={sid}{id}"), 200, id, None);
        }
        for page in 1..3 {
            let url = format!("http://www.a.ru/list?tag=x&page={}", id * 2 + page);
            args.saw_page(&url, 200, 7, None);
        }
    }
}

fn verdict(args: &Args, path: &str, arg: &str) -> Option<Verdict> {
    args.lines("a.ru").iter().find(|line| line.path == path && line.arg == arg).map(|line| line.verdict)
}

const ARTICLE: &str = "http://www.a.ru/news/12345?id=12345&sid=zz";

#[test]
fn a_session_is_dropped_and_a_page_is_not() {
    let mut args = Args::default();
    assert!(args.is_identity());
    visit(&mut args, 0..24);
    assert_eq!(verdict(&args, "/news/0", "sid"), Some(Verdict::Unknown), "48 pairs");
    assert_eq!(args.identity(ARTICLE), ARTICLE);
    visit(&mut args, 24..26);
    assert_eq!(verdict(&args, "/news/0", "sid"), Some(Verdict::Drop));
    assert!(!args.is_identity());
    assert_eq!(args.identity(ARTICLE), "http://www.a.ru/news/12345?id=12345");
    assert_eq!(
        args.identity("http://m.a.ru/news/1?sid=x&id=2&c"),
        "http://m.a.ru/news/1?id=2&c",
        "any host of it"
    );
    // All pages of the list were alike, and it is a page all the same.
    assert_eq!(verdict(&args, "/list", "page"), None);
    for kept in [
        "http://www.a.ru/list?tag=x&page=2",
        "http://www.a.ru/news/1?sid=x",
        "http://www.a.ru/other?id=1&sid=x",
        "http://b.ru/news/1?id=1&sid=x",
        "http://xa.ru/news/1?id=1&sid=x",
        "http://www.a.ru/news/1",
        "http://www.a.ru/news/1?",
    ] {
        assert!(matches!(args.identity(kept), std::borrow::Cow::Borrowed(_)), "{kept}");
    }
}

#[test]
fn one_that_changes_the_page_is_kept_for_good() {
    let mut args = Args::default();
    for (count, value) in (0..9).enumerate() {
        args.saw_page(&format!("http://a.ru/x?id=1&lang={value}"), 200, value, None);
        let expected = if count < 3 { Verdict::Unknown } else { Verdict::Keep };
        assert!(count == 0 || verdict(&args, "/x", "lang") == Some(expected), "{count}");
    }
    for value in 0..500 {
        args.saw_page(&format!("http://a.ru/x?id=1&lang=s{value}"), 200, 77, None);
    }
    assert_eq!(verdict(&args, "/x", "lang"), Some(Verdict::Keep));
}

#[test]
fn a_site_that_changes_its_mind_is_noticed() {
    let mut args = Args::default();
    visit(&mut args, 0..30);
    let full: Vec<String> = (0..40_000)
        .map(|number| format!("http://www.a.ru/news/1?id=1&sid=n{number}"))
        .filter(|url| args.identity(url) == *url)
        .collect();
    assert!((20..80).contains(&full.len()), "about one in a thousand goes in full: {}", full.len());
    // Others come with any value for one document, and say nothing of it.
    for number in 0..100 {
        args.saw_page(&format!("http://www.a.ru/news/1?id=1&sid=d{number}"), 200, number, None);
    }
    assert_eq!(verdict(&args, "/news/0", "sid"), Some(Verdict::Drop));
    for (count, url) in full.iter().take(3).enumerate() {
        assert_eq!(verdict(&args, "/news/0", "sid"), Some(Verdict::Drop), "{count}");
        args.saw_page(url, 200, 1_000 + count as u64, None);
    }
    assert_eq!(verdict(&args, "/news/0", "sid"), Some(Verdict::Keep));
    assert_eq!(args.identity(ARTICLE), ARTICLE);
    assert!(args.is_identity());
}

#[test]
fn what_says_nothing_teaches_nothing() {
    let mut args = Args::default();
    for value in 0..500 {
        args.saw_page(&format!("http://a.ru/x?id={value}"), 200, 1, None);
        args.saw_page(&format!("http://a.ru/y?a=1&sid={value}"), 404, 1, None);
        args.saw_page(&format!("http://a.ru/z?a=1&sid={value}&sid=x"), 200, 1, None);
        args.saw_page(&format!("http://a.ru/z?a=1&Q={value}&offset={value}"), 200, 1, None);
        args.saw_page(&format!("http://a.ru/w?a=1&two={}", value % 2), 200, 1, None);
        args.saw_page(&format!("http://a.ru/w?a=1&bad={value} \t"), 200, 1, None);
        args.saw_page(&format!("not a url?a=1&b={value}"), 200, 1, None);
    }
    let lines = args.lines("a.ru");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&*lines[0].arg, lines[0].values, lines[0].verdict),
        ("two", 2, Verdict::Unknown),
        "two values only"
    );
}

#[test]
fn a_page_that_names_its_url_is_one_vote() {
    let mut args = Args::default();
    for id in 0..50 {
        let canonical = format!("http://a.ru/x/{id}?id={id}");
        args.saw_page(&format!("{canonical}&ref=r{id}"), 200, id, Some(&canonical));
        args.saw_page(&format!("http://a.ru/y?id={id}&ref=r{id}"), 200, id, Some("http://a.ru/"));
        args.saw_page(&format!("http://a.ru/z?id={id}&ref=r{id}"), 200, id, Some("http://a.ru/z?id=other"));
    }
    let line = args.lines("a.ru").into_iter().find(|line| line.path == "/x/0").unwrap();
    assert_eq!((&*line.arg, line.pairs, line.verdict), ("ref", 50, Verdict::Drop));
    assert!(args.lines("a.ru").iter().all(|line| line.path == "/x/0"));
}

#[test]
fn a_person_wins_and_a_site_knows_itself() {
    let mut args = Args::default();
    assert!(args.clean_param("http://www.a.ru", "ref&sid  /news/"));
    assert!(args.clean_param("http://www.a.ru", "ref&sid /news/"));
    for bad in [("http://a.ru/", "sid"), ("a.ru", "sid"), ("http://a.ru", "a b c"), ("http://a b", "sid")] {
        assert!(!args.clean_param(bad.0, bad.1), "{bad:?}");
    }
    assert_eq!(args.declared("a.ru").len(), 1);
    assert_eq!(args.identity("http://www.a.ru/news/1?sid=x"), "http://www.a.ru/news/1", "alone, too");
    assert_eq!(args.identity("http://www.a.ru/news/1?a=1&&ref=2&b="), "http://www.a.ru/news/1?a=1&&b=");
    for kept in ["http://www.a.ru/x?sid=1", "https://www.a.ru/news/1?sid=1", "http://a.ru/news/?sid=1"] {
        assert_eq!(args.identity(kept), kept);
    }
    args.set("www.a.ru", "sid", Verdict::Keep).unwrap();
    assert_eq!(args.identity("http://www.a.ru/news/1?sid=x&ref=2"), "http://www.a.ru/news/1?sid=x");
    args.set("a.ru", "page", Verdict::Drop).unwrap();
    args.set("a.ru", "sid", Verdict::Drop).unwrap();
    assert_eq!(args.identity("http://m.a.ru/?sid=1&page=2"), "http://m.a.ru/");
    assert_eq!(args.identity("http://www.a.ru/?sid=1&page=2"), "http://www.a.ru/?sid=1", "the nearer word");
    args.set("a.ru", "page", Verdict::Unknown).unwrap();
    assert_eq!(args.identity("http://m.a.ru/?page=2"), "http://m.a.ru/?page=2");
    for (domain, arg) in [("", "a"), ("a/b", "a"), ("a.ru", ""), ("a.ru", "a&b"), ("a ru", "a")] {
        assert!(args.set(domain, arg, Verdict::Drop).is_err(), "{domain} {arg}");
    }
}

#[test]
fn settings_are_applied_to_every_domain() {
    let folder = Folder::new("settings");
    let drop = QueryDrop::try_from(vec!["utm_*".to_string()]).unwrap();
    let mut args = Args::open(&folder.0, Canon::new(&drop, false)).unwrap();
    assert!(!args.is_identity());
    assert_eq!(args.identity("http://b.ru/?utm_source=x&a=1"), "http://b.ru/?a=1");
    args.set("b.ru", "a", Verdict::Drop).unwrap();
    assert_eq!(args.identity("http://b.ru/?utm_source=x&a=1&c=2"), "http://b.ru/?c=2");
}

#[test]
fn all_is_there_again_after_a_restart() {
    let folder = Folder::new("restart");
    let mut args = folder.open();
    visit(&mut args, 0..30);
    args.clean_param("http://b.ru", "ref");
    args.set("c.ru", "x", Verdict::Drop).unwrap();
    args.flush().unwrap();
    args.flush().unwrap();
    for mut again in [folder.open(), Args::view(&folder.0).unwrap()] {
        for domain in ["a.ru", "c.ru"] {
            assert_eq!(again.lines(domain), args.lines(domain));
        }
        assert_eq!(again.declared("b.ru"), args.declared("b.ru"));
        assert_eq!(again.identity(ARTICLE), "http://www.a.ru/news/12345?id=12345");
        assert_eq!(again.identity("http://c.ru/?x=1&y"), "http://c.ru/?y");
        again.set("c.ru", "x", Verdict::Unknown).unwrap();
        assert_eq!(again.identity("http://c.ru/?x=1&y"), "http://c.ru/?x=1&y");
    }
    assert_eq!(Args::view(&folder.0.join("none")).unwrap().lines("a.ru"), []);
}

#[test]
fn a_command_is_heard_by_a_master_that_runs() {
    let folder = Folder::new("heard");
    let mut master = folder.open();
    master.clean_param("http://a.ru", "ref");
    master.flush().unwrap();
    let mut command = folder.open();
    command.set("a.ru", "ref", Verdict::Keep).unwrap();
    command.flush().unwrap();
    master.clean_param("http://a.ru", "sid");
    assert_eq!(master.identity("http://a.ru/?ref=1"), "http://a.ru/");
    master.flush().unwrap();
    assert_eq!(master.identity("http://a.ru/?ref=1&sid=2"), "http://a.ru/?ref=1");
    // While it is written anew, nobody's word is lost.
    for round in 0..40 {
        for number in 0..700 {
            master.set("b.ru", &format!("long-name-of-a-parameter-{}", number % 5), Verdict::Keep).unwrap();
        }
        command.set("c.ru", &format!("n{round}"), Verdict::Drop).unwrap();
        command.flush().unwrap();
        master.flush().unwrap();
    }
    assert!(fs::metadata(folder.journal()).unwrap().len() < 1_200_000, "it was written anew");
    command.flush().unwrap();
    for args in [&master, &command, &folder.open()] {
        assert_eq!((args.lines("c.ru").len(), args.lines("b.ru").len()), (40, 5));
    }
}

#[test]
fn a_torn_end_is_cut_and_damage_is_refused() {
    let folder = Folder::new("torn");
    let mut args = folder.open();
    args.clean_param("http://a.ru", "ref");
    args.set("a.ru", "x", Verdict::Drop).unwrap();
    args.flush().unwrap();
    let whole = fs::read(folder.journal()).unwrap();
    for end in 0..whole.len() {
        fs::write(folder.journal(), &whole[..end]).unwrap();
        let mut args = folder.open();
        assert!(args.lines("a.ru").len() + args.declared("a.ru").len() <= 2);
        args.set("b.ru", "y", Verdict::Drop).unwrap();
        args.flush().unwrap();
        assert_eq!(folder.open().lines("b.ru").len(), 1, "{end}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            fs::write(folder.journal(), &bytes).unwrap();
            match Args::view(&folder.0) {
                Err(error) => assert!(error.to_string().contains("args.journal"), "{error}"),
                // The last end of a line alone: a torn end. Digits may be of either case.
                Ok(args) => assert!(
                    at == whole.len() - 1
                        || (bytes[at].eq_ignore_ascii_case(&whole[at]) && args.lines("a.ru").len() == 1),
                    "byte {at} bit {bit}"
                ),
            }
        }
    }
    fs::write(folder.journal(), b"something else\n").unwrap();
    assert!(Args::open(&folder.0, Canon::default()).is_err());
    let mut file = OpenOptions::new().append(true).open(folder.journal()).unwrap();
    file.set_len(0).unwrap();
    file.write_all(&whole).unwrap();
    assert_eq!(folder.open().lines("a.ru").len(), 1);
}

#[test]
fn memory_has_a_bound_and_what_decides_stays() {
    let mut args = Args::default();
    for domain in 0..20 {
        for name in 0..300 {
            for value in 0..if name == 0 { 5 } else { 2 } {
                args.saw_page(&format!("http://d{domain}.ru/x?a=1&n{name}={value}"), 200, value, None);
            }
        }
        assert!(args.lines(&format!("d{domain}.ru")).len() <= 256);
    }
    let all: usize = (0..20).map(|domain| args.lines(&format!("d{domain}.ru")).len()).sum();
    assert!((1_000..=2_000).contains(&all), "{all}");
    for domain in 0..20 {
        assert_eq!(verdict_of(&args, &format!("d{domain}.ru"), "n0"), Some(Verdict::Keep), "{domain}");
    }
}

fn verdict_of(args: &Args, domain: &str, arg: &str) -> Option<Verdict> {
    args.lines(domain).iter().find(|line| line.arg == arg).map(|line| line.verdict)
}

proptest! {
    #[test]
    fn verdicts_follow_the_pairs(pairs in prop::collection::vec((prop::bool::weighted(0.97), 0u32..5), 0..400)) {
        let mut evidence = Evidence::default();
        let (mut same, mut differ, mut since) = (0u32, 0u32, 0u32);
        let mut values = std::collections::BTreeSet::new();
        let mut expected = Verdict::Unknown;
        for (is_same, value) in pairs {
            values.insert(value);
            if is_same { same += 1 } else { differ += 1 }
            match expected {
                Verdict::Keep => {}
                Verdict::Drop => {
                    since += u32::from(!is_same);
                    if since == 3 { expected = Verdict::Keep }
                }
                Verdict::Unknown if differ == 3 => expected = Verdict::Keep,
                Verdict::Unknown
                    if same + differ >= 50 && values.len() >= 3
                        && f64::from(differ) / f64::from(same + differ) < 0.01 => expected = Verdict::Drop,
                Verdict::Unknown => {}
            }
            evidence.count(is_same, &[value]);
            prop_assert_eq!(evidence.verdict, expected);
        }
        prop_assert_eq!((evidence.same, evidence.differ), (same, differ));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_identity_is_its_own_and_a_part_of_the_url(
        host in "(www\\.)?[ab]\\.ru(:8080)?",
        path in "(/(news|[0-9]{1,2})){0,3}/?",
        parts in prop::collection::vec("(sid|ref|id|page|q|x)?(=[a-z0-9]{0,3})?", 0..6),
        said in prop::collection::vec(("(www\\.)?[ab]\\.ru", "sid|ref|id|x", any::<bool>()), 0..4),
        rules in prop::collection::vec(("http://(www\\.)?a\\.ru", "(sid|ref)(&x)?( /news)?"), 0..3),
    ) {
        let mut args = Args::default();
        visit(&mut args, 0..26);
        for (domain, arg, keeps) in &said {
            args.set(domain, arg, if *keeps { Verdict::Keep } else { Verdict::Drop }).unwrap();
        }
        for (origin, rule) in &rules {
            prop_assert!(args.clean_param(origin, rule));
        }
        let mark = if parts.is_empty() { "" } else { "?" };
        let url = CrawlUrl::parse(&format!("http://{host}{path}{mark}{}", parts.join("&"))).unwrap();
        let identity = args.identity(url.as_str()).into_owned();
        let kept: Vec<&str> = identity.split_once('?').map_or(vec![], |(_, query)| query.split('&').collect());
        let mut all = url.as_str().split_once('?').map_or("", |(_, query)| query).split('&');
        prop_assert!(kept.iter().all(|part| all.any(|other| other == *part)), "{identity} is no part of {url}");
        prop_assert_eq!(identity.split('?').next(), url.as_str().split('?').next());
        for name in ["page", "q"] {
            let count = |url: &str| url.matches(&format!("{name}=")).count();
            prop_assert_eq!(count(&identity), count(url.as_str()));
        }
        // What is left alone in a query may no longer be dropped by learning; nothing else comes back.
        prop_assert_eq!(args.identity(&identity), &*identity);
    }
}
