//! The promise: `nephila master run` takes what is renamed into its spool or sent to its TCP line, whatever else lies or
//! comes there, and gives every node its queue by lines that a plain client can speak; a client that asks for what there is
//! not harms only itself.

use crate::disks::Disk;
use crate::master_process::*;
use crate::support::*;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

/// The URL of an entry.
fn url(line: &str) -> String {
    line.split('\t').nth(4).unwrap_or_else(|| panic!("no reflog: {line:?}")).to_string()
}

#[test]
fn files_become_queues_that_outlive_the_process() {
    let master = MasterProcess::start();
    master.give("a.reflog", lines(0, 2_000));
    let status = master.wait_sent(2_000);
    assert_eq!(
        (status["epoch"].as_u64(), status["files"].as_u64(), status["running"].as_bool()),
        (Some(1), Some(1), Some(true))
    );
    let mut client = master.client();
    let first = client.take("TAKE 1 0 10 MARKED");
    assert_eq!((first.lines.len(), first.next), (10, 10));
    assert!(first.mark.is_some_and(|mark| mark.len() == 14));
    let (one, two) = (all_of(&mut client, 1), all_of(&mut client, 2));
    assert_eq!(one[..10], first.lines[..]);
    let urls: BTreeSet<String> = one.iter().chain(&two).map(|line| url(line)).collect();
    assert_eq!((urls.len(), one.len() + two.len()), (2_000, 2_000), "each once");
    let hosts = |lines: &[String]| -> BTreeSet<String> {
        lines.iter().map(|line| url(line).split('/').nth(2).unwrap().to_string()).collect()
    };
    assert!(hosts(&one).is_disjoint(&hosts(&two)), "a domain is with one server");
    // Some of it again: nothing is sent within the hour.
    master.give("b.reflog", lines(0, 100));
    wait_for("the second file is taken", PATIENCE, || (master.status()["epoch"] == 2).then_some(()));
    client.say(&format!("DONE 1 {}\nLOAD 1 4711\n", one.len()));
    let status = wait_for("what was said is known", PATIENCE, || {
        let status = master.status();
        (status["servers"][0]["pending"] == 4_711 && status["servers"][0]["queue"] == 0).then_some(status)
    });
    assert_eq!(status["hits_waiting"], 100);
    let node = &status["servers"][0];
    assert_eq!((node["position"].as_u64(), node["id"].as_u64()), (Some(one.len() as u64), Some(1)));
    assert!(node["node"].as_str().is_some_and(|node| node.starts_with("127.0.0.1:")), "{node}");
    let data = master.data();
    let (dir, ended) = master.stop();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    // Its files say the same.
    let left = status_of_files(&data);
    assert_eq!(
        (left["running"].as_bool(), left["epoch"].as_u64(), left["sent"].as_u64()),
        (Some(false), Some(2), Some(2_000))
    );
    assert_eq!(left["servers"][0]["queue"], 0);
    let text = || run(["master", "status", "--data", data.to_str().unwrap()]).text();
    let shown = text();
    assert!(shown.contains("lines      2100 in all, of 2 files, 0 rejected\n"), "{shown}");
    assert!(shown.contains("URLs       2000 sent in all, ") && shown.contains("server     2: "), "{shown}");
    // What was done before the process began is told, too.
    let master = MasterProcess::with(dir, "");
    let life = master.status()["life"].clone();
    assert_eq!((&life["lines"], &life["sent"], &life["epochs"]), (&2_100.into(), &2_000.into(), &2.into()));
    let shown = text();
    assert!(
        shown.contains("2100 in all, of 2 files, 0 rejected; since start 0 lines, 0 URLs sent"),
        "{shown}"
    );
    let mut client = master.client();
    assert_eq!(all_of(&mut client, 1), one, "what was had is kept for a while, too");
    assert_eq!(client.take(&format!("TAKE 1 {} 5", one.len())).lines.len(), 0);
}

#[track_caller]
fn status_of_files(data: &std::path::Path) -> serde_json::Value {
    let run = status(data);
    assert_eq!(run.code(), 1, "{}", run.stderr);
    run.json()
}

