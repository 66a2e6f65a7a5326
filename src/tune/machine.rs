use super::parse::{self, Mount};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The machine as this process sees it. Everything is read below one root, so that a tree of files can stand for it.
pub(crate) struct Machine {
    root: PathBuf,
    node: ForNode,
    cpus: Cpus,
    memory_bytes: Option<u64>,
    page_bytes: u64,
    is_container: bool,
    is_virtual: bool,
    nics: Vec<String>,
}

/// What is known of the node that the machine is for, from elsewhere than its files.
#[derive(Clone, Debug)]
pub(crate) struct ForNode {
    /// Fetches that one shard may have open.
    pub fetches_max: usize,
    pub data: Option<PathBuf>,
    /// Why the driver cannot have io_uring; nothing if it can, or if nobody tried.
    pub uring_refused: Option<String>,
    /// The process that crawls there.
    pub pid: Option<u32>,
}

/// CPUs that this process may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cpus {
    /// By the affinity mask and the cpuset.
    pub allowed: Vec<usize>,
    /// The first thread of each physical core among them.
    pub physical: Vec<usize>,
    /// CPUs that a control group allows at a time.
    pub quota: Option<f64>,
    /// Those that the scheduler leaves alone.
    pub isolated: Vec<usize>,
}

/// Why a file of the kernel said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Missing,
    Denied,
    /// It is there, and says something else than is known of it.
    Strange,
}

/// Of a file, or the names in a folder, that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
const NAMES_MAX: usize = 4_096;

impl Machine {
    /// This machine, or a tree that looks like one.
    pub fn at(root: &Path, node: ForNode) -> Machine {
        let mut machine = Machine {
            root: root.to_path_buf(),
            node,
            cpus: Cpus::default(),
            memory_bytes: None,
            page_bytes: 4_096,
            is_container: false,
            is_virtual: false,
            nics: Vec::new(),
        };
        machine.cpus = machine.read_cpus();
        machine.memory_bytes = machine.read_memory();
        machine.page_bytes = machine.read_page_bytes().unwrap_or(4_096);
        machine.is_container = machine.looks_contained();
        let is_virtual = |text: &str| parse::row(text, "flags").is_some_and(|row| row.contains("hypervisor"));
        machine.is_virtual = machine.read("proc/cpuinfo").is_ok_and(|text| is_virtual(&text));
        machine.nics = machine.read_nics();
        machine
    }

