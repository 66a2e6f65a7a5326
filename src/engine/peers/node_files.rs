use crate::base::SortedMap;
use crate::peer::register::{Kept, Register};
use crate::peer::{Table, TableError};
use crate::proto::partition::{Partition, Partitioner, Share};
use crate::storage::{checked, checked_lines, make_directory, replace};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// What a node of a cluster keeps on its disk: `cluster/` in its data directory. Every file is replaced whole, and durable
/// when a call returns.
///
/// | file             | holds                                                              |
/// |------------------|--------------------------------------------------------------------|
/// | `id`             | which cluster and which node this is, and how often it was started |
/// | `table`          | the table that was last known                                      |
/// | `stopped`        | partitions that are given away: whoever began anew would not know   |
/// | `cursors`        | how far each peer has counted what the ledger tells it             |
/// | `council-…`      | of a voter: what it promised and accepted, a file for each register |
#[derive(Clone, Debug)]
pub struct NodeFiles(Place);

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    /// For the simulation: it outlasts a process that is killed.
    Memory(Arc<Mutex<SortedMap<String, Vec<u8>>>>),
}

/// Which node this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeId {
    /// Of the key file.
    pub cluster: [u8; 16],
    /// Drawn when the disk was new: whoever lost the disk is another node.
    pub id: u64,
    /// Its number in the table; 0 until it has one.
    pub number: u16,
    /// Starts of processes on this disk: no ballot and no ask of an earlier one comes again.
    pub starts: u32,
}

/// Why what is kept cannot be used.
#[derive(Debug, Error)]
pub enum NodeFilesError {
    #[error("{path}: {cause}")]
    Disk { path: PathBuf, cause: io::Error },
    #[error(
        "{path} is damaged: {what} (a node without it is another node: restore it, or join as another node with an empty data directory)"
    )]
    Id { path: PathBuf, what: &'static str },
    #[error(
        "{path} is damaged: {what} (a voter that forgets breaks the cluster's promises: restore it, or join as another node with an empty data directory)"
    )]
    Council { path: PathBuf, what: String },
    #[error("{path} is damaged: {what} (remove it: it is asked for again)")]
    Table { path: PathBuf, what: TableError },
    #[error(
        "{path} is damaged: {what} (it says which partitions other nodes were given: restore it, or remove it once all nodes of the cluster run)"
    )]
    Stopped { path: PathBuf, what: &'static str },
}

const ID: &str = "id";
const TABLE: &str = "table";
const STOPPED: &str = "stopped";
const CURSORS: &str = "cursors";
const COUNCIL: &str = "council-";
const ID_HEAD: &str = "nephila cluster.id 1";
const STOPPED_HEAD: &str = "nephila cluster.stopped 1";
const CURSORS_HEAD: &str = "nephila cluster.cursors 1";

impl NodeFiles {
    /// In the data directory.
    pub const FOLDER: &'static str = "cluster";

    /// Those of a data directory; the folder is made if it is not there.
    pub fn open(directory: &Path) -> Result<NodeFiles, NodeFilesError> {
        let folder = directory.join(Self::FOLDER);
        match make_directory(&folder) {
            Ok(()) => Ok(NodeFiles(Place::Folder(folder))),
            Err(cause) => Err(NodeFilesError::Disk { path: folder, cause }),
        }
    }

    /// Whether a data directory is that of a node.
    pub fn are_in(directory: &Path) -> bool {
        directory.join(Self::FOLDER).join(ID).exists()
    }

    /// The cluster of the node whose data directory this is.
    pub fn cluster_in(directory: &Path) -> Result<Option<[u8; 16]>, NodeFilesError> {
        let files = NodeFiles(Place::Folder(directory.join(Self::FOLDER)));
        Ok(files.id()?.map(|id| id.cluster))
    }

