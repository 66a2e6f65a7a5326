//! The promise: what the settings say of URLs holds for seeds, links and redirects alike, and a rule that cannot be used
//! is named before anything is asked of anybody.

use crate::support::*;

/// A server whose first page has these links, and /moved another place.
fn serve(links: &'static [&'static str]) -> LogServer {
    LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" | "/dir/" => {
            let page: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
            Reply::html(&page)
        }
        "/moved" => Reply::new("302 Found", "Location: /private/there\r\n", ""),
        "/session" => Reply::new("302 Found", "Location: /landed?SID=4&b&a\r\n", ""),
        _ => Reply::text("x"),
    })
}

/// What a crawl asks for, in order, without robots.txt.
#[track_caller]
fn asked(server: &LogServer, config: &str, flags: &[&str]) -> Vec<String> {
    let dir = TempDir::new();
    let config = dir.write("c.toml", config);
    let settings = ["--config", config.to_str().unwrap(), "--req-host-per-sec", "0"];
    crawl(&dir.join("data"), settings.into_iter().chain(flags.iter().copied()));
    let mut targets = server.targets();
    targets.retain(|target| target != "/robots.txt");
    targets.sort();
    targets
}

#[test]
fn denied_trapped_and_equal_urls_are_not_asked_for() {
    let server = serve(&[
        "/a?utm_source=x",
        "/a?UTM_medium=y",
        "/b?z=1&a=2",
        "/b?a=2&z=1",
        "/%7Ec",
        "/~c",
        "/private/x",
        "/moved",
        "/session",
        "/x/y/x/y/x/y/x/y",
    ]);
    let config =
        "[doc_index]\ndeny = [\"/private/\"]\nquery_drop = [\"utm_*\", \"sid\"]\nquery_sort = true\n";
    assert_eq!(
        asked(&server, config, &[&server.url("/")]),
        ["/", "/a", "/b?a=2&z=1", "/landed?a&b", "/moved", "/session", "/~c"]
    );
}

#[test]
fn an_allowed_url_is_in_scope() {
    let server = serve(&["/dir/in", "/else/in", "/out"]);
    let port = server.url("/").rsplit(':').next().unwrap().trim_end_matches('/').to_string();
    let config = format!("[doc_index]\nallow = [\"surt:127.0.0.1:{port})/else\"]\n");
    let seed = server.url("/dir/");
    assert_eq!(asked(&server, &config, &[&seed, "--scope", "prefix"]), ["/dir/", "/dir/in", "/else/in"]);
}

#[test]
fn a_seed_that_is_denied_is_named_and_left_out() {
    let (dir, server) = (TempDir::new(), serve(&[]));
    let config = dir.write("c.toml", "[doc_index]\ndeny = ['/pri[v]ate']\n");
    let flags = |seeds: &[String]| {
        let mut args = vec!["crawl".to_string(), "--data".into(), dir.join("data").to_str().unwrap().into()];
        args.extend(["--config".into(), config.to_str().unwrap().into()]);
        args.extend(["--allow-net".into(), "127.0.0.0/8".into(), "--req-host-per-sec".into(), "0".into()]);
        args.extend_from_slice(seeds);
        args
    };
    let denied = server.url("/private");
    let run_of = |seeds: &[String]| {
        let args = flags(seeds);
        run(args.iter().map(String::as_str))
    };
    let ran = run_of(&[server.url("/"), denied.clone()]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let said = format!("skipped: {denied}: deny rule 1, \"/pri[v]ate\"");
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    assert!(!server.targets().contains(&"/private".to_string()));
    assert_eq!(run_of(&[denied]).code(), 2, "nothing is left to crawl");
}

#[test]
fn a_rule_that_cannot_be_used_is_named_in_one_line() {
    let dir = TempDir::new();
    for (config, said) in [
        ("[doc_index]\ndeny = ['a', '(']", "deny: rule 2, \"(\": unclosed group"),
        (
            "[doc_index]\nallow = ['surt:http://a.test/']",
            "allow: rule 1, \"surt:http://a.test/\": not a SURT prefix",
        ),
        ("[[recrawl]]\nmatch = '['\nevery = 60", ":1:recrawl[1].match: \"[\": "),
        ("[doc_index]\nrecrawl_min = 90000", "recrawl_start (1d) must lie between"),
        ("[doc_index]\ndenny = []", ":2:doc_index.denny: unknown setting (did you mean deny?)"),
    ] {
        let file = dir.write("c.toml", config);
        let data = dir.join("data");
        let ran = run([
            "crawl",
            "http://127.0.0.1:9/",
            "--data",
            data.to_str().unwrap(),
            "--config",
            file.to_str().unwrap(),
        ]);
        assert_eq!(ran.code(), 2, "{config}: {}", ran.stderr);
        assert!(ran.stderr.contains(said) && ran.stderr.lines().count() == 1, "{config}: {}", ran.stderr);
        assert!(!data.exists());
    }
}
