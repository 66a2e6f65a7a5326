//! The promise: each robots.txt rule of RFC 9309, and the habits of real files, from bytes to verdict.

use proptest::prelude::*;

use super::{ROBOTS_BYTES_MAX, RULES_MAX, Robots, SITEMAP_BYTES_MAX, SITEMAPS_MAX};

fn robots(text: &str) -> Robots {
    Robots::parse(text.as_bytes(), "FooBot")
}

fn allows(text: &str, path: &str) -> bool {
    robots(text).allows(path.as_bytes())
}

/// One group for everyone, with these rule lines.
fn rules(lines: &[&str]) -> Robots {
    robots(&format!("User-agent: *\n{}\n", lines.join("\n")))
}

#[test]
fn simple_example_of_the_rfc() {
    let text = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                User-Agent: quxbot\n";
    for (agent, path, allowed) in [
        ("otherbot", "/a.gif", false),
        ("otherbot", "/a.gifs", true),
        ("otherbot", "/example/x", false),
        ("otherbot", "/publications/x", true),
        ("FooBot", "/", false),
        ("FooBot", "/example/page.html", true),
        ("FooBot", "/example/allowed.gif", true),
        ("FooBot", "/example/other.gif", false),
        ("BarBot", "/example/page.html", false),
        ("BarBot", "/example/x.gif", true),
        ("BazBot", "/example/page.html", false),
        ("QuxBot", "/example/page.html", true),
        ("QuxBot", "/a.gif", true),
    ] {
        assert_eq!(Robots::parse(text.as_bytes(), agent).allows(path.as_bytes()), allowed, "{agent} {path}");
    }
}

#[test]
fn longest_match_example_of_the_rfc() {
    let text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
    assert!(allows(text, "/example/page/x.gif"));
    assert!(!allows(text, "/example/page/disallowed.gif"));
}

