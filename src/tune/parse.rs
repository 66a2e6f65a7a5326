//! What files of /proc, /sys and /etc say. They are the kernel's or an administrator's; half a file, another kernel's
//! format and nonsense are `None`, never a panic.

use super::knob::Form;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Numbers of CPUs beyond this are not believed.
const CPUS_MAX: usize = 8_192;
/// Lines that are looked at, of files that list devices or mounts.
const LINES_MAX: usize = 16_384;

/// `0-3,6`; an empty text is an empty list.
pub(super) fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse::<usize>().ok()?, to.trim().parse::<usize>().ok()?);
        if from > to || to >= CPUS_MAX || cpus.len() > CPUS_MAX {
            return None;
        }
        cpus.extend(from..=to);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// A list of CPUs as the kernel and `--cores` write it.
pub(super) fn cpu_list_text(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    runs.map(text).collect::<Vec<_>>().join(",")
}

/// A set of CPUs as a hexadecimal mask, in groups of 32 bits.
pub(super) fn cpu_mask(cpus: &[usize]) -> String {
    let mut groups = vec![0_u32; cpus.iter().max().map_or(1, |last| last / 32 + 1)];
    cpus.iter().for_each(|cpu| groups[cpu / 32] |= 1 << (cpu % 32));
    let groups = groups.iter().rev().enumerate();
    let text =
        |(nth, group): (usize, &u32)| if nth == 0 { format!("{group:x}") } else { format!("{group:08x}") };
    groups.map(text).collect::<Vec<_>>().join(",")
}

/// The one word of a file.
pub(super) fn word(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    words.next().filter(|_| words.next().is_none()).map(str::to_string)
}

/// A set of CPUs as a mask, without the zeros that it may begin with.
pub(super) fn mask(text: &str) -> Option<String> {
    let text = text.trim();
    let is_mask = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',');
    is_mask.then(|| Form::Mask.value(text))
}

/// The numbers of a line, if there is nothing else in it.
pub(super) fn numbers(text: &str) -> Option<Vec<i64>> {
    let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (!numbers.is_empty() && numbers.len() <= 64).then_some(numbers)
}

/// The word in brackets, of a file that lists what can be chosen: `always [madvise] never`. Where there is no choice, it
/// is the only word.
pub(super) fn chosen(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let only = words.next().filter(|_| words.next().is_none());
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).or(only)
}

/// A row of /proc/self/limits, soft and hard; what is unlimited is the largest number.
pub(super) fn limit(text: &str, name: &str) -> Option<(u64, u64)> {
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut values = row.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((values.next()??, values.next()??))
}

/// A row of a file of `Name: value` rows.
pub(super) fn row<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':')).map(str::trim)
}

/// A row of /proc/meminfo, in bytes.
pub(super) fn memory_row(text: &str, name: &str) -> Option<u64> {
    row(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// The size of a page in the auxiliary vector, which is pairs of numbers of 64 bits.
pub(super) fn page_bytes(auxv: &[u8]) -> Option<u64> {
    const PAGE_SIZE: u64 = 6;
    let mut pairs = auxv.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
        if key == PAGE_SIZE {
            return (value.is_power_of_two() && (1 << 10..=1 << 30).contains(&value)).then_some(value);
        }
    }
    None
}

/// Where a path is mounted from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// `MAJOR:MINOR`.
    pub device: String,
    pub point: PathBuf,
    pub kind: String,
    /// Of the mount and of the file system.
    pub options: Vec<String>,
}

/// The mount that a path is on: the last of those with the longest name that it is below.
pub(super) fn mount_of(mountinfo: &str, path: &Path) -> Option<Mount> {
    let mounts = mountinfo.lines().take(LINES_MAX).filter_map(mount);
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

fn mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let [_, _, device, _, point, options, ..] = left[..] else { return None };
    let right: Vec<&str> = right.split(' ').collect();
    let options = options.split(',').chain(right.get(2)?.split(',')).map(str::to_string).collect();
    let device_is_known = device.split(':').all(|part| part.parse::<u32>().is_ok());
    device_is_known.then(|| Mount {
        device: device.to_string(),
        point: PathBuf::from(unescaped(point)),
        kind: right[0].to_string(),
        options,
    })
}

/// Spaces and the like stand in mountinfo as octal numbers.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_string(), |text, (code, letter)| text.replace(code, letter))
}

/// The folders of a controller's group below /sys/fs/cgroup, innermost first: of its own hierarchy, or, with `None`, of the
/// one that all share.
pub(super) fn cgroup_folders(text: &str, controller: Option<&str>) -> Vec<String> {
    let line = text.lines().take(64).find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        match controller {
            None => (number == "0" && names.is_empty()).then(|| (String::new(), path)),
            Some(name) => names.split(',').any(|has| has == name).then(|| (format!("/{names}"), path)),
        }
    });
    let Some((base, path)) = line else { return Vec::new() };
    let parts: Vec<&str> = path.split('/').filter(|part| !["", ".", ".."].contains(part)).take(64).collect();
    (0..=parts.len())
        .rev()
        .map(|depth| parts[..depth].iter().fold(base.clone(), |path, part| path + "/" + part))
        .collect()
}

