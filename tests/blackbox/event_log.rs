//! The promise: what a node tells can be read by people, by programs and by systemd's journal alike. Every event has its
//! name, its level and its fields; no host name, however hostile, steers a reader; one event that comes a thousand times
//! leaves room for others; and why a process ends is always told.

use crate::support::*;
use serde_json::Value;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

/// A crawl of hosts that nobody answers for, which are set aside one after the other.
fn crawl(dir: &TempDir, args: &[&str]) -> Command {
    let mut command = nephila();
    command.args(["crawl", "--allow-net", "127.0.0.0/8", "--cores", "0", "--json"]);
    command.arg("--data").arg(dir.join("data")).args(args);
    command
}

#[track_caller]
fn ran(command: &mut Command) -> Run {
    Running::start(command).wait(PATIENCE)
}

/// The events of a run that logged in JSON.
#[track_caller]
fn events(stderr: &str) -> Vec<Value> {
    let parsed = stderr.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}\nin:\n{stderr}"))
    });
    parsed.collect()
}

/// The one event of a name.
#[track_caller]
fn the<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let mut named = events.iter().filter(|event| event["event"] == name);
    named.next().unwrap_or_else(|| panic!("no {name} in {events:#?}"))
}

/// Nobody listens here.
const NOBODY: &str = "http://127.0.0.9:18181/";

#[test]
fn json_is_an_object_a_line_with_name_level_and_fields() {
    let dir = TempDir::new();
    let seeds = dir.write("seeds", format!("{NOBODY}\nnonsense\n"));
    let run = ran(crawl(&dir, &["--log-format", "json", "-v", "--seeds"]).arg(seeds));
    assert_eq!(run.code(), 1, "{}", run.stderr);
    let events = events(&run.stderr);
    for event in &events {
        let at = event["at"].as_str().unwrap();
        assert!(at.len() == 24 && at.ends_with('Z'), "{event}");
        assert!(["debug", "info", "warn", "error"].contains(&event["level"].as_str().unwrap()), "{event}");
        assert!(event["fields"].is_object() && !event["text"].as_str().unwrap().is_empty(), "{event}");
        assert_eq!(event.as_object().unwrap().len(), 5, "{event}");
    }
    let skipped = the(&events, "url_skipped");
    assert_eq!((&skipped["level"], &skipped["fields"]["line"]), (&"warn".into(), &2.into()), "{skipped}");
    assert_eq!(the(&events, "fetch_bounds")["level"], "debug");
    assert_eq!(the(&events, "driver_chosen")["fields"]["cores"], "[0]");
    let robots = the(&events, "robots_unreachable");
    assert_eq!(robots["fields"]["origin"], "http://127.0.0.9:18181", "{robots}");
    let failed = the(&events, "failed");
    assert_eq!((&failed["level"], &failed["fields"]["status"]), (&"error".into(), &1.into()), "{failed}");
    assert_eq!(failed, events.last().unwrap());
    assert!(the(&events, "ended")["fields"]["warnings"].as_u64().unwrap() >= 2);
}

#[test]
fn quiet_logs_errors_only_and_usual_no_debug() {
    let dir = TempDir::new();
    let quiet = ran(&mut crawl(&dir, &["--log-format", "json", "-q", NOBODY]));
    let told: Vec<Value> = events(&quiet.stderr);
    assert_eq!((told.len(), &told[0]["event"]), (1, &"failed".into()), "{told:#?}");
    let usual = ran(&mut crawl(&dir, &["--log-format", "json", "--again", NOBODY]));
    assert!(events(&usual.stderr).iter().all(|event| event["level"] != "debug"), "{}", usual.stderr);
}

/// A thousand bad lines are one event; a failure comes after them all the same.
#[test]
fn a_flood_of_one_event_is_counted_and_drowns_nothing() {
    let dir = TempDir::new();
    let seeds = dir.write("seeds", "nonsense\n".repeat(1_000) + NOBODY);
    let json = ran(crawl(&dir, &["--log-format", "json", "--seeds"]).arg(&seeds));
    let told = events(&json.stderr);
    let skipped: Vec<&Value> = told.iter().filter(|event| event["event"] == "url_skipped").collect();
    let (lines, more): (Vec<&Value>, Vec<&Value>) =
        skipped.into_iter().partition(|event| event["fields"]["more"].is_null());
    let counted: u64 = more.iter().map(|event| event["fields"]["more"].as_u64().unwrap()).sum();
    assert_eq!(lines.len() as u64 + counted, 1_000, "{more:#?}");
    assert!(counted >= 500, "{counted}");
    assert_eq!(more[0]["text"], format!("and {} more", more[0]["fields"]["more"]));
    the(&told, "driver_chosen");
    the(&told, "failed");
    let text = ran(crawl(&dir, &["--seeds"]).arg(&seeds));
    assert!(text.stderr.contains(" more (url_skipped)\n"), "{}", text.stderr);
}

/// The journal of systemd: a socket that stands where its own would, in a mount namespace of the test's.
struct FakeJournal {
    dir: TempDir,
    socket: UnixDatagram,
}

impl FakeJournal {
    fn new() -> FakeJournal {
        let dir = TempDir::new();
        let socket = UnixDatagram::bind(dir.join("socket")).unwrap();
        socket.set_nonblocking(true).unwrap();
        FakeJournal { dir, socket }
    }

