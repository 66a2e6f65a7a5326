use crate::base::Rng;
use crate::storage::replace;
use nix::fcntl::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How fast the disk of a data directory makes things durable, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiskSpeed {
    /// RFC 3339.
    pub measured_at: String,
    pub fdatasync_p50_us: u64,
    pub fdatasync_p99_us: u64,
    pub syncs: u64,
    /// Written in a row and made durable.
    pub mb_per_second: f64,
    pub bytes: u64,
}

/// Of a whole measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub time: Duration,
    pub bytes: u64,
}

/// What a commit writes before it syncs, in the measurement.
const COMMIT_BYTES: usize = 16 << 10;
const SYNCS_MAX: usize = 2_000;
/// Written at once, and between two syncs, where the disk shows how much it takes.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_A_SYNC: u64 = 16;
/// A few commits say nothing of the hundredth.
const COMMITS_MIN: u64 = 100;
/// Commits share the disk with what else a crawl writes.
const COMMIT_FACTOR: u64 = 4;
const COMMIT_SLACK_US: u64 = 20_000;
const FILE_BYTES_MAX: u64 = 64 << 10;

impl DiskSpeed {
    pub fn path(data: &Path) -> PathBuf {
        data.join("disk.json")
    }

    /// What was kept of the last measurement in a data directory.
    pub fn read(data: &Path) -> Option<DiskSpeed> {
        let path = DiskSpeed::path(data);
        let is_small = fs::metadata(&path).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
        serde_json::from_slice(&fs::read(path).ok().filter(|_| is_small)?).ok()
    }

    pub fn keep(&self, data: &Path) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        replace(&DiskSpeed::path(data), &bytes)
    }

    /// Measures a directory's disk: half of the time by small commits, half by as much as it takes.
    pub fn measure(data: &Path, bounds: Bounds, measured_at: String) -> io::Result<DiskSpeed> {
        let file = nameless(data)?;
        let mut noise = vec![0; PIECE_BYTES];
        let mut rng = Rng::new(0x6469_736b);
        noise.as_chunks_mut::<8>().0.iter_mut().for_each(|bytes| *bytes = rng.next_u64().to_le_bytes());
        let half = bounds.time / 2;

        // As a segment is: there before it is written to.
        let commits_bytes = (COMMIT_BYTES * SYNCS_MAX) as u64;
        let commits_bytes = commits_bytes.min(bounds.bytes / 2).max(COMMIT_BYTES as u64);
        reserve(&file, commits_bytes)?;
        let mut times_us = Vec::new();
        let started = Instant::now();
        let mut at = 0;
        while times_us.is_empty() || (at + COMMIT_BYTES as u64 <= commits_bytes && started.elapsed() < half) {
            file.write_all_at(&noise[..COMMIT_BYTES], at)?;
            at += COMMIT_BYTES as u64;
            let before = Instant::now();
            file.sync_data()?;
            times_us.push(before.elapsed().as_micros() as u64);
        }

        let from = commits_bytes;
        let most = bounds.bytes.saturating_sub(at).max(PIECE_BYTES as u64);
        let (mut bytes, started) = (0, Instant::now());
        while bytes == 0 || (bytes + PIECE_BYTES as u64 <= most && started.elapsed() < half) {
            file.write_all_at(&noise, from + bytes)?;
            bytes += PIECE_BYTES as u64;
            if (bytes / PIECE_BYTES as u64).is_multiple_of(PIECES_A_SYNC) {
                file.sync_data()?;
            }
        }
        file.sync_data()?;
        let seconds = started.elapsed().as_secs_f64().max(1e-6);
        times_us.sort_unstable();
        let part = |percent: usize| times_us[(times_us.len() - 1) * percent / 100];
        Ok(DiskSpeed {
            measured_at,
            fdatasync_p50_us: part(50),
            fdatasync_p99_us: part(99),
            syncs: times_us.len() as u64,
            mb_per_second: (bytes as f64 / 1e5 / seconds).round() / 10.0,
            bytes: at + bytes,
        })
    }

    /// What to say of a crawl whose commits take far longer than its disk does, if they do.
    pub fn commits_are_slow(&self, commits: u64, commit_p99_us: u64) -> Option<String> {
        let most = self.fdatasync_p99_us.saturating_mul(COMMIT_FACTOR).saturating_add(COMMIT_SLACK_US);
        let ms = |us: u64| us as f64 / 1e3;
        (commits >= COMMITS_MIN && commit_p99_us > most).then(|| {
            format!(
                "commits are slower than this disk: p99 {:.1} ms, and a sync alone took {:.1} ms when it was measured (what else writes to it? nephila tune disk measures again)",
                ms(commit_p99_us),
                ms(self.fdatasync_p99_us)
            )
        })
    }
}

/// A file that has no name any more when this returns: nothing of it is left behind, however the process ends.
fn nameless(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("disk-speed.{}.tmp", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Takes room on the disk; file systems that cannot do so ahead take it when it is written.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes as i64) {
        Ok(()) | Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS) => {}
        Err(e) => return Err(e.into()),
    }
    (&*file).flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(p99_us: u64) -> DiskSpeed {
        DiskSpeed {
            measured_at: "2026-01-01T00:00:00Z".to_string(),
            fdatasync_p50_us: 100,
            fdatasync_p99_us: p99_us,
            syncs: 10,
            mb_per_second: 100.0,
            bytes: 1,
        }
    }

    #[test]
    fn commits_that_take_far_longer_than_the_disk_are_told() {
        let said = speed(2_000).commits_are_slow(1_000, 90_000).unwrap();
        assert!(said.contains("p99 90.0 ms") && said.contains("2.0 ms"), "{said}");
        assert_eq!(speed(2_000).commits_are_slow(1_000, 28_000), None, "within reach");
        assert_eq!(speed(2_000).commits_are_slow(99, 90_000), None, "too few");
        assert_eq!(speed(u64::MAX).commits_are_slow(1_000, u64::MAX), None);
    }

    #[test]
    fn a_measurement_is_bounded_kept_and_leaves_nothing_else() {
        let folder = std::env::temp_dir().join(format!("nephila-disk-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let bounds = Bounds { time: Duration::from_millis(100), bytes: 4 << 20 };
        let speed = DiskSpeed::measure(&folder, bounds, "now".to_string()).unwrap();
        assert!(speed.syncs > 0 && speed.fdatasync_p50_us <= speed.fdatasync_p99_us, "{speed:?}");
        assert!(speed.mb_per_second > 0.0 && speed.bytes <= bounds.bytes + PIECE_BYTES as u64, "{speed:?}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        speed.keep(&folder).unwrap();
        assert_eq!(DiskSpeed::read(&folder), Some(speed));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::write(DiskSpeed::path(&folder), b"{\"half").unwrap();
        assert_eq!(DiskSpeed::read(&folder), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
