//! The promise: what nginx serves is stored byte for byte, what its robots.txt denies is not asked for, with
//! either driver, on one core and on two, whatever nginx does to its connections.

use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};

const LARGE: usize = 300_000;
const LIMIT: usize = 100_000;

/// A tree of a few hundred files, and an index that links them.
struct Tree {
    /// Path as in a URL to its bytes; everything here is reachable and allowed.
    files: BTreeMap<String, Vec<u8>>,
    denied: Vec<String>,
}

impl Tree {
    fn make(dir: &TempDir) -> Tree {
        let mut files = BTreeMap::new();
        let sizes = [0, 1, 100, 1_459, 4_096, 16_383, 16_384, 16_385, 40_000, 65_536, 131_073];
        for number in 0..280 {
            let ending = ["html", "txt", "bin"][number % 3];
            let folder = ["", "a/", "a/b/", "a/b/c/d/e/"][number / 3 % 4];
            let path = format!("/{folder}f{number}.{ending}");
            files.insert(path.clone(), filling(&path, sizes[number % sizes.len()]).into_bytes());
        }
        for (path, length) in [
            ("/large.txt", LARGE),
            ("/limit.txt", LIMIT),
            ("/over.txt", LIMIT + 1),
            ("/chunked/small.html", 700),
            ("/chunked/large.html", LARGE),
            ("/with%20space.txt", 50),
        ] {
            files.insert(path.to_string(), filling(path, length).into_bytes());
        }
        // The links of each folder stand in its index: absolute, rooted and relative ones.
        let mut index = String::from("<!doctype html><title>Index</title>\n");
        for path in files.keys() {
            let link = match path.len() % 3 {
                0 => format!("http://site.test:PORT{path}"),
                1 => path.clone(),
                _ => path[1..].to_string(),
            };
            index.push_str(&format!("<a href='{link}'>x</a>\n"));
        }
        let denied: Vec<String> = (0..5).map(|number| format!("/secret/{number}.html")).collect();
        for path in &denied {
            index.push_str(&format!("<a href={path}>x</a>\n"));
            dir.write(&format!("root{path}"), "must not be read");
        }
        index.push_str("<a href=/deep>x</a> <a href=/none.html>x</a> <a href=/forbidden/x.html>x</a>\n");
        files.insert("/deep/".to_string(), b"<a href=below.html>below</a>".to_vec());
        files.insert("/deep/below.html".to_string(), filling("below", 9_000).into_bytes());
        for (path, bytes) in &files {
            let name = path.replace("%20", " ");
            let name = if name.ends_with('/') { format!("{name}index.html") } else { name };
            dir.write(&format!("root{name}"), bytes);
        }
        dir.write("root/forbidden/x.html", "no");
        dir.write("root/robots.txt", "User-agent: *\nDisallow: /secret/\n");
        dir.write("index.in", index);
        Tree { files, denied }
    }

    /// The index names the port, which is known once nginx runs.
    fn write_index(&mut self, nginx: &Nginx) {
        let index = std::fs::read_to_string(nginx.dir.join("index.in")).unwrap();
        let index = index.replace("PORT", &nginx.port.to_string()).into_bytes();
        nginx.dir.write("root/index.html", &index);
        self.files.insert("/".to_string(), index);
    }
}

fn start(server: &str) -> (Tree, Nginx) {
    let dir = TempDir::new();
    let mut tree = Tree::make(&dir);
    let server = format!(
        "location /chunked/ {{ ssi on; }}
        location /forbidden/ {{ deny all; }}
        {server}"
    );
    let nginx = Nginx::start(dir, &server);
    tree.write_index(&nginx);
    (tree, nginx)
}

