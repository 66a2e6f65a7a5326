//! The promise: a limit of file sizes (`ulimit -f`) is a disk that is full: one line that says so, status 3, and nothing
//! half-made is left behind. No process is killed by it.

use crate::support::*;
use std::path::Path;
use std::process::Command;

/// Runs a command that may write files of so many KiB.
#[track_caller]
fn limited(kib: u64, command: &Command) -> Run {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("ulimit -f {kib}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    Running::start(&mut shell).wait(PATIENCE)
}

#[track_caller]
fn complains(what: &str, run: &Run) {
    assert_eq!(run.code(), 3, "{what}: {}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("ulimit -f"), "{what}: {lines:?}");
    assert!(run.stdout.is_empty(), "{what}: {}", run.text());
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn archives_are_whole_or_not_there() {
    let web = LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::links((0..40).map(|n| format!("/{n}"))),
        target => Reply::text(&filling(target, 20_000)),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    crawl(&data, ["--req-host-per-sec", "0", &web.url("/")]);
    for (kind, kib) in [("warc", 32), ("wacz", 8), ("cdxj", 2)] {
        for force in [false, true] {
            let out = dir.join(&format!("out/a.{kind}"));
            std::fs::create_dir_all(out.parent().unwrap()).unwrap();
            if force {
                std::fs::write(&out, "what was there").unwrap();
            }
            let mut export = nephila();
            export.args(["export", kind, "--data"]).arg(&data).arg("--out").arg(&out);
            export.args(force.then_some("--force"));
            complains(kind, &limited(kib, &export));
            match force {
                false => assert_eq!(names(&dir.join("out")), [""; 0], "{kind}"),
                true => assert_eq!(std::fs::read(&out).unwrap(), b"what was there", "{kind}"),
            }
            let _ = std::fs::remove_file(&out);
        }
    }
    let warc = dir.join("whole.warc");
    let mut export = nephila();
    export.args(["export", "warc", "--data"]).arg(&data).arg("--out").arg(&warc);
    Running::start(&mut export).wait(PATIENCE).done();
    // A segment is made whole before anything is put into it.
    let imported = dir.join("imported");
    let mut import = nephila();
    import.args(["import", "warc", "--data"]).arg(&imported).arg(&warc);
    complains("import", &limited(1_024, &import));
    assert_eq!(names(&imported.join("segments")), [""; 0]);
    // With room it goes on as if nothing had been.
    Running::start(&mut import).wait(PATIENCE).done();
    assert_eq!(records(&imported).len(), 41);
}

#[test]
fn a_crawl_says_what_it_cannot_write() {
    let web = LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::links((0..400).map(|n| format!("/{}{n}", "long".repeat(200)))),
        target => Reply::text(target),
    });
    let dir = TempDir::new();
    let small = dir.write("c.toml", "[store]\nsegment_bytes = 40000000\n");
    // No segment fits.
    let data = dir.join("no-segment");
    let mut command = crawl_command(&data);
    command.args(["--req-host-per-sec", "0", &web.url("/"), "--config"]).arg(&small);
    let run = limited(1_024, &command);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    let last = run.stderr.lines().last().unwrap();
    assert!(last.contains("segment") && last.contains("ulimit -f"), "{}", run.stderr);
    assert_eq!(names(&data.join("segments")), [""; 0]);
    // And with room for one it goes on where it was.
    let report = Running::start(&mut command).wait(PATIENCE).done().json();
    assert_eq!(report["success"], 401, "{report}");
}

/// A crawl of long URLs, by pages of at most a hundred links; every page has some if it goes `on`.
fn long_urls(on: bool) -> LogServer {
    LogServer::start(move |asked| match asked.target.as_str() {
        "/" => Reply::links((0..6).map(|hub| format!("/hub{hub}"))),
        hub if hub.starts_with("/hub") && (on || hub.len() < 10) => {
            Reply::links((0..100).map(|n| format!("{hub}/{}{n}", "long".repeat(200))))
        }
        target => Reply::text(target),
    })
}

const SMALL: &str = "[store]\nsegment_bytes = 400000\n[spider]\nmax_doc_size = 100000\n";

/// Log and index grow while segments do not: they meet the limit in the middle of a crawl.
#[test]
fn what_may_not_grow_ends_a_crawl_in_good_order() {
    for (on, said) in [(false, "the crawl log"), (true, "the doc index")] {
        let (web, dir) = (long_urls(on), TempDir::new());
        let data = dir.join("data");
        let mut command = crawl_command(&data);
        command.args(["--req-host-per-sec", "0", &web.url("/"), "--config"]).arg(dir.write("c.toml", SMALL));
        let run = limited(400, &command);
        assert_eq!(run.code(), 3, "{said}: {}", run.stderr);
        let last = run.stderr.lines().last().unwrap();
        assert!(last.contains(said) && last.contains("ulimit -f"), "{said}: {}", run.stderr);
        let log = std::fs::read(data.join("crawl.log")).unwrap();
        assert!(log.ends_with(b"\n"), "{said}: whole lines, {} bytes", log.len());
        store(&["verify"], &data).done();
        if on {
            continue;
        }
        let report = Running::start(&mut command).wait(PATIENCE).done().json();
        assert_eq!(report["pending"], 0, "{report}");
        assert_eq!(store(&["ls", "--json"], &data).done().json_lines().len(), 607, "{report}");
    }
}

/// What is put out may be a file, too.
#[test]
fn what_is_said_ends_at_the_limit_and_no_process_does() {
    let web = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let seeds = dir.write("seeds", format!("{}{}\n", "no URL at all\n".repeat(1_000), web.url("/")));
    let data = dir.join("data");
    crawl(&data, [web.url("/")]);
    let shell = |line: &str| {
        let mut shell = Command::new("bash");
        shell.current_dir(dir.path()).args(["-c", line, env!("CARGO_BIN_EXE_nephila")]);
        Running::start(&mut shell).wait(PATIENCE)
    };
    let run = shell(&format!("ulimit -f 4; exec \"$0\" index import --data data {} 2>said", seeds.display()));
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!(std::fs::metadata(dir.join("said")).unwrap().len() / 4_096, 0, "20 lines are named");
    let run = shell("ulimit -f 1; exec \"$0\" help store >page 2>said");
    assert_eq!(run.code(), 3);
    assert!(std::fs::read_to_string(dir.join("said")).unwrap().contains("cannot write to stdout"));
}
