use crate::proto::crawl_log::{CRAWL_LOG, PartName, RunRules};
use crate::storage::replace;
use memchr::memmem;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The crawl log of a data directory, in parts. A part that is finished keeps its number for ever, and nothing is written
/// over: a process that is killed at any moment leaves every line in `crawl.log` or in the part that it has just become.
///
/// ```text
///   crawl.log ──rename──► crawl.log.3      crawl.fresh, with its first lines ──rename──► crawl.log, part 4
/// ```
pub(super) struct LogFile {
    data: PathBuf,
    file: File,
    /// The number that the open part will have.
    part: u32,
    bytes: u64,
}

/// Bytes of a first line that is looked at.
const FIRST_LINE_MAX: u64 = 64 * 1_024;

impl LogFile {
    /// Opens the part that is being written, or begins one, and says whether there was a log before.
    pub fn open(data: &Path) -> io::Result<(LogFile, bool)> {
        let mut file = append_to(data)?;
        let last = parts(data)?.pop().unwrap_or(0);
        let mut first = Vec::new();
        BufReader::new(&file).take(FIRST_LINE_MAX).read_until(b'\n', &mut first)?;
        let told = RunRules::parse(&first).ok().flatten().map_or(0, |rules| rules.part);
        end_last_line(&mut file)?;
        let bytes = file.metadata()?.len();
        let part = told.max(last.saturating_add(1));
        Ok((LogFile { data: data.to_path_buf(), file, part, bytes }, bytes > 0 || last > 0))
    }

    pub fn part(&self) -> u32 {
        self.part
    }

    /// Of the open part.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends whole lines, or nothing.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        append(&mut self.file, lines)?;
        self.bytes += lines.len() as u64;
        Ok(())
    }

    /// Gives the open part its number, and begins the next one with the lines for it. What failed half-way is brought to its
    /// end by the next call.
    pub fn finish_part(&mut self, first_lines: impl FnOnce(u32) -> Vec<u8>) -> io::Result<()> {
        let open = self.data.join(CRAWL_LOG);
        let finished = self.data.join(PartName::of(self.part).to_string());
        // Where it is not, it has its number already, or somebody has taken it away.
        if open.exists() {
            if finished.exists() {
                self.part = parts(&self.data)?.pop().unwrap_or(0).saturating_add(1);
            }
            fs::rename(&open, self.data.join(PartName::of(self.part).to_string()))?;
        }
        let next = self.part.saturating_add(1);
        let first_lines = first_lines(next);
        replace(&open, &first_lines)?;
        self.file = append_to(&self.data)?;
        (self.part, self.bytes) = (next, first_lines.len() as u64);
        Ok(())
    }

    /// Removes the oldest parts but so many, and says how many those were.
    pub fn remove_but(&self, parts_max: usize) -> io::Result<u64> {
        let mut removed = 0;
        let numbers = parts(&self.data)?;
        for &number in &numbers[..numbers.len().saturating_sub(parts_max)] {
            for is_compressed in [false, true] {
                let name = PartName { number, is_compressed }.to_string();
                match fs::remove_file(self.data.join(name)) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
            removed += 1;
        }
        Ok(removed)
    }
}