#[track_caller]
fn crawl_all(nginx: &Nginx, tree: &Tree, driver: &str, cores: &str) {
    let hosts = nginx.dir.write("hosts", "127.0.0.1 site.test\n");
    let origin = format!("http://site.test:{}", nginx.port);
    let dir = TempDir::new();
    let data = dir.join("data");
    let before = nginx.access_log().len();
    let seed = format!("{origin}/");
    let flags = [&seed, "--hosts-file", hosts.to_str().unwrap(), "--req-host-per-sec", "0"];
    let more = ["--driver", driver, "--cores", cores, "--req-host-concurrent", "4"];
    let (report, _) = crawl(&data, flags.into_iter().chain(more));

    let stored = stored(&data);
    for (path, bytes) in &tree.files {
        let listed = stored.get(&format!("{origin}{path}")).unwrap_or_else(|| panic!("not stored: {path}"));
        assert_eq!((listed.bytes, &*listed.sha1), (bytes.len() as u64, &*sha1_hex(bytes)), "{listed:?}");
        assert_eq!((listed.success, &*listed.result, listed.http_status), (true, "ok", Some(200)));
    }
    for path in ["/", "/large.txt", "/chunked/large.html", "/f0.html", "/with%20space.txt"] {
        assert!(cat(&data, &format!("{origin}{path}")) == tree.files[path], "{path}");
    }
    let of = |path: &str| &stored[&format!("{origin}{path}")];
    assert_eq!((of("/deep").http_status, of("/deep").success), (Some(301), false));
    assert_eq!(of("/deep").new_url, Some(format!("{origin}/deep/")));
    assert_eq!((&*of("/none.html").result, of("/none.html").http_status), ("http_error", Some(404)));
    assert_eq!(
        (&*of("/forbidden/x.html").result, of("/forbidden/x.html").http_status),
        ("http_error", Some(403))
    );
    assert_eq!(stored.len(), tree.files.len() + 3, "and nothing else");
    assert_eq!(report["pages"], stored.len());
    assert_eq!(result_count(&report, "robots_denied"), tree.denied.len() as u64);
    assert_eq!(report["pending"], 0);

    let log = nginx.access_log();
    let asked: Vec<&str> = log[before..].iter().map(|(target, ..)| target.as_str()).collect();
    assert!(asked.iter().all(|target| !target.starts_with("/secret")), "{asked:?}");
    assert_eq!(asked[0], "/robots.txt");
    let different: BTreeSet<&str> = asked.iter().copied().collect();
    assert_eq!((different.len(), asked.len()), (stored.len() + 1, stored.len() + 1), "each once");
}

#[test]
fn a_tree_with_either_driver_on_one_core_and_two() {
    let (tree, nginx) = start("keepalive_timeout 30s; keepalive_requests 10000;");
    for driver in DRIVERS {
        for cores in ["0", "0,1"] {
            crawl_all(&nginx, &tree, driver, cores);
        }
    }
    let most = nginx.access_log().iter().map(|(.., number)| *number).max().unwrap();
    assert!(most > 40, "connections are used again: {most} requests on one");
}

#[test]
fn three_requests_a_connection() {
    let (tree, nginx) = start("keepalive_timeout 30s; keepalive_requests 3;");
    for driver in DRIVERS {
        crawl_all(&nginx, &tree, driver, "0,1");
    }
    assert_eq!(nginx.access_log().iter().map(|(.., number)| *number).max(), Some(3));
}

#[test]
fn no_keep_alive() {
    let (tree, nginx) = start("keepalive_timeout 0;");
    for driver in DRIVERS {
        crawl_all(&nginx, &tree, driver, "0");
    }
}

/// Documents are cut at the limit: one byte more is too much, the limit itself is not.
#[test]
fn documents_are_cut_at_max_doc_size() {
    let (tree, nginx) = start("");
    let origin = format!("http://site.test:{}", nginx.port);
    let hosts = nginx.dir.write("hosts", "127.0.0.1 site.test\n");
    for driver in DRIVERS {
        let dir = TempDir::new();
        let data = dir.join("data");
        let (seed, limit) = (format!("{origin}/"), LIMIT.to_string());
        let flags = [&seed, "--hosts-file", hosts.to_str().unwrap(), "--req-host-per-sec", "0"];
        let more = ["--driver", driver, "--max-doc-size", &limit];
        let (report, _) = crawl(&data, flags.into_iter().chain(more));
        let stored = stored(&data);
        let mut cut = 0;
        for (path, bytes) in &tree.files {
            let listed = &stored[&format!("{origin}{path}")];
            let result = if bytes.len() > LIMIT { "too_large" } else { "ok" };
            let kept = &bytes[..bytes.len().min(LIMIT)];
            assert_eq!((&*listed.result, listed.success), (result, true), "{listed:?}");
            assert_eq!((listed.bytes, &*listed.sha1), (kept.len() as u64, &*sha1_hex(kept)), "{listed:?}");
            cut += u64::from(result == "too_large");
        }
        assert!(cut > 3, "large, over, large in chunks, and some of the tree");
        assert_eq!(result_count(&report, "too_large"), cut);
        assert_eq!(report["success"], tree.files.len());
    }
}
