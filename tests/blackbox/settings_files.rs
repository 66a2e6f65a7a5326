//! The promise: a settings file can say everything that a flag of `crawl` can, sizes and times with their units, and every
//! mistake in it is told at once, with line, key, cause and mend, before anything is made on disk.

use crate::stage::Stage;
use crate::support::*;
use std::path::Path;
use std::process::Command;

#[test]
fn a_file_alone_describes_a_crawl() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::html("<a href=/1>"),
        "/1" => Reply::html("<a href=/2>"),
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text(&"x".repeat(3_000)),
    });
    let dir = TempDir::new();
    dir.write("hosts", "127.0.0.1 a.test b.test\n");
    dir.write("more.txt", format!("# more\nhttp://b.test:{}/long\n", server.port()));
    dir.write(
        "job.toml",
        format!(
            "[crawl]\nseeds = [\"http://a.test:{}/\"]\nseeds_file = \"more.txt\"\nscope = \"host\"\ndepth = 1\ndata = \"here\"\n\
             allow_net = [\"127.0.0.1\"]\nhosts_file = \"hosts\"\ndns = [\"127.0.0.1:9\"]\ncores = \"0\"\ndriver = \"epoll\"\n\
             max_pages = 100\nmax_seconds = \"10min\"\ncontact = \"me@example.org\"\nuser_agent = \"jobbot/1\"\n\
             req_host_per_sec = 0\nmax_doc_size = \"1kB\"\ntimeout_req = \"20s\"\nmemory = \"64MiB\"\nsitemaps = \"off\"\n",
            server.port()
        ),
    );
    let mut command = nephila();
    command.current_dir(dir.path()).args(["crawl", "--json", "--config", "job.toml"]);
    let run = Running::start(&mut command).wait(PATIENCE).done();
    let report = run.json();
    assert_eq!(
        (report["pages"].as_u64(), report["driver"].as_str()),
        (Some(3), Some("epoll")),
        "{}",
        run.stderr
    );
    assert_eq!(report["cores"].to_string(), "[0]");
    let stored = stored(&dir.join("here"));
    let long = &stored[&format!("http://b.test:{}/long", server.port())];
    assert_eq!((long.result.as_str(), long.bytes), ("too_large", 1_000));
    assert!(server.asked().iter().all(|asked| asked.user_agent == "jobbot/1 (+me@example.org)"));
    // Found by a reader of the manual.
    let help = run_help();
    for name in [
        "seeds",
        "scope",
        "depth",
        "allow_net",
        "dns",
        "hosts_file",
        "cores",
        "max_pages",
        "max_seconds",
        "driver",
    ] {
        assert!(help.contains(&format!("| `{name}` ")), "{name}");
    }
    assert!(help.contains("## `[crawl]`"));
}

#[track_caller]
fn run_help() -> String {
    run(["help", "settings"]).done().text()
}

/// With a unit or without, by a flag or in a file, a size is the same.
#[test]
fn units_in_flags_and_files() {
    let server = LogServer::start(|_| Reply::text(&"x".repeat(5_000)));
    let dir = TempDir::new();
    let url = server.url("/");
    for (count, size) in ["2048", "2KiB", "2 KiB", "2kib", "0.002MiB"].into_iter().enumerate() {
        let bytes = if size.contains("MiB") { 0 } else { 2_048 };
        for file in [false, true] {
            let data = dir.join(&format!("{count}-{file}"));
            let mut command = crawl_command(&data);
            command.args([&url, "--timeout-req", "1min", "--max-seconds", "0.5h"]);
            match file {
                true => command
                    .arg("--config")
                    .arg(dir.write("c.toml", format!("[spider]\nmax_doc_size = \"{size}\"\n"))),
                false => command.args(["--max-doc-size", size]),
            };
            let run = Running::start(&mut command).wait(PATIENCE);
            // A part of a byte is no size.
            if bytes == 0 {
                assert_eq!(run.code(), 2, "{}", run.stderr);
                assert!(
                    run.stderr.contains("64KiB, 4MiB, 4MB or 2GiB, or a whole number of bytes"),
                    "{}",
                    run.stderr
                );
                continue;
            }
            run.done();
            assert_eq!(stored(&data)[&url].bytes, bytes, "{size}");
        }
    }
    // An address is a network of one.
    let run = Running::start(
        nephila().args(["crawl", "--json", &url, "--allow-net", "127.0.0.1", "--data"]).arg(dir.join("one")),
    );
    assert_eq!(run.wait(PATIENCE).done().json()["success"], 1);
}

