//! The promise: while the network of this machine is down, a crawl waits, says so once, and judges no URL by it; when it is
//! back, all pages come. A host that cannot be reached by itself holds up nobody.

use crate::support::*;
use std::process::Command;

/// Two networks of the test's own: one with a server, one with the crawl, whose way to the server is its default route.
const SCRIPT: &str = r#"
set -eu
ip link set lo up
unshare --net python3 "$4" > "$3/asked" 2> "$3/server.err" < /dev/null &
server=$!
trap 'kill $server' EXIT
until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add v0 type veth peer name v1 netns $server
nsenter -t $server -n bash -c 'ip link set lo up; ip addr add 10.8.0.1/24 dev v1; ip link set v1 up
    for n in 1 2 3 4; do ip addr add 10.9.0.$n/32 dev lo; done'
ip addr add 10.8.0.2/24 dev v0
ip link set v0 up
ip route add default via 10.8.0.1
ip route add unreachable 10.7.0.1
until [ -s "$3/asked" ]; do sleep 0.05; done
"$1" crawl --json --seeds "$3/seeds" --hosts-file "$3/hosts" --allow-net 10.0.0.0/8 --data "$3/data" --driver "$2" \
    --req-host-per-sec 5 --timeout-req 3000 --contact ops@example.net > "$3/out" 2> "$3/err" &
crawl=$!
if [ "$5" = down ]; then
    until [ "$(grep -c GET "$3/asked")" -ge 12 ]; do sleep 0.02; done
    ip route del default
    until grep -q "network is down" "$3/err"; do kill -0 $crawl; sleep 0.05; done
    # Long enough for whatever was on the wire to run out of time.
    sleep 4
    kill -0 $crawl
    ip route add default via 10.8.0.1
fi
code=0
wait $crawl || code=$?
cat "$3/err" >&2
cat "$3/out"
exit $code
"#;

const SERVER: &str = r#"
import http.server, socketserver, sys
class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        print("GET", self.headers["Host"], self.path, flush=True)
        page = "".join(f'<a href="/{n}">x</a>' for n in range(1, 10)).encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *_):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64
server = Server(("0.0.0.0", 7080), Pages)
print("ready", flush=True)
server.serve_forever()
"#;

fn crawl(driver: &str, hosts: &[(&str, &str)], network: &str) -> Run {
    let dir = TempDir::new();
    let text: String = hosts.iter().map(|(name, ip)| format!("{ip} {name}\n")).collect();
    dir.write("hosts", text);
    let seeds: String = hosts.iter().map(|(name, _)| format!("http://{name}:7080/\n")).collect();
    dir.write("seeds", seeds);
    let server = dir.write("server.py", SERVER);
    let mut shell = Command::new("unshare");
    shell.args(["--net", "bash", "-c", SCRIPT, "no_network", env!("CARGO_BIN_EXE_nephila"), driver]);
    Running::start(shell.arg(dir.path()).arg(server).arg(network)).wait(PATIENCE * 2)
}

const HOSTS: [(&str, &str); 4] =
    [("a.test", "10.9.0.1"), ("b.test", "10.9.0.2"), ("c.test", "10.9.0.3"), ("d.test", "10.9.0.4")];

#[test]
fn pages_wait_for_the_network_and_all_come() {
    for driver in ["uring", "epoll"] {
        let run = crawl(driver, &HOSTS, "down").done();
        let report = run.json();
        assert_eq!((&report["success"], &report["errors"]), (&40.into(), &0.into()), "{driver}: {report}");
        assert_eq!(run.stderr.matches("its network is down").count(), 1, "{driver}: {}", run.stderr);
    }
}

#[test]
fn a_host_out_of_reach_is_its_own_fault() {
    let hosts = [HOSTS[0], ("lost.test", "10.7.0.1")];
    let run = crawl("auto", &hosts, "up");
    let report = run.json();
    assert_eq!(report["success"], 10, "{report}\n{}", run.stderr);
    assert!(!run.stderr.contains("network is down"), "{}", run.stderr);
    assert!(run.stderr.contains("lost.test"), "it is told: {}", run.stderr);
}
