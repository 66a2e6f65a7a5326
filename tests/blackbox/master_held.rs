//! The promise: what a master cannot send is held up to a bound; beyond it files wait in the spool, their lag is shown, and
//! all of it is sent once there is somebody to send it to.

use crate::master_process::{config, lines, start, status};
use crate::support::*;
use nix::sys::signal::Signal;

#[test]
fn files_wait_in_the_spool_while_too_much_is_held() {
    let dir = TempDir::new();
    let more = "held_bytes_max = 1\nepoch_max = 1\n";
    let running = start(&dir, &config(&dir, more, "[[server]]\nid = 1\nstate = \"draining\"\n"));
    let state = || status(&dir.join("data")).json();
    let give = |name: &str, text: String| {
        std::fs::rename(dir.write(&format!("out/{name}"), text), dir.join("data/spool").join(name)).unwrap();
    };
    wait_for("it listens", PATIENCE, || running.stderr().contains("intake: listening on").then_some(()));
    give("a", lines(0, 50));
    wait_for("all of it is held", PATIENCE, || (state()["held"] == 50).then_some(()));
    assert_eq!(state()["new_domains_wait"], "no server takes new domains");
    give("b", lines(50, 60));
    wait_for("it is said", PATIENCE, || running.stderr().contains("files wait in the spool").then_some(()));
    wait_for("its lag is shown", PATIENCE, || {
        let state = state();
        (state["files_waiting"] == 1 && state["lag_s"].as_f64() > Some(1.5)).then_some(())
    });
    assert!(dir.join("data/spool/b").exists());
    config(&dir, more, "[[server]]\nid = 1\n");
    running.signal(Signal::SIGHUP);
    wait_for("all of it is sent", PATIENCE, || {
        let state = state();
        (state["sent"] == 60 && state["held"] == 0 && state["files_waiting"] == 0).then_some(())
    });
    assert_eq!(state()["new_domains_wait"], serde_json::Value::Null);
    running.signal(Signal::SIGINT);
    running.wait(PATIENCE);
}

#[test]
fn an_epoch_that_is_kept_is_written_as_texts_too() {
    let dir = TempDir::new();
    let settings = dir.write("m.toml", "[master]\nby = \"host\"\n[[server]]\nid = 7\n[[server]]\nid = 9\n");
    let mut text = String::new();
    for number in 0..500 {
        let time = format!("2011072720{:02}{:02}", number / 60, number % 60);
        text += &format!(
            "1\t5\t{time}\t17\thttp://h{}.d.example/{}\t2\t{}\n",
            number % 9,
            number % 400,
            number % 3
        );
    }
    let file = dir.write("a.reflog", text);
    let (file, data, settings) = (file.to_str().unwrap(), dir.join("data"), settings.to_str().unwrap());
    let (kept, plain) = (dir.join("kept"), dir.join("plain"));
    let now = ["master", "once", file, "--now", "20110727210000"];
    let more = ["--data", data.to_str().unwrap(), "--out", kept.to_str().unwrap()];
    let told = run(now.into_iter().chain(more).chain(["--config", settings, "--json"])).done().json();
    let servers: Vec<u64> =
        told["servers"].as_array().unwrap().iter().map(|server| server["server"].as_u64().unwrap()).collect();
    assert_eq!(servers, [7, 9]);
    run(now.into_iter().chain(["--text", "--by", "host", "--out", plain.to_str().unwrap()])).done();
    for name in ["filtered_log", "current_log"] {
        let sorted = |folder: &std::path::Path| {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&kept), sorted(&plain), "{name}");
        assert_eq!(sorted(&kept).len(), 500, "{name}");
    }
    // Nothing new: nothing is sent, and current_log is as it was.
    run(now.into_iter().chain(more).chain(["--config", settings])).done();
    assert_eq!(std::fs::read(kept.join("filtered_log")).unwrap(), b"");
    assert_ne!(std::fs::read(kept.join("current_log")).unwrap(), b"");
    let shared = dir.write("d.toml", "[master]\ndatabase = \"postgres://a@b/c\"\n[[server]]\nid = 1\n");
    let refused = run(now.into_iter().chain(more).chain(["--config", shared.to_str().unwrap()]));
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("nephila master run"), "{}", refused.stderr);
}

#[test]
fn a_file_that_was_cut_is_accounted_for() {
    let dir = TempDir::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, lines(0, 2_000).as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let file = dir.write("cut.gz", &whole[..whole.len() / 2]);
    let data = dir.join("data");
    let data = data.to_str().unwrap();
    let told = run(["master", "once", file.to_str().unwrap(), "--data", data, "--json"]).done().json();
    assert_eq!(told["files_cut"], 1, "{told}");
    run(["master", "audit", "--data", data]).done();
}
