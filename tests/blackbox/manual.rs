//! The promise: README and manual say what is so. Every command line in them is one that the binary takes, every
//! settings file is read, and every session that needs no network runs as it is written.
//!
//! A code block (lines indented by four spaces) with commands follows a mark that a page does not show: `<!-- run -->`
//! is run here, all such blocks of a page one after the other in one directory; `<!-- systemd -->` where there is one
//! (`services`); `<!-- network -->` is not, and its
//! section says that it needs the network.

use crate::support::*;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const TOPICS: [&str; 17] = [
    "first-crawl",
    "crawling",
    "index",
    "store",
    "archives",
    "split",
    "master",
    "cluster",
    "feeds",
    "politeness",
    "monitoring",
    "services",
    "logs",
    "settings",
    "tuning",
    "farm",
    "protocols",
];

/// Ports that stand in the text; each test uses free ones in their place.
const PORTS: [&str; 11] =
    ["7053", "7080", "7081", "7443", "7170", "7172", "7174", "7175", "7176", "7180", "7190"];

fn source(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn readme() -> String {
    source("README.md")
}

fn page(topic: &str) -> String {
    source(&format!("src/manual/{topic}.md"))
}

/// Every text with commands in it, by its name.
fn texts() -> Vec<(String, String)> {
    let pages = TOPICS.map(|topic| (topic.to_string(), page(topic)));
    let others = ["README.md", "bench/README.md"].map(|path| (path.to_string(), source(path)));
    others.into_iter().chain(pages).collect()
}

/// Lines that are indented by four spaces, and what stands before them.
struct Block {
    /// `run` or `network`.
    mark: Option<String>,
    /// Without the indentation.
    lines: Vec<String>,
    /// The section up to the block.
    before: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut mark, mut before, mut inside) = (None, String::new(), false);
    for line in text.lines() {
        if let Some(code) = line.strip_prefix("    ") {
            match found.last_mut().filter(|_| inside) {
                Some(block) => block.lines.push(code.to_string()),
                None => found.push(Block {
                    mark: mark.take(),
                    lines: vec![code.to_string()],
                    before: before.clone(),
                }),
            }
            inside = true;
            continue;
        }
        inside = false;
        match line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            Some(name) => mark = Some(name.to_string()),
            None if line.is_empty() => {}
            None => mark = None,
        }
        if line.starts_with("## ") {
            before.clear();
        }
        before += line;
        before.push('\n');
    }
    found
}

impl Block {
    /// Commands with their comments, continued lines joined.
    fn commands(&self) -> Vec<String> {
        let joined = self.lines.join("\n").replace("\\\n", " ");
        let typed = joined.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line).to_string());
        typed.filter(|line| is_command(line)).collect()
    }
}

fn is_command(line: &str) -> bool {
    ["nephila ", "printf ", "curl ", "mv ", "sleep "].iter().any(|word| line.starts_with(word))
}

/// The command without its comment.
fn bare(line: &str) -> &str {
    line.split(" # ").next().unwrap().trim_end()
}

/// The words after `nephila`, up to what the shell takes for itself.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in bare(command).chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let of_shell = |word: &String| ["|", "&", ">", "<"].contains(&word.as_str());
    let end = words.iter().position(of_shell).unwrap_or(words.len());
    words[1..end].to_vec()
}

/// What stands between backquotes and begins with our name, as commands: `ls\|cat` is two of them, and what stands for
/// something else (`URL`, `[URL…]`) is left out.
fn inline_commands(text: &str) -> Vec<Vec<String>> {
    let prose: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ")).collect();
    let prose = prose.join(" ").replace("\\|", "|");
    let mut commands = Vec::new();
    for span in prose.split('`').skip(1).step_by(2).filter(|span| span.starts_with("nephila ")) {
        let mut made: Vec<Vec<String>> = vec![Vec::new()];
        for word in span.split_whitespace().skip(1) {
            if word.contains('…') || word.chars().any(char::is_uppercase) {
                // A flag that it is the value of goes with it.
                made.iter_mut().for_each(|begun| drop(begun.pop_if(|last| last.starts_with("--"))));
                continue;
            }
            let with = |choice: &str| {
                made.iter().map(|begun| [&begun[..], &[choice.to_string()]].concat()).collect::<Vec<_>>()
            };
            made = word.split('|').flat_map(with).collect();
        }
        commands.extend(made);
    }
    commands
}

