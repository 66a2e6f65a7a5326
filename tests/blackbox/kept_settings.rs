//! The promise: settings belong to the data directory. A crawl that goes on goes on as it was told, says what it took
//! over and what has changed, and never keeps a secret.

use crate::support::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const AGENT: &str = "mybot/1.0 (+https://example.org/bot)";

/// Three pages in a row, and a robots.txt.
fn server() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::html("<a href=/1>"),
        "/1" => Reply::html("<a href=/2>"),
        "/2" => Reply::html("<a href=/3>"),
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("end"),
    })
}

/// `nephila crawl --json --data D`, and nothing else.
fn bare(data: &Path) -> Command {
    let mut command = nephila();
    command.args(["crawl", "--json", "--data"]).arg(data);
    command
}

#[track_caller]
fn ended(command: &mut Command) -> Run {
    Running::start(command).wait(PATIENCE).done()
}

/// A first run that is told much and fetches one page.
fn told(server: &LogServer, data: &Path) -> Run {
    let mut command = bare(data);
    command.args([&server.url("/"), "--allow-net", "127.0.0.1", "--scope", "prefix", "--depth", "2"]);
    command.args([
        "--req-host-per-sec",
        "50",
        "--user-agent",
        AGENT,
        "--max-pages",
        "1",
        "--timeout-req",
        "20s",
    ]);
    ended(&mut command)
}

/// The URLs that have a record.
fn urls(data: &Path) -> BTreeSet<String> {
    records(data).into_iter().map(|record| record.url).collect()
}

fn kept(data: &Path) -> String {
    std::fs::read_to_string(data.join("settings.toml")).unwrap()
}

/// The settings lines of a run, from the line that begins with `begins` on.
fn block(run: &Run, begins: &str) -> Vec<String> {
    let lines = run.stderr.lines().skip_while(|line| !line.starts_with(begins));
    let mut lines = lines.map(str::to_string);
    let first = lines.next();
    first.into_iter().chain(lines.take_while(|line| line.starts_with("  "))).collect()
}

#[test]
fn a_crawl_goes_on_as_it_was_told() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    let first = told(&server, &data);
    assert!(!first.stderr.contains("settings of the last run"), "{}", first.stderr);
    let rules = std::fs::read(data.join("index/rules.json")).unwrap();
    let text = kept(&data);
    assert!(!text.contains("max_pages"), "{text}");

    // The address is still allowed, the agent the same, depth and scope hold, and the page limit does not.
    let run = ended(&mut bare(&data));
    let report = run.json();
    assert_eq!((report["pages"].as_u64(), report["pending"].as_u64()), (Some(2), Some(0)), "{report}");
    assert_eq!(urls(&data).len(), 3, "two links from the seed, and no more");
    assert!(server.asked().iter().all(|asked| asked.user_agent == AGENT));
    assert_eq!(std::fs::read(data.join("index/rules.json")).unwrap(), rules);
    assert_eq!(kept(&data), text, "told nothing new, it keeps the same");
    assert_eq!(
        block(&run, "settings of the last run"),
        [
            "settings of the last run hold (--fresh-settings forgets them):",
            "  crawl.allow_net = [\"127.0.0.1/32\"]",
            "  crawl.depth = 2",
            "  crawl.scope = \"prefix\"",
            "  spider.timeout_req = \"20s\"",
            &format!("  spider.user_agent = \"{AGENT}\""),
            "  url_server.req_host_per_sec = 50.0",
        ]
    );

    // Flags win, are told, and are kept from then on; a default can be asked for, too.
    let run = ended(bare(&data).args(["--again", "--depth", "3", "--timeout-req", "60000", "--cookies"]));
    assert_eq!(urls(&data).len(), 4, "the fourth page is in reach");
    let said = block(&run, "settings of the last run");
    for line in [
        "  crawl.depth = 3 by a flag, was 2",
        "  spider.cookies = true by a flag, was false",
        "  spider.timeout_req = \"1min\" by a flag, was \"20s\"",
    ] {
        assert!(said.iter().any(|said| said == line), "{said:#?}");
    }
    let run = ended(bare(&data).arg("--cookies=false"));
    let said = block(&run, "settings of the last run");
    assert!(said.iter().any(|line| line == "  crawl.depth = 3"), "{said:#?}");
    assert!(said.iter().any(|line| line == "  spider.cookies = false by a flag, was true"), "{said:#?}");

    // Forgotten, they are: the address is refused again.
    let run = Running::start(bare(&data).args(["--fresh-settings", "--again"])).wait(PATIENCE);
    assert!(!run.stderr.contains("settings of the last run hold"), "{}", run.stderr);
    let said = block(&run, "settings of the last run are forgotten");
    assert!(said.iter().any(|line| line == "  crawl.depth was 3, and is unset"), "{said:#?}");
    assert!(!kept(&data).contains("depth"), "{}", kept(&data));
    assert_eq!(server.asked().iter().filter(|asked| asked.user_agent != AGENT).count(), 0);
}

