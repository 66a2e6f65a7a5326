use crate::base::Now;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::notices::Notices;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory where senders put files that are to be taken.
///
/// A file is whole when it was renamed in, or when its writer has closed it; one that was there before we looked, when it
/// has not changed for a moment. With `settle`, what was not renamed in is whole when it has not changed for that long.
pub(crate) struct Spool {
    path: PathBuf,
    settle: Option<Duration>,
    watch: Option<Inotify>,
    names: BTreeMap<OsString, Seen>,
    /// The directory was read at this time; `None` if it must be read anew.
    looked_at: Option<Now>,
    notices: Notices,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug)]
struct Seen {
    word: Word,
    size: u64,
    mtime_ns: i128,
    /// It is as it is since then.
    since: Now,
    /// It was said that it is left alone.
    said: bool,
    /// It cannot be read as it is.
    is_bad: bool,
}

/// What the kernel told of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Nothing,
    Created,
    Closed,
    RenamedIn,
}

/// A file that is to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub path: PathBuf,
    pub bytes: u64,
    /// How long it has been seen here.
    pub waited: Duration,
}

/// Files of one epoch; more come with the next.
const FILES_PER_EPOCH: usize = 10_000;
/// Names that are looked at; a directory with more is read in parts.
const NAMES_MAX: usize = 200_000;
/// The directory is read this often, whatever the kernel tells.
const LOOK_US: u64 = 1_000_000;
/// What was there before we were.
const SETTLED: Duration = Duration::from_secs(2);

impl Spool {
    /// Without a watch the directory is read once a second all the same.
    pub fn open(path: &Path, settle: Option<Duration>, notices: Notices) -> io::Result<Spool> {
        std::fs::create_dir_all(path)?;
        let watch = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).and_then(|watch| {
            let which = AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_ONLYDIR;
            watch.add_watch(path, which)?;
            Ok(watch)
        });
        Ok(Spool {
            path: path.to_path_buf(),
            settle,
            watch: watch.ok(),
            names: BTreeMap::new(),
            looked_at: None,
            notices,
        })
    }

    pub fn set_settle(&mut self, settle: Option<Duration>) {
        self.settle = settle;
    }

    /// When it must be looked at again.
    pub fn next_look(&self) -> Option<Now> {
        self.looked_at.map(|at| at.plus_us(LOOK_US))
    }

    /// What is whole by now, in the order of names; nothing if it was looked at a moment ago and nothing was told.
    pub fn look(&mut self, now: Now) -> io::Result<Vec<Whole>> {
        self.hear(now);
        if self.looked_at.is_some_and(|at| now.since_us(at) < LOOK_US) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)?.take(NAMES_MAX) {
            // Gone in the meantime, or not to be looked at.
            let Ok(entry) = entry else { continue };
            if is_ours_to_take(&entry.file_name())
                && let Ok(known) = entry.metadata()
            {
                found.push((entry, known));
            }
        }
        self.looked_at = Some(now);
        found.sort_by_cached_key(|(entry, _)| entry.file_name());
        let there: BTreeSet<OsString> = found.iter().map(|(entry, _)| entry.file_name()).collect();
        self.names.retain(|name, _| there.contains(name));
        Ok(found
            .iter()
            .filter_map(|(entry, known)| self.judge(entry, known, now))
            .take(FILES_PER_EPOCH)
            .collect())
    }

    /// The files of the last look are being taken: the directory is read anew after them.
    pub fn taken(&mut self) {
        self.looked_at = None;
    }

    /// A file that cannot be read is left alone until it changes.
    pub fn leave(&mut self, path: &Path) {
        if let Some(seen) = path.file_name().and_then(|name| self.names.get_mut(name)) {
            seen.is_bad = true;
        }
    }

    /// What the kernel has told. If it lost something, nothing that it told counts.
    fn hear(&mut self, now: Now) {
        let Some(watch) = &self.watch else { return };
        loop {
            let events = match watch.read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN | Errno::EINTR) => return,
                Err(_) => {
                    self.watch = None;
                    return;
                }
            };
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    self.names.values_mut().for_each(|seen| (seen.word, seen.since) = (Word::Nothing, now));
                    self.looked_at = None;
                }
                let Some(name) = event.name.filter(|name| is_ours_to_take(name)) else { continue };
                let word = match event.mask {
                    mask if mask.contains(AddWatchFlags::IN_MOVED_TO) => Word::RenamedIn,
                    mask if mask.contains(AddWatchFlags::IN_CLOSE_WRITE) => Word::Closed,
                    _ => Word::Created,
                };
                if self.names.len() < NAMES_MAX {
                    let fresh = Seen { word, size: 0, mtime_ns: 0, since: now, said: false, is_bad: false };
                    self.names.entry(name).or_insert(fresh).word = word;
                }
                if word != Word::Created {
                    self.looked_at = None;
                }
            }
        }
    }

    /// Whether a name is a file that can be taken now.
    fn judge(&mut self, entry: &DirEntry, known: &Metadata, now: Now) -> Option<Whole> {
        let mtime_ns = i128::from(known.mtime()) * 1_000_000_000 + i128::from(known.mtime_nsec());
        let fresh = Seen {
            word: Word::Nothing,
            size: known.size(),
            mtime_ns,
            since: now,
            said: false,
            is_bad: false,
        };
        let seen = self.names.entry(entry.file_name()).or_insert(fresh);
        if (seen.size, seen.mtime_ns) != (known.size(), mtime_ns) {
            (seen.size, seen.mtime_ns, seen.since) = (known.size(), mtime_ns, now);
            seen.is_bad = false;
        }
        if let Some(what) = no_file(known) {
            if !std::mem::replace(&mut seen.said, true) {
                let name = crate::base::shown(&entry.file_name().to_string_lossy(), 200);
                let text = format!("spool: {name} is {what}, and is left alone (rename files in)");
                self.notices.tell(
                    Event::SpoolSkipped,
                    vec![("path", (&name).into()), ("cause", what.into())],
                    text,
                );
            }
            return None;
        }
        let unchanged = Duration::from_micros(now.since_us(seen.since));
        (!seen.is_bad && is_whole(seen.word, unchanged, self.settle)).then(|| Whole {
            path: entry.path(),
            bytes: known.size(),
            waited: unchanged,
        })
    }
}