#[test]
fn the_front_door_is_small() {
    let readme = readme();
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
    assert!(readme.len() <= 10_000, "{} bytes", readme.len());
    for topic in TOPICS {
        assert!(readme.contains(&format!("`{topic}`")), "{topic} is named");
    }
}

#[test]
fn every_topic_is_listed_and_printed() {
    let help = run(["--help"]).done().text();
    let topics = help.split("Topics of the manual").nth(1).expect("the topics end the help");
    for topic in TOPICS {
        assert!(topics.contains(&format!("\n  {topic} ")), "{topic} in {topics}");
        let printed = run(["help", topic]).done();
        let text = printed.text();
        assert_eq!(printed.stderr, "");
        assert!(text.starts_with("# ") && !text.contains("<!--"), "{topic}: {text}");
        // But for what the page hides, it is the page.
        let shown = |text: &str| -> String {
            let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("<!--"));
            lines.collect::<Vec<_>>().join("\n")
        };
        // What follows the mark is made from the definitions of settings and events, and the end of figures from theirs.
        let page = page(topic);
        let written =
            page.split("<!-- settings -->").next().unwrap().split("<!-- events -->").next().unwrap();
        assert!(shown(&text).starts_with(&shown(written)), "{topic}: {text}");
        assert!(
            ["logs", "monitoring", "settings"].contains(&topic) || shown(&text) == shown(written),
            "{topic}: {text}"
        );
        for line in text.lines().filter(|line| !line.starts_with('|')) {
            assert!(line.chars().count() <= 120, "{topic}: {line}");
        }
    }
}

#[test]
fn the_page_of_settings_has_all_sections() {
    let text = run(["help", "settings"]).done().text();
    for name in ["req_host_per_sec", "timeout_req", "commit_ms", "recrawl_min", "password_file", "every"] {
        assert!(text.contains(&format!("`{name}`")), "{name} in {text}");
    }
}

#[test]
fn help_of_commands_is_what_they_print_themselves() {
    assert_eq!(run(["help"]).done().text(), run(["--help"]).done().text());
    for command in [&["crawl"][..], &["audit"], &["store", "ls"], &["index", "import"], &["help"]] {
        let flag = run(command.iter().chain(&["--help"])).done().text();
        assert_eq!(run(["help"].iter().chain(command)).done().text(), flag, "{command:?}");
    }
}

