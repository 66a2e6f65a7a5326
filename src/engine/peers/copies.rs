use super::Sends;
use super::calendar::Calendar;
use super::known_sum::KnownSum;
use crate::base::{Now, SortedMap, SortedSet};
use crate::proto::partition::Partition;
use crate::proto::peer_wire::{FrameBuffer, MoveBatch, PeerWord};
use crate::storage::{checked, checked_lines, make_directory, replace, sync_directory};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

/// What other nodes know, on the disk of this one: `copies/NODE/` in the data directory.
///
/// | file         | holds                                                                                     |
/// |--------------|-------------------------------------------------------------------------------------------|
/// | `known`      | a copy that was whole, and what came since: `COPY` in their frames, times of this calendar |
/// | `known.new`  | one that is not whole yet; it takes the place of the other when it is                      |
/// | `upto`       | pages that the node had by then are in its copy, by the calendar of this start of it      |
/// | `partitions` | of a node that is gone: what came to this one                                             |
///
/// The copy of a node that is gone is set aside as `copies/NODE.N.taken`, until the index has all of it. Its pages are beside
/// these files, see [`PageFolders`](super::page_folders::PageFolders).
pub(super) struct Copies {
    folder: PathBuf,
    held: SortedMap<u16, Held>,
    sync_at: Now,
}

/// A copy that grows.
struct Held {
    id: u64,
    batch: u64,
    file: File,
    /// It is not whole yet, or has not got its name.
    is_new: bool,
    is_whole: bool,
    /// Batches that the disk may not have.
    is_unsynced: bool,
}

const KNOWN: &str = "known";
const KNOWN_NEW: &str = "known.new";
const PARTITIONS: &str = "partitions";
const UPTO: &str = "upto";
const PARTITIONS_HEAD: &str = "nephila cluster.taken 1";
const ASIDE: &str = ".taken";
/// Bytes that are read at once of a copy that is summed up.
const SUM_BYTES: usize = 256 << 10;
/// What came is made durable this often.
const SYNC_US: u64 = 50_000;

impl Copies {
    /// In the data directory.
    pub const FOLDER: &'static str = "copies";

    pub fn open(directory: &Path) -> Copies {
        Copies { folder: directory.join(Self::FOLDER), held: SortedMap::new(), sync_at: Now::ZERO }
    }

    pub fn folder(&self, node: u16) -> PathBuf {
        self.folder.join(node.to_string())
    }