#[test]
fn whatever_lies_in_the_spool() {
    let master = MasterProcess::start();
    let spool = master.spool();
    std::fs::create_dir(spool.join("folder")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", spool.join("link")).unwrap();
    nix::unistd::mkfifo(&spool.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::write(spool.join(".hidden"), lines(0, 1)).unwrap();
    std::fs::write(spool.join("on-its-way.tmp"), lines(1, 2)).unwrap();
    std::fs::write(spool.join("on-its-way.part"), lines(2, 3)).unwrap();
    let mut growing = std::fs::File::create(spool.join("growing")).unwrap();
    growing.write_all(lines(3, 4).as_bytes()).unwrap();
    master.give("empty", "");
    let text = lines(10, 110);
    master.give("first", &text);
    master.wait_sent(100);
    for (name, what) in [("folder", "a directory"), ("link", "a symbolic link"), ("pipe", "a pipe")] {
        master.wait_said(&format!("spool: {name} is {what}, and is left alone"));
    }
    // The same again under another name is known; what is cut or is no log stops nothing.
    master.give("again", &text);
    master.wait_said("again was taken before, and is skipped");
    let zipped = gzip(lines(200, 300).as_bytes());
    master.give("cut.gz", &zipped[..zipped.len() - 4]);
    master.give("rubbish", vec![0xff; 100_000]);
    master.give("z-last", lines(300, 310));
    let status = master.wait_sent(210);
    assert!(status["rejected"].as_u64() > Some(0), "{status}");
    // A writer that closes its file, and one that renames it.
    growing.write_all(lines(4, 5).as_bytes()).unwrap();
    drop(growing);
    master.wait_sent(212);
    std::fs::rename(spool.join("on-its-way.tmp"), spool.join("there")).unwrap();
    master.wait_sent(213);
    std::thread::sleep(QUIET);
    let mut left: Vec<String> = std::fs::read_dir(&spool)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".hidden", "done", "folder", "link", "on-its-way.part", "pipe"]);
    let said = master.running.stderr();
    assert_eq!(said.matches("is left alone").count(), 3, "each once: {said}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn ten_thousand_files_at_once() {
    let dir = TempDir::in_memory();
    let spool = dir.join("data/spool");
    std::fs::create_dir_all(&spool).unwrap();
    for number in 0..10_000 {
        std::fs::write(
            spool.join(format!("{number:05}")),
            line(&format!("http://h{}.test/{number}", number % 40)),
        )
        .unwrap();
    }
    let master = MasterProcess::with(dir, "");
    let status = master.wait_sent(10_000);
    assert_eq!(status["lines"], 10_000);
    let (_dir, run) = master.stop();
    assert_eq!(run.code(), 0, "{}", run.stderr);
}

#[test]
fn a_sender_that_cannot_rename_is_waited_for() {
    let master = MasterProcess::with(TempDir::new(), "settle = \"2s\"\n");
    let path = master.spool().join("slow");
    // It opens, appends and closes, again and again.
    for number in 0..6 {
        let mut file = std::fs::File::options().create(true).append(true).open(&path).unwrap();
        file.write_all(lines(number, number + 1).as_bytes()).unwrap();
        drop(file);
        std::thread::sleep(QUIET);
    }
    let status = master.wait_sent(6);
    assert_eq!((status["files"].as_u64(), status["epoch"].as_u64()), (Some(1), Some(1)), "all of it at once");
}

#[test]
fn two_nodes_that_say_they_are_one_server() {
    let master = MasterProcess::start();
    let (mut first, mut second) = (master.client(), master.client());
    let me = first.stream.local_addr().unwrap();
    first.take("TAKE 1 0 10");
    for ask in ["TAKE 1 0 10\n", "DONE 1 0\n", "LOAD 1 3\n"] {
        let said = second.refused(ask);
        assert!(said.contains(&format!("server 1 is {me} already")), "{said}");
        second = master.client();
    }
    // The other server is free, and the first goes on.
    second.take("TAKE 2 0 10");
    first.take("TAKE 1 0 10");
    drop(first);
    wait_for("its place is free", PATIENCE, || {
        (master.status()["servers"][0]["node"].is_null()).then_some(())
    });
    master.client().take("TAKE 1 0 10");
}

#[test]
fn a_node_that_is_silent_for_too_long_gives_its_place() {
    let master = MasterProcess::with(TempDir::new(), "timeout_node = \"3s\"\n");
    let mut dead = master.client();
    dead.take("TAKE 1 0 10");
    std::thread::sleep(Duration::from_millis(3_200));
    let mut next = master.client();
    assert_eq!(next.take("TAKE 1 0 10").next, 0);
    let said = std::iter::from_fn(|| dead.hear()).last().unwrap();
    assert!(
        said.starts_with("ERROR silent for ") && said.ends_with("another node is server 1 now"),
        "{said}"
    );
}

#[test]
fn what_there_is_not_is_refused_and_harms_nobody_else() {
    let master = MasterProcess::start();
    master.give("a", lines(0, 100));
    master.wait_sent(100);
    let mut good = master.client();
    let had = good.take("TAKE 2 0 1000").next;
    let long = format!("TAKE 1 {} 1\n", "0".repeat(20_000));
    for (asked, why) in [
        ("TAKE 1 9223372036854775808 10\n", "the queue of server 1: 9223372036854775808 is beyond the queue"),
        ("TAKE 1 18446744073709551615 10\n", "is beyond the queue"),
        ("DONE 1 100000\n", "DONE 1 100000: "),
        ("TAKE 1 0 1\nDONE 1 2\n", "DONE 1 2: entries were given up to "),
        ("TAKE 9 0 1\n", "server 9 is not configured"),
        ("LOAD 9 1\n", "server 9 is not configured"),
        ("CLOSED a.ru\n", "say which server you are first"),
        ("GET / HTTP/1.1\r\n", "neither TAKE, DONE, LOAD"),
        ("TAKE 1 0 0\n", "TAKE without a count from 1"),
        ("\u{0}\u{1}\n", "neither TAKE, DONE, LOAD"),
        (&long, "a line longer than 8704 bytes"),
    ] {
        let said = master.client().refused(asked);
        assert!(said.contains(why), "{asked:?}: {said}");
    }
    let said = wait_for("it is said", PATIENCE, || {
        let said = master.running.stderr();
        said.contains("a line longer than 8704 bytes").then_some(said)
    });
    assert_eq!(said.matches("TAKE without a count from 1").count(), 1, "once: {said}");
    // In pieces, with CRLF, two at once: all the same.
    let mut client = master.client();
    for piece in ["TA", "KE 1 0", " 3\r", "\nTAKE 1 3 2\n"] {
        client.say(piece);
        std::thread::sleep(Duration::from_millis(20));
    }
    let (first, second) = (client.taken(), client.taken());
    assert_eq!((first.next, second.next, second.lines.len()), (3, 5, 2));
    // At the end of the queue an answer comes all the same.
    assert_eq!((good.take(&format!("TAKE 2 {had} 10")).next, good.take("TAKE 2 0 1").lines.len()), (had, 1));
    // Whoever asks at the end gets what comes.
    good.say(&format!("TAKE 2 {had} 1000\n"));
    master.give("b", lines(1_000, 1_100));
    let more = wait_for("what came", PATIENCE, || {
        let taken = good.taken();
        if taken.lines.is_empty() {
            good.say(&format!("TAKE 2 {had} 1000\n"));
        }
        (!taken.lines.is_empty()).then_some(taken)
    });
    assert_eq!(more.next, had + more.lines.len() as u64);
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    let master = MasterProcess::start();
    let long = "x".repeat(2_000);
    let text: String =
        (0..12_000).map(|number| line(&format!("http://h{}.test/{number}/{long}", number % 40))).collect();
    master.give("a", text);
    let status = master.wait_sent(12_000);
    let (of_one, of_two) =
        (status["servers"][0]["next"].as_u64().unwrap(), status["servers"][1]["next"].as_u64().unwrap());
    let mut deaf = master.client();
    deaf.say("TAKE 1 0 100000\n");
    let mut good = master.client();
    assert_eq!(good.take("TAKE 2 0 100000").lines.len() as u64, of_two);
    master.give("b", lines(20_000, 20_010));
    master.wait_sent(12_010);
    // It has lost nothing by it, and may get what has come since.
    let had = deaf.taken().lines.len() as u64;
    assert!((of_one..=of_one + 10).contains(&had), "{had} of {of_one}");
}

#[test]
fn the_tcp_line() {
    let master = MasterProcess::start();
    let mut sender = Client::new(master.intake);
    let whole = lines(0, 50);
    sender.say(&whole[..1_000]);
    std::thread::sleep(Duration::from_millis(50));
    sender.say(&whole[1_000..]);
    let mut said = sender.hear().unwrap();
    while said != format!("TAKEN 50 {}", whole.len()) {
        said = sender.hear().unwrap();
    }
    master.wait_sent(50);
    // A record that is wrapped stays whole, whenever the sender pauses; the end of the connection ends the last.
    let wrapped = lines(60, 61).replacen("\thttp", "\t\nhttp", 1);
    let (head, tail) = wrapped.split_at(wrapped.find('\n').unwrap() + 1);
    sender.say(head);
    std::thread::sleep(Duration::from_millis(1_500));
    sender.say(tail);
    sender.say(lines(61, 62).trim_end());
    sender.finish_sending();
    let last = std::iter::from_fn(|| sender.hear()).last();
    master.wait_sent(52);
    // The 50, the two lines of a record that is wrapped, and the last, which ends with the stream.
    let bytes = whole.len() + wrapped.len() + lines(61, 62).trim_end().len();
    assert_eq!(last, Some(format!("TAKEN 53 {bytes}")));
    assert_eq!(master.status()["rejected"], 0);

    // A connection that breaks within the hits: what is whole counts, and the rest is no line.
    let mut broken = Client::new(master.intake);
    let (good, cut) = (lines(70, 71), lines(71, 72).replace("\t1\t0\n", "\t12"));
    broken.say(&format!("{good}{cut}"));
    assert_eq!(broken.hear(), Some(format!("TAKEN 1 {}", good.len())));
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&broken.stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    drop(broken);
    master.wait_sent(53);
    wait_for("it is gone", PATIENCE, || (master.status()["intake_links"] == 0).then_some(()));
    let mut next = Client::new(master.intake);
    next.say(&lines(80, 81));
    next.finish_sending();
    assert!(next.hear().is_some_and(|said| said.starts_with("TAKEN 1 ")));
    let status = master.wait_sent(54);
    assert_eq!((&status["sent"], &status["rejected"]), (&54.into(), &0.into()));
}

#[test]
fn what_works_on_crawls_knows_a_master() {
    let master = MasterProcess::start();
    let data = master.data();
    let of = |command: &str| run([command, "--data", data.to_str().unwrap()]);
    let status = of("status").done().text();
    assert!(status.contains("state      a master, running for"), "{status}");
    assert!(status.contains(&format!("nephila master status --data {}", data.display())), "{status}");
    of("stop").done();
    let ended = master.running.wait(PATIENCE).done();
    assert!(ended.text().contains("epochs     0 since start"), "{}", ended.text());
    for (command, words) in [("stop", "no master runs in "), ("status", "nephila master status --data ")] {
        let run = of(command);
        assert!(run.code() == 1 && run.stderr.contains(words), "{command}: {run:?}");
    }
    let which = run(["master", "log", "--data", data.to_str().unwrap()]);
    assert!(
        which.code() == 2 && ["--current", "--filtered"].iter().all(|log| which.stderr.contains(log)),
        "{which:?}"
    );
}

#[test]
fn a_move_that_would_come_back_is_refused() {
    let master = MasterProcess::start();
    master.give("a", lines(0, 40));
    master.wait_sent(40);
    let data = master.data();
    let map =
        |args: &[&str]| run(["master", "map"].iter().chain(args).chain(&["--data", data.to_str().unwrap()]));
    map(&["drain", "1"]).done();
    let refusals = || {
        let last = map(&["drain", "2"]);
        assert_eq!((last.code(), last.stderr.lines().count()), (1, 1), "{last:?}");
        assert!(last.stderr.contains("server 2 is the last that takes domains"), "{last:?}");
        let back = map(&["move", "h1.test", "1"]);
        assert_eq!((back.code(), back.stderr.lines().count()), (1, 1), "{back:?}");
        assert!(back.stderr.contains("server 1 is drained, and takes no domains"), "{back:?}");
    };
    refusals();
    let (_dir, _) = master.stop();
    refusals();
}

#[test]
fn what_could_give_a_domain_to_two_servers_does_not_start() {
    let dir = TempDir::new();
    let servers = "[[server]]\nid = 1\n";
    for (more, servers, why) in [
        ("peer = \"127.0.0.1:1\"\n", servers, "could give one domain to two servers"),
        ("", "", "no server to deal URLs to"),
        ("", "[[server]]\nid = 1\n[[server]]\nid = 1\n", "server 1 is entry 1 already"),
        ("assign = \"round_robin\"\n", servers, "must be \"least_loaded\" or \"rendezvous\""),
        ("database = \"postgres://u:hunter2@h/d\"\ndatabase_password_file = \"f\"\n", servers, "keep one"),
    ] {
        let run = start(&dir, &config(&dir, more, servers)).wait(PATIENCE);
        assert_eq!(run.code(), 2, "{}", run.stderr);
        assert!(run.stderr.contains(why) && !run.stderr.contains("hunter2"), "{}", run.stderr);
        assert!(!dir.join("data").exists(), "nothing is made");
        let check = run_check(&dir);
        assert_eq!(check.code(), 1);
        assert!(check.text().contains(why), "{}", check.text());
    }
    let path = config(&dir, "peer = \"127.0.0.1:1\"\nassign = \"rendezvous\"\n", servers);
    assert_eq!(run(["config", "check", "--for", "master", path.to_str().unwrap()]).code(), 0);
}

fn run_check(dir: &TempDir) -> Run {
    let path = dir.join("master.toml");
    run(["config", "check", "--for", "master", path.to_str().unwrap()])
}

#[test]
fn the_other_master_is_looked_at() {
    let other = MasterProcess::start();
    let more = format!("peer = \"{}\"\nassign = \"rendezvous\"\n", other.addr);
    let master = MasterProcess::with(TempDir::new(), &more);
    let peer = |is_there: bool| {
        wait_for(&format!("the peer is there: {is_there}"), PATIENCE, || {
            (master.status()["peer"]["is_there"] == is_there).then_some(())
        });
    };
    peer(true);
    // Somebody else who is turned away is not the peer.
    master.client().refused("TAKE 9 0 1\n");
    std::thread::sleep(QUIET);
    peer(true);
    other.stop();
    peer(false);
    let text = run(["master", "status", "--data", master.data().to_str().unwrap()]).done().text();
    assert!(text.contains(" does not answer since "), "{text}");
}

#[test]
fn a_directory_has_one_master() {
    let master = MasterProcess::start();
    let run = start(&master.dir, &master.dir.join("master.toml")).wait(PATIENCE);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("pid {}", master.running.pid())), "{}", run.stderr);
    master.client().take("TAKE 1 0 1");
}

