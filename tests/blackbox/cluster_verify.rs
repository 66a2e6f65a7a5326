//! The promise: `nephila cluster verify` says whether every node has what was promised, and of everything that is not so it
//! says in one line where it is and what mends it. It reads everything while a crawl goes on, and stops nothing.

use crate::cluster::{Cluster, spec};
use crate::support::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a folder that end so, oldest first.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending))).collect();
    files.sort();
    files
}

/// Changes one bit in the middle of a file, under whoever has it open.
fn flip(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let (at, mut byte) = (file.metadata().unwrap().len() / 2, [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// Whether all is as promised: the exit status, what is short, and everything that was said.
#[track_caller]
fn verify(cluster: &Cluster, number: u16) -> (i32, Vec<Value>, Value) {
    let told = cluster.ask(number, &["verify", "--timeout", "60", "--json"]);
    let view: Value =
        serde_json::from_str(&told.text()).unwrap_or_else(|_| panic!("{}{}", told.text(), told.stderr));
    (told.code(), view["short"].as_array().unwrap().clone(), view)
}

#[track_caller]
fn assert_sound(cluster: &Cluster, number: u16) -> Value {
    let (code, short, view) = verify(cluster, number);
    assert!(code == 0 && short.is_empty() && view["done"] == true, "{view}");
    view
}

/// One line is short, of this node and kind, and says this.
#[track_caller]
fn assert_short(cluster: &Cluster, (asked, node): (u16, u16), kind: &str, says: &str) {
    let (code, short, view) = verify(cluster, asked);
    assert_eq!((code, short.len()), (1, 1), "{view}");
    let [what, mend] = ["what", "mend"].map(|key| short[0][key].as_str().unwrap());
    assert_eq!((&short[0]["node"], &short[0]["kind"]), (&Value::from(node), &Value::from(kind)), "{view}");
    assert!(what.contains(says) && !mend.is_empty(), "{view}");
}

fn follower(cluster: &Cluster, number: u16) -> u16 {
    cluster.status(number)["copy"]["node"].as_u64().unwrap() as u16
}

#[track_caller]
fn in_step(cluster: &Cluster) {
    for number in cluster.nodes.keys().filter(|number| cluster.nodes[number].running.is_some()) {
        // A node that was started a moment ago may not answer yet.
        wait_for("its copy is in step", 2 * PATIENCE, || {
            let status = cluster.ask(*number, &["status", "--json"]).text();
            let view: Value = serde_json::from_str(&status).unwrap_or_default();
            (view["copy"]["in_step"] == true).then_some(())
        });
    }
}

fn start_anew(cluster: &mut Cluster, number: u16) {
    cluster.stop(number);
    cluster.start_again(number);
    in_step(cluster);
}

#[test]
fn a_copy_that_is_not_what_it_was_is_named_with_its_mend() {
    let farm = Farm::start(spec(12, 12));
    let mut cluster = Cluster::of_farm(&farm, "8");
    [1, 2].into_iter().for_each(|number| cluster.start(number));
    cluster.wait(1, 2);
    cluster.ask(1, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    wait_for("a part of the pages", PATIENCE, || (cluster.pages(1) >= 20).then_some(()));
    // A crawl goes on meanwhile.
    let view = assert_sound(&cluster, 2);
    assert!(view["nodes"].as_array().unwrap().iter().all(|node| node["answered"] == true), "{view}");
    cluster.wait(1, 2);
    // Whoever stops seals its segments.
    start_anew(&mut cluster, 1);
    start_anew(&mut cluster, 2);
    let view = assert_sound(&cluster, 1);
    for node in view["nodes"].as_array().unwrap() {
        let figure = |key: &str| node[key].as_u64().unwrap();
        assert!(figure("segments") > 0 && figure("bytes") > 4_096 && figure("documents") > 20, "{view}");
        assert!(node["epoch"] == view["epoch"] && node["table"] == view["table"], "{view}");
    }
    let text = cluster.ask(1, &["verify"]).done().text();
    assert!(text.contains(" are the same at node 2\n") && text.ends_with("all is as promised\n"), "{text}");

    let copy = cluster.dir.join("n2/copies/1/segments");
    let copied = files(&copy, ".seg").remove(0);
    flip(&copied);
    for asked in [1, 2] {
        assert_short(&cluster, (asked, 1), "copy_differs", "of node 1 at node 2 has other bytes");
    }
    let text = cluster.ask(2, &["verify"]);
    let mend = " (remove copies/1/segments/0000000001-* in the directory of node 2, and start node 2 again: ";
    assert!(text.code() == 1 && text.text().contains(mend), "{}", text.text());
    // The mend that it names.
    fs::remove_file(&copied).unwrap();
    assert_short(&cluster, (2, 1), "copy_missing", "of node 1 is missing at node 2: copies/1/segments/");
    start_anew(&mut cluster, 2);
    assert_sound(&cluster, 2);

    // Of the two, it is the node itself whose segment is damaged.
    let own = files(&cluster.dir.join("n2/segments"), ".seg").remove(0);
    flip(&own);
    assert_short(&cluster, (1, 2), "damaged", "of node 2 is damaged");
    flip(&own);
    let known = cluster.dir.join("n1/copies/2/known");
    flip(&known);
    assert_short(&cluster, (1, 2), "knowledge_missing", "what node 1 knows of node 2 is not all there");
    flip(&known);
    assert_sound(&cluster, 1);

    cluster.kill(2);
    let (code, short, view) = verify(&cluster, 1);
    let of =
        |kind: &str| short.iter().find(|short| short["kind"] == kind).unwrap_or_else(|| panic!("{view}"));
    assert_eq!(code, 1);
    assert!(
        of("away")["what"].as_str().unwrap().starts_with("node 2 at ") && of("away")["node"] == 2,
        "{view}"
    );
    assert!(of("partitions")["what"].as_str().unwrap().contains("node 2's, which is not there"), "{view}");
    assert!(of("no_answer")["node"] == 1, "{view}");
    assert_eq!(cluster.ask(2, &["verify"]).code(), 3);
    cluster.stop(1);
}

#[test]
fn the_store_of_a_node_that_is_gone_is_read_by_its_own_checksums() {
    let farm = Farm::start(spec(12, 6));
    let mut cluster = Cluster::of_farm(&farm, "8");
    cluster.more.extend(["--takeover", "never"].map(str::to_string));
    [1, 2, 3].into_iter().for_each(|number| cluster.start(number));
    cluster.wait(1, 3);
    cluster.ask(1, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    cluster.wait(1, 3);
    in_step(&cluster);
    let heir = follower(&cluster, 3);
    // Whoever stops seals its segments; the copy of them is sealed when it is back.
    cluster.stop(3);
    cluster.start_again(3);
    in_step(&cluster);
    cluster.stop(3);
    let is_three = |node: &&Value| node["number"] == 3;
    wait_for("its link is down", PATIENCE, || {
        let nodes = cluster.status(1)["nodes"].as_array().unwrap().clone();
        nodes.iter().find(is_three).is_some_and(|node| node["linked"] == false).then_some(())
    });
    cluster.ask(1, &["forget", "3"]).done();
    let kept = cluster.nodes[&heir].data.join("copies/3.1.pages/segments");
    wait_for("its pages are kept", PATIENCE, || kept.is_dir().then_some(()));
    in_step(&cluster);
    let view = assert_sound(&cluster, 1);
    let of_heir = view["nodes"].as_array().unwrap().iter().find(|node| node["node"] == heir).unwrap();
    let segments = files(&kept, ".seg");
    assert!(!segments.is_empty() && of_heir["kept"] == segments.len(), "{view}");
    flip(&segments[0]);
    assert_short(&cluster, (3 - heir, heir), "damaged", "copies/3.1.pages/segments/");
    flip(&segments[0]);
    assert_sound(&cluster, heir);
    cluster.stop_all();
}