    /// Takes what another node knows. False if it does not follow what came before: that node has to begin anew. If the disk
    /// refuses it, it is as if the rest had not come either.
    pub fn take(
        &mut self,
        node: u16,
        (is_whole, batch): (bool, &MoveBatch<'_>),
        calendar: Calendar,
        now: Now,
    ) -> io::Result<bool> {
        if batch.batch() == 1 && self.held.get(&node).is_none_or(|held| held.id != batch.id) {
            self.held.remove(&node);
            let held = self.begin(node, batch.id)?;
            self.held.insert(node, held);
        }
        let held = self.held.get_mut(&node).filter(|held| held.id == batch.id);
        match held {
            // It came before, over a link that is gone.
            Some(held) if batch.batch() <= held.batch => held.is_unsynced = true,
            Some(held) if batch.batch() == held.batch + 1 => {
                let lines = calendar.to_be_read(batch.lines, now);
                let mut bytes = Vec::new();
                PeerWord::Copy { is_whole, batch: batch.with_lines(&lines) }.write(&mut bytes);
                if let Err(cause) = held.file.write_all(&bytes) {
                    self.give_up(node);
                    return Err(cause);
                }
                (held.batch, held.is_unsynced) = (batch.batch(), true);
                held.is_whole |= is_whole;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The disk refused something of a copy; what is not whole of it takes no room. The one before it stays.
    fn give_up(&mut self, node: u16) {
        if self.held.remove(&node).is_some_and(|held| held.is_new) {
            let _ = fs::remove_file(self.folder(node).join(KNOWN_NEW));
        }
    }

    fn begin(&self, node: u16, id: u64) -> io::Result<Held> {
        let folder = self.folder(node);
        make_directory(&self.folder)?;
        make_directory(&folder)?;
        let file = File::create(folder.join(KNOWN_NEW))?;
        Ok(Held { id, batch: 0, file, is_new: true, is_whole: false, is_unsynced: false })
    }

    /// Makes what came durable, and says so. What the disk refuses is begun anew.
    pub fn turn(&mut self, now: Now, wires: &mut dyn Sends) -> Result<bool, io::Error> {
        if now < self.sync_at || !self.held.values().any(|held| held.is_unsynced) {
            return Ok(false);
        }
        self.sync_at = now.plus_us(SYNC_US);
        let nodes: Vec<u16> = self.held.keys().copied().collect();
        let mut trouble = Ok(true);
        for node in nodes {
            let folder = self.folder(node);
            let Some(held) = self.held.get_mut(&node).filter(|held| held.is_unsynced) else { continue };
            match held.sync(&folder) {
                Ok(()) => wires.send(node, &PeerWord::Copied { id: held.id, batch: held.batch }),
                Err(cause) => {
                    wires.send(node, &PeerWord::Copied { id: held.id, batch: 0 });
                    self.give_up(node);
                    trouble = Err(cause);
                }
            }
        }
        trouble
    }

    pub fn next_due(&self) -> Option<Now> {
        self.held.values().any(|held| held.is_unsynced).then_some(self.sync_at)
    }

    // Of nodes that are gone ------------------------------------------------------------------------------

    /// The nodes that there is a copy of.
    pub fn nodes(&self) -> io::Result<Vec<u16>> {
        let mut nodes: Vec<u16> = self.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        nodes.sort_unstable();
        Ok(nodes)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let folders = match fs::read_dir(&self.folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folders => folders?,
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
        folders.filter_map(|entry| name(entry).transpose()).collect()
    }

    /// The pages that a node had at this time are all here, as it says that was started so many times.
    pub fn keep_upto(&self, node: u16, start: u32, unix_s: u32) -> io::Result<()> {
        replace(&self.folder(node).join(UPTO), format!("{unix_s} {start}\n").as_bytes())
    }

    /// A node says what it has by the calendar of this start. That of another one may have been ahead of it, so that pages which
    /// are fetched from now on would be taken for those that are here.
    pub fn forget_upto_before(&self, node: u16, start: u32) -> io::Result<()> {
        let text = match fs::read_to_string(self.folder(node).join(UPTO)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text.unwrap_or_default(),
        };
        let said_by = text.split_whitespace().nth(1).and_then(|start| start.parse().ok());
        if said_by == Some(start) { Ok(()) } else { self.forget_upto(node) }
    }

    /// Not all pages that a node had are here any more, or it was never so.
    pub fn forget_upto(&self, node: u16) -> io::Result<()> {
        match fs::remove_file(self.folder(node).join(UPTO)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    /// A node has a whole copy elsewhere: what is here of it is not needed.
    pub fn let_go(&mut self, node: u16) -> io::Result<()> {
        self.held.remove(&node);
        match fs::remove_dir_all(self.folder(node)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    /// Sets the copy of a node aside that is gone, with the partitions that come to this one: nothing is added to it any more,
    /// whether that node comes back or not.
    pub fn set_aside(&mut self, node: u16, partitions: &SortedSet<Partition>) -> io::Result<()> {
        self.held.remove(&node);
        let mut text = format!("{PARTITIONS_HEAD}\n");
        for partition in partitions {
            let _ = writeln!(text, "{partition}");
        }
        let folder = self.folder(node);
        replace(&folder.join(PARTITIONS), checked(text).as_bytes())?;
        let free = (1_u32..).map(|count| self.folder.join(format!("{node}.{count}{ASIDE}")));
        let Some(aside) = free.into_iter().find(|path| !path.exists()) else { return Ok(()) };
        fs::rename(folder, aside)?;
        sync_directory(&self.folder)
    }

    /// Copies that were set aside, which the index may not have yet.
    pub fn aside(&self) -> io::Result<Vec<Aside>> {
        let mut names = self.names()?;
        names.sort_unstable();
        let aside = |name: String| {
            let (node, _) = name.strip_suffix(ASIDE)?.split_once('.')?;
            Some(Aside { node: node.parse().ok()?, folder: self.folder.join(name) })
        };
        Ok(names.into_iter().filter_map(aside).collect())
    }

    /// Partitions of nodes that are gone, of which the index may not have everything.
    pub fn taken(&self) -> io::Result<SortedSet<Partition>> {
        Ok(self.aside()?.iter().flat_map(Aside::partitions).collect())
    }
}

/// What the copy in a folder comes to, from its first batch up to this one; `None` if it is another copy, has less, or something
/// in it cannot be read.
pub(super) fn sum_of_copy(
    folder: &Path,
    (copy, batch): (u64, u64),
    mut pause: impl FnMut(),
) -> io::Result<Option<KnownSum>> {
    // One that became whole meanwhile has the other name.
    for name in [KNOWN_NEW, KNOWN, KNOWN_NEW] {
        let file = match File::open(folder.join(name)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if let Some(sum) = sum_of_file(file, (copy, batch), &mut pause)? {
            return Ok(Some(sum));
        }
    }
    Ok(None)
}

fn sum_of_file(
    mut file: File,
    (copy, batch): (u64, u64),
    pause: &mut impl FnMut(),
) -> io::Result<Option<KnownSum>> {
    let (mut sum, mut frames, mut piece) = (KnownSum::default(), FrameBuffer::default(), vec![0; SUM_BYTES]);
    while sum.batch < batch {
        match frames.next_frame() {
            Ok(Some(frame)) => match frame.word() {
                Ok(PeerWord::Copy { batch, .. }) if batch.id == copy && batch.batch() == sum.batch + 1 => {
                    sum.add(&batch);
                }
                _ => return Ok(None),
            },
            Ok(None) => {
                let read = file.read(&mut piece)?;
                if read == 0 {
                    return Ok(None);
                }
                frames.push(&piece[..read]);
                pause();
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// A copy of a node that is gone, until the index has it.
pub(super) struct Aside {
    pub node: u16,
    pub folder: PathBuf,
}

impl Aside {
    /// Its files in the order that they were begun in, and whether each is whole.
    pub fn files(&self) -> Vec<(PathBuf, bool)> {
        let files = [(KNOWN, true), (KNOWN_NEW, false)].map(|(name, whole)| (self.folder.join(name), whole));
        files.into_iter().filter(|(path, _)| path.exists()).collect()
    }

    /// Pages that the node had at this time, by its calendar in seconds, are there; 0 if that was never so.
    pub fn upto(&self) -> u32 {
        let text = fs::read_to_string(self.folder.join(UPTO)).unwrap_or_default();
        text.split_whitespace().next().and_then(|unix_s| unix_s.parse().ok()).unwrap_or(0)
    }

    /// What came to this node with it. A file that cannot be read counts as none: what was fetched is fetched again.
    pub fn partitions(&self) -> SortedSet<Partition> {
        let Ok(text) = fs::read(self.folder.join(PARTITIONS)) else { return SortedSet::new() };
        let Ok(lines) = checked_lines(&text, PARTITIONS_HEAD) else { return SortedSet::new() };
        lines.filter_map(|line| Partition::new(line.parse().ok()?)).collect()
    }
}

impl Held {
    fn sync(&mut self, folder: &Path) -> io::Result<()> {
        self.file.sync_data()?;
        if self.is_new && self.is_whole {
            fs::rename(folder.join(KNOWN_NEW), folder.join(KNOWN))?;
            sync_directory(folder)?;
            self.is_new = false;
        }
        self.is_unsynced = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::taking_over::read_copy;
    use super::*;
    use crate::base::Wall;
    use crate::doc_index::Origin;
    use crate::engine::inspect::peer_words::{MovedDoc, MovedDocs};
    use crate::proto::peer_wire::{Found, MoveBuilder, MoveItem, UrlItem, UrlNews};

    struct Stage(PathBuf);

    impl Stage {
        fn new(name: &str) -> Stage {
            let path = std::env::temp_dir().join(format!("nephila-copies-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Stage(path)
        }
    }

    impl Drop for Stage {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What was said to whom.
    #[derive(Default)]
    struct Said(Vec<(u16, u64, u64)>);

    impl Sends for Said {
        fn send(&mut self, node: u16, word: &PeerWord<'_>) {
            let PeerWord::Copied { id, batch } = word else { panic!("{word:?}") };
            self.0.push((node, *id, *batch));
        }

        fn is_linked(&self, _: u16) -> bool {
            true
        }

        fn has_room(&self, _: u16) -> bool {
            true
        }
    }

    const NOW: Now = Now::from_us(5_000_000);

    fn calendar() -> Calendar {
        Calendar::new(Wall { unix_ms_at_zero: 1_800_000_000_000 })
    }

    /// A batch with one document, named after its numbers.
    fn take(copies: &mut Copies, numbers: (u64, u64), is_whole: bool) -> bool {
        with_batch(numbers, |batch| copies.take(3, (is_whole, batch), calendar(), NOW).unwrap())
    }

    fn with_batch<T>((id, batch): (u64, u64), body: impl FnOnce(&MoveBatch<'_>) -> T) -> T {
        let (url, mut builder) = (format!("http://a.test/{id}/{batch}"), MoveBuilder::default());
        let news =
            UrlNews::Found(Found { provenance: crate::proto::job::Provenance::SEED, priority: 0, hits: 0 });
        let url = UrlItem { partition: Partition::new(7).unwrap(), url: &url, news };
        builder.push(&MoveItem { url, row: b"row" }).unwrap();
        body(&builder.batch(id, batch, "pace http://a.test due=7 at=0\n"))
    }

    fn synced(copies: &mut Copies) -> Vec<(u16, u64, u64)> {
        let mut said = Said::default();
        copies.sync_at = Now::ZERO;
        copies.turn(NOW, &mut said).unwrap();
        said.0
    }

    /// What the index is given when the node is gone, with the rows that it had.
    fn read(copies: &mut Copies) -> Vec<String> {
        let seven: SortedSet<Partition> = Partition::new(7).into_iter().collect();
        copies.set_aside(3, &seven).unwrap();
        let mut aside = copies.aside().unwrap();
        assert_eq!((aside.len(), aside[0].node, aside[0].partitions()), (1, 3, seven));
        let docs = read_copy(aside[0].files());
        let line = "pace http://a.test due=1800000005000007 at=1800000005000000\n";
        assert!(docs.iter().all(|docs| docs.nice == line));
        let is_from_nobody =
            |docs: &MovedDocs| docs.docs.iter().all(|doc| doc.origin.via == Origin::VIA_PEER);
        assert!(docs.iter().all(is_from_nobody), "whoever owns something of it now is told");
        let folder = aside.remove(0).folder;
        fs::rename(folder, copies.folder(3)).unwrap();
        fs::remove_file(copies.folder(3).join(PARTITIONS)).unwrap();
        let named =
            |doc: &MovedDoc| format!("{}{}", &doc.url[14..], if doc.row.is_empty() { "" } else { "+" });
        docs.iter().flat_map(|docs| docs.docs.iter().map(named)).collect()
    }

    #[test]
    fn the_sum_of_a_copy_is_that_of_what_was_told() {
        let stage = Stage::new("sum");
        let (mut copies, mut told) = (Copies::open(&stage.0), KnownSum::default());
        for batch in 1..=3 {
            assert!(take(&mut copies, (5, batch), batch == 2));
            with_batch((5, batch), |batch| told.add(batch));
            // The last of them has come after it was whole.
            synced(&mut copies);
        }
        let sum = |at| sum_of_copy(&copies.folder(3), at, || ()).unwrap();
        assert_eq!((sum((5, 3)), told.documents), (Some(told), 3));
        assert_ne!(sum((5, 2)).unwrap().digest, told.digest);
        assert_eq!([sum((5, 4)), sum((4, 3))], [None; 2], "there is no more of it, and no other");
        let known = copies.folder(3).join(KNOWN);
        let bytes = fs::read(&known).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&known, &changed).unwrap();
            assert_ne!(sum((5, 3)), Some(told), "byte {at}");
        }
        // One that is begun anew has its own.
        fs::write(&known, &bytes).unwrap();
        assert!(take(&mut copies, (6, 1), false));
        synced(&mut copies);
        let sum = |at| sum_of_copy(&copies.folder(3), at, || ()).unwrap();
        assert!(sum((6, 1)).is_some() && sum((5, 3)) == Some(told));
    }

    #[test]
    fn a_calendar_that_was_set_back_takes_no_page_for_copied() {
        let stage = Stage::new("upto");
        let mut copies = Copies::open(&stage.0);
        assert!(take(&mut copies, (1, 1), true));
        let upto = || Aside { node: 3, folder: copies.folder(3) }.upto();
        copies.forget_upto_before(3, 5).unwrap();
        copies.keep_upto(3, 5, 1_800_000_000).unwrap();
        copies.forget_upto_before(3, 5).unwrap();
        assert_eq!(upto(), 1_800_000_000, "over another link of the same process");
        // Whoever is started may go by another calendar.
        copies.forget_upto_before(3, 6).unwrap();
        assert_eq!(upto(), 0);
        copies.keep_upto(3, 6, 1_700_000_000).unwrap();
        assert_eq!(upto(), 1_700_000_000);
        // By whom it was said is not known.
        fs::write(copies.folder(3).join(UPTO), "1800000000\n").unwrap();
        assert_eq!(upto(), 1_800_000_000);
        copies.forget_upto_before(3, 6).unwrap();
        assert_eq!(upto(), 0);
    }

    #[test]
    fn what_came_in_its_order_is_kept_and_counted_when_it_is_on_the_disk() {
        let stage = Stage::new("order");
        let mut copies = Copies::open(&stage.0);
        assert!(take(&mut copies, (1, 1), false) && take(&mut copies, (1, 2), false));
        assert_eq!(synced(&mut copies), [(3, 1, 2)]);
        assert_eq!(synced(&mut copies), [], "that was said");
        assert!(take(&mut copies, (1, 2), false), "it comes again over another link");
        assert_eq!(synced(&mut copies), [(3, 1, 2)], "and is counted once more");
        assert!(!take(&mut copies, (1, 4), false), "one is missing");
        assert!(take(&mut copies, (1, 3), true));
        assert_eq!(synced(&mut copies), [(3, 1, 3)]);
        assert_eq!(read(&mut copies), ["1/1+", "1/2+", "1/3+"]);
        // A process that began again does not know how far it was.
        let mut copies = Copies::open(&stage.0);
        assert!(!take(&mut copies, (1, 4), true));
        assert_eq!(copies.nodes().unwrap(), [3]);
    }

    #[test]
    fn a_copy_takes_the_place_of_the_one_before_when_it_is_whole() {
        let stage = Stage::new("anew");
        let mut copies = Copies::open(&stage.0);
        assert!(take(&mut copies, (1, 1), true));
        synced(&mut copies);
        assert!(take(&mut copies, (1, 2), true));
        assert!(take(&mut copies, (2, 1), false), "begun anew");
        synced(&mut copies);
        // The links of its pages may be missing in one that is not whole: of that, only URLs count.
        assert_eq!(read(&mut copies), ["1/1+", "1/2+", "2/1"], "both count, the older one first");
        assert!(take(&mut copies, (3, 1), false) && take(&mut copies, (3, 2), true));
        synced(&mut copies);
        assert_eq!(read(&mut copies), ["3/1+", "3/2+"]);
    }

    #[test]
    fn what_is_torn_is_left_out_and_the_rest_is_read() {
        let stage = Stage::new("torn");
        let mut copies = Copies::open(&stage.0);
        for batch in 1..=3 {
            assert!(take(&mut copies, (1, batch), true));
        }
        synced(&mut copies);
        let path = copies.folder(3).join(KNOWN);
        let whole = fs::read(&path).unwrap();
        for end in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(read(&mut copies), ["1/1+", "1/2+", "1/3+"][..3 * end / whole.len()]);
        }
    }

    #[test]
    fn what_is_set_aside_stays_when_the_node_comes_back_and_goes_again() {
        let stage = Stage::new("aside");
        let mut copies = Copies::open(&stage.0);
        let of = |number: u16| -> SortedSet<Partition> { Partition::new(number).into_iter().collect() };
        for number in [5, 4_095] {
            assert!(take(&mut copies, (u64::from(number), 1), true));
            synced(&mut copies);
            copies.set_aside(3, &of(number)).unwrap();
            assert!(copies.nodes().unwrap().is_empty());
        }
        assert!(!take(&mut copies, (4_095, 2), true), "it goes on with nothing");
        let copies = Copies::open(&stage.0);
        assert_eq!(copies.taken().unwrap(), of(5).into_iter().chain(of(4_095)).collect());
        let folders = copies.aside().unwrap();
        assert_eq!(folders.iter().map(|aside| read_copy(aside.files()).len()).collect::<Vec<_>>(), [1, 1]);
        fs::write(folders[0].folder.join(PARTITIONS), "nephila cluster.taken 1\n5\n").unwrap();
        assert_eq!(copies.taken().unwrap(), of(4_095), "without its checksum it is none");
    }
}