/// A file, and the beginning of every line about it, without the name of the file.
const WRONG: &[(&str, &[&str])] = &[
    ("[crawl]\nsedes = []\n", &["2:crawl.sedes: unknown setting (did you mean seeds?)"]),
    ("[crawl]\nseeds = \"http://a.test/\"\n", &["2:crawl.seeds: must be a list of texts in quotes"]),
    (
        "[crawl]\nseeds = [\"http://a.test/\", \"a.test\"]\n",
        &[
            "2:crawl.seeds: must be a URL, not \"a.test\" (not a URL: relative URL without a base; did you mean https://a.test/?)",
        ],
    ),
    (
        "[crawl]\nseeds = [\"ftp://a.test/\"]\n",
        &[
            "2:crawl.seeds: must be a URL, not \"ftp://a.test/\" (only http and https can be crawled, not ftp)",
        ],
    ),
    (
        "[crawl]\nscope = \"galaxy\"\n",
        &["2:crawl.scope: must be \"host\", \"domain\", \"prefix\" or \"any\""],
    ),
    ("[crawl]\ndepth = -1\n", &["2:crawl.depth: must be a whole number of at most 65535"]),
    ("[crawl]\ndepth = \"deep\"\n", &["2:crawl.depth: must be a whole number of at most 65535"]),
    (
        "[crawl]\nallow_net = [\"127.0.0.1/33\"]\n",
        &["2:crawl.allow_net: must be a network or an address, like 127.0.0.0/8"],
    ),
    ("[crawl]\nallow_net = \"127.0.0.1\"\n", &["2:crawl.allow_net: must be a list of texts in quotes"]),
    ("[crawl]\ndns = [\"dns.test\"]\n", &["2:crawl.dns: must be ADDR[:PORT], like 9.9.9.9"]),
    ("[crawl]\nhosts_file = 3\n", &["2:crawl.hosts_file: must be a text in quotes"]),
    ("[crawl]\ncores = \"3-1\"\n", &["2:crawl.cores: --cores 3-1: "]),
    ("[crawl]\nmax_pages = 1.5\n", &["2:crawl.max_pages: must be a whole number"]),
    (
        "[crawl]\nmax_seconds = \"an hour\"\n",
        &["2:crawl.max_seconds: must be a time like 30s, 5min, 1h or 2d, or a whole number of seconds"],
    ),
    ("[crawl]\nmax_seconds = \"250ms\"\n", &["2:crawl.max_seconds: must be a time like 30s"]),
    ("[crawl]\nwait = \"yes\"\n", &["2:crawl.wait: must be true or false"]),
    ("[crawl]\ndriver = \"kqueue\"\n", &["2:crawl.driver: must be \"auto\", \"uring\" or \"epoll\""]),
    ("[crawl]\ncontact = \"here\"\n", &["2:spider.contact: must be an http or https URL or a mail address"]),
    ("[crawl]\nqueue_len = 3\n", &["2:crawl.queue_len: unknown setting (it belongs below [url_server])"]),
    (
        "[spider]\nuser_agent = \"a\"\n[crawl]\nuser_agent = \"b\"\n",
        &["4:crawl.user_agent: is said in line 2, too (keep one)"],
    ),
    ("[spider]\nmax_doc_size = \"4 sheets\"\n", &["2:spider.max_doc_size: must be a size like 64KiB, 4MiB"]),
    ("[spider]\nmax_doc_size = \"2GiB\"\n", &["2:spider.max_doc_size: can be at most 1GiB"]),
    ("[spider]\ntimeout_req = 0\n", &["2:spider.timeout_req: must be at least 1ms"]),
    (
        "[spider]\ntimeout_update = \"10min\"\n",
        &[
            "2:spider.timeout_update: timeout_spider_status (1min) must be at least twice timeout_update (10min)",
        ],
    ),
    (
        "[spider]\nuser_agent = \"caf\u{e9}\"\n",
        &["2:spider.user_agent: user_agent must be printable ASCII and not empty"],
    ),
    ("[store]\ncolour = \"blue\"\n", &["2:store.colour: unknown setting (known are data, segment_bytes, "]),
    (
        "[admin]\nlisten = \"0.0.0.0:7180\"\n",
        &["2:admin.listen: 0.0.0.0:7180 is not loopback: other machines "],
    ),
    ("[moon]\nphase = 1\n", &["1:moon: unknown setting (known are crawl, "]),
    ("depth = 3\n", &["1:depth: unknown setting (it belongs below [crawl])"]),
    ("crawl = 3\n", &["1:crawl: must be a section (begin it with [crawl])"]),
    (
        "[crawl]\ndepth = 1\ndepth = 2\n",
        &["3:depth: duplicate key (the file is TOML: see nephila help settings)"],
    ),
    ("[crawl]\ndepth = \n", &["2:depth: "]),
    (
        "[crawl\ndepth = 1\n",
        &["1: unclosed table, expected `]` (the file is TOML: see nephila help settings)"],
    ),
    (
        "[[auth]]\nsite = \"https://a.test\"\nuser = \"u\"\n",
        &["1:auth[1]: has no password (give password, or password_file whose first line it is)"],
    ),
    ("[[recrawl]]\nmatch = \"/\"\nevery = \"often\"\n", &["3:recrawl[1].every: must be a time like 30s"]),
    ("[doc_index]\ndeny = [\"(\"]\n", &["2:doc_index.deny: rule 1, \"(\": unclosed group"]),
    // All of them at once, in the order of the file.
    (
        "[spider]\ntimeout_req = \"soon\"\nuser_agnet = \"x\"\n\n[crawl]\ndepth = 1.5\nseeds = \n[doc_index]\nretries_max = 300\n[[auth]]\nsite = 1\n",
        &[
            "2:spider.timeout_req: must be a time",
            "3:spider.user_agnet: unknown setting (did you mean user_agent?)",
            "6:crawl.depth: must be a whole number",
            "7:seeds: ",
            "9:doc_index.retries_max: must be a whole number of at most 255",
            "11:auth[1].site: must be a text in quotes",
        ],
    ),
    // What goes together only with a flag is told with the line of the file, beside the rest.
    (
        "[store]\nsegment_bytes = \"4KiB\"\ndedup = \"some\"\n",
        &[
            "2:store.segment_bytes: segment_bytes (4KiB) is too small for a document of max_doc_size (16MiB)",
            "3:store.dedup: must be \"off\", \"url\" or \"any\"",
        ],
    ),
];

