//! The promise: a machine that is out of ports for connections judges no URL by it. Pages wait, and all of them come.

use crate::support::*;
use std::process::Command;

/// Far more connections are wanted than there are ports, in a network of the test's own.
const SCRIPT: &str = r#"
set -eu
ip link set lo up
echo "20000 20019" > /proc/sys/net/ipv4/ip_local_port_range
"$1" farm --hosts 1 --pages 400 --page-bytes 300 --links 100 --latency-ms 30 --port 7080 \
    --hosts-file "$3/hosts" --seeds-file "$3/seeds" --until-stdin-closes < "$3/farm.in" > "$3/farm.out" 2>&1 &
exec 9> "$3/farm.in"
until [ -s "$3/seeds" ]; do sleep 0.05; done
"$1" crawl --json --seeds "$3/seeds" --hosts-file "$3/hosts" --allow-net 127.0.0.0/8 --data "$3/data" --driver "$2" \
    --req-host-per-sec 0 --req-host-concurrent 200 --max-seconds 50
exec 9>&-
wait
"#;

#[test]
fn pages_wait_for_ports_and_all_come() {
    for driver in ["uring", "epoll"] {
        let dir = TempDir::new();
        nix::unistd::mkfifo(&dir.join("farm.in"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut shell = Command::new("unshare");
        shell.args(["--net", "bash", "-c", SCRIPT, "no_ports", env!("CARGO_BIN_EXE_nephila"), driver]);
        let run = Running::start(shell.arg(dir.path())).wait(PATIENCE * 2).done();
        let summary = run.json();
        assert_eq!(summary["success"], 400, "{driver}: {summary}");
        assert_eq!(summary["results"]["connect_failed"], serde_json::Value::Null, "{driver}: {summary}");
        let said = "this machine has no port, descriptor or memory for another connection";
        assert_eq!(run.stderr.matches(said).count(), 1, "{driver}: {}", run.stderr);
    }
}