    /// Runs a command where this is the journal; `before` is a line of shell.
    fn run(&self, before: &str, command: &Command) -> Run {
        let mut shell = Command::new("unshare");
        let script = format!(
            "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind {} /run/systemd/journal && {before} exec \"$0\" \"$@\"",
            self.dir.path().display()
        );
        shell.args(["--mount", "sh", "-c", &script]).arg(command.get_program()).args(command.get_args());
        ran(&mut shell)
    }

    /// Every message so far, as keys and values.
    fn messages(&self) -> Vec<Vec<(String, String)>> {
        let mut messages = Vec::new();
        let mut buffer = vec![0; 1 << 20];
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            messages.push(entries(&buffer[..bytes]));
        }
        messages
    }
}

/// Reads a datagram as systemd does.
fn entries(mut datagram: &[u8]) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    while !datagram.is_empty() {
        let end = datagram.iter().position(|&byte| byte == b'\n').expect("a line has an end");
        let (line, rest) = (&datagram[..end], &datagram[end + 1..]);
        datagram = match line.iter().position(|&byte| byte == b'=') {
            Some(at) => {
                entries.push((text(&line[..at]), text(&line[at + 1..])));
                rest
            }
            None => {
                let (length, rest) = rest.split_at(8);
                let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
                assert_eq!(rest[length], b'\n');
                entries.push((text(line), text(&rest[..length])));
                &rest[length + 1..]
            }
        };
    }
    entries
}

fn value<'a>(message: &'a [(String, String)], key: &str) -> Option<&'a str> {
    message.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
}

#[test]
fn the_journal_gets_fields_and_nothing_that_steers() {
    let (journal, dir) = (FakeJournal::new(), TempDir::new());
    // A seed that would colour a terminal and forge a field.
    let seeds = dir.write("seeds", format!("{NOBODY}\nhttp://x\u{1b}[31m\u{202e}PRIORITY=0/\n"));
    let mut command = crawl(&dir, &["--log-format", "journal", "--seeds"]);
    command.arg(&seeds);
    let run = journal.run("", &command);
    assert_eq!((run.code(), &*run.stderr), (1, ""), "all of it went to the journal");
    let messages = journal.messages();
    for message in &messages {
        let keys: Vec<&str> = message.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys[..4], ["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "NEPHILA_EVENT"], "{message:?}");
        assert!(keys[4..].iter().all(|key| key.starts_with("NEPHILA_")), "{message:?}");
        assert!(!message.iter().any(|(_, value)| value.contains(['\u{1b}', '\u{202e}'])), "{message:?}");
    }
    let named = |event: &str| {
        let found = messages.iter().find(|message| value(message, "NEPHILA_EVENT") == Some(event));
        found.unwrap_or_else(|| panic!("no {event} in {messages:#?}"))
    };
    let robots = named("robots_unreachable");
    assert_eq!(value(robots, "NEPHILA_ORIGIN"), Some("http://127.0.0.9:18181"));
    assert_eq!(value(robots, "PRIORITY"), Some("4"));
    let skipped = value(named("url_skipped"), "MESSAGE").unwrap();
    assert!(skipped.contains("\\u{1b}[31m\\u{202e}PRIORITY=0"), "{skipped}");
    let failed = named("failed");
    assert_eq!((value(failed, "PRIORITY"), value(failed, "NEPHILA_STATUS")), (Some("3"), Some("1")));
}

#[test]
fn a_value_of_several_lines_goes_to_the_journal_whole() {
    let (journal, dir) = (FakeJournal::new(), TempDir::new());
    let config = dir.write("bad.toml", "[crawl]\ndepht = 1\n[spider]\nmax_doc_siz = 2\n");
    let mut command = crawl(&dir, &["--log-format", "journal", NOBODY, "--config"]);
    command.arg(config);
    assert_eq!(journal.run("", &command).code(), 2);
    let messages = journal.messages();
    let text = value(&messages[0], "MESSAGE").unwrap();
    assert!(text.lines().count() >= 2 && text.contains("depht") && text.contains("max_doc_siz"), "{text}");
}

/// By itself it goes there if systemd says that stderr does, and nowhere else.
#[test]
fn the_journal_is_found_by_its_stream() {
    let (journal, dir) = (FakeJournal::new(), TempDir::new());
    let command = crawl(&dir, &[NOBODY]);
    let stream = "export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2 2>&2) &&";
    let run_there = journal.run(stream, &command);
    assert_eq!(run_there.stderr, "");
    assert!(!journal.messages().is_empty());
    let elsewhere = journal.run("export JOURNAL_STREAM=1:2 &&", &command);
    assert!(elsewhere.stderr.contains("driver: ") && journal.messages().is_empty(), "{}", elsewhere.stderr);
}

#[test]
fn without_a_journal_lines_begin_with_their_level() {
    let dir = TempDir::new();
    let mut command = Command::new("unshare");
    let crawl = crawl(&dir, &["--log-format", "journal", NOBODY]);
    command.args(["--mount", "sh", "-c", "mount -t tmpfs none /run && exec \"$0\" \"$@\""]);
    let run = ran(command.arg(crawl.get_program()).args(crawl.get_args()));
    assert!(run.stderr.lines().all(|line| line.starts_with('<')), "{}", run.stderr);
    assert!(run.stderr.contains("<6>driver: ") && run.stderr.contains("\n<3>nephila: "), "{}", run.stderr);
}
