//! The promise: `nephila config check` tells every mistake of a file, a line each with file, line, key and mend, and
//! `crawl` tells the same ones; `config show` says of every setting what it is and who said so, and never a password.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// A file, and every line about it, without the name of the file.
const WRONG: &[(&str, &[&str])] = &[
    (
        "[crawl]\nseeds = [\"a.test\", \"http://fine.test/\", \"ftp://b.test/\"]\n",
        &[
            "2:crawl.seeds: must be a URL, not \"a.test\" (not a URL: relative URL without a base; did you mean https://a.test/?)",
            "2:crawl.seeds: must be a URL, not \"ftp://b.test/\" (only http and https can be crawled, not ftp)",
        ],
    ),
    (
        "[crawl]\nseeds = [\n  \"a.test\",\n  \"http://fine.test/\",\n  \"gopher://b.test/\",\n]\n",
        &[
            "3:crawl.seeds: must be a URL, not \"a.test\" (not a URL: relative URL without a base; did you mean https://a.test/?)",
            "5:crawl.seeds: must be a URL, not \"gopher://b.test/\" (only http and https can be crawled, not gopher)",
        ],
    ),
    (
        "[crawl]\nallow_net = [\"127.0.0.1/33\", \"10.0.0.0/8\", \"here\"]\n",
        &[
            "2:crawl.allow_net: must be a network or an address, like 127.0.0.0/8, 10.0.0.7 or fd00::/8, not \"127.0.0.1/33\"",
            "2:crawl.allow_net: must be a network or an address, like 127.0.0.0/8, 10.0.0.7 or fd00::/8, not \"here\"",
        ],
    ),
    (
        "[crawl]\ndns = [\n  \"dns.test\",\n  \"9.9.9.9\",\n  \"1.1.1.1:0x\",\n]\n",
        &[
            "3:crawl.dns: must be ADDR[:PORT], like 9.9.9.9, 127.0.0.1:5353 or [::1]:53, not \"dns.test\"",
            "5:crawl.dns: must be ADDR[:PORT], like 9.9.9.9, 127.0.0.1:5353 or [::1]:53, not \"1.1.1.1:0x\"",
        ],
    ),
    (
        "[crawl]\nseeds = [1, 2, \"http://fine.test/\"]\n",
        &["2:crawl.seeds: must be a list of texts in quotes, like [\"a\", \"b\"]"],
    ),
    (
        "[doc_index]\ndeny = [\"(\", \"/fine\", \"[\"]\n",
        &[
            "2:doc_index.deny: rule 1, \"(\": unclosed group",
            "2:doc_index.deny: rule 3, \"[\": unclosed character class",
        ],
    ),
    (
        "[doc_index]\nallow = [\n  \"/fine\",\n  \"surt:\",\n  \"*\",\n]\n",
        &[
            "4:doc_index.allow: rule 2, \"surt:\": not a SURT prefix, like surt:com,example, or surt:com,example,)/private",
            "5:doc_index.allow: rule 3, \"*\": repetition operator missing expression",
        ],
    ),
    (
        "[doc_index]\nquery_drop = [\"a=b\", \"utm_*\", \"x*y\"]\n",
        &[
            "2:doc_index.query_drop: \"a=b\" is no name of a parameter (as it stands in a URL, with a * at its end only)",
            "2:doc_index.query_drop: \"x*y\" is no name of a parameter (as it stands in a URL, with a * at its end only)",
        ],
    ),
    (
        "[[recrawl]]\nmatch = \"(\"\nevery = \"1h\"\n[[recrawl]]\nmatch = \"[\"\nevery = \"1h\"\n",
        &["1:recrawl[1].match: \"(\": unclosed group", "4:recrawl[2].match: \"[\": unclosed character class"],
    ),
    (
        "[[recrawl]]\nevery = \"1h\"\n[[recrawl]]\nmatch = \"/\"\n",
        &[
            "1:recrawl[1]: match is missing (like match = \"/news/\")",
            "3:recrawl[2]: every is missing (like every = \"1h\")",
        ],
    ),
    (
        "[[auth]]\nsite = \"http://a.test\"\nuser = \"u\"\npassword = \"hunter2\"\n[[auth]]\nsite = \"http://a.test\"\nuser = \"u\"\npassword = \"hunter2\"\n[[auth]]\nsite = \"http://a.test/\"\nuser = \"u\"\npassword = \"hunter2\"\n",
        &[
            "5:auth[2]: http://a.test with path / is entry 1 already (drop one, or give it another path)",
            "9:auth[3]: http://a.test with path / is entry 1 already (drop one, or give it another path)",
        ],
    ),
    (
        "[[auth]]\nsite = \"a.test\"\nuser = \"u\"\npassword = \"hunter2\"\n[[auth]]\nsite = \"http://b.test\"\nuser = \"u\"\n",
        &[
            "1:auth[1]: site must be like \"https://example.org\" or \"http://host:8080\", not a.test",
            "5:auth[2]: has no password (give password, or password_file whose first line it is)",
        ],
    ),
    (
        "[[auth]]\nsite = \"http://a.test\"\nuser = \"u\"\npassword_file = \"gone\"\n",
        &["1:auth[1]: cannot read gone: No such file or directory (os error 2) (name another password_file)"],
    ),
    (
        "[crawl]\nseeds_file = \"gone.txt\"\nhosts_file = \"gone\"\n[spider]\nca_file = \"gone.pem\"\n",
        &[
            "2:crawl.seeds_file: cannot read gone.txt: No such file or directory (os error 2) (name a file of URLs, one a line)",
            "3:crawl.hosts_file: cannot read gone: No such file or directory (os error 2) (name a file in the format of /etc/hosts)",
            "5:spider.ca_file: cannot read gone.pem: No such file or directory (os error 2) (name a file of certificates in PEM)",
        ],
    ),
    ("[crawl]\ndepht = 3\n", &["2:crawl.depht: unknown setting (did you mean depth?)"]),
    ("[crawler]\ndepth = 3\n", &["1:crawler: unknown setting (did you mean crawl?)"]),
    ("[crawl]\nqueue_len = 3\n", &["2:crawl.queue_len: unknown setting (it belongs below [url_server])"]),
    (
        "[spider]\ncommit_ms = 20\n[store]\nuser_agent = \"x\"\n",
        &[
            "2:spider.commit_ms: unknown setting (it belongs below [store])",
            "4:store.user_agent: unknown setting (it belongs below [spider])",
        ],
    ),
    // Once, however long the list is.
    (
        "[crawl]\ndeny = [\n\"a\",\n\"b\",\n\"c\",\n]\n",
        &["2:crawl.deny: unknown setting (it belongs below [doc_index])"],
    ),
    (
        "depth = 3\nrubbish = 1\n",
        &[
            "1:depth: unknown setting (it belongs below [crawl])",
            "2:rubbish: unknown setting (known are crawl, url_server, spider, store, doc_index, feeds, content, master, cluster, admin, recrawl, auth, server)",
        ],
    ),
    (
        "[crawl]\ndepth = 1\ndepth = 2\n",
        &["3:depth: duplicate key (the file is TOML: see nephila help settings)"],
    ),
    (
        "[spider]\nuser_agent = \"a\"\n[crawl]\nuser_agent = \"b\"\n",
        &["4:crawl.user_agent: is said in line 2, too (keep one)"],
    ),
    (
        "[crawl\ndepth = 1\n",
        &["1: unclosed table, expected `]` (the file is TOML: see nephila help settings)"],
    ),
    (
        "[crawl]\ndepth = \nmax_pages = 1.5\n",
        &[
            "2:depth: string values must be quoted, expected literal string (the file is TOML: see nephila help settings)",
            "3:crawl.max_pages: must be a whole number",
        ],
    ),
    (
        "[crawl]\nscope = host\n",
        &[
            "2:scope: string values must be quoted, expected literal string (the file is TOML: see nephila help settings)",
        ],
    ),
    (
        "[crawl]\ndepth = \"3\n",
        &["2:depth: invalid basic string, expected `\"` (the file is TOML: see nephila help settings)"],
    ),
    (
        "[crawl]\ndepth = -1\nmax_pages = \"many\"\nwait = \"yes\"\n",
        &[
            "2:crawl.depth: must be a whole number of at most 65535",
            "3:crawl.max_pages: must be a whole number",
            "4:crawl.wait: must be true or false",
        ],
    ),
    (
        "[crawl]\nscope = \"hosts\"\ndriver = \"iouring\"\n",
        &[
            "2:crawl.scope: must be \"host\", \"domain\", \"prefix\" or \"any\"",
            "3:crawl.driver: must be \"auto\", \"uring\" or \"epoll\"",
        ],
    ),
    (
        "[spider]\ntimeout_req = \"30 seconds\"\nmax_doc_size = \"4M\"\ntimeout_connect = \"4MiB\"\n",
        &[
            "2:spider.timeout_req: must be a time like 250ms, 30s, 5min, 1h or 2d, or a whole number of milliseconds",
            "3:spider.max_doc_size: must be a size like 64KiB, 4MiB, 4MB or 2GiB, or a whole number of bytes",
            "4:spider.timeout_connect: must be a time like 250ms, 30s, 5min, 1h or 2d, or a whole number of milliseconds",
        ],
    ),
    (
        "[spider]\ntimeout_req = 0\nmax_doc_size = \"2GiB\"\nfetches_max = 1000000000\n",
        &[
            "2:spider.timeout_req: must be at least 1ms",
            "3:spider.max_doc_size: can be at most 1GiB",
            "4:spider.fetches_max: can be at most 65536",
        ],
    ),
    (
        "[url_server]\nreq_host_per_sec = -1\nreq_host_concurrent = 0\nspider_port = 70000\n",
        &[
            "2:url_server.req_host_per_sec: must be at least 0",
            "3:url_server.req_host_concurrent: must be at least 1",
            "4:url_server.spider_port: must be a whole number of at most 65535",
        ],
    ),
    (
        "[url_server]\nlisten = \"here\"\nreq_ip_per_sec = \"fast\"\nin_ram = 1\n",
        &[
            "2:url_server.listen: must be an address and port like \"0.0.0.0:7170\"",
            "3:url_server.req_ip_per_sec: must be a number",
            "4:url_server.in_ram: must be true or false",
        ],
    ),
    (
        "[spider]\ntimeout_update = \"10min\"\n",
        &[
            "2:spider.timeout_update: timeout_spider_status (1min) must be at least twice timeout_update (10min)",
        ],
    ),
    (
        "[spider]\nbody_memory = \"1MiB\"\nmax_doc_size = \"2MiB\"\n",
        &["2:spider.body_memory: body_memory (1MiB) must hold a document of max_doc_size (2MiB)"],
    ),
    (
        "[store]\nsegment_bytes = \"4KiB\"\nbytes_max = \"1MB\"\nhistory = \"some\"\n",
        &[
            "2:store.segment_bytes: segment_bytes (4KiB) is too small for a document of max_doc_size (16MiB): at least 18737561 bytes are needed",
            "4:store.history: must be \"all\" or \"newest\"",
        ],
    ),
    (
        "[doc_index]\nrecrawl_min = \"2d\"\nrecrawl_max = \"1d\"\nmemory = \"1KiB\"\n",
        &[
            "2:doc_index.recrawl_min: recrawl_start (1d) must lie between recrawl_min (2d) and recrawl_max (1d)",
            "4:doc_index.memory: must be at least 16MiB",
        ],
    ),
    (
        "[doc_index]\nrecrawl_start = \"60d\"\n",
        &[
            "2:doc_index.recrawl_start: recrawl_start (60d) must lie between recrawl_min (1h) and recrawl_max (30d)",
        ],
    ),
    (
        "[crawl]\ncontact = \"here\"\nuser_agent = \"caf\u{e9}\"\n",
        &[
            "2:spider.contact: must be an http or https URL or a mail address, printable ASCII without parentheses and at most 200 bytes",
            "3:spider.user_agent: user_agent must be printable ASCII and not empty",
        ],
    ),
    (
        "crawl = 3\n[[store]]\ndata = \"d\"\n",
        &[
            "1:crawl: must be a section (begin it with [crawl])",
            "2:store: must be a section (begin it with [store])",
        ],
    ),
    (
        "[crawl]\nseeds = \"http://a.test/\"\n",
        &["2:crawl.seeds: must be a list of texts in quotes, like [\"a\", \"b\"]"],
    ),
    (
        "[recrawl]\nmatch = \"/\"\n[auth]\nuser = \"u\"\n",
        &[
            "1:recrawl: must be a list: each entry begins with [[recrawl]] (the setting of this name belongs below [doc_index])",
            "3:auth: must be a list: each entry begins with [[auth]]",
        ],
    ),
    (
        "[spider]\nuser_agent = \"\\u001b[31m\"\n\"\\u001b\" = 1\n",
        &[
            "2:spider.user_agent: user_agent must be printable ASCII and not empty",
            "3:spider.\\u{1b}: unknown setting (nephila help settings lists all)",
        ],
    ),
    (
        "\u{feff}[crawl]\ndepth = x\n",
        &[
            "2:depth: string values must be quoted, expected literal string (the file is TOML: see nephila help settings)",
        ],
    ),
];