    /// What is that node's by the table that it kept, for those who only look; nothing if it knows no table.
    pub fn share_in(directory: &Path, partition_seed: u64) -> Result<Option<Share>, NodeFilesError> {
        let files = NodeFiles(Place::Folder(directory.join(Self::FOLDER)));
        let (Some(id), Some(table)) = (files.id()?, files.table()?) else { return Ok(None) };
        let partitioner = Partitioner::new(table.spread(), partition_seed);
        Ok(Some(Share::new(partitioner, id.number, table.epoch(), table.owners())))
    }

    pub fn in_memory() -> NodeFiles {
        NodeFiles(Place::Memory(Arc::default()))
    }

    pub fn id(&self) -> Result<Option<NodeId>, NodeFilesError> {
        let Some(text) = self.read(ID)? else { return Ok(None) };
        let damaged = |what| NodeFilesError::Id { path: self.path(ID), what };
        NodeId::parse(&text).map(Some).map_err(damaged)
    }

    pub fn keep_id(&self, id: &NodeId) -> io::Result<()> {
        self.replace(ID, id.text().as_bytes())
    }

    pub fn table(&self) -> Result<Option<Table>, NodeFilesError> {
        let Some(bytes) = self.read(TABLE)? else { return Ok(None) };
        let damaged = |what| NodeFilesError::Table { path: self.path(TABLE), what };
        let whole = unsealed(&bytes).ok_or(TableError::Short).map_err(damaged)?;
        Table::decode(whole).map(Some).map_err(damaged)
    }

    pub fn keep_table(&self, table: &Table) -> io::Result<()> {
        self.replace(TABLE, &sealed(table.encode()))
    }

    /// Partitions that this node was to give away, or has, and to whom.
    pub fn stopped(&self) -> Result<Vec<(Partition, u16)>, NodeFilesError> {
        let Some(text) = self.read(STOPPED)? else { return Ok(Vec::new()) };
        let damaged = |what| NodeFilesError::Stopped { path: self.path(STOPPED), what };
        let lines = checked_lines(&text, STOPPED_HEAD).map_err(damaged)?;
        let gift = |line: &str| {
            let (partition, to) = line.split_once(' ')?;
            Some((partition.parse().ok().and_then(Partition::new)?, to.parse().ok()?))
        };
        lines.map(|line| gift(line).ok_or_else(|| damaged("a line is no partition and node"))).collect()
    }

    pub fn keep_stopped(&self, gifts: impl Iterator<Item = (Partition, u16)>) -> io::Result<()> {
        let mut text = format!("{STOPPED_HEAD}\n");
        for (partition, to) in gifts {
            let _ = writeln!(text, "{partition} {to}");
        }
        self.replace(STOPPED, checked(text).as_bytes())
    }

    /// How far each peer has counted, by the table of this epoch: by another one, what was one peer's may be another's that was
    /// not told. A damaged file costs time, and nothing else: everything is told again.
    pub fn cursors(&self, epoch: u64) -> Result<Vec<(u16, u64)>, NodeFilesError> {
        let Some(text) = self.read(CURSORS)? else { return Ok(Vec::new()) };
        let Ok(mut lines) = checked_lines(&text, CURSORS_HEAD) else { return Ok(Vec::new()) };
        if lines.next() != Some(&*format!("epoch {epoch}")) {
            return Ok(Vec::new());
        }
        let cursor = |line: &str| {
            let (node, place) = line.split_once(' ')?;
            Some((node.parse().ok()?, place.parse().ok()?))
        };
        Ok(lines.filter_map(cursor).collect())
    }

    pub fn keep_cursors(&self, epoch: u64, cursors: impl Iterator<Item = (u16, u64)>) -> io::Result<()> {
        let mut text = format!("{CURSORS_HEAD}\nepoch {epoch}\n");
        for (node, place) in cursors {
            let _ = writeln!(text, "{node} {place}");
        }
        self.replace(CURSORS, checked(text).as_bytes())
    }

