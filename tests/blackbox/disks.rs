//! Small file systems of their own, for tests that fill one or cut its power. They are unmounted with their value, also
//! when the test fails.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Disk {
    dir: TempDir,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// ext4 in an image file.
    Ext4,
    Tmpfs,
}

/// How much a file system keeps of what was not synced when its power is cut.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// Everything.
    Nothing = 0,
    /// What is in the log, which is written out.
    Data = 1,
    /// What is in the log on disk.
    DataAndLog = 2,
}

impl Disk {
    /// `None` where nothing may be mounted, which is said.
    pub fn ext4(mib: u64) -> Option<Disk> {
        let dir = TempDir::new();
        let image = std::fs::File::create(dir.join("image")).unwrap();
        image.set_len(mib << 20).unwrap();
        let mkfs =
            ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"].into_iter().find(|path| Path::new(path).exists());
        // Nothing is kept back for root: a full disk is full for everybody.
        let mut command = Command::new(mkfs.unwrap_or("mkfs.ext4"));
        let made = succeeds(command.args(["-q", "-F", "-m", "0"]).arg(dir.join("image")));
        Disk::mounted(dir, Kind::Ext4, made)
    }

    pub fn tmpfs(mib: u64) -> Option<Disk> {
        let dir = TempDir::new();
        let size = format!("size={mib}m");
        std::fs::create_dir_all(dir.join("disk")).unwrap();
        let mut command = Command::new("mount");
        let made = succeeds(command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.join("disk")));
        Disk::mounted(dir, Kind::Tmpfs, made)
    }

    fn mounted(dir: TempDir, kind: Kind, made: bool) -> Option<Disk> {
        let disk = Disk { dir, kind };
        if made && (kind == Kind::Tmpfs || disk.mount()) {
            return Some(disk);
        }
        println!("nothing can be mounted here: skipped");
        None
    }

    fn mount(&self) -> bool {
        std::fs::create_dir_all(self.path()).unwrap();
        succeeds(
            Command::new("mount")
                .args(["-t", "ext4", "-o", "loop"])
                .arg(self.dir.join("image"))
                .arg(self.path()),
        )
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// From now on nothing reaches the disk. False where the kernel has no such thing.
    pub fn cut_power(&self, cut: Cut) -> bool {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blackbox/scripts/shutdown.py");
        let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
        succeeds(Command::new(python).arg(script).arg(self.path()).arg((cut as u32).to_string()))
    }

    /// Power is back: what the disk has is read anew. Nobody may use it at this moment.
    #[track_caller]
    pub fn restart(&self) {
        wait_for("nobody uses the disk", PATIENCE, || {
            succeeds(Command::new("umount").arg(self.path())).then_some(())
        });
        assert!(self.mount(), "the disk is mounted again");
    }

    /// Leaves about so much free; the file that takes the rest can be removed.
    pub fn fill(&self, free_bytes: u64) -> PathBuf {
        let path = self.path().join(format!("ballast-{}", std::fs::read_dir(self.path()).unwrap().count()));
        let file = std::fs::File::create(&path).unwrap();
        let free = self.free();
        if free > free_bytes {
            let bytes = (free - free_bytes) as i64;
            nix::fcntl::fallocate(&file, nix::fcntl::FallocateFlags::empty(), 0, bytes).unwrap();
        }
        path
    }

    pub fn free(&self) -> u64 {
        let stat = nix::sys::statvfs::statvfs(&self.path()).unwrap();
        stat.blocks_available() * stat.fragment_size()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let path = self.path();
        if !succeeds(Command::new("umount").arg(&path)) {
            // Somebody still sits on it: it goes when they do.
            succeeds(Command::new("umount").arg("-l").arg(&path));
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(std::process::Stdio::null()).output().is_ok_and(|output| output.status.success())
}