#[track_caller]
fn config<'a>(dir: &TempDir, words: impl IntoIterator<Item = &'a str>) -> Run {
    let mut command = nephila();
    command.current_dir(dir.path()).arg("config").args(words);
    Running::start(&mut command).wait(PATIENCE)
}

#[test]
fn every_mistake_is_told_and_a_crawl_tells_the_same() {
    assert!(WRONG.len() >= 30, "{}", WRONG.len());
    let dir = TempDir::new();
    for (text, expected) in WRONG {
        dir.write("c.toml", text);
        let checked = config(&dir, ["check", "c.toml"]);
        let expected: Vec<String> = expected.iter().map(|line| format!("c.toml:{line}")).collect();
        assert_eq!(checked.text().lines().collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(checked.code(), 1, "{text}");
        let last = checked.stderr.lines().last().unwrap();
        assert!(last.starts_with(&format!("nephila: {} mistake", expected.len())), "{last}");
        assert!(!(checked.text() + &checked.stderr).contains("hunter2"));
        let mut command = nephila();
        command.current_dir(dir.path()).args(["crawl", "http://127.0.0.1:9/", "--config", "c.toml"]);
        let crawl = Running::start(&mut command).wait(PATIENCE);
        assert_eq!(crawl.code(), 2, "{text}\n{}", crawl.stderr);
        assert_eq!(crawl.stderr.trim_end(), format!("nephila: {}", expected.join("\n")), "{text}");
    }
    assert!(!dir.join("nephila-data").exists());
}

#[test]
fn files_are_checked_for_the_command_that_takes_them() {
    let dir = TempDir::new();
    dir.write("fine.toml", "[crawl]\ndepth = 3\nseeds = [\"http://a.test/\"]\n[spider]\ncookies = true\n");
    dir.write("empty.toml", "");
    let fine = config(&dir, ["check", "fine.toml", "empty.toml"]).done();
    assert_eq!(fine.text(), "fine.toml: 3 settings, no mistake\nempty.toml: 0 settings, no mistake\n");
    assert_eq!(fine.stderr, "");
    // What is missing for one command is no mistake for another.
    let urls = config(&dir, ["check", "fine.toml", "--for", "urlserver"]);
    assert_eq!(urls.code(), 1);
    assert!(urls.text().starts_with("no way to a spider: set listen or spider_host"), "{}", urls.text());
    for role in ["crawl", "spider", "storeserver"] {
        config(&dir, ["check", "fine.toml", "--for", role]).done();
    }
    // Every file, and one that is none.
    dir.write("wrong.toml", "[crawl]\ndepht = 3\nscope = 1\n");
    let mixed = config(&dir, ["check", "wrong.toml", "gone.toml", "fine.toml"]);
    assert_eq!((mixed.code(), mixed.text().lines().count()), (2, 3), "{}", mixed.text());
    assert!(mixed.stderr.contains("cannot read gone.toml: No such file"), "{}", mixed.stderr);
    let told = config(&dir, ["check", "--json", "wrong.toml", "fine.toml"]);
    let lines: Vec<Value> = told.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((told.code(), lines.len()), (1, 3));
    assert_eq!(
        (&lines[0]["file"], &lines[0]["line"], &lines[0]["key"], &lines[0]["problem"], &lines[0]["ok"]),
        (
            &"wrong.toml".into(),
            &2.into(),
            &"crawl.depht".into(),
            &"unknown setting (did you mean depth?)".into(),
            &false.into()
        )
    );
    assert_eq!((&lines[2]["file"], &lines[2]["ok"]), (&"fine.toml".into(), &true.into()));
}

/// The lines of `config show`, cut into their columns.
#[track_caller]
fn shown<'a>(dir: &TempDir, words: impl IntoIterator<Item = &'a str>) -> Vec<Vec<String>> {
    let run = config(dir, ["show"].into_iter().chain(words)).done();
    assert!(!run.text().contains("hunter2"), "{}", run.text());
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).map(String::from).collect();
    run.text().lines().map(columns).collect()
}