/// The numbers of finished parts, in order.
fn parts(data: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(data)? {
        numbers.extend(entry?.file_name().to_str().and_then(PartName::parse).map(|part| part.number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn append_to(data: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(data.join(CRAWL_LOG))
}

/// Appends all of it or nothing: what a full disk took of it is taken back.
pub(super) fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(bytes).inspect_err(|_| drop(file.set_len(before)))
}

/// A process that was killed may have left half a line.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" { file.write_all(b"\n") } else { Ok(()) }
}

/// What every part of a log begins with, so that it can be judged by itself: the rules of the run, and how they were changed
/// since.
pub(super) struct Preamble {
    rules: RunRules,
    changes: VecDeque<Vec<u8>>,
}

/// How a line begins that changes rules.
const CHANGE: &[u8] = b"# nephila set ";
/// Of more changes the oldest are left out: what was asked before them has ended long ago.
const CHANGES_MAX: usize = 1_024;

impl Preamble {
    pub fn new(rules: RunRules) -> Preamble {
        Preamble { rules, changes: VecDeque::new() }
    }

    /// The first lines of a part.
    pub fn lines(&self, part: u32) -> Vec<u8> {
        let mut lines = Vec::new();
        RunRules { part, ..self.rules.clone() }.write(&mut lines);
        self.changes.iter().for_each(|change| lines.extend_from_slice(change));
        lines
    }

    /// Remembers changes among lines that were written.
    pub fn heed(&mut self, lines: &[u8]) {
        for at in memmem::find_iter(lines, CHANGE).filter(|&at| at == 0 || lines[at - 1] == b'\n') {
            let line = lines[at..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
            self.changes.push_back(line.to_vec());
        }
        let surplus = self.changes.len().saturating_sub(CHANGES_MAX);
        self.changes.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("nephila-log-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(data: &Path, name: &str) -> String {
        fs::read_to_string(data.join(name)).unwrap_or_else(|_| "-".to_string())
    }

    #[test]
    fn parts_keep_their_numbers_and_nothing_is_written_over() {
        let folder = Folder::new("numbers");
        let data = &*folder.0;
        let (mut log, had_log) = LogFile::open(data).unwrap();
        assert_eq!((log.part(), had_log), (1, false));
        log.append(b"one\n").unwrap();
        log.finish_part(|_| b"# two\n".to_vec()).unwrap();
        assert_eq!((log.part(), log.bytes()), (2, 6));
        // Somebody else's file is in the way.
        fs::write(data.join("crawl.log.2"), "theirs\n").unwrap();
        log.append(b"two\n").unwrap();
        log.finish_part(|_| b"# four\n".to_vec()).unwrap();
        assert_eq!(text(data, "crawl.log.1"), "one\n");
        assert_eq!(text(data, "crawl.log.2"), "theirs\n");
        assert_eq!(text(data, "crawl.log.3"), "# two\ntwo\n");
        assert_eq!(text(data, "crawl.log"), "# four\n");
        // Compressed, it keeps its number; gone, it is not given again while the log tells its own.
        fs::rename(data.join("crawl.log.3"), data.join("crawl.log.3.gz")).unwrap();
        assert_eq!(LogFile::open(data).unwrap().0.part(), 4);
        let mut first = Vec::new();
        RunRules { part: 9, ..RunRules::default() }.write(&mut first);
        fs::write(data.join(CRAWL_LOG), first).unwrap();
        assert_eq!(LogFile::open(data).unwrap().0.part(), 9);
        assert_eq!(log.remove_but(2).unwrap(), 1);
        assert_eq!(text(data, "crawl.log.1"), "-");
        assert_eq!((parts(data).unwrap(), log.remove_but(2).unwrap()), (vec![2, 3], 0));
    }

    #[test]
    fn a_kill_or_a_full_disk_between_the_names_loses_nothing() {
        let folder = Folder::new("names");
        let data = &*folder.0;
        let (mut log, _) = LogFile::open(data).unwrap();
        log.append(b"one\n").unwrap();
        // As far as it came: the part has its number, and the next one is not there.
        fs::rename(data.join(CRAWL_LOG), data.join("crawl.log.1")).unwrap();
        let (next, had_log) = LogFile::open(data).unwrap();
        assert_eq!((next.part(), had_log), (2, true), "the next process");
        fs::remove_file(data.join(CRAWL_LOG)).unwrap();
        log.finish_part(|_| b"# two\n".to_vec()).unwrap();
        assert_eq!(
            (text(data, "crawl.log.1"), text(data, CRAWL_LOG)),
            ("one\n".into(), "# two\n".into()),
            "this one"
        );
        assert_eq!(log.part(), 2);
    }

    #[test]
    fn a_log_that_somebody_took_away_is_begun_anew() {
        let folder = Folder::new("taken");
        let data = &*folder.0;
        let (mut log, _) = LogFile::open(data).unwrap();
        log.append(b"one\n").unwrap();
        fs::remove_file(data.join(CRAWL_LOG)).unwrap();
        log.finish_part(|part| format!("# {part}\n").into_bytes()).unwrap();
        log.append(b"two\n").unwrap();
        assert_eq!((text(data, CRAWL_LOG), parts(data).unwrap()), ("# 2\ntwo\n".into(), vec![]));
    }

    #[test]
    fn a_part_begins_with_the_rules_and_their_changes() {
        let mut preamble = Preamble::new(RunRules::default());
        preamble.heed(b"x # nephila set not\n# nephila set a\nline\n# nephila set b\n");
        preamble.heed(b"# nephila set c\n");
        let lines = String::from_utf8(preamble.lines(3)).unwrap();
        let (run, changes) = lines.split_once('\n').unwrap();
        assert!(run.contains(" run ") && run.ends_with(" part=3"), "{run}");
        assert_eq!(changes, "# nephila set a\n# nephila set b\n# nephila set c\n");
        (0..2 * CHANGES_MAX).for_each(|_| preamble.heed(b"# nephila set d\n"));
        assert_eq!(preamble.lines(1).split(|&byte| byte == b'\n').count(), CHANGES_MAX + 2);
    }
}
