//! The promise: a master whose clock was a year ahead, and is right again, goes on: what it sent then is sent again after
//! its hour, no node is told that it has everything up to another year, and the audit finds nothing.

use crate::clocks::Clock;
use crate::master_process::{Client, config, said, status};
use crate::support::*;
use nephila::proto::reflog::Stamp;
use nix::sys::signal::Signal;
use std::time::{SystemTime, UNIX_EPOCH};

const HOUR_S: i64 = 3_600;
const YEAR_S: i64 = 365 * 24 * HOUR_S;

fn stamp(ahead_s: i64) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    String::from_utf8(Stamp::from_s((now_s + ahead_s) as u32).digits().to_vec()).unwrap()
}

fn line(url: &str, ahead_s: i64) -> String {
    format!("2011072806593795\t5\t{}\t17\t{url}\t1\t0\n", stamp(ahead_s))
}

/// Starts a master, gives it lines of its own time, and says what its one node gets from a number on, and its mark.
fn round(
    dir: &TempDir,
    clock: &Clock,
    ahead_s: i64,
    from: u64,
    urls: &[&str],
    sent: u64,
) -> (Vec<String>, u64, String) {
    let config = config(dir, "epoch_max = 1\n", "[[server]]\nid = 1\n");
    let mut command = nephila();
    command.args(["master", "run", "--config"]).arg(&config).current_dir(dir.path());
    let running = clock.start(ahead_s, &mut command);
    let mut client = Client::new(said(&running, "master: listening on "));
    // What is there is told before anything new is given.
    let before = client.take(&format!("TAKE 1 {from} 100 MARKED"));
    assert!(
        before.lines.is_empty() && before.mark.unwrap() <= stamp(ahead_s + 700),
        "no mark is of another year"
    );
    let text: String = urls.iter().map(|url| line(url, ahead_s)).collect();
    let name = format!("at{ahead_s}");
    let file = dir.write(&format!("out/{name}"), text);
    std::fs::rename(file, dir.join("data/spool").join(name)).unwrap();
    wait_for(&format!("its lines are taken: {}", running.stderr()), PATIENCE, || {
        (status(&dir.join("data")).json()["lines"] == urls.len()).then_some(())
    });
    assert_eq!(status(&dir.join("data")).json()["sent"], sent, "{ahead_s}: {}", running.stderr());
    let taken = client.take(&format!("TAKE 1 {from} 100 MARKED"));
    client.say(&format!("DONE 1 {}\n", taken.next));
    client.take(&format!("TAKE 1 {} 1", taken.next));
    running.signal(Signal::SIGINT);
    running.wait(PATIENCE).done();
    let url = |line: &String| line.split('\t').nth(4).unwrap().to_string();
    (taken.lines.iter().map(url).collect(), taken.next, taken.mark.unwrap())
}

#[test]
fn a_year_that_was_not_stops_nothing() {
    let (dir, a, b, c) = (TempDir::new(), "http://a.example/1", "http://a.example/2", "http://b.example/1");
    let clock = Clock::new(&dir);
    let (mut urls, next, _) = round(&dir, &clock, YEAR_S, 0, &[a, b], 2);
    urls.sort();
    assert_eq!(urls, [a, b].map(str::to_string));
    // Right again: what was sent a moment ago waits for its hour, what is new goes out.
    let (urls, next, mark) = round(&dir, &clock, 0, next, &[a, c], 1);
    assert_eq!(urls, [c.to_string()]);
    assert!(mark <= stamp(1), "{mark}: the time of what was sent, and no other");
    // An hour and a half later, which is past what a file may be late as well.
    let (mut urls, ..) = round(&dir, &clock, 3 * HOUR_S / 2 + 1, next, &[a, b], 2);
    urls.sort();
    assert_eq!(urls, [a, b].map(str::to_string));
    run(["master", "audit", "--data", dir.join("data").to_str().unwrap()]).done();
}
