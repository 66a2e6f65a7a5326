//! The promise: what a store has sealed is in PostgreSQL and in S3, whoever is killed meanwhile: nothing is missing, and no
//! row is there twice. A side that is away, or of another shape, is named in one line and ends no crawl.

use crate::postgres_server::PostgresServer;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Segments that are full after a few dozen pages.
const SMALL: &str = "[spider]\nmax_doc_size = 10000\n[store]\nsegment_bytes = 300000\n";
const BUCKET: &str = "pages";

fn judge(name: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut make = Command::new(root.join("tests/judges"));
    let made = Running::start(make.stdin(Stdio::null())).wait(Duration::from_secs(300));
    assert_eq!(made.status.code(), Some(0), "tests/judges: {}{}", made.text(), made.stderr);
    let mut command = Command::new(root.join("target/judges/bin").join(name));
    command.stdin(Stdio::null());
    with_keys(&mut command);
    command
}

fn with_keys(command: &mut Command) -> &mut Command {
    command.env("AWS_ACCESS_KEY_ID", "AKIAFOLLOWERS").env("AWS_SECRET_ACCESS_KEY", "geheim-s3")
}

/// An S3 server of another maker, behind a port of ours. It keeps nothing but a recording of what it was asked, which is
/// played to the next one before anybody else may ask: so what it has confirmed survives a kill.
struct Moto {
    dir: TempDir,
    front: SocketAddr,
    /// Where it is; 0 while nobody may ask.
    port: Arc<AtomicU16>,
    server: Option<Running>,
}

/// Passes connections on to a port of this machine, those that come while that is 0 to nobody.
fn front(port: Arc<AtomicU16>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    };
    std::thread::spawn(move || {
        for asker in listener.incoming().map_while(Result::ok) {
            let port = port.load(Ordering::Acquire);
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            pass(asker.try_clone().unwrap(), server.try_clone().unwrap());
            pass(server, asker);
        }
    });
    addr
}

impl Moto {
    fn start() -> Moto {
        let port = Arc::<AtomicU16>::default();
        let mut moto = Moto { dir: TempDir::new(), front: front(port.clone()), port, server: None };
        moto.run();
        let made = moto.objects("make");
        assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
        moto
    }

