use super::super::Machine;
use super::super::disk_speed::DiskSpeed;
use super::super::knob::{Change, Form, Knob, Look, Mend, Status};
use super::super::parse;
use super::super::runbook::Runbook;
use super::sysctl::path;

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        name: "vm.dirty_bytes",
        runbook: Runbook::Disk,
        look: |machine| dirty(machine, "vm.dirty_bytes", 1 << 30),
    },
    Knob {
        name: "vm.dirty_background_bytes",
        runbook: Runbook::Disk,
        look: |machine| dirty(machine, "vm.dirty_background_bytes", 256 << 20),
    },
    Knob { name: "disk-scheduler", runbook: Runbook::Disk, look: scheduler },
    Knob { name: "file-system", runbook: Runbook::Disk, look: file_system },
    Knob { name: "disk-speed", runbook: Runbook::Disk, look: speed },
];

/// Bytes that may wait for the disk. The kernel keeps them as a share of the memory until it is told a number.
fn dirty(machine: &Machine, name: &str, most: u64) -> Look {
    let (at, ratio_at) = (path(name), path(&name.replace("bytes", "ratio")));
    let wanted = format!("≤ {most}");
    let number = |path: &str| machine.read_as(path, |text| Some(parse::numbers(text)?[0] as u64));
    let (bytes, ratio) = match (number(&at), number(&ratio_at)) {
        (Ok(0), Ok(ratio)) => (0, ratio),
        (Ok(bytes), _) if bytes > 0 => (bytes, 0),
        (Err(why), _) | (_, Err(why)) => return Look::unread(machine, &why, wanted, &at),
        _ => return Look::cannot_tell("not understood", wanted, &at),
    };
    let Some(memory) = machine.memory_bytes() else {
        return Look::cannot_tell("unknown: so is the memory", wanted, &at);
    };
    let (now, effective) = match bytes {
        0 => (format!("{ratio} % of the memory"), memory / 100 * ratio.min(100)),
        _ => (bytes.to_string(), bytes),
    };
    let look = Look::ok(now, wanted, &at);
    if effective <= most {
        return look;
    }
    let mut change = Change::words(&at, &bytes.to_string(), most);
    // Nothing brings a zero back but the share that it stands for.
    change.back = (bytes == 0).then(|| (ratio_at, ratio.to_string()));
    look.but(Status::Slower, Mend::Write(vec![change]))
}

const MOUNTS: &str = "proc/self/mountinfo";

fn scheduler(machine: &Machine) -> Look {
    let mount = match machine.data_mount() {
        Ok(mount) => mount,
        Err(why) => return Look::unread(machine, &why, "none", MOUNTS),
    };
    // A part of a disk has the queue of the whole.
    let folders = ["queue", "../queue"].map(|queue| format!("sys/dev/block/{}/{queue}", mount.device));
    let Some(folder) = folders.iter().find(|folder| machine.exists(&format!("{folder}/scheduler"))) else {
        return match machine.is_container() {
            true => Look::cannot_tell("hidden by the container", "none", &folders[0]),
            false => Look::not_here(format!("{} has no disk of its own", mount.kind), &folders[0]),
        };
    };
    let at = format!("{folder}/scheduler");
    let is_disk = machine.read(&format!("{folder}/rotational")).is_ok_and(|text| text.trim() == "1");
    // What a virtual machine says of its disks is seldom so.
    let (good, best): (&[&str], _) = match is_disk && !machine.is_virtual() {
        true => (&["mq-deadline", "bfq"], "mq-deadline"),
        false => (&["none", "mq-deadline"], "none"),
    };
    let wanted = good.join(" or ");
    let read = machine.read_as(&at, |text| Some((parse::chosen(text)?.to_string(), text.to_string())));
    match read {
        Err(why) => Look::unread(machine, &why, wanted, &at),
        Ok((now, _)) if good.contains(&&*now) => Look::ok(now, wanted, &at),
        Ok((now, text)) if text.contains(best) => Look::ok(now, wanted, &at)
            .but(Status::Slower, Mend::Write(vec![Change::of(Form::Choice, &at, &text, best)])),
        Ok((now, _)) => Look::ok(now, wanted, &at).by_hand(Status::Slower, format!("a kernel with {best}")),
    }
}

fn file_system(machine: &Machine) -> Look {
    let wanted = "ext4 or xfs";
    let mount = match machine.data_mount() {
        Ok(mount) => mount,
        Err(why) => return Look::unread(machine, &why, wanted, MOUNTS),
    };
    let has = |option: &str| mount.options.iter().any(|has| has == option);
    let look = Look::ok(format!("{} at {}", mount.kind, mount.point.display()), wanted, MOUNTS);
    if has("ro") {
        return look.by_hand(Status::Stops, "it is mounted to be read only: mount -o remount,rw");
    }
    if has("nobarrier") || has("barrier=0") {
        return look
            .by_hand(Status::Stops, "without barriers a loss of power takes what was reported stored");
    }
    match mount.kind.as_str() {
        "ext4" | "xfs" => look,
        "tmpfs" | "ramfs" => {
            look.by_hand(Status::Slower, "it is memory, and gone after a boot: --data elsewhere")
        }
        "overlay" => look.by_hand(Status::Slower, "give the container a volume for --data"),
        // Others keep what they say too; how fast, nobody measured.
        kind => Look::cannot_tell(format!("{kind}: nephila tune disk measures it"), wanted, MOUNTS),
    }
}

/// Syncs that take longer than the pause between commits hold them up; what a line of 1 Gbit/s brings is half as much when
/// it is stored.
const SYNC_US_MAX: u64 = 20_000;
const MB_PER_S_MIN: f64 = 60.0;

fn speed(machine: &Machine) -> Look {
    let wanted = format!("p99 ≤ {} ms, ≥ {MB_PER_S_MIN} MB/s", SYNC_US_MAX / 1_000);
    let Some(data) = &machine.node().data else {
        return Look::cannot_tell("no --data was named", wanted, "disk.json");
    };
    let at = DiskSpeed::path(data).display().to_string();
    match DiskSpeed::read(data) {
        None => Look::cannot_tell("not measured: nephila tune disk", wanted, &at),
        Some(speed) => {
            let now =
                format!("p99 {:.1} ms, {:.0} MB/s", speed.fdatasync_p99_us as f64 / 1e3, speed.mb_per_second);
            let look = Look::ok(now, wanted, &at);
            match speed.fdatasync_p99_us <= SYNC_US_MAX && speed.mb_per_second >= MB_PER_S_MIN {
                true => look,
                false => look.by_hand(Status::Slower, "a faster disk, or a larger commit_ms"),
            }
        }
    }
}