    /// Everything that a voter promised and accepted.
    pub fn registers(&self) -> Result<Vec<(Register, Kept)>, NodeFilesError> {
        let mut registers = Vec::new();
        for name in self.names()? {
            let Some(register) = name.strip_prefix(COUNCIL).and_then(register_of) else { continue };
            let Some(bytes) = self.read(&name)? else { continue };
            let damaged = |what: String| NodeFilesError::Council { path: self.path(&name), what };
            let whole = unsealed(&bytes).ok_or_else(|| damaged("its checksum is another".to_string()))?;
            registers.push((register, Kept::decode(whole).map_err(|what| damaged(what.to_string()))?));
        }
        Ok(registers)
    }

    pub fn keep_register(&self, register: Register, kept: &Kept) -> io::Result<()> {
        self.replace(&format!("{COUNCIL}{}", name_of(register)), &sealed(kept.encode()))
    }

    fn path(&self, name: &str) -> PathBuf {
        match &self.0 {
            Place::Folder(folder) => folder.join(name),
            Place::Memory(_) => PathBuf::from(name),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, NodeFilesError> {
        match &self.0 {
            Place::Memory(files) => {
                Ok(files.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
            }
            Place::Folder(folder) => match std::fs::read(folder.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(cause) => Err(NodeFilesError::Disk { path: folder.join(name), cause }),
            },
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Place::Folder(folder) => replace(&folder.join(name), bytes),
            Place::Memory(files) => {
                let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                files.insert(name.to_string(), bytes.to_vec());
                Ok(())
            }
        }
    }

    fn names(&self) -> Result<Vec<String>, NodeFilesError> {
        let folder = match &self.0 {
            Place::Folder(folder) => folder,
            Place::Memory(files) => {
                return Ok(files.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect());
            }
        };
        let failed = |cause| NodeFilesError::Disk { path: folder.clone(), cause };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        Ok(names)
    }
}

impl NodeId {
    fn text(&self) -> String {
        let mut text = format!("{ID_HEAD}\ncluster ");
        for byte in self.cluster {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "\nid {:016x}\nnumber {}\nstarts {}\n", self.id, self.number, self.starts);
        checked(text)
    }

    fn parse(text: &[u8]) -> Result<NodeId, &'static str> {
        let unread = "a line cannot be read";
        let (mut cluster, mut id, mut number, mut starts) = (None, None, None, None);
        for line in checked_lines(text, ID_HEAD)? {
            match line.split_once(' ').ok_or(unread)? {
                ("cluster", hex) if hex.len() == 32 => {
                    cluster = u128::from_str_radix(hex, 16).ok().map(u128::to_be_bytes);
                }
                ("id", hex) => id = u64::from_str_radix(hex, 16).ok(),
                ("number", digits) => number = digits.parse().ok(),
                ("starts", digits) => starts = digits.parse().ok(),
                _ => return Err(unread),
            }
        }
        match (cluster, id, number, starts) {
            (Some(cluster), Some(id), Some(number), Some(starts)) => {
                Ok(NodeId { cluster, id, number, starts })
            }
            _ => Err("a line is missing"),
        }
    }
}

fn name_of(register: Register) -> String {
    match register {
        Register::Table => "table".to_string(),
        Register::Beat(node) => format!("beat-{node}"),
    }
}

fn register_of(name: &str) -> Option<Register> {
    match name.strip_prefix("beat-") {
        Some(node) => node.parse().ok().map(Register::Beat),
        None => (name == "table").then_some(Register::Table),
    }
}

/// With a checksum behind it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, crc) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c(bytes) == u32::from_le_bytes(*crc)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::register::{Acceptor, Ask, Ballot, Request};
    use crate::peer::{NodeState, TableNode};
    use crate::proto::partition::Spread;

    fn id() -> NodeId {
        NodeId { cluster: [0xab; 16], id: 0xfe, number: 3, starts: 9 }
    }

    fn kept() -> Kept {
        let mut acceptor = Acceptor::open(7, []);
        let ballot = Ballot { round: 5, node: 2 };
        let ask = Ask::Accept { ballot, value: Some(Arc::from(&b"value"[..])), then: ballot };
        acceptor.handle(Request { register: Register::Table, disk: 7, ask }).durable.unwrap().1
    }

    fn table() -> Table {
        let node = TableNode {
            number: 1,
            id: 7,
            generation: 0,
            address: "127.0.0.1:7174".to_string(),
            weight: 1,
            state: NodeState::Member,
        };
        Table::first(vec![node], vec![1], Spread::Domain, 4).unwrap()
    }

    #[test]
    fn everything_comes_back() {
        let directory = std::env::temp_dir().join(format!("nephila-node-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        assert!(!NodeFiles::are_in(&directory));
        for files in [NodeFiles::open(&directory).unwrap(), NodeFiles::in_memory()] {
            assert!(files.id().unwrap().is_none() && files.table().unwrap().is_none());
            assert!(files.cursors(5).unwrap().is_empty() && files.registers().unwrap().is_empty());
            files.keep_id(&id()).unwrap();
            files.keep_table(&table()).unwrap();
            files.keep_cursors(5, [(2, 77), (3, u64::MAX)].into_iter()).unwrap();
            let stopped = [(Partition::new(7).unwrap(), 2), (Partition::new(4_095).unwrap(), 3)];
            files.keep_stopped(stopped.into_iter()).unwrap();
            assert_eq!(files.stopped().unwrap(), stopped);
            files.keep_register(Register::Table, &kept()).unwrap();
            files.keep_register(Register::Beat(12), &Kept::default()).unwrap();
            assert_eq!(files.id().unwrap(), Some(id()));
            assert_eq!(files.table().unwrap(), Some(table()));
            assert_eq!(files.cursors(5).unwrap(), [(2, 77), (3, u64::MAX)]);
            assert!(files.cursors(6).unwrap().is_empty(), "another table");
            let mut registers = files.registers().unwrap();
            registers.sort_by_key(|(register, _)| name_of(*register));
            assert_eq!(registers, [(Register::Beat(12), Kept::default()), (Register::Table, kept())]);
        }
        assert!(NodeFiles::are_in(&directory));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A flipped bit is never another promise, another node or another table.
    #[test]
    fn damage_is_told_and_never_believed() {
        let files = NodeFiles::in_memory();
        files.keep_id(&id()).unwrap();
        files.keep_table(&table()).unwrap();
        files.keep_register(Register::Table, &kept()).unwrap();
        files.keep_cursors(5, [(2, 77)].into_iter()).unwrap();
        for name in [ID, TABLE, "council-table", CURSORS] {
            let whole = files.read(name).unwrap().unwrap();
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                files.replace(name, &damaged).unwrap();
                let is_same = match name {
                    ID => files.id().ok().flatten() == Some(id()),
                    TABLE => files.table().ok().flatten() == Some(table()),
                    CURSORS => files.cursors(5).unwrap() == [(2, 77)],
                    _ => files.registers().ok() == Some(vec![(Register::Table, kept())]),
                };
                let is_told = match name {
                    ID => files.id().is_err(),
                    TABLE => files.table().is_err(),
                    CURSORS => files.cursors(5).unwrap().is_empty(),
                    _ => files.registers().is_err(),
                };
                assert!(is_told || is_same, "{name}, byte {at}");
                files.replace(name, &damaged[..at]).unwrap();
                assert!(files.id().is_err() || name != ID);
            }
            files.replace(name, &whole).unwrap();
        }
        files.replace("council-table", b"short").unwrap();
        let told = files.registers().unwrap_err().to_string();
        assert!(told.contains("council-table is damaged: its checksum is another"), "{told}");
    }
}
