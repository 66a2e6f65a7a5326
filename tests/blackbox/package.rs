//! The promise: the Debian package has no fault that lintian sees, installs without starting anything, carries a running
//! crawl over an upgrade, leaves only data and settings when it is removed, and takes data only when told to.
//!
//! `scripts/package.sh` tells its life, on this machine's own Debian with every change in memory.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Programs that are not ours work on a machine that is busy.
const LONG: Duration = Duration::from_secs(200);

#[track_caller]
fn ran(command: &mut Command) -> String {
    Running::start(command).wait(LONG).done().text()
}

/// The package of the program under test.
fn build(dir: &TempDir) -> PathBuf {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/debian/build"));
    command.args(["--binary", env!("CARGO_BIN_EXE_nephila"), "--fast", "--version", "0.1.0-1", "--out"]);
    let said = ran(command.arg(dir.path()));
    let package = PathBuf::from(said.trim());
    assert!(package.starts_with(dir.path()) && package.exists(), "{said}");
    package
}

/// The same files as a later version.
fn later(dir: &TempDir, package: &Path) -> PathBuf {
    let (root, later) = (dir.join("root"), dir.join("later.deb"));
    ran(Command::new("dpkg-deb").arg("-R").arg(package).arg(&root));
    let control = root.join("DEBIAN/control");
    let text = std::fs::read_to_string(&control).unwrap();
    assert!(text.contains("Version: 0.1.0-1\n"), "{text}");
    std::fs::write(&control, text.replace("Version: 0.1.0-1\n", "Version: 0.1.0-2\n")).unwrap();
    ran(Command::new("dpkg-deb").args(["-b", "-Zgzip", "-z1"]).arg(&root).arg(&later));
    later
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
    let old = build(&dir);
    let new = later(&dir, &old);
    let mut lintian = Command::new("lintian");
    let lintian = Running::start(lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(&old));
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
