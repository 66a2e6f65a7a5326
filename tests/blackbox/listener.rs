//! The promise: over TCP only whoever has the token is heard, no web page of another site is, and nobody who floods, stalls or
//! talks nonsense keeps a crawl from going on, or others from asking.

use crate::stage::Stage;
use crate::support::*;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A crawl that takes its time, and listens.
struct Watched {
    stage: Stage,
    crawl: Running,
    at: SocketAddr,
    token: String,
}

fn watched(more: &[&str]) -> Watched {
    let mut stage = Stage::new(|_| Reply::links((0..50).map(|n| format!("/{n}"))));
    let seed = stage.url("a.test", "/");
    let mut args = vec![&*seed, "--req-host-per-sec", "2", "--admin", "127.0.0.1:0"];
    args.extend_from_slice(more);
    let crawl = Running::start(&mut stage.command(args));
    let at = address(&crawl);
    wait_for("a socket", PATIENCE, || stage.data.join("admin.sock").exists().then_some(()));
    let path = stage.data.join("admin.token");
    let token = std::fs::read_to_string(&path).unwrap().trim().to_string();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    Watched { stage, crawl, at, token }
}

/// Where a process says that it listens.
fn address(process: &Running) -> SocketAddr {
    wait_for("an address", PATIENCE, || {
        let said = process.stderr();
        let rest = said.split("admin: http://").nth(1)?;
        rest.split_once('/')?.0.parse().ok()
    })
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// Sends bytes, and reads everything that comes back until the other end closes.
fn said(mut stream: impl Read + Write, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn parsed(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_lowercase(), body: body.to_string() }
}

fn tcp(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&at, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One request with these headers.
fn ask(at: SocketAddr, method: &str, path: &str, headers: &[String]) -> Answer {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    parsed(&said(
        tcp(at),
        format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").as_bytes(),
    ))
}

fn by_socket(data: &Path, request: &str) -> Answer {
    let stream = UnixStream::connect(data.join("admin.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    parsed(&said(stream, request.as_bytes()))
}

#[track_caller]
fn status(data: &Path) -> Value {
    run(["status", "--json", "--data", data.to_str().unwrap()]).done().json()
}

/// Method, path, and whether it may be read without a token: as the description of the API has it, which is checked against
/// the routes.
fn routes() -> Vec<(String, String, bool)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/openapi.json");
    let api: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let path = path.replace("{kind}", "busy");
            found.push((method.to_uppercase(), path, operation["security"].is_array()));
        }
    }
    assert!(found.len() > 9, "{found:?}");
    found
}

#[test]
fn every_route_is_guarded_on_the_wire() {
    let Watched { stage, crawl, at, token } = watched(&[]);
    let host = format!("Host: {at}");
    let bearer = format!("Authorization: Bearer {token}");
    let right = [host.clone(), bearer.clone()];
    let with = |line: &str| [&right[..], &[line.to_string()]].concat();
    for (method, path, is_open) in routes() {
        let of = |headers: &[String]| ask(at, &method, &path, headers).status;
        let without_token = if is_open { 200 } else { 401 };
        for (what, headers, expected) in [
            ("foreign host", vec!["Host: evil.example".to_string(), bearer.clone()], 421),
            ("two hosts", with(&host), 400),
            ("no host", vec![bearer.clone()], 400),
            ("foreign origin", with("Origin: https://evil.example"), 403),
            ("cross-site", with("Sec-Fetch-Site: cross-site"), 403),
            ("no token", vec![host.clone()], without_token),
            (
                "wrong token",
                vec![host.clone(), "Authorization: Bearer 00000000000000000000000000000000".into()],
                without_token,
            ),
        ] {
            assert_eq!(of(&headers), expected, "{method} {path}: {what}");
        }
        let in_query = ask(at, &method, &format!("{path}?token={token}"), std::slice::from_ref(&host));
        assert_eq!(in_query.status, without_token, "{method} {path}: token in the query");
        if method == "GET" && path != "/api/v1/explain" {
            let answer = ask(at, &method, &path, &right);
            // A crawl alone is no node of a cluster.
            let expected = if path.starts_with("/api/v1/cluster") { 404 } else { 200 };
            assert_eq!(answer.status, expected, "{path}: {}", answer.body);
            for header in [
                "x-content-type-options: nosniff",
                "cross-origin-resource-policy: same-origin",
                "cross-origin-opener-policy: same-origin",
                "referrer-policy: no-referrer",
                "cache-control: no-store",
            ] {
                assert!(answer.head.contains(header), "{path}: {}", answer.head);
            }
            assert!(!answer.head.contains("access-control"), "{path}: {}", answer.head);
            assert!(!answer.body.contains(&token), "{path}");
        }
    }
    let found = status(&stage.data);
    assert_eq!(found["state"], "running", "nothing that was refused was done: {found}");
    // Ten wrong tokens, and even the right one waits; what is open does not, and the socket does not.
    let wrong = [host.clone(), "Authorization: Bearer 1".to_string()];
    let tries: Vec<u16> = (0..12).map(|_| ask(at, "GET", "/api/v1/now", &wrong).status).collect();
    assert!(tries.contains(&429) && !tries.contains(&200), "{tries:?}");
    assert_eq!(ask(at, "GET", "/healthz", std::slice::from_ref(&host)).status, 200);
    assert_eq!(status(&stage.data)["state"], "running");
    wait_for("the right token is looked at again", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(300));
        (ask(at, "GET", "/api/v1/now", &right).status == 200).then_some(())
    });
    let stopped = ask(at, "POST", "/api/v1/stop", &right);
    assert_eq!(
        (stopped.status, stopped.json()["state"].as_str()),
        (200, Some("stopping")),
        "{}",
        stopped.body
    );
    assert!(!crawl.wait(PATIENCE).done().stderr.contains(&token), "the token is not told");
}