#[test]
fn escape_table_of_the_rfc() {
    for (pattern, path) in [
        ("/foo/bar?baz=quux", "/foo/bar?baz=quux"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3a%2f%2ffoo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/a b", "/a%20b"),
    ] {
        assert!(!rules(&[&format!("Disallow: {pattern}")]).allows(path.as_bytes()), "{pattern} {path}");
    }
    // An escaped reserved character is data, and not the structure that its raw form is.
    assert!(rules(&["Disallow: /a%2Fb"]).allows(b"/a/b"));
    assert!(rules(&["Disallow: /a/b"]).allows(b"/a%2Fb"));
}

#[test]
fn special_characters_of_the_rfc() {
    assert!(!rules(&["Disallow: /path/file-with-a-%2A.html"]).allows(b"/path/file-with-a-*.html"));
    assert!(rules(&["Disallow: /path/file-with-a-%2A.html"]).allows(b"/path/file-with-a-b.html"));
    assert!(!rules(&["Disallow: /path/foo-%24"]).allows(b"/path/foo-$bar"));
    assert!(!rules(&["Disallow: /path/foo-%24"]).allows(b"/path/foo-%24"));
    assert!(rules(&["Disallow: /path/foo-%24"]).allows(b"/path/foo-"));
    assert!(!rules(&["Disallow: /*.php$"]).allows(b"/a/b.php"));
    assert!(rules(&["Disallow: /*.php$"]).allows(b"/a/b.php?x"));
    assert!(!rules(&["Disallow: /*.php"]).allows(b"/a/b.php?x"));
    assert!(!rules(&["Disallow: /a$b"]).allows(b"/a$bc"));
    assert!(!rules(&["Disallow: /$"]).allows(b"/"));
    assert!(rules(&["Disallow: /$"]).allows(b"/x"));
    assert!(!rules(&["Disallow: /fish*"]).allows(b"/fish"));
    assert!(!rules(&["Disallow: /*?*s="]).allows(b"/search?q=1&s=2"));
}

#[test]
fn match_is_from_the_first_octet_and_case_sensitive() {
    assert!(!rules(&["Disallow: /fish"]).allows(b"/fish.html?id=1"));
    assert!(rules(&["Disallow: /fish"]).allows(b"/Fish"));
    assert!(rules(&["Disallow: /fish"]).allows(b"/catfish/fish"));
    assert!(rules(&["Disallow: fish"]).allows(b"/fish"));
    assert!(!rules(&["Disallow: /*?id="]).allows(b"/x?id=4"));
    assert!(!rules(&["Disallow: /"]).allows(b""));
}

#[test]
fn longest_wins_and_a_tie_allows() {
    assert!(rules(&["Disallow: /page", "Allow: /page"]).allows(b"/page"));
    assert!(rules(&["Disallow: /*.h", "Allow: /pag"]).allows(b"/page.h"));
    assert!(!rules(&["Allow: /p", "Disallow: /pa"]).allows(b"/page"));
    assert!(!rules(&["Allow: /page", "Disallow: /*.htm"]).allows(b"/page.htm"));
    // Octets are counted after the escapes are canonical: /%61%62 has three of them.
    assert!(rules(&["Disallow: /%61%62", "Allow: /abc"]).allows(b"/abc"));
    let robots = rules(&["Disallow: /a", "Allow: /a/%7eb*c$"]);
    let verdict = robots.verdict(b"/a/~b/c");
    assert_eq!((verdict.allowed, verdict.rule), (true, Some("/a/~b*c$")));
    let verdict = robots.verdict(b"/a/x");
    assert_eq!((verdict.allowed, verdict.rule), (false, Some("/a")));
    let verdict = robots.verdict(b"/b");
    assert_eq!((verdict.allowed, verdict.rule), (true, None));
}

#[test]
fn groups_that_name_us_are_merged() {
    let text = "User-agent: foobot\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\n\
                User-agent: FOOBOT/2.1\nDisallow: /c\n\nUser-agent: *\nDisallow: /d\n";
    for (path, allowed) in [("/a", false), ("/b", true), ("/c", false), ("/d", true)] {
        assert_eq!(allows(text, path), allowed, "{path}");
    }
    let stars = "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: *\nDisallow: /c\n";
    for (path, allowed) in [("/a", false), ("/b", true), ("/c", false)] {
        assert_eq!(allows(stars, path), allowed, "{path}");
    }
}

#[test]
fn a_group_of_ours_without_rules_shuts_out_the_star() {
    assert!(allows("User-agent: *\nDisallow: /\n\nUser-agent: FooBot\nDisallow:\n", "/x"));
    assert!(allows("User-agent: FooBot\n\nUser-agent: *\nDisallow:\n", "/x"));
    assert!(allows("User-agent: *\nDisallow: /\n\nUser-agent: FooBot\n", "/x"));
}

#[test]
fn several_agents_share_rules() {
    let text = "User-agent: a\nUser-agent: foobot\n\n# still one group\nUser-agent: b\nDisallow: /x\n";
    assert!(!allows(text, "/x"));
    assert!(!Robots::parse(text.as_bytes(), "b").allows(b"/x"));
    assert!(Robots::parse(text.as_bytes(), "c").allows(b"/x"));
}

#[test]
fn only_rules_end_the_list_of_agents() {
    for between in
        ["Sitemap: https://x.example/s.xml", "Crawl-delay: 2", "Host: x.example", "Clean-param: a", "???"]
    {
        let text = format!("User-agent: foobot\n{between}\nUser-agent: other\nDisallow: /x\n");
        assert!(!allows(&text, "/x"), "{between}");
        let text = format!("User-agent: foobot\nDisallow: /a\n{between}\nDisallow: /x\n");
        assert!(!allows(&text, "/x"), "{between}");
    }
    assert!(allows("User-agent: foobot\nDisallow:\nUser-agent: other\nDisallow: /x\n", "/x"));
}

#[test]
fn rules_before_any_group_are_ignored() {
    assert!(allows("Disallow: /x\nUser-agent: *\nDisallow: /y\n", "/x"));
    assert_eq!(robots("Crawl-delay: 4\nUser-agent: *\nDisallow: /y\n").crawl_delay_ms(), None);
}

#[test]
fn line_ends_marks_and_comments() {
    for text in [
        "\u{feff}User-agent: *\nDisallow: /x\n",
        "User-agent: *\rDisallow: /x\r",
        "User-agent: *\r\nDisallow: /x",
        "\r\n  USER-AGENT\t:\t* # all\r\n\tdisallow :/x# none\r\n",
        "user-agent:*\n\n\n   DISALLOW:   /x   \n",
    ] {
        assert!(!allows(text, "/x"), "{text:?}");
        assert!(allows(text, "/"), "{text:?}");
    }
    for text in [
        "useragent: *\nDisallow: /x",
        "User agent: *\nDisallow: /x",
        "User-agent: *\nDissallow: /x",
        "User-agent *\nDisallow: /x",
    ] {
        assert!(allows(text, "/x"), "{text:?}");
    }
}

#[test]
fn the_file_itself_is_always_allowed() {
    assert!(rules(&["Disallow: /"]).allows(b"/robots.txt"));
    assert!(!rules(&["Disallow: /"]).allows(b"/robots.txt2"));
    assert!(!rules(&["Disallow: /"]).allows(b"/"));
    assert!(Robots::allow_all().allows(b"/"));
}

#[test]
fn a_file_without_rules_for_us_owns_no_heap() {
    for text in [
        "",
        "User-agent: *\nDisallow:\n",
        "User-agent: other\nDisallow: /\n",
        "<html>Not found: sorry</html>",
    ] {
        assert_eq!(robots(text), Robots::allow_all(), "{text:?}");
        assert_eq!(robots(text).heap_bytes(), 0);
    }
    assert!(size_of::<Robots>() <= 48);
}

#[test]
fn crawl_delays() {
    for (value, delay_ms) in [
        ("10", Some(10_000)),
        ("0.5", Some(500)),
        (".25", Some(250)),
        ("1.", Some(1_000)),
        ("2.0009", Some(2_000)),
        ("0", Some(0)),
        ("99999999999999999999", Some(u32::MAX)),
        ("-1", None),
        ("ten", None),
        ("1.2.3", None),
        (".", None),
        ("", None),
    ] {
        assert_eq!(rules(&[&format!("Crawl-delay: {value}")]).crawl_delay_ms(), delay_ms, "{value}");
    }
    let text = "User-agent: *\nCrawl-delay: 9\nDisallow:\nUser-agent: foobot\nCrawl-delay: 2\nDisallow:\n\
                User-agent: foobot\nCrawl-delay: 1\n";
    assert_eq!(robots(text).crawl_delay_ms(), Some(2_000));
    assert_eq!(Robots::parse(text.as_bytes(), "x").crawl_delay_ms(), Some(9_000));
    assert_eq!(
        robots("User-agent: a\nCrawl-delay: 3\nUser-agent: foobot\nDisallow: /\n").crawl_delay_ms(),
        Some(3_000)
    );
}

#[test]
fn sitemaps_belong_to_no_group() {
    let text = "Sitemap: https://a.example/1.xml\nUser-agent: x\nDisallow: /\nsitemap : HTTP://a.example/2.xml # two\n\
                Sitemap: /relative.xml\nSitemap: ftp://a.example/\nSitemap: https://a.example/\u{1b}[2J\nSitemap:\n\
                Sitemap: https://a.example/ü.xml\n";
    let found: Vec<_> = robots(text).sitemaps().map(str::to_owned).collect();
    assert_eq!(found, ["https://a.example/1.xml", "HTTP://a.example/2.xml", "https://a.example/ü.xml"]);
    assert!(robots(text).allows(b"/x"));

    let long = |bytes: usize| format!("Sitemap: http://a/{}\n", "x".repeat(bytes - "http://a/".len()));
    assert_eq!(robots(&long(SITEMAP_BYTES_MAX)).sitemaps().count(), 1);
    assert_eq!(robots(&long(SITEMAP_BYTES_MAX + 1)).sitemaps().count(), 0);
    assert_eq!(robots(&"Sitemap: http://a/\n".repeat(SITEMAPS_MAX + 9)).sitemaps().count(), SITEMAPS_MAX);
}

#[test]
fn the_line_that_the_limit_cuts_is_dropped() {
    let head = "User-agent: *\nDisallow: /kept\n";
    let last = "\nDisallow: /last";
    let filler = "#".repeat(ROBOTS_BYTES_MAX - head.len() - last.len());
    let text = format!("{head}{filler}{last}");
    assert_eq!(text.len(), ROBOTS_BYTES_MAX);
    assert!(!allows(&text, "/last"));
    // The limit falls on the line's end: the line is whole.
    assert!(!allows(&format!("{text}\nDisallow: /after"), "/last"));
    assert!(allows(&format!("{text}\nDisallow: /after"), "/after"));
    // The limit falls inside the line.
    assert!(allows(&format!("{text}-page\n"), "/last-page"));
    assert!(!allows(&format!("{text}-page\n"), "/kept"));
    assert!(Robots::parse(&vec![b'x'; ROBOTS_BYTES_MAX * 2], "FooBot").allows(b"/"));
}

#[test]
fn no_rule_of_the_part_that_is_read_is_dropped() {
    let mut text = String::from("User-agent: *\nDisallow: /last\n");
    while text.len() + 8 <= ROBOTS_BYTES_MAX {
        text.insert_str(14, "allow:/\n");
    }
    assert!(text.lines().count() > RULES_MAX - 8, "as many as can be");
    assert!(!robots(&text).allows(b"/last"));
}

fn file_line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[Uu]ser-[Aa]gent: (\\*|foobot|FooBot/1|other)",
        "(Disallow|Allow): ?[/a*$%2A]{0,6}",
        "Crawl-delay: [0-9.]{0,4}",
        "Sitemap: https?://[a-z]{1,3}",
        "[ -~]{0,12}",
    ]
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), path in prop::collection::vec(any::<u8>(), 0..40)) {
        let robots = Robots::parse(&bytes, "FooBot");
        robots.verdict(&path);
        prop_assert!(robots.allows(b"/robots.txt"));
    }

    #[test]
    fn line_ends_are_equal(lines in prop::collection::vec(file_line(), 0..14), path in "/[/a*$%2A]{0,6}") {
        let by_lf = robots(&lines.join("\n"));
        prop_assert_eq!(&by_lf, &robots(&lines.join("\r\n")));
        prop_assert_eq!(&by_lf, &robots(&lines.join("\r")));
        prop_assert_eq!(&by_lf, &robots(&format!("\u{feff}{}\n", lines.join("\n"))));
        let verdict = by_lf.verdict(path.as_bytes());
        prop_assert!(verdict.rule.is_some() || verdict.allowed);
    }

    #[test]
    fn the_order_of_rules_is_no_matter(
        mut lines in prop::collection::vec("(Disallow|Allow): [/a*$]{1,5}", 0..10), path in "/[/a]{0,6}",
    ) {
        let forward = rules(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        lines.reverse();
        let backward = rules(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(forward.allows(path.as_bytes()), backward.allows(path.as_bytes()));
    }
}
