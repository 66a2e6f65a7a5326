//! The promise: two masters that were given the same files have sent the same, and whoever compares them is told which file
//! and which minutes only one of them has.

use crate::support::*;
use std::path::{Path, PathBuf};

fn reflog(hour: u32, urls: std::ops::Range<u32>) -> String {
    urls.map(|url| {
        let (minute, second) = (url / 60 % 60, url % 60);
        let time = format!("20110727{hour:02}{minute:02}{second:02}");
        format!("2011072806593795\t5\t{time}\t17\thttp://www.d{}.example/{url}\t1\t\n", url % 7)
    })
    .collect()
}

fn take(file: &Path, hour: u32, data: &Path) {
    let now = format!("20110727{:02}0000", hour + 1);
    let args = ["master", "once", "--servers", "3", "--now", &now, "--data", data.to_str().unwrap()];
    run(args.into_iter().chain([file.to_str().unwrap()])).done();
}

fn diff(a: &Path, b: &Path, more: &[&str]) -> Run {
    run(["master", "diff", a.to_str().unwrap(), b.to_str().unwrap()].into_iter().chain(more.iter().copied()))
}

struct Two {
    dir: TempDir,
    a: PathBuf,
    b: PathBuf,
}

impl Two {
    fn new() -> Two {
        let dir = TempDir::new();
        let (a, b) = (dir.join("a"), dir.join("b"));
        Two { dir, a, b }
    }

    fn file(&self, name: &str, text: String) -> PathBuf {
        self.dir.write(name, text)
    }
}

#[test]
fn masters_with_the_same_files_are_the_same_whatever_their_names() {
    let two = Two::new();
    for (hour, urls) in [(10, 0..300), (11, 200..500)] {
        let text = reflog(hour, urls);
        take(&two.file(&format!("a-{hour}"), text.clone()), hour, &two.a);
        take(&two.file(&format!("b-{hour}"), text), hour, &two.b);
    }
    // Those that came again within the hour were not sent again.
    let same = diff(&two.a, &two.b, &[]).done();
    assert!(same.text().contains("verdict    both have sent the same for 9 minutes"), "{}", same.text());
    let same = diff(&two.a, &two.b, &["--json"]).done().json();
    assert_eq!((same["minutes"].as_u64(), same["minutes_differ"].as_u64()), (Some(9), Some(0)));
    assert_eq!((same["a"]["sent"].as_u64(), same["b"]["sent"].as_u64()), (Some(500), Some(500)));
}

#[test]
fn what_only_one_has_is_named() {
    let two = Two::new();
    let (both, one) = (two.file("both", reflog(10, 0..120)), two.file("one\u{1b}[2J", reflog(11, 120..180)));
    take(&both, 10, &two.a);
    take(&both, 10, &two.b);
    take(&one, 11, &two.a);
    let found = diff(&two.a, &two.b, &[]);
    assert_eq!(found.code(), 1, "{}", found.stderr);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(text.contains("minute     2011-07-27T11:02:00.000Z: A 60, B 0 URLs\n"), "{text}");
    assert!(text.contains("verdict    1 of 3 minutes differ, 1 file with one master only\n"), "{text}");
    assert!(text.contains("only A") && !text.contains("only B") && !text.contains('\u{1b}'), "{text}");
    let json = diff(&two.b, &two.a, &["--json"]).json();
    assert_eq!(json["b"]["files_only_here"], 1);
    assert!(json["b"]["only_here"][0]["path"].as_str().unwrap().contains("/one"), "{json}");
    assert_eq!(json["b"]["only_here"][0]["digest"].as_str().map(str::len), Some(32), "{json}");
    assert_eq!(json["a"]["files_only_here"], 0);
    // As many URLs of the same minute, but others.
    let third = two.file("third", reflog(11, 120..180).replace("example/1", "example/x"));
    take(&third, 11, &two.b);
    let found = diff(&two.a, &two.b, &[]);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(text.contains("11:02:00.000Z: A 60, B 60 but not the same\n"), "{text}");
    let none = diff(&two.a, &two.dir.join("none"), &[]);
    assert_eq!(none.code(), 3, "{}", none.stderr);
    assert!(none.stderr.contains("holds no master (name the data directories of two)"), "{}", none.stderr);
}
