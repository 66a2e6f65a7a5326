//! The promise: keys are for their owner alone, whatever the umask, and a data directory is not for everybody. What was
//! there before keeps its mode, but for the keys. A key that is damaged is said to be, and the mend that is named helps.

use crate::support::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const KEYS: [&str; 2] = ["digest.key", "index/ledger"];

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).permissions().mode() & 0o777
}

fn with_umask(umask: &str, command: &Command) -> Run {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    Running::start(&mut shell).wait(PATIENCE)
}

#[test]
fn keys_are_for_their_owner_alone() {
    let web = LogServer::start(|_| Reply::text("x"));
    for umask in ["022", "000", "077"] {
        let dir = TempDir::new();
        let data = dir.join("some/data");
        let mut crawl = crawl_command(&data);
        crawl.arg(web.url("/"));
        with_umask(umask, &crawl).done();
        for key in KEYS {
            assert_eq!(mode(&data.join(key)), 0o600, "{key} with umask {umask}");
        }
        let expected = if umask == "077" { 0o700 } else { 0o750 };
        assert_eq!(mode(&data), expected, "the directory with umask {umask}");
        let above = 0o777 & !u32::from_str_radix(umask, 8).unwrap();
        assert_eq!(mode(&dir.join("some")), above, "those above it are as ever");
        // Those of before are tightened; the directory stays as it is.
        for path in KEYS.iter().map(|key| data.join(key)).chain([data.clone()]) {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        with_umask(umask, &crawl_command(&data)).done();
        for key in KEYS {
            assert_eq!(mode(&data.join(key)), 0o600, "{key} again");
        }
        assert_eq!(mode(&data), 0o755);
    }
}

/// What feeds told is for the owner alone, too: it begins with a key, and the URL of a feed may be a secret.
#[test]
fn feeds_and_stories_are_for_their_owner_alone() {
    let web = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/rss" => Reply::new(
            "200 OK",
            "Content-Type: application/rss+xml\r\n",
            "<rss version='2.0'><channel><item><title>A story</title><link>/story</link></item></channel></rss>",
        ),
        _ => Reply::html("a story"),
    });
    const FILES: [&str; 3] = ["feeds/journal", "stories/ledger", "stories/rows"];
    for umask in ["022", "000"] {
        let dir = TempDir::new();
        let data = dir.join("data");
        let list = dir.write("feeds.txt", web.url("/rss"));
        let mut crawl = crawl_command(&data);
        crawl.arg("--feeds").arg(&list).args(["--req-host-per-sec", "0"]);
        with_umask(umask, &crawl).done();
        for file in FILES {
            assert_eq!(mode(&data.join(file)), 0o600, "{file} with umask {umask}");
        }
        // No file that is there beside them is for others.
        for folder in ["feeds", "stories"] {
            for file in std::fs::read_dir(data.join(folder)).unwrap().map(|file| file.unwrap().path()) {
                assert!(file.is_dir() || mode(&file) == 0o600, "{}: {:o}", file.display(), mode(&file));
            }
        }
        // Those of before are tightened.
        for file in FILES {
            std::fs::set_permissions(data.join(file), PermissionsExt::from_mode(0o644)).unwrap();
        }
        with_umask(umask, &crawl_command(&data)).done();
        for file in FILES {
            assert_eq!(mode(&data.join(file)), 0o600, "{file} again");
        }
    }
}

/// Every command that makes a data directory makes it so.
#[test]
fn a_new_data_directory_is_not_for_everybody() {
    let web = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let mut crawl = crawl_command(&dir.join("crawled"));
    with_umask("000", crawl.arg(web.url("/"))).done();
    let warc = dir.join("a.warc");
    let mut export = nephila();
    export.args(["export", "warc", "--data"]).arg(dir.join("crawled")).arg("--out").arg(&warc);
    with_umask("000", &export).done();
    let mut import = nephila();
    import.args(["import", "warc", "--data"]).arg(dir.join("imported")).arg(&warc);
    with_umask("000", &import).done();
    let mut list = nephila();
    list.args(["index", "import", "--data"])
        .arg(dir.join("listed"))
        .arg(dir.write("list", "http://a.test/\n"));
    with_umask("000", &list).done();
    for (data, keys) in [("crawled", &KEYS[..]), ("imported", &KEYS[..1]), ("listed", &KEYS[..])] {
        assert_eq!(mode(&dir.join(data)), 0o750, "{data}");
        for key in keys {
            assert_eq!(mode(&dir.join(data).join(key)), 0o600, "{key} of {data}");
        }
    }
}

#[test]
fn a_damaged_key_names_a_mend_that_helps() {
    let web = LogServer::start(|asked| Reply::text(&filling(&asked.target, 2_000)));
    for damage in [&b""[..], b"no key\n", b"\xff\xfe\x00", b"0123456789abcde\n", b"0123456789abcdef0\n"] {
        let dir = TempDir::new();
        let data = dir.join("data");
        crawl(&data, [web.url("/a")]);
        let document = cat(&data, &web.url("/a"));
        let key = data.join("digest.key");
        std::fs::write(&key, damage).unwrap();
        let run = Running::start(crawl_command(&data).arg(web.url("/b"))).wait(PATIENCE);
        assert_eq!(run.code(), 3, "{damage:?}: {}", run.stderr);
        let last = run.stderr.lines().last().unwrap().to_string();
        assert!(last.contains("digest.key is damaged") && last.contains("remove it"), "{damage:?}: {last}");
        assert!(!last.contains("--data"), "another directory is no mend: {last}");
        // What is stored can be read meanwhile.
        assert_eq!(cat(&data, &web.url("/a")), document);
        std::fs::remove_file(&key).unwrap();
        let (report, _) = crawl(&data, [web.url("/b")]);
        assert_eq!(report["success"], 1, "{report}");
        assert_eq!(cat(&data, &web.url("/a")), document);
        store(&["verify"], &data).done();
    }
}