#[test]
fn an_unknown_topic_is_answered_with_those_that_are_known() {
    for (typed, nearest) in [("polite", Some("politeness")), ("crawll", Some("crawl")), ("zzz", None)] {
        let ended = run(["help", typed]);
        assert_eq!((ended.code(), ended.text()), (2, String::new()), "{typed}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(TOPICS.iter().all(|topic| ended.stderr.contains(topic)), "{}", ended.stderr);
        let hint = nearest.map(|name| format!("did you mean {name}?"));
        assert_eq!(ended.stderr.contains("did you mean"), hint.is_some(), "{}", ended.stderr);
        assert!(hint.is_none_or(|hint| ended.stderr.contains(&hint)), "{}", ended.stderr);
    }
    assert_eq!(run(["help", "store", "nothing"]).code(), 2);
}

/// A build without the feature `search` has no bench of it.
fn is_of_another_build(words: &[String]) -> bool {
    !cfg!(feature = "search") && words.len() > 1 && words[..2] == ["bench", "search"]
}

#[test]
fn every_command_line_parses() {
    let mut seen = BTreeSet::new();
    for (name, text) in texts() {
        let typed = blocks(&text).iter().flat_map(Block::commands).collect::<Vec<_>>();
        let typed = typed.iter().filter(|line| line.starts_with("nephila ")).map(|line| words(line));
        for words in typed.chain(inline_commands(&text)) {
            if !seen.insert(words.clone()) || is_of_another_build(&words) {
                continue;
            }
            // --help ends a command before it does anything, and after everything before it was understood.
            let is_page = words.len() == 2 && words[0] == "help";
            let end =
                if is_page || words.iter().any(|word| word == "--help") { None } else { Some("--help") };
            let ended = run(words.iter().map(String::as_str).chain(end));
            assert_eq!(ended.code(), 0, "{name}: {words:?}: {}", ended.stderr);
        }
    }
    assert!(seen.len() > 60, "the texts have many commands, not {}", seen.len());
}

#[test]
fn every_block_of_commands_is_run_or_says_that_it_needs_the_network() {
    for (name, text) in texts().into_iter().filter(|(name, _)| name != "bench/README.md") {
        for block in blocks(&text).into_iter().filter(|block| !block.commands().is_empty()) {
            let first = &block.commands()[0];
            match block.mark.as_deref() {
                Some("run") => {}
                // By the test of the units.
                Some("systemd") => assert_eq!(name, "services"),
                Some("network") => assert!(block.before.contains("the network"), "{name}: {first}"),
                mark => panic!("{name}: {first}: marked {mark:?}"),
            }
        }
    }
}

#[test]
fn every_settings_file_is_read() {
    let mut count = 0;
    for (name, text) in texts() {
        for block in blocks(&text).into_iter().filter(|block| block.lines[0].starts_with('[')) {
            // A whole crawl is run by its session.
            if name == "first-crawl" {
                continue;
            }
            // Blank lines cut a file into blocks; each of them begins with a section.
            let dir = TempDir::new();
            dir.write("secret.txt", "hush\n");
            dir.write("c.toml", block.lines.join("\n"));
            let mut command = nephila();
            command.current_dir(dir.path()).args(["crawl", "--config", "c.toml"]);
            let ended = Running::start(&mut command).wait(PATIENCE);
            assert_eq!(ended.code(), 2);
            assert!(
                ended.stderr.contains("nothing to crawl"),
                "{name}: {}: {}",
                block.lines[0],
                ended.stderr
            );
            count += 1;
        }
    }
    assert!(count >= 8, "{count} of them");
}

// Sessions --------------------------------------------------------------------------------------------------

/// A shell script of the blocks of a text that can be run.
fn script(text: &str) -> String {
    let mut script = "set -eu\npids=\ntrap 'kill $pids 2> /dev/null || true' EXIT\n".to_string();
    let blocks: Vec<Block> =
        blocks(text).into_iter().filter(|block| block.mark.as_deref() == Some("run")).collect();
    assert!(!blocks.is_empty());
    for line in blocks.iter().flat_map(Block::commands) {
        let command = bare(&line);
        let comment = line[command.len()..].trim();
        // What a user sees before the next command is typed.
        if let Some(behind) = command.strip_suffix('&') {
            script += &format!("{behind} &\nlast=$!; pids=\"$pids $last\"\n");
            let words = words(command);
            if let Some(at) = words.iter().position(|word| word == "--seeds-file") {
                script += &format!("until [ -s {} ]; do sleep 0.02; done\n", words[at + 1]);
            }
            if words[..2] == ["master", "run"] {
                script += "until [ -S master/admin.sock ]; do sleep 0.02; done\n";
            }
            if ["crawl", "node"].contains(&words[0].as_str()) {
                let at = words.iter().position(|word| word == "--data").unwrap();
                script += &format!("until [ -S {}/admin.sock ]; do sleep 0.02; done\n", words[at + 1]);
            }
        } else if comment.contains("until Ctrl-C") {
            // When the URL server, which was started before, has ended.
            script += &format!("{command} &\nspider=$!; pids=\"$pids $spider\"\n");
            script += "wait $last\nkill -INT $spider\nwait $spider\n";
        } else if comment.contains("exit status 1") && !comment.contains("exit status 1 if") {
            script += &format!("status=0; {command} || status=$?; [ $status = 1 ]\n");
        } else {
            script += &format!("{command}\n");
        }
    }
    script
}

/// Runs a script in a directory where our name is a command; it and all that it started end within a minute.
#[track_caller]
fn run_script(script: &str, dir: &TempDir) -> Run {
    let bin = dir.join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nephila"), bin.join("nephila")).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("timeout");
    command.args(["50", "sh", "-c", script]).env("PATH", path).current_dir(dir.path());
    let ended = Running::start(&mut command).wait(PATIENCE);
    assert_eq!(ended.code(), 0, "{script}\n{}\n{}", ended.text(), ended.stderr);
    ended
}

/// Runs what can be run of a page of the manual, on ports that are free.
#[track_caller]
fn session(topic: &str) -> Run {
    let listeners = PORTS.map(|_| TcpListener::bind("0.0.0.0:0").unwrap());
    let mut text = page(topic);
    // In two steps: a port that is free may have another one's digits in it.
    for (at, port) in PORTS.iter().enumerate() {
        text = text.replace(port, &format!("<port {at}>"));
    }
    for (at, listener) in listeners.iter().enumerate() {
        text = text.replace(&format!("<port {at}>"), &listener.local_addr().unwrap().port().to_string());
    }
    drop(listeners);
    run_script(&script(&text), &TempDir::new())
}

#[test]
fn the_session_of_the_readme() {
    let readme = readme();
    let dir = TempDir::new();
    let small = run_script("nephila demo --hosts 20 --pages 5", &dir).text();
    // The same rows, with other figures.
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("  ")?.split("  ").next());
        rows.filter(|label| !label.is_empty() && label.len() < 13).map(str::to_string).collect()
    };
    let section = readme.split("## One session").nth(1).unwrap().split("### Look").next().unwrap();
    assert_eq!(rows(&section.replace("\n    ", "\n")), rows(&small), "{small}");
    let first = small.lines().next().unwrap();
    assert!(
        first.starts_with("a farm of 20 hosts x 5 pages is up on 127.16.0.0 and following, port "),
        "{small}"
    );
    assert!(small.contains("look at a stored page:"), "{small}");
    let port = first.rsplit("port ").next().unwrap();
    let looked = run_script(&script(&readme.replace("41759", port)), &dir);
    assert!(looked.text().contains("no violation") && looked.text().contains("robots.txt denies it"));
    let page = std::fs::read(dir.join("page.html")).unwrap();
    assert_eq!(page.len(), 10_000);
    assert!(dir.join("demo.warc.gz").exists());
}

