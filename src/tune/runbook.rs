use crate::base::named_enum;

named_enum! {
    /// A file below tuning/.
    pub enum Runbook {
        FilesAndMemory = "files-and-memory",
        Ports = "ports",
        Sockets = "sockets",
        Nic = "nic",
        Cpu = "cpu",
        Disk = "disk",
        Dns = "dns",
        IoUring = "io_uring",
    }
}

impl Runbook {
    pub fn text(self) -> &'static str {
        match self {
            Runbook::FilesAndMemory => include_str!("../../tuning/files-and-memory.md"),
            Runbook::Ports => include_str!("../../tuning/ports.md"),
            Runbook::Sockets => include_str!("../../tuning/sockets.md"),
            Runbook::Nic => include_str!("../../tuning/nic.md"),
            Runbook::Cpu => include_str!("../../tuning/cpu.md"),
            Runbook::Disk => include_str!("../../tuning/disk.md"),
            Runbook::Dns => include_str!("../../tuning/dns.md"),
            Runbook::IoUring => include_str!("../../tuning/io_uring.md"),
        }
    }
}

/// What a runbook says of a knob, from its heading to the next.
pub(crate) fn section(runbook: Runbook, name: &str) -> Option<&'static str> {
    sections(runbook.text()).find(|(heading, _)| *heading == name).map(|(_, text)| text)
}

/// Each section by its heading, with it.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let starts: Vec<usize> = text.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|(from, to)| {
        let section = text[from..to].trim_end();
        (section.lines().next().unwrap_or_default().trim_start_matches("## ").trim(), section)
    })
}

#[cfg(test)]
mod tests {
    use super::super::knobs::knobs;
    use super::*;

    const LEADS: [&str; 6] = ["**Check**", "**Apply**", "**Revert**", "**Why**", "**Risk**", "**Measured**"];

    /// Runbooks that are titles only have nothing to hold against the knobs.
    #[test]
    fn each_knob_has_its_section_and_each_section_its_knob() {
        let all = || {
            Runbook::ALL.iter().flat_map(|&book| sections(book.text()).map(move |section| (book, section)))
        };
        if all().next().is_none() {
            return;
        }
        let mut wrong = Vec::new();
        for knob in knobs() {
            let Some(text) = section(knob.runbook, knob.name) else {
                wrong.push(format!("tuning/{}.md has no section {}", knob.runbook.name(), knob.name));
                continue;
            };
            for lead in LEADS {
                let count = text.lines().filter(|line| line.starts_with(lead)).count();
                if count != 1 {
                    wrong.push(format!(
                        "tuning/{}.md: {}: {count} times {lead}",
                        knob.runbook.name(),
                        knob.name
                    ));
                }
            }
        }
        for (book, (heading, _)) in all() {
            if !knobs().any(|knob| knob.name == heading && knob.runbook == book) {
                wrong.push(format!("tuning/{}.md: {heading} is no knob of this runbook", book.name()));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let text = "# Ports\n\nwords\n\n## a.b\n\n**Check**: x\n\n## c\n\ny\n";
        let found: Vec<_> = sections(text).collect();
        assert_eq!(found, [("a.b", "## a.b\n\n**Check**: x"), ("c", "## c\n\ny")]);
        assert_eq!(sections("# Only a title").count(), 0);
    }
}