#[test]
fn what_is_asked_is_answered_in_the_shape_that_is_promised() {
    let Watched { mut stage, crawl, at, token } = watched(&[]);
    let headers =
        |more: &str| vec![format!("Host: {at}"), format!("Authorization: Bearer {token}"), more.to_string()];
    let get = |path: &str| ask(at, "GET", path, &headers("Accept: */*"));
    let post = |path: &str, kind: &str, body: &str| {
        let head: String =
            headers(&format!("Content-Type: {kind}")).iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        parsed(&said(tcp(at), request.as_bytes()))
    };
    wait_for("a page", PATIENCE, || (status(&stage.data)["pages"].as_u64() > Some(1)).then_some(()));
    let now = get("/api/v1/now").json();
    for key in [
        "at",
        "state",
        "sentence",
        "documents",
        "results",
        "received_bytes",
        "open",
        "hosts",
        "urls",
        "fetch_ms",
        "cpu_us",
        "store",
        "audit",
        "eta_s",
    ] {
        assert!(now.get(key).is_some(), "{key}: {now}");
    }
    assert_eq!(
        (&now["state"], &now["urls"]["known"], &now["role"]),
        (&"running".into(), &51.into(), &"crawl".into()),
        "{now}"
    );
    assert!(
        now["results"]["ok"].as_u64() >= Some(1) && now["store"]["free_bytes"].as_u64() > Some(0),
        "{now}"
    );
    assert_eq!(get("/api/v1/status").json()["pid"], crawl.pid());
    let url = stage.url("a.test", "/7");
    let escaped = url.replace(':', "%3A").replace('/', "%2F");
    let explained = get(&format!("/api/v1/explain?url={escaped}")).json();
    assert_eq!(
        (&explained["url"], &explained["live"], &explained["known"]),
        (&url.as_str().into(), &true.into(), &true.into()),
        "{explained}"
    );
    let mut command = nephila();
    command.args(["explain", &url, "--json", "--data"]).arg(&stage.data);
    let by_command = Running::start(&mut command).wait(PATIENCE).json();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&explained), keys(&by_command), "the same object");

    // Nine thousand lines in one body, a bad one among them; what is said of them is true.
    let lines: String = (0..9_000).map(|n| format!("{}{n}\n", stage.url("b.test", "/"))).collect();
    let taken = post("/api/v1/urls", "text/plain; charset=utf-8", &format!("{lines}nonsense\n"));
    assert_eq!(
        (taken.status, &taken.json()["new"], &taken.json()["bad"]),
        (200, &9_000.into(), &1.into()),
        "{}",
        taken.body
    );
    assert_eq!(status(&stage.data)["known"], 9_051);
    let seed = stage.url("c.test", "/");
    assert_eq!(post("/api/v1/urls?as=seeds", "text/plain", &seed).json()["new"], 1);
    assert_eq!(post("/api/v1/urls", "application/x-www-form-urlencoded", &seed).status, 415);

    let paused = post("/api/v1/pause", "application/json", "{\"reason\":\"the \\u001b[31mowner called\"}");
    assert_eq!((paused.status, &paused.json()["state"]), (200, &"paused".into()), "{}", paused.body);
    let again = post("/api/v1/pause", "application/json", "");
    assert_eq!(
        (again.status, &again.json()["type"]),
        (409, &"/problems/already-so".into()),
        "{}",
        again.body
    );
    assert!(again.head.contains("content-type: application/problem+json"), "{}", again.head);
    assert_eq!(get("/api/v1/now").json()["state"], "paused");
    assert_eq!((get("/healthz").status, get("/readyz").status), (200, 200));
    assert_eq!(post("/api/v1/resume", "application/json", "").status, 200);
    assert_eq!(post("/api/v1/resume", "application/json", "").status, 409);
    wait_for("the reason is told", PATIENCE, || crawl.stderr().contains("owner called").then_some(()));
    assert!(!crawl.stderr().contains('\u{1b}'), "{}", crawl.stderr());

    let wrong = ask(at, "DELETE", "/api/v1/pause", &headers("X: y"));
    assert_eq!((wrong.status, &wrong.json()["status"]), (405, &405.into()));
    assert!(wrong.head.contains("allow: post"), "{}", wrong.head);
    assert_eq!(get("/api/v1/nothing").status, 404);
    let problem = get(again.json()["type"].as_str().unwrap());
    assert!(problem.status == 200 && problem.body.contains("409"), "its type is a page: {}", problem.body);
    let head = ask(at, "HEAD", "/healthz", &headers("X: y"));
    assert!(head.status == 200 && head.body.is_empty(), "{}", head.body);
    let markup = get("/api/v1/explain?url=%3Cscript%3E");
    assert!(markup.status == 422 && !markup.body.contains('<'), "{}", markup.body);

    let open = ask(at, "GET", "/metrics", &headers("Accept: application/openmetrics-text; version=1.0.0"));
    assert!(
        open.head.contains("application/openmetrics-text") && open.body.ends_with("# EOF\n"),
        "{}",
        open.head
    );
    let plain = get("/metrics");
    assert!(
        plain.head.contains("text/plain; version=0.0.4") && !plain.body.contains("# EOF"),
        "{}",
        plain.head
    );
    let printed = run(["metrics", "--data", stage.data.to_str().unwrap()]).done().text();
    let names = |text: &str| {
        text.lines().filter(|line| line.starts_with("# TYPE")).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(&printed), names(&plain.body));
    assert!(printed.contains("nephila_admin_requests_total{handler=\"now\",class=\"2xx\"}"), "{printed}");

    // A whole stop by a request, as by a signal.
    let stopped = post("/api/v1/stop", "application/json", "{}");
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    let report = crawl.wait(PATIENCE).done().json();
    assert_eq!(report["stopped"], true);
    assert!(TcpStream::connect(at).is_err(), "gone with the crawl");
    assert_eq!(run(["metrics", "--data", stage.data.to_str().unwrap()]).code(), 1);
}

