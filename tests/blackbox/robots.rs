//! The promise: `robots` answers for a file as the crawl would, by RFC 9309 and the rows of our own rules.

use crate::support::*;
use std::io::Write;
use std::process::Stdio;

fn robots(file: impl AsRef<[u8]>, args: &[&str]) -> Run {
    let dir = TempDir::new();
    let path = dir.write("robots.txt", file);
    let mut command = nephila();
    command.args(["robots", "--agent", "FooBot"]).arg(path).args(args);
    Running::start(&mut command).wait(PATIENCE)
}

/// Which of these paths FooBot may ask for.
#[track_caller]
fn check(file: impl AsRef<[u8]>, allowed: &[&str], denied: &[&str]) {
    let file = file.as_ref();
    let run = robots(file, &[allowed, denied].concat());
    let lines = allowed.iter().map(|path| format!("allow\t{path}\n"));
    let expected: String = lines.chain(denied.iter().map(|path| format!("deny\t{path}\n"))).collect();
    assert_eq!(run.text(), expected, "{}", file.escape_ascii());
    assert_eq!(run.code(), i32::from(!denied.is_empty()));
    assert_eq!(run.stderr, "");
}

#[test]
fn one_line_each_and_the_status() {
    let file = "User-agent: *\nDisallow: /private/\n";
    check(file, &["http://a.test/", "https://b.test:81/x?y", "/", "/privat"], &[]);
    check(file, &["/"], &["/private/", "http://a.test/private/x"]);
    let run = robots(file, &["--json", "http://a.test/private/x", "/"]);
    assert_eq!(run.code(), 1);
    let lines = run.json_lines();
    assert_eq!(
        lines[0],
        serde_json::json!({"url": "http://a.test/private/x", "allowed": false, "rule": "/private/"})
    );
    assert_eq!(lines[1], serde_json::json!({"url": "/", "allowed": true, "rule": null}));
}

#[test]
fn which_group_is_ours() {
    // Named, in any case, with a version; all groups that name us are one.
    let file = "User-agent: *\nDisallow: /\n\nUser-agent: fooBOT/2.1\nDisallow: /a\n\nUser-agent: Other\nDisallow: /o\n\n\
                User-agent: FooBot\nDisallow: /b\n";
    check(file, &["/", "/o"], &["/a", "/b"]);
    // Else *, else no rules.
    check("User-agent: *\nDisallow: /a\n", &["/b"], &["/a"]);
    check("User-agent: Other\nDisallow: /\n", &["/a"], &[]);
    check("", &["/a"], &[]);
    check("User-agent: FooBotNews\nDisallow: /\n", &["/a"], &[]);
    // Several names share rules; rules before any group are nobody's.
    check("Disallow: /x\nUser-agent: Other\nUser-agent: FooBot\nDisallow: /a\n", &["/x"], &["/a"]);
    // Sitemap and Crawl-delay do not end a group.
    let file =
        "User-agent: FooBot\nCrawl-delay: 5\nSitemap: http://a.test/s.xml\nUser-agent: Other\nDisallow: /a\n";
    check(file, &["/b"], &["/a"]);
    check("User-agent: FooBot\nDisallow: /a\nSitemap: x\nDisallow: /b\n", &["/c"], &["/a", "/b"]);
}

#[test]
fn which_rule_wins() {
    // The longest, wherever it stands; a tie allows.
    check(
        "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\n",
        &["/a/b", "/a/b/d"],
        &["/a", "/a/b/c"],
    );
    check("User-agent: *\nDisallow: /a\nAllow: /a\n", &["/a", "/a/b"], &[]);
    check("User-agent: *\nDisallow:\n", &["/", "/a"], &[]);
    // From the first octet, in the case it stands, path and query.
    check("User-agent: *\nDisallow: /A\n", &["/a", "/x/A"], &["/A", "/Ab"]);
    check("User-agent: *\nDisallow: /a?x=1\n", &["/a", "/a?x=2"], &["/a?x=1", "/a?x=12"]);
    // The file itself is always allowed.
    check("User-agent: *\nDisallow: /\n", &["/robots.txt"], &["/", "/robots.txt.bak"]);
}

#[test]
fn wild_cards_and_escapes() {
    check("User-agent: *\nDisallow: /*.gif$\n", &["/a.gif?x", "/a.gifs"], &["/a.gif", "/b/c.gif"]);
    check("User-agent: *\nDisallow: /a*b*c\n", &["/acb"], &["/abc", "/aXbXcX"]);
    check("User-agent: *\nDisallow: /$\n", &["/a"], &["/"]);
    // Unreserved characters are compared decoded, the others as upper-case hex.
    check("User-agent: *\nDisallow: /%7Ejoe\n", &["/~jo"], &["/~joe", "/%7ejoe"]);
    check("User-agent: *\nDisallow: /a%2fb\n", &["/a/b"], &["/a%2Fb", "/a%2fb"]);
    check("User-agent: *\nDisallow: /\u{fc}\n", &["/u"], &["/%C3%BC", "/\u{fc}"]);
    // Escaped operators are characters.
    check("User-agent: *\nDisallow: /a%2Ab\n", &["/aXb"], &["/a*b"]);
    check("User-agent: *\nDisallow: /a%24\n", &["/a"], &["/a$", "/a$b"]);
}