#[test]
fn every_setting_is_shown_with_who_said_so() {
    let server = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    dir.write(
        "job.toml",
        "[crawl]\ndepth = 2\nreq_host_per_sec = 0\n[spider]\ntimeout_req = \"30s\"\n\n[[recrawl]]\nmatch = \"/\"\nevery = 60\n\
         [[auth]]\nsite = \"https://a.test\"\nuser = \"u\"\npassword = \"hunter2\"\n",
    );
    let all = shown(&dir, ["--config", "job.toml"]);
    assert!(all.len() > 60, "{}", all.len());
    let find = |rows: &[Vec<String>], key: &str| {
        rows.iter().find(|row| row[0] == key).unwrap_or_else(|| panic!("{key}")).clone()
    };
    assert_eq!(find(&all, "crawl.depth")[..3], ["crawl.depth", "2", "job.toml:2"]);
    assert_eq!(find(&all, "spider.timeout_req")[..3], ["spider.timeout_req", "\"30s\"", "job.toml:5"]);
    assert_eq!(find(&all, "spider.timeout_connect")[..3], ["spider.timeout_connect", "\"10s\"", "default"]);
    assert_eq!(find(&all, "url_server.req_host_per_sec")[1..3], ["0.0 per second", "job.toml:3"]);
    assert_eq!(find(&all, "auth")[..2], ["auth", "[\"https://a.test\"]"]);
    assert_eq!(find(&all, "url_server.queue_len")[3], "restart");
    let diff: Vec<String> =
        shown(&dir, ["--config", "job.toml", "--diff"]).into_iter().map(|mut row| row.remove(0)).collect();
    assert_eq!(diff, ["crawl.depth", "url_server.req_host_per_sec", "spider.timeout_req", "recrawl", "auth"]);
    assert_eq!(shown(&dir, ["--config", "job.toml", "depth", "store"]).len(), 13);
    let unknown = config(&dir, ["show", "dpeth"]);
    assert_eq!(
        (unknown.code(), unknown.stderr.trim_end()),
        (2, "nephila: dpeth: unknown setting (did you mean depth?)")
    );

    // What the directory was told, in a run that is over, and what a file says beside it.
    let data = dir.join("data");
    let data = data.to_str().unwrap();
    let mut command = crawl_command(Path::new(data));
    command.current_dir(dir.path());
    command.args([&server.url("/"), "--config", "job.toml", "--max-doc-size", "1MiB", "--max-pages", "5"]);
    Running::start(&mut command).wait(PATIENCE).done();
    let kept = shown(&dir, ["--data", data, "--diff"]);
    assert_eq!(find(&kept, "spider.max_doc_size")[1..3], ["\"1MiB\"", "kept: a flag"]);
    assert!(find(&kept, "crawl.depth")[2].ends_with("/job.toml"));
    assert!(
        kept.iter().all(|row| row[0] != "crawl.max_pages" && row[0] != "auth"),
        "of that run alone: {kept:?}"
    );
    dir.write("job.toml", "[crawl]\ndepth = 7\nmax_doc_size = \"2MiB\"\n");
    let both = shown(&dir, ["--data", data, "--config", "job.toml", "--diff"]);
    assert_eq!(find(&both, "crawl.depth")[1..3], ["7", "job.toml:2"]);
    assert_eq!(find(&both, "spider.max_doc_size")[1..3], ["\"1MiB\"", "kept: a flag"]);

    let lines = config(&dir, ["show", "--json", "--data", data, "timeout_req", "max_doc_size"]).done().text();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["key"], &lines[0]["value"], &lines[0]["unit"]),
        (&"spider.timeout_req".into(), &30_000.into(), &"ms".into())
    );
    assert_eq!((&lines[1]["source"], &lines[1]["default"]), (&"kept".into(), &"\"16MiB\"".into()));
}