#[test]
fn floods_stalls_and_nonsense_harm_nobody() {
    let Watched { stage, mut crawl, at, token } = watched(&[]);
    let head = format!("Host: {at}\r\nAuthorization: Bearer {token}\r\n");
    // A body that never comes, heads that never end, and connections that say nothing at all.
    let mut late = tcp(at);
    late.write_all(format!("POST /api/v1/urls HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\nhttp").as_bytes())
        .unwrap();
    let asked_at = Instant::now();
    let slow: Vec<TcpStream> = (0..20)
        .map(|n| {
            let mut stream = tcp(at);
            stream.write_all(format!("GET / HTTP/1.1\r\nHost: {at}\r\nX-{n}: ").as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut idle = Vec::new();
    for _ in 0..1_000 {
        idle.extend(TcpStream::connect_timeout(&at, Duration::from_millis(200)));
    }
    assert!(idle.len() > 50, "{}", idle.len());
    for n in 0..5 {
        for stream in &slow {
            let _ = (&*stream).write_all(b"x");
        }
        // Whoever asks now is heard, by TCP and by the socket.
        let healthy = ask(at, "GET", "/healthz", &[format!("Host: {at}")]);
        assert_eq!(healthy.status, 200, "round {n}");
        assert_eq!(status(&stage.data)["state"], "running");
    }
    drop(idle);

    // Many requests at once are answered one after the other.
    let requests = format!("GET /healthz HTTP/1.1\r\nHost: {at}\r\n\r\n").repeat(49);
    let last = format!("GET /readyz HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    let text = said(tcp(at), (requests + &last).as_bytes());
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 50, "{text}");
    // A client that has said all it has to say is still answered.
    let half = tcp(at);
    (&half)
        .write_all(format!("GET /api/v1/now HTTP/1.1\r\n{head}Connection: close\r\n\r\n").as_bytes())
        .unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(parsed(&said(&half, b"")).status, 200);

    let big = "a".repeat(17 << 10);
    let chunks = "400\r\n".to_string() + &"b".repeat(1_024) + "\r\n";
    for (what, bytes, expected) in [
        ("a head too large", format!("GET / HTTP/1.1\r\nHost: {at}\r\nX: {big}\r\n\r\n"), &["431"][..]),
        ("a path too long", format!("GET /{big} HTTP/1.1\r\nHost: {at}\r\n\r\n"), &["431", "414"]),
        ("many headers", format!("GET / HTTP/1.1\r\nHost: {at}\r\n{}\r\n", "X: y\r\n".repeat(500)), &["431"]),
        (
            "a body too large",
            format!("POST /api/v1/urls HTTP/1.1\r\n{head}Content-Length: 2000000\r\n\r\n"),
            &["413"],
        ),
        (
            "chunks without end",
            format!(
                "POST /api/v1/urls HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n{}",
                chunks.repeat(1_100)
            ),
            &["413"],
        ),
        (
            "a chunk that is none",
            format!("POST /api/v1/urls HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n"),
            &["400"],
        ),
        (
            "two framings",
            format!(
                "POST /api/v1/urls HTTP/1.1\r\n{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            &["200", "400"],
        ),
        ("half a request", format!("GET /healthz HTTP/1.1\r\nHost: {at}"), &[]),
        ("no version", "GET /healthz\r\n\r\n".to_string(), &["400"]),
        ("TLS", "\u{16}\u{3}\u{1}\u{0}hello".to_string(), &["400"]),
    ] {
        let stream = tcp(at);
        if expected.is_empty() {
            (&stream).write_all(bytes.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(said(&stream, b""), "", "{what}");
            continue;
        }
        // What is not read may be lost with what was said; then the end of the connection is the answer.
        let text = said(&stream, bytes.as_bytes());
        let is_right = expected.iter().any(|status| text.starts_with(&format!("HTTP/1.1 {status} ")));
        assert!(is_right || text.is_empty() && bytes.len() > 100_000, "{what}: {text}");
    }
    // What came too slowly is told so, or let go, in time.
    let text = said(&late, b"");
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("/problems/too-slow"), "{text}");
    let waited = asked_at.elapsed();
    assert!(waited > Duration::from_secs(9) && waited < Duration::from_secs(40), "{waited:?}");
    for stream in slow {
        assert!(!said(&stream, b"").contains("HTTP/1.1 200"), "it never asked");
    }
    assert!(!crawl.has_ended());
    let pages = status(&stage.data)["pages"].as_u64();
    wait_for("the crawl goes on", PATIENCE, || (status(&stage.data)["pages"].as_u64() > pages).then_some(()));
    // Connections that are open keep nothing from ending.
    let open: Vec<TcpStream> = (0..10).map(|_| tcp(at)).collect();
    run(["stop", "--data", stage.data.to_str().unwrap()]).done();
    assert!(crawl.wait(PATIENCE).done().json()["pages"].as_u64() > pages);
    drop(open);
}

#[test]
fn an_address_that_cannot_be_is_refused_before_anything_is_made() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().to_string();
    for (address, code, said) in [
        ("0.0.0.0:7180", 2, "is not loopback"),
        ("[::]:7180", 2, "is not loopback"),
        ("nonsense", 2, "must be an address and a port"),
        (&*taken, 3, "choose another address with --admin"),
    ] {
        let mut command = nephila();
        command.args(["crawl", "http://127.0.0.1:1/", "--data"]).arg(&data).args(["--admin", address]);
        let run = Running::start(&mut command).wait(PATIENCE);
        assert_eq!(run.code(), code, "{address}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{address}: {}", run.stderr);
        assert!(!data.exists(), "{address}");
    }
    // With names it is possible, and everything needs the token.
    let file = dir.write("c.toml", "[admin]\nhosts = [\"crawl.example.org\"]\n");
    let mut stage = Stage::new(|_| Reply::links((0..50).map(|n| format!("/{n}"))));
    let seed = stage.url("a.test", "/");
    let mut command = stage.command([&*seed, "--req-host-per-sec", "1", "--admin", "0.0.0.0:0"]);
    let crawl = Running::start(command.arg("--config").arg(&file));
    let port = address(&crawl).port();
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let host = format!("Host: crawl.example.org:{port}");
    wait_for("a token", PATIENCE, || stage.data.join("admin.token").exists().then_some(()));
    for path in ["/api/v1/now", "/metrics", "/healthz"] {
        assert_eq!(ask(at, "GET", path, std::slice::from_ref(&host)).status, 401, "{path}");
    }
    assert_eq!(ask(at, "GET", "/api/v1/now", &["Host: other.example.org".to_string()]).status, 421);
    run(["stop", "--data", stage.data.to_str().unwrap()]).done();
    crawl.wait(PATIENCE).done();
}

#[test]
fn spiders_and_stores_are_asked_too() {
    let dir = TempDir::new();
    let (kept, store) = (dir.join("kept"), dir.join("store"));
    let mut command = nephila();
    command.args(["storeserver", "--listen", "127.0.0.1:0", "--json", "--data"]).arg(&store);
    let storing = Running::start(&mut command);
    let mut command = nephila();
    command.args(["spider", "--listen", "127.0.0.1:0", "--json", "--data"]).arg(&kept);
    let fetching = Running::start(&mut command);
    let mut command = nephila();
    command.args([
        "spider",
        "--listen",
        "127.0.0.1:0",
        "--store",
        "127.0.0.1:9",
        "--admin",
        "127.0.0.1:0",
        "-v",
    ]);
    let without = Running::start(&mut command);
    for (data, role) in [(&store, "storeserver"), (&kept, "spider")] {
        wait_for("a socket", PATIENCE, || data.join("admin.sock").exists().then_some(()));
        assert_eq!(status(data)["role"], role);
        let get = |path: &str| {
            by_socket(data, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
        };
        assert_eq!((get("/healthz").status, get("/readyz").status), (200, 200), "{role}");
        assert!(get("/metrics").body.contains(&format!("role=\"{role}\"")), "{role}");
        assert_eq!(get("/api/v1/now").json()["urls"], Value::Null, "{role}");
        assert_eq!(get("/api/v1/explain?url=http%3A%2F%2Fa%2F").status, 404, "{role}");
        let paused = run(["pause", "--data", data.to_str().unwrap()]);
        assert!(
            paused.code() == 3 && paused.stderr.contains("has no URLs of its own"),
            "{role}: {}",
            paused.stderr
        );
        run(["stop", "--data", data.to_str().unwrap()]).done();
    }
    storing.wait(PATIENCE).done();
    fetching.wait(PATIENCE).done();
    // Without a directory there is no socket and no token; what is open can be read.
    let at = address(&without);
    let host = format!("Host: {at}");
    assert_eq!(ask(at, "GET", "/metrics", std::slice::from_ref(&host)).status, 200);
    assert_eq!(ask(at, "POST", "/api/v1/stop", &[host, "Authorization: Bearer ".to_string()]).status, 401);
    assert!(without.stderr().contains("the control thread runs on "), "{}", without.stderr());
    without.signal(nix::sys::signal::Signal::SIGTERM);
    without.wait(PATIENCE);
}

/// As in a container whose kernel or rules refuse io_uring: a tracer refuses it in their place.
#[test]
fn where_io_uring_is_refused_it_listens_all_the_same() {
    let mut stage = Stage::new(|_| Reply::links((0..50).map(|n| format!("/{n}"))));
    let seed = stage.url("a.test", "/");
    let crawl = stage.command([&*seed, "--req-host-per-sec", "1", "-v"]);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup"]);
    traced.args(["-e", "inject=io_uring_setup:error=EPERM"]);
    traced.arg(crawl.get_program()).args(crawl.get_args()).stdin(std::process::Stdio::null());
    let crawl = Running::start(&mut traced);
    let said = "the control thread runs on epoll, as io_uring is refused";
    wait_for("a line", PATIENCE, || crawl.stderr().contains(said).then_some(()));
    assert_eq!(status(&stage.data)["state"], "running");
    run(["stop", "--data", stage.data.to_str().unwrap()]).done();
    crawl.wait(PATIENCE).done();
}
