//! The promise: `reflog check` takes files of a reflog as they come, broken lines, gzip and all, and names every record
//! that a master would reject, with its line and the reason.

use crate::support::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// The specification's example, as it stands there.
const EXAMPLE: &str = "\
2011072806593795\t5\t20110727200841\t2310\t
http://fatalenergy.com.ru/power/index.php?newsid=1185458796\t1\t0

2011072806593795\t5\t20110727200853\t4599\t
http://astroma.net/week/02.htm\t1\t0

2011072806593795\t5\t20110727200844\t1038\t
http://www.3dnews.ru/search/index.php?query=canon%20600d&method=and&orderby=1&order=1\t
1
";

fn check(args: &[&str]) -> Run {
    run([&["reflog", "check"], args].concat())
}

/// A file packed by a tool that was not written here.
fn packed(tool: &str, path: &std::path::Path) -> Vec<u8> {
    let out = Command::new(tool).arg("-c").arg(path).output().unwrap_or_else(|e| panic!("{tool}: {e}"));
    assert!(out.status.success(), "{tool}");
    out.stdout
}

#[test]
fn the_example_is_three_records_however_it_comes() {
    let dir = TempDir::new();
    let plain = dir.write("plain", EXAMPLE);
    let gzip = dir.write("log.gz", packed("gzip", &plain));
    let expected =
        "9 lines: 3 records with 3 hits from 20110727200841 to 20110727200853, 0 unknown, 0 rejected\n";
    for file in [&plain, &gzip] {
        assert_eq!(check(&[file.to_str().unwrap()]).done().text(), expected);
    }
    for bytes in [EXAMPLE.as_bytes(), &std::fs::read(&gzip).unwrap()] {
        let mut command = nephila();
        let mut child = command
            .args(["reflog", "check", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), &*String::from_utf8_lossy(&out.stdout)), (Some(0), expected));
    }
    let both = check(&[plain.to_str().unwrap(), gzip.to_str().unwrap(), "--json"]).done().json();
    assert_eq!(
        (&both["files"], &both["records"], &both["rejects"]),
        (&2.into(), &6.into(), &0.into()),
        "{both}"
    );
}

#[test]
fn rejects_are_named_and_counted_and_the_status_is_one() {
    let dir = TempDir::new();
    let line = |hits: &str| format!("1\t5\t20110727200841\t7\thttp://a.test/\t{hits}\t\x1b[31m\n");
    let mut text = format!("words\n{}{}", line("1"), line("many"));
    text += "1\t5\t20110727200841\t7\tftp://a.test/\t4\n";
    let file = dir.write("log", &text);
    let run = check(&[file.to_str().unwrap()]);
    assert_eq!((run.code(), &*run.stderr), (1, ""));
    let text = run.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("log:3: hits: its hits are not a number: 1\\u{9}5"), "{text}");
    assert!(lines[1].contains("log:4: url_scheme: neither http nor https: ftp://a.test/"), "{text}");
    assert_eq!(
        lines[2],
        "4 lines: 1 record with 1 hit from 20110727200841 to 20110727200841, 1 unknown, 2 rejected"
    );
    let run = check(&["--json", file.to_str().unwrap()]);
    assert_eq!(run.code(), 1);
    let told = run.json();
    assert_eq!(told["reasons"], serde_json::json!({"hits": 1, "url_scheme": 1}));
    assert_eq!((&told["hits_rejected"], &told["rejected"][1]["line"]), (&4.into(), &4.into()), "{told}");

    let many = dir.write("many", line("x").repeat(50));
    let run = check(&[many.to_str().unwrap()]);
    assert!(run.text().contains("30 more; --all names them"), "{}", run.text());
    let named = |args: &[&str]| check(args).json()["rejected"].as_array().unwrap().len();
    assert_eq!(named(&["--json", many.to_str().unwrap()]), 20);
    assert_eq!(named(&["--json", "--all", many.to_str().unwrap()]), 50);
}

#[test]
fn a_file_that_breaks_off_is_told_and_one_that_is_none_refused() {
    let dir = TempDir::new();
    let plain = dir.write("plain", EXAMPLE.repeat(200));
    let gzip = packed("gzip", &plain);
    let cut = dir.write("cut.gz", &gzip[..gzip.len() - 9]);
    let run = check(&[cut.to_str().unwrap()]);
    assert_eq!(run.code(), 1);
    assert!(run.text().contains("cut.gz: its gzip breaks off after"), "{}", run.text());
    let rubbish = dir.write("rubbish.gz", [&gzip[..], b"rubbish"].concat());
    let run = check(&[rubbish.to_str().unwrap(), "--json"]);
    assert_eq!((run.code(), &run.json()["records"]), (1, &600.into()));
    for (name, cause) in [("none", "No such file"), (".", "a directory"), ("/dev/null", "a device")] {
        let run = check(&[dir.join(name).to_str().unwrap(), plain.to_str().unwrap()]);
        assert_eq!((run.code(), &*run.text()), (2, ""), "{name}");
        assert!(run.stderr.contains(cause) && run.stderr.lines().count() == 1, "{name}: {}", run.stderr);
    }
    assert_eq!(
        check(&[dir.write("empty", "").to_str().unwrap()]).done().text(),
        "0 lines: 0 records with 0 hits, 0 unknown, 0 rejected\n"
    );
    assert_eq!(check(&[]).code(), 2);
}

#[test]
fn a_farm_makes_up_a_log_of_its_pages() {
    let dir = TempDir::new();
    for (name, flags) in [("log", &[][..]), ("log.gz", &["--reflog-rough"])] {
        let file = dir.join(name);
        let mut command = nephila();
        command.args(["farm", "--hosts", "20", "--pages", "5", "--reflog", "3000", "--until-stdin-closes"]);
        command.args(flags).arg("--reflog-file").arg(&file).stdin(Stdio::null());
        let first = Running::start(&mut command).wait(PATIENCE).done().text();
        assert!(first.contains("h0.farm.test"), "{first}");
        let told = check(&["--json", file.to_str().unwrap()]).json();
        let count = |name: &str| told[name].as_u64().unwrap();
        assert_eq!(count("records") + count("rejects"), 3_000, "{told}");
        assert_eq!(count("rejects") > 0 && count("unknown") > 0, !flags.is_empty(), "{told}");
        assert_eq!(
            std::fs::read_dir(dir.path())
                .unwrap()
                .filter(|name| name.as_ref().unwrap().file_name().to_str().unwrap().starts_with('.'))
                .count(),
            0
        );
    }
}