/// Killed at once, it has been told all the same.
#[test]
fn a_kill_forgets_nothing() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    let mut command = bare(&data);
    command.args([&server.url("/"), "--allow-net", "127.0.0.0/8", "--user-agent", AGENT, "--wait"]);
    let crawl = Running::start(&mut command);
    wait_for("a request", PATIENCE, || (!server.asked().is_empty()).then_some(()));
    crawl.signal(nix::sys::signal::Signal::SIGKILL);
    let _ = crawl.wait(PATIENCE);
    assert!(kept(&data).contains(AGENT));
    let run = ended(bare(&data).args(["--req-host-per-sec", "0"]));
    assert!(run.stderr.contains(&format!("spider.user_agent = \"{AGENT}\"")), "{}", run.stderr);
    assert_eq!(urls(&data).len(), 4);
}

/// A file that is given again speaks for itself; what a flag said wins over it, and the run tells so.
#[test]
fn an_edited_file_holds() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    let job = |text: &str| dir.write("job.toml", text).display().to_string();
    let base = "[crawl]\nallow_net = [\"127.0.0.1\"]\nreq_host_per_sec = 0\n";
    let file = job(&format!("{base}depth = 1\nuser_agent = \"filebot/1\"\n"));
    ended(bare(&data).args([&server.url("/"), "--config", &file]));
    assert_eq!(urls(&data).len(), 2);
    // Without the file, what it said holds.
    let run = ended(bare(&data).arg("--again"));
    assert!(run.stderr.contains("  crawl.depth = 1\n"), "{}", run.stderr);
    assert!(server.asked().iter().all(|asked| asked.user_agent == "filebot/1"));
    // Edited, it holds: one line changed, one gone.
    job(&format!("{base}depth = 2\n"));
    let run = ended(bare(&data).args(["--config", &file, "--again"]));
    assert!(run.stderr.contains(&format!("  crawl.depth = 2 by {file}, was 1\n")), "{}", run.stderr);
    assert!(run.stderr.contains("  spider.user_agent = \"nephila/"), "{}", run.stderr);
    assert_eq!(urls(&data).len(), 3);
    // A flag has the last word, until there is another flag.
    ended(bare(&data).args(["--config", &file, "--depth", "1"]));
    let run = ended(bare(&data).args(["--config", &file]));
    let line = format!("  crawl.depth stays 1, which a flag said once; {file} says 2 (give it as a flag)\n");
    assert!(run.stderr.contains(&line), "{}", run.stderr);
    // Files named from one directory are found from another.
    let hosts = dir.write("sub/h", "127.0.0.1 a.test\n");
    let data = dir.join("named");
    let url = format!("http://a.test:{}/", server.port());
    let mut command = bare(&data);
    command.current_dir(hosts.parent().unwrap());
    command.args([&url, "--hosts-file", "h", "--allow-net", "127.0.0.1", "--max-pages", "1"]);
    ended(&mut command);
    let run = ended(bare(&data).args(["--max-pages", "1", "--req-host-per-sec", "0"]));
    assert_eq!(run.json()["success"], 1, "{}", run.stderr);
}

#[test]
fn credentials_are_never_kept_and_missed_when_they_are_gone() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    let origin = server.url("/").trim_end_matches('/').to_string();
    let file = dir.write(
        "job.toml",
        format!(
            "[crawl]\nallow_net = [\"127.0.0.1\"]\nreq_host_per_sec = 0\ncookies = true\n\
             [[auth]]\nsite = \"{origin}\"\nuser = \"mallory\"\npassword = \"hunter2\"\n"
        ),
    );
    ended(bare(&data).arg(server.url("/")).arg("--config").arg(&file));
    let text = kept(&data);
    assert!(!text.contains("hunter2") && !text.contains("mallory") && !text.contains("auth"), "{text}");
    let missed =
        format!("credentials are not kept: an earlier run had some for {origin}, and nothing is fetched");
    let run = ended(bare(&data).arg("--config").arg(&file));
    assert!(!run.stderr.contains("credentials are not kept"), "{}", run.stderr);
    let run = ended(&mut bare(&data));
    assert!(run.stderr.contains(&missed) && run.stderr.contains("--config"), "{}", run.stderr);
}

