use super::super::knob::Knob;
use super::{cpu, disk, dns, files, io_uring, nic, ports, sockets};
use crate::base::edits;

/// All of them, in the order of the runbooks.
pub(crate) fn knobs() -> impl Iterator<Item = &'static Knob> {
    [
        files::KNOBS,
        ports::KNOBS,
        sockets::KNOBS,
        nic::KNOBS,
        cpu::KNOBS,
        disk::KNOBS,
        dns::KNOBS,
        io_uring::KNOBS,
    ]
    .into_iter()
    .flatten()
}

pub(crate) fn knob(name: &str) -> Option<&'static Knob> {
    knobs().find(|knob| knob.name == name)
}

/// The knob that is most likely meant by a name that none has.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let typed: String = name.to_lowercase().chars().take(100).collect();
    // `somaxconn`, and the names of limits in units, are nearer than any other spelling.
    let distance = |known: &&str| match known.ends_with(&format!(".{typed}")) || typed.contains(*known) {
        true => 0,
        false if known.contains(&typed) && typed.len() > 2 => 1,
        false => edits(&typed, known) + 1,
    };
    let nearest = knobs().map(|knob| knob.name).min_by_key(distance)?;
    (distance(&nearest) <= nearest.len() / 2).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_finds_its_knob() {
        for (typed, meant) in [
            ("somaxconn", Some("net.core.somaxconn")),
            ("LimitNOFILE", Some("nofile")),
            ("net.ipv4.tcp_tw_resue", Some("net.ipv4.tcp_tw_reuse")),
            ("governor", Some("cpu-governor")),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<&str> = knobs().map(|knob| knob.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count), (42, 42));
    }
}
