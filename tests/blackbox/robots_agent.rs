//! The promise: rules are for the name that they were read for. Under another name they are not known, whatever an earlier
//! run read; what is said to our name is for us, in a header and in a page.

use crate::stage::Stage;
use crate::support::*;

fn web(asked: &Asked) -> Reply {
    match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: goodbot\nAllow: /\n\nUser-agent: *\nDisallow: /\n"),
        "/" => Reply::links(["/a", "/b", "/c"]),
        _ => Reply::text("x"),
    }
}

fn asked_as(stage: &Stage, target: &str) -> Vec<String> {
    let asked = stage.server.asked().into_iter().filter(|asked| asked.target == target);
    asked.map(|asked| asked.user_agent).collect()
}

fn audited(log: &str) -> Run {
    let dir = TempDir::new();
    dir.write("crawl.log", log);
    run(["audit", "--json", "--data", dir.path().to_str().unwrap()])
}

#[test]
fn rules_of_one_name_are_not_those_of_another() {
    let mut stage = Stage::with_robots(web);
    let url = stage.url("a.test", "/");
    let run = |args: &[&str]| Running::start(&mut stage.command(args)).wait(PATIENCE);
    run(&[&url, "--user-agent", "goodbot/1.0 (+http://x.test/)", "--max-pages", "1"]).done();
    assert_eq!(stage.server.places(), ["a.test/"]);
    // A version and the case of letters are not a name.
    let report = run(&["--user-agent", "GoodBot/2.0", "--max-pages", "1"]).done().json();
    assert_eq!((&report["pages"], &report["robots"]), (&1.into(), &0.into()), "{report}");
    let good = stage.log();

    let report = run(&["--user-agent", "otherbot/1.0"]).json();
    assert_eq!(result_count(&report, "robots_denied"), 2, "{report}");
    assert_eq!(asked_as(&stage, "/robots.txt"), ["goodbot/1.0 (+http://x.test/)", "otherbot/1.0"]);
    assert_eq!(stage.server.places().len(), 2, "{:?}", stage.server.places());
    stage.assert_proved();

    // The same log, as if the last run had asked for the last page by the rules of the first.
    let page = good.lines().next_back().unwrap();
    assert!(page.contains("doc="), "{page}");
    let good = good.strip_suffix(&format!("{page}\n")).unwrap();
    let header = stage.log().lines().rfind(|line| line.starts_with("# nephila")).unwrap().to_string();
    assert!(header.contains(" agent=otherbot "), "{header}");
    let log = format!("{good}{header}\n{page}\n");
    let fault = audited(&log);
    assert_eq!(fault.code(), 1, "{}", fault.text());
    assert_eq!(fault.json()["violations"][0]["kind"], "robots_agent", "{}", fault.text());
    assert_eq!(audited(&log.replace("otherbot", "GOODBOT")).code(), 0);
    // Logs of earlier builds do not say who asked: nothing is proved by them.
    let untold = ["goodbot", "GoodBot", "otherbot"];
    let untold = untold.iter().fold(log, |log, agent| log.replace(&format!(" agent={agent}"), ""));
    assert_eq!(audited(&untold).json()["violations"][0]["kind"], "robots_agent");
}

#[test]
fn what_a_page_says_to_our_name_is_for_us() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/meta" => Reply::html("<meta content='noindex, nofollow' name='OurBot'><a href=/from-meta>x</a>"),
        "/header" => Reply::links(["/from-header"]).with("X-Robots-Tag: ourbot: nofollow\r\n"),
        "/other" => Reply::html("<meta name=otherbot content=none><a href=/from-other>x</a>"),
        "/part" => Reply::html("<meta name=ourbot-news content=none><a href=/from-part>x</a>"),
        _ => Reply::text("x"),
    });
    let urls = ["/meta", "/header", "/other", "/part"].map(|path| stage.url("a.test", path));
    stage.crawl(urls.iter().map(String::as_str).chain(["--user-agent", "ourbot/1.0"]));
    let mut found = stage.server.targets();
    found.retain(|target| target.starts_with("/from"));
    found.sort();
    assert_eq!(found, ["/from-other", "/from-part"]);
    let stored = stage.stored();
    let flags = |url: &str| stored[url].flags.contains(&"noindex".to_string());
    assert_eq!(urls.each_ref().map(|url| flags(url)), [true, false, false, false]);
}

/// What was refused to one name is asked for under another, also if that run ends before its turn; under the same name it
/// stays refused.
#[test]
fn what_was_refused_to_another_name_is_asked_again() {
    let mut stage = Stage::with_robots(web);
    let urls = ["/a", "/b", "/c"].map(|path| stage.url("a.test", path));
    let run = |args: &[&str]| Running::start(&mut stage.command(args)).wait(PATIENCE).ended().json();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let report = run(&[&urls[..], &["--user-agent", "otherbot/1.0"]].concat());
    assert_eq!((result_count(&report, "robots_denied"), &report["pages"]), (3, &0.into()), "{report}");
    let report = run(&["--user-agent", "OtherBot/2.0"]);
    assert_eq!((result_count(&report, "robots_denied"), &report["pending"]), (0, &0.into()), "{report}");

    let report = run(&["--user-agent", "goodbot/1.0", "--max-pages", "1"]);
    assert_eq!((&report["success"], &report["pending"]), (&1.into(), &2.into()), "{report}");
    let report = run(&["--user-agent", "goodbot/1.0"]);
    assert_eq!((&report["success"], &report["pending"]), (&2.into(), &0.into()), "{report}");
    let pages = stage.pages_of("a.test");
    assert!(pages.iter().all(|asked| asked.user_agent == "goodbot/1.0"), "{pages:?}");
    stage.assert_proved();
}