fn is_whole(word: Word, unchanged: Duration, settle: Option<Duration>) -> bool {
    match (word, settle) {
        (Word::RenamedIn, _) => true,
        (_, Some(settle)) => unchanged >= settle,
        (Word::Closed, None) => true,
        (Word::Created, None) => false,
        (Word::Nothing, None) => unchanged >= SETTLED,
    }
}

/// Hidden files, and those that a sender or this process is about to rename, are left.
fn is_ours_to_take(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let on_its_way: [&[u8]; 4] = [b".tmp", b".part", b".fresh", b"~"];
    !name.starts_with(b".") && name != DONE.as_bytes() && !on_its_way.iter().any(|end| name.ends_with(end))
}

/// Where files go that were taken.
const DONE: &str = "done";

/// What it is, if it is no file.
fn no_file(known: &Metadata) -> Option<&'static str> {
    let kind = known.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_symlink() => Some("a symbolic link"),
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("nephila-spool-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }

        fn open(&self, settle_s: Option<u64>) -> Spool {
            Spool::open(&self.0, settle_s.map(Duration::from_secs), Notices::default()).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(spool: &mut Spool, s: u64) -> Vec<String> {
        let whole = spool.look(Now::from_us(s * 1_000_000)).unwrap();
        whole.iter().map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_renamed_in_or_closed_is_whole_and_what_is_written_is_not() {
        let scratch = Scratch::new("whole");
        fs::write(scratch.0.join("z-before"), "1").unwrap();
        let mut spool = scratch.open(None);
        assert_eq!(names(&mut spool, 1), Vec::<String>::new(), "it may still grow");
        let growing = fs::File::create(scratch.0.join("a-growing")).unwrap();
        fs::write(scratch.0.join(".hidden"), "1").unwrap();
        fs::write(scratch.0.join("c.tmp"), "1").unwrap();
        fs::write(scratch.0.join("d.part"), "1").unwrap();
        fs::rename(scratch.0.join("c.tmp"), scratch.0.join("c")).unwrap();
        assert_eq!(names(&mut spool, 1), ["c"], "at once, as the kernel told");
        assert_eq!(names(&mut spool, 3), ["c", "z-before"]);
        assert_eq!(names(&mut spool, 90), ["c", "z-before"], "its writer has it still");
        drop(growing);
        assert_eq!(names(&mut spool, 90), ["a-growing", "c", "z-before"]);
        fs::remove_file(scratch.0.join("c")).unwrap();
        assert_eq!(names(&mut spool, 92), ["a-growing", "z-before"]);
    }

    #[test]
    fn a_sender_that_cannot_rename_is_waited_for() {
        let scratch = Scratch::new("settle");
        let mut spool = scratch.open(Some(5));
        fs::write(scratch.0.join("a"), "1").unwrap();
        fs::write(scratch.0.join(".b"), "1").unwrap();
        fs::rename(scratch.0.join(".b"), scratch.0.join("b")).unwrap();
        assert_eq!(names(&mut spool, 1), ["b"]);
        fs::write(scratch.0.join("a"), "12").unwrap();
        assert_eq!(names(&mut spool, 5), ["b"]);
        assert_eq!(names(&mut spool, 9), ["b"]);
        assert_eq!(names(&mut spool, 10), ["a", "b"]);
    }

    #[test]
    fn what_is_no_file_is_left_alone_and_said_once() {
        let scratch = Scratch::new("kinds");
        let mut spool = scratch.open(None);
        fs::create_dir(scratch.0.join("folder")).unwrap();
        fs::create_dir(scratch.0.join("done")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scratch.0.join("link")).unwrap();
        nix::unistd::mkfifo(&scratch.0.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for s in [1, 10, 20] {
            assert_eq!(names(&mut spool, s), Vec::<String>::new());
        }
        let said: Vec<String> = spool.notices.take().notices.into_iter().map(|notice| notice.text).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("spool: folder is a directory"), "{said:?}");
        assert!(said[1].starts_with("spool: link is a symbolic link"), "{said:?}");
        assert!(said[2].starts_with("spool: pipe is a pipe"), "{said:?}");
    }

    #[test]
    fn ten_thousand_files_come_in_the_order_of_their_names() {
        let scratch = Scratch::new("many");
        for number in 0..10_050 {
            fs::write(scratch.0.join(format!("{number:05}")), "").unwrap();
        }
        let mut spool = scratch.open(None);
        assert_eq!(names(&mut spool, 1).len(), 0);
        let found = names(&mut spool, 4);
        assert_eq!((found.len(), &*found[0], &*found[9_999]), (10_000, "00000", "09999"));
    }
}