/// Interrupts whose name `is_of` the device that is asked for.
pub(super) fn interrupts(text: &str, is_of: impl Fn(&str) -> bool) -> Vec<u32> {
    let row = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        is_of(rest.split_whitespace().last()?).then(|| number.trim().parse().ok())?
    };
    text.lines().take(LINES_MAX).filter_map(row).collect()
}

pub(super) fn nameservers(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let is_one = words.next() == Some("nameserver");
        let word = words.next().filter(|_| is_one)?;
        word.split('%').next()?.parse().ok()
    };
    text.lines().take(LINES_MAX).filter_map(address).take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_and_masks() {
        for (text, cpus) in
            [("0-3,6\n", vec![0, 1, 2, 3, 6]), ("5,1", vec![1, 5]), ("\n", vec![]), ("0", vec![0])]
        {
            assert_eq!(cpu_list(text), Some(cpus), "{text:?}");
        }
        for text in ["a", "3-1", "1-", "-", "0-99999999999", "1;2"] {
            assert_eq!(cpu_list(text), None, "{text:?}");
        }
        assert_eq!(cpu_list_text(&[0, 1, 2, 3, 6, 8, 9]), "0-3,6,8-9");
        assert_eq!((cpu_mask(&[0, 1]), cpu_mask(&[33, 0])), ("3".to_string(), "2,00000001".to_string()));
        assert_eq!(cpu_mask(&[]), "0");
    }

    #[test]
    fn rows_of_proc() {
        let limits = "Limit   Soft Limit   Hard Limit   Units\nMax open files            1024                 unlimited            files\n";
        assert_eq!(limit(limits, "Max open files"), Some((1_024, u64::MAX)));
        assert_eq!(limit(limits, "Max locked memory"), None);
        assert_eq!(memory_row("MemTotal:       16 kB\nMemFree: 1 kB", "MemTotal"), Some(16_384));
        assert_eq!(chosen("none [mq-deadline] bfq\n"), Some("mq-deadline"));
        assert_eq!((chosen("none mq"), numbers("4096\t65536 1\n")), (None, Some(vec![4_096, 65_536, 1])));
        let auxv: Vec<u8> =
            [3_u64, 9, 6, 4_096, 0, 0].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!((page_bytes(&auxv), page_bytes(&auxv[..24])), (Some(4_096), None));
        let rows =
            " 38:  0  15047 PCI-MSIX   1-edge   virtio2-input.0\nNMI:  0  0  Non-maskable interrupts\n";
        assert_eq!(interrupts(rows, |name| name.starts_with("virtio2-input")), [38]);
        let servers = "# nameserver 1.1.1.1\nnameserver fe80::1%eth0\nnameserver 127.0.0.1\nnameserver x\n";
        assert_eq!(nameservers(servers).len(), 2);
    }

    #[test]
    fn the_mount_of_a_path_is_the_innermost() {
        let mounts = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                      30 27 8:17 / /srv/my\\040data rw,noatime shared:1 - xfs /dev/sdb1 rw\nnonsense\n1 2 x / /srv - y";
        let at = |path: &str| mount_of(mounts, Path::new(path)).map(|mount| (mount.device, mount.kind));
        assert_eq!(at("/srv/my data/a"), Some(("8:17".into(), "xfs".into())));
        assert_eq!(at("/srv/my data2"), Some(("254:0".into(), "ext4".into())));
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn groups_are_told_from_the_inside_out() {
        let text = "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/x.slice/y\n";
        assert_eq!(cgroup_folders(text, None), ["/x.slice/y", "/x.slice", ""]);
        assert_eq!(cgroup_folders(text, Some("memory")), ["/memory/a/b", "/memory/a", "/memory"]);
        assert_eq!(cgroup_folders(text, Some("cpu")), ["/cpu,cpuacct"]);
        assert_eq!(cgroup_folders("0::/../../x", None), ["/x", ""]);
        assert!(cgroup_folders(text, Some("pids")).is_empty());
    }

    proptest! {
        /// Also of text that is nearly right.
        #[test]
        fn nothing_panics(text in "([0-9,\\-: /a-z\\[\\]\n\t]|\\PC)*", name in "[A-Za-z ]*", bytes: Vec<u8>) {
            if let Some(cpus) = cpu_list(&text) {
                prop_assert_eq!(cpu_list(&cpu_list_text(&cpus)), Some(cpus.clone()));
                cpu_mask(&cpus);
            }
            let _ = (word(&text), mask(&text));
            let _ = (numbers(&text), chosen(&text), limit(&text, &name), memory_row(&text, &name));
            let _ = (page_bytes(&bytes), mount_of(&text, Path::new("/a")), nameservers(&text));
            let _ = (cgroup_folders(&text, None), cgroup_folders(&text, Some(&name)), interrupts(&text, |_| true));
        }
    }
}