#[test]
fn wrong_files_are_refused_before_anything_is_made() {
    let dir = TempDir::new();
    for (text, expected) in WRONG {
        let file = dir.write("c.toml", text);
        let mut command = nephila();
        command.current_dir(dir.path()).args([
            "crawl",
            "http://127.0.0.1:9/",
            "--config",
            "c.toml",
            "--data",
            "made",
        ]);
        let run = Running::start(&mut command).wait(PATIENCE);
        assert_eq!((run.code(), run.stdout.len()), (2, 0), "{text}\n{}", run.stderr);
        let said = run.stderr.strip_prefix("nephila: ").unwrap_or_else(|| panic!("{}", run.stderr));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{text}\n{said}");
        for (line, expected) in lines.iter().zip(*expected) {
            let beginning = format!("c.toml:{expected}");
            assert!(line.starts_with(&beginning), "{text}\nsaid     {line}\nexpected {beginning}");
        }
        std::fs::remove_file(file).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{text}: something was made");
    }
    assert!(WRONG.len() >= 20);
}

/// Files that are none.
#[test]
fn files_that_cannot_be_read() {
    let dir = TempDir::new();
    let refused = |config: &Path, about: &str| {
        let mut command: Command = nephila();
        command
            .args(["crawl", "http://127.0.0.1:9/", "--data"])
            .arg(dir.join("made"))
            .arg("--config")
            .arg(config);
        let run = Running::start(&mut command).wait(PATIENCE);
        assert_eq!((run.code(), run.stderr.lines().count()), (2, 1), "{}", run.stderr);
        assert!(run.stderr.contains(about) && run.stderr.contains("--config"), "{}", run.stderr);
        assert!(!dir.join("made").exists());
    };
    refused(&dir.join("gone.toml"), "gone.toml: No such file");
    refused(dir.path(), "directory");
    refused(&dir.write("latin.toml", b"# caf\xe9\n"), "latin.toml: it is not text in UTF-8");
}