#[test]
fn how_a_file_may_be_written() {
    for end in ["\n", "\r\n", "\r"] {
        let file = format!(
            "\u{feff}User-agent: * # all{end}  disallow :  /a  # this{end}DISALLOW: /b{end}{end}Allow: /a/c{end}"
        );
        check(file, &["/c", "/a/c"], &["/a", "/b"]);
    }
    check("User-agent: *\nDisallow: /last", &["/"], &["/last"]);
    check(b"\x00\xff\nUser-agent: *\nDisallow: /a\n\xff\xfe: x\n", &["/b"], &["/a"]);
    check("<html>not found</html>", &["/a"], &[]);
}

/// 500 KiB count; the line cut there is dropped, not shortened.
#[test]
fn a_large_file() {
    let head = "User-agent: *\nDisallow: /early\n";
    let mut file = head.to_string();
    while file.len() < 400 * 1024 {
        file += "# filler filler filler filler filler filler filler\n";
    }
    check(format!("{file}Disallow: /within\n"), &["/other"], &["/early", "/within"]);
    let limit = nephila::proto::robots::ROBOTS_BYTES_MAX;
    file.truncate(head.len());
    let rule = "Disallow: /abc\n";
    file += &format!("#{}\n", "x".repeat(limit - head.len() - 2 - rule.len() + 3));
    check(file.clone() + rule, &["/ab", "/abc"], &["/early"]);
}

#[test]
fn the_name_is_the_first_word_of_an_agent() {
    let dir = TempDir::new();
    let file = dir.write("robots.txt", "User-agent: FooBot\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n");
    let file = file.to_str().unwrap();
    for (agent, denied) in [("FooBot", "/a"), ("foobot/1.0 (+http://x)", "/a"), ("Bar", "/b"), ("*", "/b")] {
        let run = run(["robots", "--agent", agent, file, "/a", "/b"]);
        assert_eq!(run.code(), 1, "{agent}: {}", run.stderr);
        assert!(run.text().contains(&format!("deny\t{denied}\n")), "{agent}: {}", run.text());
        assert_eq!(run.text().matches("deny").count(), 1);
    }
    for agent in ["", "1st", "(x)"] {
        let run = run(["robots", "--agent", agent, file, "/"]);
        assert_eq!((run.code(), run.stderr.lines().count(), run.text().as_str()), (2, 1, ""), "{agent}");
    }
}

#[test]
fn from_stdin() {
    let mut command = nephila();
    command.args(["robots", "--agent", "FooBot", "-", "/a", "/b"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"User-agent: *\nDisallow: /a\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "deny\t/a\nallow\t/b\n");
}

#[test]
fn what_cannot_be_answered() {
    for url in
        ["no url", "ftp://a.test/", "", "http://", "http://u:p@a.test/", &format!("/{}", "a".repeat(9_000))]
    {
        let run = robots("", &["/good", url]);
        assert_eq!(
            (run.code(), run.stderr.lines().count(), run.text().as_str()),
            (2, 1, ""),
            "{url}: {}",
            run.stderr
        );
    }
    let dir = TempDir::new();
    for path in [dir.join("missing"), dir.path().to_path_buf()] {
        let run = run(["robots", "--agent", "FooBot", path.to_str().unwrap(), "/"]);
        assert_eq!(
            (run.code(), run.stderr.lines().count(), run.text().as_str()),
            (2, 1, ""),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(path.to_str().unwrap()), "{}", run.stderr);
    }
    let file = dir.write("robots.txt", "");
    let file = file.to_str().unwrap();
    for args in [&["robots", file, "/"][..], &["robots", "--agent", "x", file], &["robots", "--agent", "x"]] {
        assert_eq!(run(args).code(), 2, "{args:?}");
    }
}

#[test]
fn what_was_typed_does_not_steer_the_terminal() {
    let run = robots("", &["/a\u{1b}[31m\u{202e}b", "/tab\there"]).done();
    assert_eq!(run.text(), "allow\t/a\\u{1b}[31m\\u{202e}b\nallow\t/tab\\u{9}here\n");
    let bad = robots("", &["\u{1b}]0;x\u{7}"]);
    assert_eq!(bad.code(), 2);
    assert!(!bad.stderr.contains('\u{1b}'));
}
