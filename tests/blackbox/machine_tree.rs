//! A machine as a tree of files, on which every setting is right, and each way to make one of them wrong.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A machine of four cores and 16 GiB on which everything is as wanted, as far as files can tell.
pub const GOOD: &[(&str, &str)] = &[
    ("proc/self/limits", LIMITS),
    (
        "proc/self/status",
        "Name:\tnephila\nGid:\t1000\t1000\t1000\t1000\nGroups:\t27 1000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n",
    ),
    ("proc/self/cgroup", "0::/system.slice/nephila@x.service\n"),
    (
        "proc/self/mountinfo",
        "27 1 8:0 / / rw,noatime - ext4 /dev/sda rw\n22 27 0:21 / /proc rw - proc proc rw\n",
    ),
    ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n"),
    ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme\n"),
    ("proc/swaps", "Filename\tType\tSize\n/dev/sda2\tpartition\t1000\n"),
    ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda quiet\n"),
    ("proc/interrupts", INTERRUPTS),
    ("proc/irq/30/smp_affinity_list", "0\n"),
    ("proc/irq/31/smp_affinity_list", "1\n"),
    ("proc/irq/32/smp_affinity_list", "2\n"),
    ("proc/irq/33/smp_affinity_list", "3\n"),
    ("proc/net/route", ROUTES),
    ("proc/sys/fs/nr_open", "1048576\n"),
    ("proc/sys/fs/file-max", "9223372036854775807\n"),
    ("proc/sys/vm/max_map_count", "262144\n"),
    ("proc/sys/vm/swappiness", "1\n"),
    ("proc/sys/vm/dirty_bytes", "1073741824\n"),
    ("proc/sys/vm/dirty_ratio", "0\n"),
    ("proc/sys/vm/dirty_background_bytes", "268435456\n"),
    ("proc/sys/vm/dirty_background_ratio", "0\n"),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    ("proc/sys/kernel/io_uring_disabled", "0\n"),
    ("proc/sys/kernel/io_uring_group", "-1\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "10240\t65535\n"),
    ("proc/sys/net/ipv4/tcp_tw_reuse", "1\n"),
    ("proc/sys/net/ipv4/tcp_timestamps", "1\n"),
    ("proc/sys/net/ipv4/tcp_max_tw_buckets", "1048576\n"),
    ("proc/sys/net/ipv4/tcp_max_orphans", "262144\n"),
    ("proc/sys/net/ipv4/tcp_fin_timeout", "30\n"),
    ("proc/sys/net/ipv4/tcp_syn_retries", "3\n"),
    ("proc/sys/net/ipv4/conf/all/rp_filter", "2\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
    ("proc/sys/net/ipv4/tcp_mem", "524288\t786432\t1048576\n"),
    ("proc/sys/net/ipv4/tcp_max_syn_backlog", "4096\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/core/netdev_max_backlog", "5000\n"),
    ("proc/sys/net/core/busy_poll", "0\n"),
    ("proc/sys/net/core/busy_read", "0\n"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "2097152\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "12\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/class/net/lo/operstate", "unknown\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/device/vendor", "0x8086\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00\n"),
    ("sys/class/net/eth0/queues/rx-2/rps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/rx-3/rps_cpus", "00000000,00000000\n"),
    ("sys/class/net/eth0/statistics/rx_missed_errors", "0\n"),
    ("sys/class/net/eth0/statistics/rx_fifo_errors", "0\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0\n"),
    ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1\n"),
    ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2\n"),
    ("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "C1\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C6\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n"),
    ("sys/dev/block/8:0/queue/scheduler", "[none] mq-deadline bfq\n"),
    ("sys/dev/block/8:0/queue/rotational", "0\n"),
    ("etc/resolv.conf", "nameserver 127.0.0.1\n"),
    (
        "data/disk.json",
        "{\"measured_at\":\"2026-01-01T00:00:00Z\",\"fdatasync_p50_us\":300,\"fdatasync_p99_us\":2000,\"syncs\":2000,\"mb_per_second\":900.0,\"bytes\":1}\n",
    ),
];

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 1048576              files     \n\
                      Max locked memory         unlimited            unlimited            bytes     \n";
const INTERRUPTS: &str = "      CPU0 CPU1 CPU2 CPU3\n 30: 1 0 0 0 PCI-MSI 1-edge eth0-TxRx-0\n 31: 0 1 0 0 PCI-MSI 2-edge eth0-TxRx-1\n \
                          32: 0 0 1 0 PCI-MSI 3-edge eth0-TxRx-2\n 33: 0 0 0 1 PCI-MSI 4-edge eth0-TxRx-3\nNMI: 0 0 0 0 Non-maskable interrupts\n";
/// Two ways out.
const ROUTES: &str = "Iface\tDestination\tGateway\neth0\t00000000\t0100000A\neth1\t00000000\t0100010A\neth0\t0000000A\t00000000\n";

/// Those that no file tells of.
pub const UNTOLD: [&str; 2] = ["nic-offloads", "io-wq"];

/// A knob, a file that is wrong for it, and what that costs. Where `tune apply` mends it, the file is right after it.
pub const WRONG: &[(&str, &str, &str, &str)] = &[
    ("nofile", "proc/self/limits", "Max open files  1024  4096 files\n", "slower"),
    ("nofile", "proc/self/limits", "Max open files  64  64 files\n", "stops"),
    ("fs.nr_open", "proc/sys/fs/nr_open", "65536\n", "slower"),
    ("fs.file-max", "proc/sys/fs/file-max", "100000\n", "slower"),
    ("memlock", "proc/self/limits", "Max locked memory  65536  8388608 bytes\n", "slower"),
    ("vm.max_map_count", "proc/sys/vm/max_map_count", "65530\n", "slower"),
    ("vm.swappiness", "proc/sys/vm/swappiness", "60\n", "slower"),
    (
        "transparent-huge-pages",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
        "slower",
    ),
    (
        "transparent-huge-pages",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n",
        "slower",
    ),
    ("net.ipv4.ip_local_port_range", "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n", "slower"),
    ("net.ipv4.tcp_tw_reuse", "proc/sys/net/ipv4/tcp_tw_reuse", "2\n", "slower"),
    ("net.ipv4.tcp_tw_reuse", "proc/sys/net/ipv4/tcp_timestamps", "0\n", "slower"),
    ("net.ipv4.tcp_max_tw_buckets", "proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n", "slower"),
    ("net.ipv4.tcp_max_orphans", "proc/sys/net/ipv4/tcp_max_orphans", "65536\n", "slower"),
    ("net.ipv4.tcp_fin_timeout", "proc/sys/net/ipv4/tcp_fin_timeout", "60\n", "slower"),
    ("net.ipv4.tcp_syn_retries", "proc/sys/net/ipv4/tcp_syn_retries", "6\n", "slower"),
    ("conntrack", "proc/sys/net/netfilter/nf_conntrack_max", "65536\n", "slower"),
    ("conntrack", "proc/sys/net/netfilter/nf_conntrack_count", "2090000\n", "stops"),
    ("net.ipv4.conf.all.rp_filter", "proc/sys/net/ipv4/conf/all/rp_filter", "1\n", "slower"),
    ("net.ipv4.tcp_rmem", "proc/sys/net/ipv4/tcp_rmem", "4096 12582912 16777216\n", "slower"),
    ("net.ipv4.tcp_wmem", "proc/sys/net/ipv4/tcp_wmem", "4096 16384 65536\n", "slower"),
    ("net.ipv4.tcp_mem", "proc/sys/net/ipv4/tcp_mem", "1000 2000 3000\n", "slower"),
    ("net.core.somaxconn", "proc/sys/net/core/somaxconn", "128\n", "slower"),
    ("net.ipv4.tcp_max_syn_backlog", "proc/sys/net/ipv4/tcp_max_syn_backlog", "512\n", "slower"),
    ("net.core.netdev_max_backlog", "proc/sys/net/core/netdev_max_backlog", "1000\n", "slower"),
    ("busy-poll", "proc/sys/net/core/busy_read", "50\n", "slower"),
    ("nic-irqs", "proc/irq/32/smp_affinity_list", "0\n", "slower"),
    ("nic-rings", "sys/class/net/eth0/statistics/rx_missed_errors", "17\n", "slower"),
    ("rps", "sys/class/net/eth0/queues/rx-1/rps_cpus", "f\n", "slower"),
    ("cpu-governor", "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n", "slower"),
    ("c-states", "sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n", "slower"),
    ("isolcpus", "sys/devices/system/cpu/isolated", "4-7\n", "slower"),
    ("numa-balancing", "proc/sys/kernel/numa_balancing", "1\n", "slower"),
    ("mitigations", "proc/cmdline", "root=/dev/sda mitigations=off\n", "slower"),
    ("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "slower"),
    ("vm.dirty_bytes", "proc/sys/vm/dirty_bytes", "4294967296\n", "slower"),
    ("vm.dirty_background_bytes", "proc/sys/vm/dirty_background_bytes", "1073741824\n", "slower"),
    ("disk-scheduler", "sys/dev/block/8:0/queue/scheduler", "none mq-deadline [bfq]\n", "slower"),
    ("file-system", "proc/self/mountinfo", "27 1 8:0 / / rw - ext4 /dev/sda rw,nobarrier\n", "stops"),
    ("file-system", "proc/self/mountinfo", "27 1 8:0 / / ro - xfs /dev/sda ro\n", "stops"),
    ("file-system", "proc/self/mountinfo", "27 1 8:0 / / rw - tmpfs none rw\n", "slower"),
    (
        "disk-speed",
        "data/disk.json",
        "{\"measured_at\":\"\",\"fdatasync_p50_us\":300,\"fdatasync_p99_us\":90000,\"syncs\":2,\"mb_per_second\":900.0,\"bytes\":1}",
        "slower",
    ),
    ("resolver", "etc/resolv.conf", "nameserver 192.0.2.53\nnameserver 127.0.0.1\n", "slower"),
    ("resolver", "etc/resolv.conf", "nameserver 127.0.0.53\n", "slower"),
    ("kernel.io_uring_disabled", "proc/sys/kernel/io_uring_disabled", "2\n", "slower"),
    ("kernel.io_uring_disabled", "proc/sys/kernel/io_uring_disabled", "1\n", "slower"),
];

/// A knob, and what is said of it without the file. Where nothing else is written, it cannot be told.
pub const MISSING: &[(&str, &str, &str)] = &[
    ("conntrack", "proc/sys/net/netfilter/nf_conntrack_max", "ok"),
    ("transparent-huge-pages", "sys/kernel/mm/transparent_hugepage/enabled", "not here"),
    ("cpu-governor", "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "not here"),
    ("rps", "sys/class/net/eth0/queues/rx-1/rps_cpus", "not here"),
    ("disk-scheduler", "sys/dev/block/8:0/queue/scheduler", "not here"),
    // Nobody was refused it, and kernels of before have no switch.
    ("kernel.io_uring_disabled", "proc/sys/kernel/io_uring_disabled", "ok"),
    // What is read beside the setting itself.
    ("conntrack", "proc/sys/net/netfilter/nf_conntrack_count", "ok"),
    ("net.ipv4.tcp_tw_reuse", "proc/sys/net/ipv4/tcp_timestamps", "ok"),
];

pub fn machine() -> TempDir {
    let dir = TempDir::in_memory();
    GOOD.iter().for_each(|(path, text)| drop(dir.write(path, text)));
    dir
}

pub fn tune(root: &Path, args: &[&str]) -> Run {
    Running::start(&mut command(root, args)).wait(PATIENCE)
}

pub fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = nephila();
    command.arg("tune").args(args).arg("--root").arg(root);
    if args[0] != "revert" {
        command.arg("--data").arg(root.join("data"));
    }
    command
}

/// Each setting by its name.
#[track_caller]
pub fn settings(root: &Path) -> BTreeMap<String, Value> {
    by_name(&tune(root, &["check", "--json"]).json())
}

pub fn by_name(report: &Value) -> BTreeMap<String, Value> {
    let settings = report["settings"].as_array().unwrap().iter();
    settings.map(|row| (row["name"].as_str().unwrap().to_string(), row.clone())).collect()
}

pub fn status<'a>(settings: &'a BTreeMap<String, Value>, name: &str) -> &'a str {
    settings[name]["status"].as_str().unwrap()
}

/// What every file of the machine says, however it is written.
pub fn values(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
            let words = || text.split_whitespace().collect::<Vec<_>>().join(" ");
            let value = chosen.map_or_else(words, str::to_string);
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), value);
        }
    }
    found
}