    fn run(&mut self) {
        let recording = self.dir.join("recording");
        let before = std::fs::read(&recording).unwrap_or_default();
        // A line that was cut by the kill was never answered.
        let end = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        std::fs::write(&recording, &before[..end]).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = judge("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.env("MOTO_ENABLE_RECORDING", "true").env("MOTO_RECORDER_FILEPATH", recording);
        self.server = Some(Running::start(&mut command));
        let mut stream = wait_for("moto answers", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let ask = format!(
            "POST /moto-api/recorder/replay-recording HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        self.port.store(port, Ordering::Release);
    }

    fn kill(&mut self) {
        self.port.store(0, Ordering::Release);
        let server = self.server.take().unwrap();
        server.signal(Signal::SIGKILL);
        server.wait(PATIENCE);
    }

    fn url(&self) -> String {
        format!("http://{}/{BUCKET}/node7", self.front)
    }

    fn objects(&self, what: &str) -> Run {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/scripts/s3_objects.py");
        let endpoint = format!("http://{}", self.front);
        Running::start(judge("python").arg(script).args([what, &endpoint, BUCKET])).wait(PATIENCE)
    }

    /// Every document there: URL, second of its fetch, digest; sorted.
    fn documents(&self) -> Vec<(String, String, String)> {
        let read = self.objects("read");
        assert_eq!(read.status.code(), Some(0), "{}", read.stderr);
        let field = |line: &Value, name: &str| line[name].as_str().unwrap().to_string();
        let mut all: Vec<_> = read
            .json_lines()
            .iter()
            .map(|line| {
                assert!(field(line, "key").starts_with("node7/"), "{line}");
                (field(line, "url"), field(line, "date")[..19].to_string(), field(line, "sha1"))
            })
            .collect();
        all.sort();
        all
    }
}

/// A row without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    url: String,
    status: i32,
    result: String,
    sha1: String,
}

/// What is to be copied of a store.
fn expected(data: &Path) -> BTreeMap<(i64, String), Row> {
    let copied = records(data).into_iter().filter(|record| record.success && record.result != "not_modified");
    let row = |record: Listed| {
        let status = record.http_status.map_or(0, i32::from);
        let Listed { url, result, sha1, .. } = record;
        ((i64::from(record.doc_id), record.fetched_at), Row { url, status, result, sha1 })
    };
    copied.map(row).collect()
}

fn rows(server: &PostgresServer) -> BTreeMap<(i64, String), Row> {
    let query = "SELECT doc_id, to_char(fetched_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), \
                 url, status, result, body FROM content";
    let rows = server.session().query(query, &[]).unwrap();
    let row = |row: &postgres::Row| {
        let sha1 = sha1_hex(row.get(5));
        ((row.get(0), row.get(1)), Row { url: row.get(2), status: row.get(3), result: row.get(4), sha1 })
    };
    let by_key: BTreeMap<_, _> = rows.iter().map(row).collect();
    assert_eq!(by_key.len(), rows.len(), "each once");
    by_key
}

#[track_caller]
fn same(found: &BTreeMap<(i64, String), Row>, expected: &BTreeMap<(i64, String), Row>) {
    let missing: Vec<_> = expected.iter().filter(|(key, row)| found.get(key) != Some(row)).take(3).collect();
    assert!(missing.is_empty(), "{} of {}; missing {missing:?}", found.len(), expected.len());
    assert_eq!(found.len(), expected.len(), "and nothing else");
}

fn follow(data: &Path, config: Option<&Path>) -> Run {
    let mut command = nephila();
    command.args(["store", "follow", "--json", "--data"]).arg(data);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    Running::start(with_keys(&mut command)).wait(PATIENCE)
}

/// The directory has no secret in it, and nothing was said of one.
fn keeps_secrets(data: &Path, said: &str) {
    assert!(!said.contains("geheim"), "{said}");
    for entry in std::fs::read_dir(data).unwrap().chain(std::fs::read_dir(data.join("content")).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains("geheim"), "{}", path.display());
        }
    }
}