#[test]
fn settings_are_read_again() {
    let master = MasterProcess::start();
    let servers = "[[server]]\nid = 1\ncapacity = 3\n[[server]]\nid = 3\n";
    config(&master.dir, "epoch_max = 5\nby = \"host\"\n", servers);
    master.running.signal(Signal::SIGHUP);
    master.wait_said("took 2 of 3 changes; master.by needs a restart");
    let status = wait_for("the servers are others", PATIENCE, || {
        let status = master.status();
        (status["servers"][1]["id"] == 3).then_some(status)
    });
    assert_eq!(status["servers"][0]["capacity"], 3.0);
    assert_eq!(master.client().take("TAKE 3 0 1").next, 0);
    assert!(master.client().refused("TAKE 2 0 1\n").contains("server 2 is not configured"));
    // A mistake changes nothing.
    config(&master.dir, "", "");
    master.running.signal(Signal::SIGHUP);
    master.wait_said("all settings stay as they are");
    assert_eq!(master.status()["servers"].as_array().unwrap().len(), 2);
}

#[test]
fn a_full_disk_is_waited_for() {
    let Some(disk) = Disk::tmpfs(24) else { return };
    let dir = TempDir::new();
    let data = disk.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::os::unix::fs::symlink(&data, dir.join("data")).unwrap();
    let mut master = MasterProcess::with(dir, "");
    master.give_by_copy("a", lines(0, 100));
    master.wait_sent(100);
    let text: String =
        (0..20_000).map(|number| line(&format!("http://h{}.test/f{number}", number % 40))).collect();
    master.give_by_copy("b", text);
    let ballast = disk.fill(200 << 10);
    master.wait_said("the epoch waits: ");
    assert!(!master.running.has_ended());
    // Nodes are served meanwhile.
    assert_eq!(master.client().take("TAKE 1 0 1").lines.len(), 1);
    std::fs::remove_file(ballast).unwrap();
    master.wait_sent(20_100);
    let said = master.running.stderr();
    assert_eq!(said.matches("the epoch waits").count(), 1, "{said}");
    assert_eq!(said.matches("(free some space)").count(), 1, "{said}");
    // The disk goes when nobody uses it.
    let (dir, run) = master.stop();
    assert_eq!(run.code(), 0, "{}", run.stderr);
    drop(dir);
}

#[test]
fn figures_for_a_monitor() {
    let master = MasterProcess::start();
    master.give("a", lines(0, 100));
    master.wait_sent(100);
    let text = run(["metrics", "--data", master.data().to_str().unwrap()]).done().text();
    for line in [
        "nephila_master_epoch 1",
        "nephila_master_lines_total{verdict=\"taken\"} 100",
        "nephila_master_sent_urls_total 100",
        "nephila_master_server_queue_entries{server=\"1\"} ",
        "nephila_node_info{role=\"master\",driver=\"epoll\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
