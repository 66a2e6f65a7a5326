use super::super::Machine;
use super::super::knob::{Change, Look, Mend, Status};
use super::super::parse;

/// Where a sysctl is.
pub(super) fn path(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

/// A sysctl whose numbers are as wanted, or are to be what `to` says.
pub(super) fn sysctl(
    machine: &Machine,
    name: &str,
    wanted: impl ToString,
    to: impl ToString,
    is_ok: impl Fn(&[i64]) -> bool,
) -> Look {
    let path = path(name);
    let read = machine.read_as(&path, |text| Some((parse::numbers(text)?, text.to_string())));
    match read {
        Err(why) => Look::unread(machine, &why, wanted, &path),
        Ok((numbers, text)) => {
            let now = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let look = Look::ok(now, wanted, &path);
            match is_ok(&numbers) {
                true => look,
                false => look.but(Status::Slower, Mend::Write(vec![Change::words(&path, &text, to)])),
            }
        }
    }
}

/// A sysctl that is enough from `least` on, and is set to `to` if it is not.
pub(super) fn at_least(machine: &Machine, name: &str, least: i64, to: i64) -> Look {
    sysctl(machine, name, format!("≥ {least}"), to, |now| now[0] >= least)
}

pub(super) fn at_most(machine: &Machine, name: &str, most: i64, to: i64) -> Look {
    sysctl(machine, name, format!("≤ {most}"), to, |now| now[0] <= most)
}

/// As much as the memory of the machine has room for: so many bytes each.
pub(super) fn by_memory(machine: &Machine, bytes_each: u64, least: i64, most: i64) -> i64 {
    machine.memory_bytes().map_or(most, |bytes| ((bytes / bytes_each) as i64).clamp(least, most))
}