#[test]
fn nothing_is_missing_after_kills_of_the_crawl_the_database_and_the_bucket() {
    let (mut server, mut moto) = (PostgresServer::start(), Moto::start());
    let farm = Farm::start(SiteSpec {
        hosts: 40,
        pages: 30,
        page_bytes: 8_000,
        links: 6,
        redirects: 0.05,
        errors: 0.05,
        ..SiteSpec::default()
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let socket = server.socket().display().to_string().replace('/', "%2F");
    let (database, bucket) = (format!("postgres://nephila:geheim@{socket}/postgres"), moto.url());
    let settings = format!("{SMALL}[content]\npostgres = \"{database}\"\ns3 = \"{bucket}\"\ncatch_up = 30\n");
    let config = dir.write("c.toml", settings);
    let crawl = || {
        let mut command = crawl_command(&data);
        // Slow enough to be killed in the middle.
        let flags = farm.flags().into_iter().map(|flag| if flag == "0" { "5".to_string() } else { flag });
        command.args(flags).arg("--config").arg(&config);
        Running::start(with_keys(&mut command))
    };
    let pause = |ms: u64| std::thread::sleep(Duration::from_millis(ms));
    let mut said = String::new();
    for round in 0..5 {
        let mut running = crawl();
        pause(700 + 130 * round);
        match round {
            0 | 3 => {
                server.kill();
                pause(200);
                server.run();
            }
            1 | 4 => {
                moto.kill();
                pause(200);
                moto.run();
            }
            _ => {}
        }
        pause(100 * round);
        if !running.has_ended() {
            running.signal(Signal::SIGKILL);
        }
        said += &running.wait(PATIENCE).stderr;
    }
    let run = crawl().wait(PATIENCE).done();
    said += &run.stderr;
    assert!(!said.contains("panicked"), "{said}");
    keeps_secrets(&data, &said);
    // What a crawl that ended by itself has not brought there, this does.
    let followed = follow(&data, Some(&config)).done();
    keeps_secrets(&data, &followed.stderr);
    for line in followed.json_lines() {
        let counts =
            ["refused", "segments_gone", "segments_waiting"].map(|name| line[name].as_u64().unwrap());
        assert_eq!(counts, [0, 0, 0], "{line}");
    }
    assert!(segments(&data, "seg").len() >= 6, "many segments, most of them while it ran");
    let expected = expected(&data);
    assert!(expected.len() > 1_000, "{}", expected.len());
    same(&rows(&server), &expected);
    let mut all: Vec<(String, String, String)> = expected
        .iter()
        .map(|((_, fetched_at), row)| (row.url.clone(), fetched_at[..19].to_string(), row.sha1.clone()))
        .collect();
    all.sort();
    let found = moto.documents();
    let missing: Vec<_> =
        all.iter().filter(|document| found.binary_search(document).is_err()).take(3).collect();
    assert!(missing.is_empty(), "{} of {}; missing {missing:?}", found.len(), all.len());
    assert_eq!(found.len(), all.len(), "an object that is sent again takes its own place");
}

/// Pages with bytes of every kind, of which one is fetched again unchanged.
fn pages() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/zeros", "/all", "/long"]),
        "/zeros" => Reply::text("\0\0\u{1}\\N\\.\n\0"),
        "/all" => Reply::text(&(0..2_000u32).filter_map(char::from_u32).collect::<String>()),
        "/long" => Reply::text(&filling("long", 9_000)),
        _ => Reply::status("404 Not Found"),
    })
}