/// Needs root: `example.org` is an nginx at an address of the public internet, in a network of this test's own.
#[test]
fn the_session_of_a_first_crawl() {
    const ADDRESS: &str = "93.184.216.34";
    let page = page("first-crawl");
    let dir = TempDir::new();
    let job =
        blocks(&page).into_iter().find(|block| block.lines[0] == "[crawl]").expect("a file of settings");
    dir.write("job.toml", job.lines.join("\n"));
    for number in 0..12 {
        dir.write(&format!("root/{number}.html"), filling("page", 2_000));
    }
    let links: String = (0..12).map(|number| format!("<a href={number}.html>{number}</a>\n")).collect();
    dir.write("root/index.html", links + "<a href=/private/x.html>x</a>");
    dir.write("root/late.html", "late");
    dir.write("root/private/x.html", "must not be read");
    dir.write("root/robots.txt", "User-agent: *\nDisallow: /private/\n");
    let here = dir.path().display();
    dir.write(
        "nginx.conf",
        format!(
            "worker_processes 1; pid {here}/nginx.pid; error_log {here}/error.log;
             events {{}}
             http {{ access_log {here}/access.log; server {{ listen {ADDRESS}:80; root {here}/root; }} }}\n"
        ),
    );
    dir.write("hosts", format!("127.0.0.1 localhost\n{ADDRESS} example.org\n"));
    let network = format!(
        "PATH=$PATH:/usr/sbin:/sbin\nip link set lo up\nip addr add {ADDRESS}/32 dev lo\n\
         mount --bind hosts /etc/hosts\nnginx -e error.log -c \"$PWD/nginx.conf\"\n\
         until [ -s nginx.pid ]; do sleep 0.02; done\n"
    );
    let session = script(&page).replace("kill $pids", "kill $pids $(cat nginx.pid)");
    // The first lines of the session are its manners.
    let (manners, typed) = session.split_once("EXIT\n").unwrap();
    dir.write("session.sh", format!("{manners}EXIT\n{network}{typed}"));
    let ended = run_script("unshare --net --mount sh session.sh", &dir);
    let told = ended.text() + &ended.stderr;
    for part in ["settings of the last run hold", "no violation", "example.warc.gz"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("no contact"), "{told}");
    assert!(!std::fs::read(dir.join("page.html")).unwrap().is_empty());
    let access = std::fs::read_to_string(dir.join("access.log")).unwrap();
    assert!(!access.contains("/private/"), "{access}");
    for line in access.lines() {
        assert!(line.ends_with("(+https://example.net/crawler.html)\""), "{line}");
    }
    for path in ["/", "/late.html", "/0.html", "/11.html"] {
        let asked = |status: &str| {
            let request = format!("\"GET {path} HTTP/1.1\" {status} ");
            access.lines().filter(|line| line.contains(&request)).count()
        };
        // By the first crawl, and those of the file; and again, as nothing has changed.
        assert!(asked("200") >= 1 && asked("304") == 1, "{path}: {access}");
    }
}