    pub fn node(&self) -> &ForNode {
        &self.node
    }

    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Memory of the machine, or what control groups leave of it.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }

    pub fn is_container(&self) -> bool {
        self.is_container
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Network cards that are up, by name; what has no hardware below it is none.
    pub(super) fn nics(&self) -> &[String] {
        &self.nics
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A file's text, by its path below the root.
    pub(super) fn read(&self, path: &str) -> Result<String, Unread> {
        let mut bytes = Vec::new();
        let read = File::open(self.root.join(path))
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Unread::Denied),
            // A kernel without the feature has no file, or one that cannot be read.
            Err(_) => Err(Unread::Missing),
        }
    }

    /// The same, as `reads` understands it.
    pub(super) fn read_as<T>(&self, path: &str, reads: impl Fn(&str) -> Option<T>) -> Result<T, Unread> {
        reads(&self.read(path)?).ok_or(Unread::Strange)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Names in a folder that begin so, in the order of the numbers in them.
    pub(super) fn names(&self, folder: &str, begins: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else { return Vec::new() };
        let names = entries.take(NAMES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(begins)).collect();
        names.sort_by_key(|name| {
            (name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0_u64), name.clone())
        });
        names
    }

    /// Soft and hard limit of this process.
    pub(super) fn limit(&self, name: &str) -> Result<(u64, u64), Unread> {
        self.read_as("proc/self/limits", |text| parse::limit(text, name))
    }

    /// Whether this process has a capability, by its number.
    pub(super) fn has_capability(&self, number: u32) -> bool {
        let set = |text: &str| u64::from_str_radix(parse::row(text, "CapEff")?, 16).ok();
        self.read_as("proc/self/status", set).is_ok_and(|set| set >> number & 1 == 1)
    }

    /// Where the data directory, or what of its path is there, is mounted from.
    pub(super) fn data_mount(&self) -> Result<Mount, Unread> {
        let data = self.node.data.as_deref().ok_or(Unread::Missing)?;
        let path = data.ancestors().find_map(|path| match path.as_os_str().is_empty() {
            true => fs::canonicalize(".").ok(),
            false => fs::canonicalize(path).ok(),
        });
        let path = path.ok_or(Unread::Missing)?;
        // In a tree that stands for a machine the data directory is below its root.
        let root = fs::canonicalize(&self.root).unwrap_or_default();
        let path = path.strip_prefix(&root).map_or(path.clone(), |below| Path::new("/").join(below));
        self.read_as("proc/self/mountinfo", |text| parse::mount_of(text, &path))
    }

    /// The value of the strictest of the groups that this process is in, in the one hierarchy or in a controller's own.
    fn strictest<T: PartialOrd>(
        &self,
        (one, reads_one): (&str, impl Fn(&str) -> Option<T>),
        (controller, own, reads_own): (&str, &str, impl Fn(&Machine, &str) -> Option<T>),
    ) -> Option<T> {
        let groups = self.read("proc/self/cgroup").ok()?;
        let file = |folder: &String| self.read(&format!("sys/fs/cgroup{folder}/{one}")).ok();
        let folders = parse::cgroup_folders(&groups, None);
        let shared = folders.iter().filter_map(file).filter_map(|text| reads_one(text.trim()));
        let folders = parse::cgroup_folders(&groups, Some(controller));
        let owned =
            folders.iter().filter_map(|folder| reads_own(self, &format!("sys/fs/cgroup{folder}/{own}")));
        shared.chain(owned).min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
    }

    fn read_cpus(&self) -> Cpus {
        let list = |path: &str| self.read_as(path, parse::cpu_list).unwrap_or_default();
        let status = |text: &str| parse::cpu_list(parse::row(text, "Cpus_allowed_list")?);
        let mut allowed = self.read_as("proc/self/status", status).unwrap_or_default();
        // The mask may name CPUs that are not there.
        let online = list("sys/devices/system/cpu/online");
        if allowed.is_empty() {
            allowed.clone_from(&online);
        } else if !online.is_empty() {
            allowed.retain(|cpu| online.contains(cpu));
        }
        let groups = self.read("proc/self/cgroup").unwrap_or_default();
        for folder in parse::cgroup_folders(&groups, None) {
            let set = list(&format!("sys/fs/cgroup{folder}/cpuset.cpus.effective"));
            if !set.is_empty() {
                allowed.retain(|cpu| set.contains(cpu));
            }
        }
        let siblings =
            |cpu: &usize| list(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let is_first = |cpu: &&usize| {
            let first = siblings(cpu).into_iter().find(|sibling| allowed.contains(sibling));
            first.is_none_or(|first| first == **cpu)
        };
        let physical = allowed.iter().filter(is_first).copied().collect();
        let share = |quota: f64, period: f64| (quota > 0.0 && period > 0.0).then(|| quota / period);
        let number = |text: String| text.trim().parse::<f64>().ok();
        let quota = self.strictest(
            ("cpu.max", |text| {
                let (quota, period) = text.split_once(' ')?;
                share(quota.parse().ok()?, period.trim().parse().ok()?)
            }),
            ("cpu", "cpu.cfs_quota_us", |machine, path| {
                let period = machine.read(&path.replace("quota", "period")).ok().and_then(number)?;
                share(machine.read(path).ok().and_then(number)?, period)
            }),
        );
        Cpus { allowed, physical, quota, isolated: list("sys/devices/system/cpu/isolated") }
    }

    fn read_memory(&self) -> Option<u64> {
        let total = self.read_as("proc/meminfo", |text| parse::memory_row(text, "MemTotal")).ok();
        let limit = self.strictest(
            ("memory.max", |text| text.parse::<u64>().ok()),
            ("memory", "memory.limit_in_bytes", |machine, path| machine.read(path).ok()?.trim().parse().ok()),
        );
        // What is not limited is limited to nearly all that 64 bits can count.
        [total, limit.filter(|&limit| limit < 1 << 60)].into_iter().flatten().min()
    }

    fn read_page_bytes(&self) -> Option<u64> {
        parse::page_bytes(&fs::read(self.root.join("proc/self/auxv")).ok()?)
    }

    fn looks_contained(&self) -> bool {
        let by_file = [".dockerenv", "run/.containerenv", "run/systemd/container"];
        let by_mount =
            |text: &str| parse::mount_of(text, Path::new("/")).map(|mount| mount.kind == "overlay");
        by_file.iter().any(|path| self.exists(path))
            || self.read_as("proc/self/mountinfo", by_mount).unwrap_or(false)
    }

    fn read_nics(&self) -> Vec<String> {
        let mut nics = self.names("sys/class/net", "");
        nics.retain(|nic| {
            let is_down =
                self.read(&format!("sys/class/net/{nic}/operstate")).is_ok_and(|text| text.trim() == "down");
            self.exists(&format!("sys/class/net/{nic}/device")) && !is_down
        });
        nics.truncate(64);
        nics
    }
}

impl Cpus {
    /// The cores to put shards on: one for each physical core, and no more than a quota lets run at a time.
    pub fn for_shards(&self) -> &[usize] {
        let whole = self.quota.map_or(usize::MAX, |quota| (quota as usize).max(1));
        &self.physical[..self.physical.len().min(whole)]
    }

    /// Shards that the machine is good for; one, where it does not say what it has.
    pub fn shards(&self) -> usize {
        self.for_shards().len().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_for_each_core_within_the_quota() {
        let physical = vec![0, 2, 4, 6];
        let cpus =
            |quota| Cpus { allowed: (0..8).collect(), physical: physical.clone(), quota, isolated: vec![] };
        assert_eq!(cpus(None).for_shards(), physical);
        assert_eq!(cpus(Some(2.5)).for_shards(), [0, 2]);
        assert_eq!(cpus(Some(0.5)).for_shards(), [0]);
        assert_eq!(Cpus::default().shards(), 1);
    }
}