#[test]
fn a_database_that_is_away_or_of_another_shape_ends_no_crawl_and_has_all_in_the_end() {
    let mut server = PostgresServer::start();
    let site = pages();
    let dir = TempDir::new();
    let data = dir.join("data");
    let settings =
        |postgres: &str| dir.write("c.toml", format!("{SMALL}[content]\npostgres = \"{postgres}\"\n"));
    let config = settings(&server.address());
    server.kill();
    let args = |config: &Path| {
        ["--req-host-per-sec", "0", "--again", "--config"]
            .map(str::to_string)
            .into_iter()
            .chain([config.display().to_string(), site.url("/")])
    };
    // Twice: the second time most pages are as they were.
    for _ in 0..2 {
        let (report, run) = crawl(&data, args(&config));
        assert_eq!(report["success"], 4);
        assert!(run.stderr.contains("content: nothing goes to postgres: "), "{}", run.stderr);
        assert!(run.stderr.contains("wait for postgres"), "{}", run.stderr);
    }
    let away = follow(&data, Some(&config));
    assert_eq!((away.code(), away.stderr.trim_end().lines().count()), (3, 1), "{}", away.stderr);
    assert!(away.stderr.contains("postgres: ") && away.stderr.contains("wait"), "{}", away.stderr);
    // A table that is none of ours is left alone, and what it lacks is named.
    server.run();
    server.session().batch_execute("CREATE TABLE content (doc_id bigint, url text)").unwrap();
    let shape = follow(&data, Some(&config));
    assert_eq!(shape.code(), 3, "{}", shape.stderr);
    assert!(shape.stderr.contains("it has no column fetched_at"), "{}", shape.stderr);
    // One that takes nothing large: the rest goes there all the same.
    let ours = "DROP TABLE content; CREATE TABLE content (doc_id bigint, fetched_at timestamptz, url text, status integer, \
                result varchar, content_type text, head bytea, body bytea CHECK (length(body) < 8000), \
                seen timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (doc_id, fetched_at))";
    server.session().batch_execute(ours).unwrap();
    // The directory was told, so nobody needs to be told again.
    let refused = follow(&data, None);
    assert_eq!(refused.code(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("/long"), "{}", refused.stderr);
    let mut expected = expected(&data);
    assert!(records(&data).iter().any(|record| record.flags.iter().any(|flag| flag == "reference")));
    let all = expected.len();
    expected.retain(|_, row| !row.url.ends_with("/long"));
    let line = &refused.json_lines()[0];
    assert_eq!(
        (line["documents"].as_u64(), line["refused"].as_u64()),
        (Some(expected.len() as u64), Some((all - expected.len()) as u64))
    );
    same(&rows(&server), &expected);
    let types = "SELECT DISTINCT content_type FROM content WHERE url LIKE '%/zeros'";
    assert_eq!(server.session().query_one(types, &[]).unwrap().get::<_, String>(0), "text/plain");
    // There is nothing left to do; and nothing to be done by two at once.
    assert_eq!(follow(&data, None).done().json()["documents"], 0);
    let lock = File::options().write(true).open(data.join("content/postgres.lock")).unwrap();
    lock.try_lock().unwrap();
    let held = follow(&data, None);
    assert!(held.code() == 3 && held.stderr.contains("is in use"), "{}", held.stderr);
}

/// An S3 server that knows one bucket, and nobody's key.
fn refusing_bucket() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut asked, mut buffer) = (Vec::new(), [0; 4_096]);
            let (head, length) = loop {
                let more = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..more]);
                if let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&asked[..end]).into_owned();
                    let length = head.split("Content-Length: ").nth(1).unwrap();
                    let length: usize = length.lines().next().unwrap().parse().unwrap();
                    break (head, end + 4 + length);
                }
            };
            while asked.len() < length {
                let more = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..more]);
            }
            let is_signed =
                ["X-Amz-Signature=", "X-Amz-Credential=AKIAFOLLOWERS", "X-Amz-SignedHeaders=host"];
            let status = match is_signed.iter().all(|part| head.contains(part)) {
                false => "400 Bad Request",
                true if head.starts_with("PUT /no-bucket/") => "404 Not Found",
                true => "403 Forbidden",
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    addr
}

#[test]
fn a_bucket_that_says_no_is_told_in_words_that_help() {
    let site = pages();
    let dir = TempDir::new();
    let data = dir.join("data");
    crawl(&data, ["--req-host-per-sec", "0", &site.url("/")]);
    let refuse = refusing_bucket();
    let to = |s3: &str| {
        let config = dir.write("c.toml", format!("[content]\ns3 = \"{s3}\"\n"));
        let run = follow(&data, Some(&config));
        assert!(!run.stderr.contains("geheim"), "{}", run.stderr);
        (run.code(), run.stderr)
    };
    let (code, said) = to(&format!("http://{refuse}/no-bucket"));
    assert!(code == 3 && said.contains("the bucket no-bucket is not there"), "{said}");
    let (code, said) = to(&format!("http://{refuse}/pages/a"));
    assert!(code == 3 && said.contains("the credentials are refused"), "{said}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, said) = to(&format!("http://{free}/pages"));
    assert!(code == 3 && said.contains("refused") && said.trim_end().lines().count() == 1, "{said}");
    // Settings that lead nowhere are told before anything is done.
    let none = follow(&data, Some(&dir.write("n.toml", "[store]\n")));
    assert!(none.code() == 2 && none.stderr.contains("[content]"), "{}", none.stderr);
    let config = dir.write("c.toml", "[content]\ns3 = \"https://s3.example.org/b\"\n");
    let mut command = nephila();
    command.args(["store", "follow", "--data"]).arg(&data).arg("--config").arg(config);
    command.env_remove("AWS_ACCESS_KEY_ID");
    let keyless = Running::start(&mut command).wait(PATIENCE);
    assert!(keyless.code() == 2 && keyless.stderr.contains("AWS_ACCESS_KEY_ID"), "{}", keyless.stderr);
}
