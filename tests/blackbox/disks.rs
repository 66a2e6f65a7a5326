//! Small file systems of their own, for tests that fill one or cut its power. They are unmounted with their value, also
//! when the test fails.

use crate::support::*;
use nix::fcntl::{FallocateFlags, fallocate};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Disk {
    dir: TempDir,
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
        let dir = TempDir::in_memory();
        let image = std::fs::File::create(dir.join("image")).unwrap();
        image.set_len(mib << 20).unwrap();
        let mkfs =
            ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"].into_iter().find(|path| Path::new(path).exists());
        // Nothing is kept back for root: a full disk is full for everybody.
        let mut command = Command::new(mkfs.unwrap_or("mkfs.ext4"));
        let made = succeeds(command.args(["-q", "-F", "-m", "0"]).arg(dir.join("image")));
        let disk = Disk { dir };
        said(made && disk.mount()).then_some(disk)
    }

    /// As [`Disk::ext4`], in memory.
    pub fn tmpfs(mib: u64) -> Option<Disk> {
        let disk = Disk { dir: TempDir::in_memory() };
        let size = format!("size={mib}m");
        std::fs::create_dir_all(disk.path()).unwrap();
        let mut command = Command::new("mount");
        said(succeeds(command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(disk.path()))).then_some(disk)
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
        let path = self.path().join("ballast");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        // The last blocks may be had or not; less is tried for until it is given.
        let mut taken = file.metadata().unwrap().len();
        for _ in 0..1_000 {
            let Some(bytes) = self.free().checked_sub(free_bytes).filter(|&bytes| bytes >= 4_096) else {
                break;
            };
            let piece = (bytes / 2).next_multiple_of(4_096);
            if fallocate(&file, FallocateFlags::empty(), taken as i64, piece as i64).is_ok() {
                taken += piece;
            }
        }
        if free_bytes == 0 {
            for bytes in [64 * 1_024, 4_096, 1] {
                while file.write(&vec![0; bytes]).is_ok_and(|written| written > 0) {}
            }
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

fn said(mounted: bool) -> bool {
    if !mounted {
        println!("nothing can be mounted here: skipped");
    }
    mounted
}