/// One line with cause and mend, and the file stays as it is until it is forgotten.
#[test]
fn a_damaged_file_is_named_and_left_alone() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    told(&server, &data);
    let whole = kept(&data);
    let path = data.join("settings.toml");
    let damages = [
        String::new(),
        whole[..whole.len() / 2].to_string(),
        whole.replace("depth = 2", "depth = \"two\""),
        whole.replace("depth", "dpeth"),
        whole.replace("version = 1", "version = 99"),
        format!("{whole}\u{0}"),
    ];
    for damaged in damages.iter().map(|text| text.as_bytes()).chain([b"\xff\xfe".as_slice()]) {
        std::fs::write(&path, damaged).unwrap();
        let before = server.asked().len();
        let run = Running::start(&mut bare(&data)).wait(PATIENCE);
        assert_eq!(run.code(), 2, "{}", run.stderr);
        let said = run.stderr.strip_prefix("nephila: ").unwrap_or_else(|| panic!("{}", run.stderr));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("settings.toml") && said.contains("--fresh-settings"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "nothing is overwritten");
        assert_eq!(server.asked().len(), before);
    }
    ended(bare(&data).args(["--fresh-settings", "--allow-net", "127.0.0.1", "--depth", "2"]));
    assert!(kept(&data).contains("depth = 2"));
}

/// A directory of an earlier version goes on with the defaults, and without a word.
#[test]
fn a_directory_without_settings() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    told(&server, &data);
    std::fs::remove_file(data.join("settings.toml")).unwrap();
    let run = ended(bare(&data).args(["--allow-net", "127.0.0.1", "--req-host-per-sec", "0"]));
    assert!(!run.stderr.contains("settings"), "{}", run.stderr);
    assert_eq!(run.json()["pages"], 3, "no depth, and the whole host");
}

/// A URL server that works off the index of a crawl follows its settings, and leaves its rules as they are.
#[test]
fn a_url_server_on_the_same_directory() {
    let (server, dir) = (server(), TempDir::new());
    let data = dir.join("data");
    told(&server, &data);
    let rules = std::fs::read(data.join("index/rules.json")).unwrap();
    let config = dir.write("u.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let mut command = nephila();
    command.args(["urlserver", "--config"]).arg(config).arg("--data").arg(&data);
    let urlserver = Running::start(&mut command);
    wait_for("it listens", PATIENCE, || urlserver.stderr().contains("listening on").then_some(()));
    urlserver.signal(nix::sys::signal::Signal::SIGTERM);
    let run = urlserver.wait(PATIENCE).done();
    assert!(run.stderr.contains(&format!("spider.user_agent = \"{AGENT}\"")), "{}", run.stderr);
    assert_eq!(std::fs::read(data.join("index/rules.json")).unwrap(), rules);
}

/// Who leaves private networks says how to be reached, or is told to.
#[test]
fn a_crawl_without_a_contact_is_told_so() {
    let (server, dir) = (server(), TempDir::new());
    let warns = |name: &str, args: &[&str]| {
        let mut command = bare(&dir.join(name));
        command.args(["--max-seconds", "1", "--allow-net", "127.0.0.1", "--dns", "127.0.0.1:9"]).args(args);
        let run = Running::start(&mut command).wait(PATIENCE);
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("--contact")).collect();
        assert!(lines.len() <= 1, "{}", run.stderr);
        lines.first().is_some_and(|line| line.contains("a.test"))
    };
    let hosts = dir.write("hosts", "127.0.0.1 a.test\n");
    let named = format!("http://a.test:{}/", server.port());
    let with_hosts = ["--hosts-file", hosts.to_str().unwrap()];
    assert!(warns("public", &["http://a.test/"]));
    assert!(warns("public", &["--fresh-settings"]), "what it began with counts when it goes on");
    assert!(!warns("contact", &["http://a.test/", "--contact", "me@example.org"]));
    assert!(!warns("contact", &[]), "the contact is kept");
    assert!(!warns("agent", &["http://a.test/", "--user-agent", AGENT]));
    assert!(!warns("literal", &[&server.url("/")]));
    assert!(!warns("named", &[&[named.as_str()], with_hosts.as_slice()].concat()));
    assert!(warns("mixed", &[&[named.as_str(), "http://b.a.test/"], with_hosts.as_slice()].concat()));
}