#[test]
fn the_session_of_crawling() {
    let text = session("crawling").text();
    assert!(text.contains("220 known, 0 pending") && text.contains("\"pages\":10,"), "{text}");
}

#[test]
fn the_session_of_index() {
    let text = session("index").text();
    // What `explain` says stands in the page, but for times and ports.
    let printed: Vec<&str> = text.lines().skip_while(|line| !line.contains("/private/0.html")).collect();
    let page = page("index");
    let shown =
        page.lines().skip_while(|line| !line.starts_with("    url ")).take_while(|line| !line.is_empty());
    let label = |line: &str| line.trim_start().split(' ').next().unwrap().to_string();
    let shown: Vec<String> = shown.map(label).collect();
    assert_eq!(shown, printed[..shown.len()].iter().map(|line| label(line)).collect::<Vec<_>>(), "{text}");
    assert!(printed[1].ends_with("robots.txt denies it: Disallow: /private/"), "{text}");
    assert!(text.contains("220 lines: 220 new") && text.contains("20 lines: 20 new"), "{text}");
}

#[test]
fn the_session_of_store() {
    let text = session("store").text();
    assert!(text.contains("sound") && text.contains("result 1 ok"), "{text}");
}

#[test]
fn the_session_of_archives() {
    let text = session("archives").text();
    assert!(text.contains("200 lines") && text.contains("200 records from 1 files"), "{text}");
}

#[test]
fn the_session_of_split() {
    let text = session("split").text();
    assert!(text.contains("no violation"), "{text}");
    assert_eq!(text.matches("20 known, 20 done, 0 pending").count(), 2, "{text}");
    assert_eq!(
        text.lines().filter(|line| line.contains(" ago ok ") || line.contains(" now ok ")).count(),
        40,
        "{text}"
    );
}

#[test]
fn the_session_of_master() {
    let text = session("master").text();
    assert!(text.contains("every promise holds") && text.contains("no violation"), "{text}");
    assert!(text.contains("2000 lines") || text.contains("lines      2000"), "{text}");
    assert!(text.contains(" requests to 20 hosts "), "every host was dealt: {text}");
}

#[test]
fn the_session_of_cluster() {
    let text = session("cluster").text();
    assert!(
        text.contains("ready: 0 pages at 3 nodes") && text.contains("ready: 200 pages at 3 nodes"),
        "{text}"
    );
    assert!(text.contains("20 new, 0 known") && text.contains("no violation"), "{text}");
    assert!(
        (text.contains(" frozen ") || text.contains(" council ")) && text.contains("\nowner      node "),
        "{text}"
    );
    assert!(text.contains(" to 20 hosts "), "every host was asked: {text}");
}

#[cfg(all(feature = "extract", feature = "search"))]
#[test]
fn the_session_of_feeds() {
    let text = session("feeds").text();
    assert!(text.contains("10 new feeds") && text.contains("no violation"), "{text}");
    assert!(text.contains("/story/"), "{text}");
}

#[test]
fn the_session_of_logs() {
    let text = session("logs").text();
    assert!(text.contains(" of 1 run, ") && text.contains(" files\n"), "{text}");
    assert!(text.contains("no violation"), "{text}");
}

#[test]
fn the_session_of_politeness() {
    let text = session("politeness").text();
    // As the page has it.
    let denied = "deny\t/private/x\nallow\t/public\n";
    assert!(text.starts_with(denied) && text.contains("no violation"), "{text}");
    assert!(page("politeness").replace("\n    ", "\n").contains(denied));
}

#[test]
fn the_session_of_protocols() {
    let text = session("protocols").text();
    for part in [
        "\"sentence\":",
        "# TYPE nephila_documents_total counter",
        "\"role\":\"crawl\"",
        "\"answer\":",
        "\"state\":\"paused\"",
        "\"known\":5",
        "\"state\":\"stopping\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_session_of_the_farm() {
    let text = session("farm").text();
    // Each summary tells how many pages there are, and why it ended.
    assert!(text.contains("220 known, 0 pending") && text.contains("--max-pages"), "{text}");
}

#[test]
fn the_session_of_tuning() {
    let text = session("tuning").text();
    assert!(text.contains("fdatasync  p50") && text.contains("\ntune     "), "{text}");
    // The line of a start as the page has it, but for its figures.
    let page = page("tuning");
    let line = page.lines().find(|line| line.starts_with("    tune: ")).expect("a line of a start");
    assert!(line.contains(" ok, ") && line.contains("; nephila tune check shows them"), "{line}");
}