#[test]
fn a_flag_that_is_wrong_is_not_held_against_the_file() {
    let dir = TempDir::new();
    let file =
        dir.write("c.toml", "[crawl]\ncores = \"0\"\n[spider]\ntimeout_update = \"1s\"\nfetches_max = 5\n");
    let file = file.to_str().unwrap();
    let data = dir.join("data");
    for (flag, value) in [("--cores", "0-77"), ("--timeout-update", "1h"), ("--fetches-max", "0")] {
        let flags = ["crawl", "http://127.0.0.1:9/", "--config", file, flag, value];
        let ended = run(flags.into_iter().chain(["--data", data.to_str().unwrap()]));
        assert_eq!(ended.code(), 2, "{}", ended.stderr);
        assert!(!ended.stderr.contains("c.toml"), "{flag}: {}", ended.stderr);
        assert!(!data.exists(), "{flag}");
    }
}

/// Flags of `crawl` that are about the command itself, and not about a crawl.
const OF_THE_COMMAND: [&str; 7] =
    ["config", "fresh-settings", "json", "log-format", "quiet", "verbose", "help"];

/// Every flag is a key of `[crawl]`, or of the section that is named here.
#[test]
fn every_flag_of_crawl_is_a_key_of_the_file() {
    let help = run(["crawl", "--help"]).done().text();
    let flags: Vec<&str> = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| line.split([' ', ',', '=', '[']).find_map(|word| word.strip_prefix("--")))
        .filter(|flag| !OF_THE_COMMAND.contains(flag))
        .collect();
    assert!(flags.len() > 30 && flags.contains(&"feeds"), "{flags:?}");
    let dir = TempDir::new();
    for flag in flags {
        let (section, key) = match flag {
            "seeds" | "feeds" => ("crawl", format!("{flag}_file")),
            "admin" => ("admin", "listen".to_string()),
            _ => ("crawl", flag.replace('-', "_")),
        };
        // What is known is told to be of another type; what is not is told to be unknown.
        let file = dir.write("c.toml", format!("[{section}]\n{key} = {{}}\n"));
        let run = run(["config", "check", file.to_str().unwrap()]);
        let told = run.text();
        assert!(run.code() == 1 && told.contains(&format!(".{key}: must be")), "--{flag}: {told}");
    }
}

/// What `--feeds` says, a file can say, beside it and with the same care.
#[test]
fn a_file_names_the_feeds_of_a_crawl() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/rss" => Reply::new(
            "200 OK",
            "Content-Type: application/rss+xml\r\n",
            "<rss version='2.0'><channel><item><title>A story</title><link>/story</link></item></channel></rss>",
        ),
        _ => Reply::html("a story"),
    });
    let feed = stage.url("a.test", "/rss");
    // As an editor leaves it.
    let list = stage.dir.write("feeds.txt", format!("\u{feff}{feed} # the only one\r\n"));
    stage.settings(&format!("[crawl]\nfeeds_file = {list:?}\n"));
    let report = Running::start(&mut stage.command([""; 0])).wait(PATIENCE).done().json();
    assert_eq!(report["success"], 2, "{report}");
    assert_eq!(stage.pages_of("a.test").len(), 2);
    let none = stage.dir.join("none.txt");
    stage.settings(&format!("[crawl]\nfeeds_file = {none:?}\n"));
    let run = Running::start(&mut stage.command([""; 0])).wait(PATIENCE);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("c.toml:2:crawl.feeds_file: cannot read"), "{}", run.stderr);
}