/// What is shown as a file can be given again, and says the same.
#[test]
fn a_listing_may_be_a_file_again() {
    let dir = TempDir::new();
    dir.write(
        "job.toml",
        "[crawl]\nseeds = [\"http://a.test/\"]\nallow_net = [\"127.0.0.1\"]\n[doc_index]\ndeny = ['\\.zip$', \"a\\tb\"]\n\
         [[recrawl]]\nmatch = \"/news/\"\nevery = \"10min\"\n",
    );
    dir.write("whole.toml", config(&dir, ["show", "--config", "job.toml", "--toml"]).done().text());
    let json = |file: &str| {
        let text = config(&dir, ["show", "--json", "--config", file]).done().text();
        let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        values.map(|line| (line["key"].clone(), line["value"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(json("whole.toml"), json("job.toml"));
    config(&dir, ["check", "whole.toml"]).done();
}

/// Programs have the value of whatever people are shown one of.
#[test]
fn every_section_has_its_values_for_programs() {
    let dir = TempDir::new();
    dir.write("job.toml", "[admin]\nlisten = \"127.0.0.1:7180\"\nhosts = [\"crawl.example.org\"]\n");
    for line in config(&dir, ["show", "--json", "--config", "job.toml"]).done().json_lines() {
        assert!(line["text"] == "unset" || !line["value"].is_null(), "{line}");
    }
}
