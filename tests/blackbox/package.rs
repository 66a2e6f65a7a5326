//! The promise: the Debian package has no fault that lintian sees, installs without starting anything, carries a running
//! crawl over an upgrade, leaves only data and settings when it is removed, and takes data only when told to.
//!
//! `scripts/package.sh` tells its life, on this machine's own Debian with every change in memory.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Programs that are not ours work on a machine that is busy.
const LONG: Duration = Duration::from_secs(100);

/// The package of the program under test, with a version.
fn build(dir: &TempDir, version: &str) -> PathBuf {
    let out = dir.join(version);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/debian/build");
    let mut command = Command::new(script);
    command.args(["--binary", env!("CARGO_BIN_EXE_nephila"), "--fast", "--version", version, "--out"]);
    let built = Running::start(command.arg(&out)).wait(LONG).done();
    let package = PathBuf::from(built.text().trim());
    assert!(package.starts_with(&out) && package.exists(), "{}", built.text());
    package
}

/// Whether a test may have a root directory of its own here; says so if not.
fn may_mount() -> bool {
    let mut command = Command::new("unshare");
    let may =
        command.args(["--mount", "--pid", "--fork", "true"]).status().is_ok_and(|ended| ended.success());
    let is_debian = Path::new("/var/lib/dpkg/status").exists();
    if !may || !is_debian {
        eprintln!("no package is installed: that takes root, on Debian");
    }
    may && is_debian
}

#[test]
fn it_is_installed_used_upgraded_removed_and_purged() {
    let dir = TempDir::new();
    let (old, new) = (build(&dir, "0.1.0-1"), build(&dir, "0.1.0-2"));
    let mut lintian = Command::new("lintian");
    let lintian = Running::start(lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(&new));
    if may_mount() {
        let memory = TempDir::in_memory();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blackbox/scripts/package.sh");
        let mut life = Command::new("bash");
        let life = Running::start(life.arg(script).arg(memory.path()).args([&old, &new])).wait(LONG);
        assert!(life.code() == 0 && life.text().contains(" s: done\n"), "{}{}", life.text(), life.stderr);
    }
    let said = lintian.wait(LONG);
    assert_eq!((said.code(), said.text()), (0, String::new()), "{}", said.stderr);
}
