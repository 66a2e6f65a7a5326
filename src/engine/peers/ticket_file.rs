use crate::base::Now;
use crate::peer::ticket::{Known, Lent, TicketKey};
use crate::proto::partition::Partition;
use crate::storage::{JournalLines, put_line};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// What a node has lent, for the process that comes after this one: `cluster/tickets`, a line for each change, written before
/// anybody gets the ticket. It is not made durable: a kill does not lose it, and after a start of the machine it says nothing.
pub(super) struct TicketFile {
    path: PathBuf,
    boot: Boot,
    opened: Option<Opened>,
    is_dropped: bool,
}

struct Opened {
    file: File,
    bytes: u64,
    /// The clock of the machine when that of this process was at zero.
    zero_us: u64,
}

/// The clock that all processes since the machine was started have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    Machine,
    /// In a simulation all have the same clock.
    Simulated,
}

/// A change, with times of the machine's clock.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    /// It is a host and no address.
    host: bool,
    partition: u16,
    lent: Vec<LentLine>,
    due_us: u64,
    pause_us: u64,
    line: String,
}

#[derive(Serialize, Deserialize)]
struct LentLine {
    node: u16,
    ask: u64,
    slots: u16,
    since_us: u64,
    until_us: u64,
    over_us: u64,
}

const HEAD: &str = "nephila cluster.tickets 2 ";
/// A file that is longer is written anew, with what holds.
const BYTES_MAX: u64 = 4 << 20;

impl Boot {
    /// Which start of the machine it is, and its clock when that of this process was at zero; nothing if that cannot be known.
    fn at(self, now: Now) -> Option<(String, u64)> {
        match self {
            Boot::Simulated => Some(("simulated".to_string(), 0)),
            Boot::Machine => {
                let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
                let clock = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
                let us = 1_000_000 * u64::try_from(clock.tv_sec()).ok()? + clock.tv_nsec() as u64 / 1_000;
                Some((id.trim().to_string(), us.saturating_sub(now.us())))
            }
        }
    }
}

impl TicketFile {
    pub fn new(path: PathBuf, boot: Boot) -> TicketFile {
        TicketFile { path, boot, opened: None, is_dropped: false }
    }

    /// What the process before this one had lent, and what addresses are owed; `None` if that is not known.
    pub fn read(&self, now: Now) -> Option<Vec<(TicketKey, Known)>> {
        let (id, zero_us) = self.boot.at(now)?;
        let bytes = fs::read(&self.path).ok()?;
        let rest = bytes.strip_prefix(format!("{HEAD}{id}\n").as_bytes())?;
        let mut lines = JournalLines::<Line>::new(rest);
        let mut known = Vec::new();
        // A line that a kill has torn was told to nobody.
        while let Some(line) = lines.next().ok()? {
            known.push(line.known(zero_us)?);
        }
        Some(known)
    }

    /// Keeps changes, before anybody hears of them. `all` is everything that holds. If it fails, the next process knows nothing.
    pub fn keep(
        &mut self,
        changes: Vec<(TicketKey, Known)>,
        all: impl FnOnce() -> Vec<(TicketKey, Known)>,
        now: Now,
    ) -> io::Result<()> {
        let kept = match &mut self.opened {
            Some(opened) if opened.bytes < BYTES_MAX => opened.add(&changes),
            _ => self.begin(&all(), now),
        };
        kept.inspect_err(|_| {
            self.opened = None;
            let _ = fs::remove_file(&self.path);
        })
    }

    /// The next process is to know nothing.
    pub fn drop_all(&mut self) {
        if self.opened.take().is_none() && self.is_dropped {
            return;
        }
        let is_gone = fs::remove_file(&self.path).is_ok() || !self.path.exists();
        // What cannot be removed can perhaps be emptied; if not, it is tried again.
        self.is_dropped = is_gone || File::create(&self.path).is_ok();
    }

    fn begin(&mut self, all: &[(TicketKey, Known)], now: Now) -> io::Result<()> {
        let Some((id, zero_us)) = self.boot.at(now) else {
            return Err(io::Error::other("the machine does not say when it was started"));
        };
        let fresh = self.path.with_extension("new");
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&fresh)?;
        let mut opened = Opened { file, bytes: 0, zero_us };
        opened.file.write_all(format!("{HEAD}{id}\n").as_bytes())?;
        opened.add(all)?;
        fs::rename(&fresh, &self.path)?;
        self.opened = Some(Opened { bytes: 0, ..opened });
        Ok(())
    }
}

impl Opened {
    fn add(&mut self, changes: &[(TicketKey, Known)]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (key, known) in changes {
            put_line(&Line::of(key, known, self.zero_us), &mut bytes)?;
        }
        self.bytes += bytes.len() as u64;
        self.file.write_all(&bytes)
    }
}

impl Line {
    fn of(key: &TicketKey, known: &Known, zero_us: u64) -> Line {
        let us = |at: Now| at.us().saturating_add(zero_us);
        let lent = known.lent.iter().map(|lent| LentLine {
            node: lent.node,
            ask: lent.ask,
            slots: lent.slots,
            since_us: us(lent.since),
            until_us: us(lent.until),
            over_us: us(lent.over),
        });
        let lent = lent.collect();
        Line {
            key: key.to_string(),
            host: key.host().is_some(),
            partition: known.partition.get(),
            lent,
            due_us: us(known.due),
            pause_us: known.pause_us,
            line: String::from_utf8_lossy(&known.line).into_owned(),
        }
    }

    fn known(self, zero_us: u64) -> Option<(TicketKey, Known)> {
        let at = |us: u64| Now::from_us(us.saturating_sub(zero_us));
        let key = match self.host {
            true => TicketKey::of_host(&self.key)?,
            false => TicketKey::of_address(self.key.parse().ok()?),
        };
        let lent =
            self.lent.into_iter().map(|LentLine { node, ask, slots, since_us, until_us, over_us }| Lent {
                node,
                ask,
                slots,
                since: at(since_us),
                until: at(until_us),
                over: at(over_us),
                is_told: false,
            });
        let lent = lent.collect();
        let (due, line) = (at(self.due_us), self.line.into_bytes().into());
        Some((
            key,
            Known { partition: Partition::new(self.partition)?, lent, due, pause_us: self.pause_us, line },
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(node: u16, over_s: u64) -> (TicketKey, Known) {
        let at = |s: u64| Now::from_us(1_000_000 * s);
        let (since, until, over) = (at(1), at(over_s - 1), at(over_s));
        let lent = Lent { node, ask: 7, slots: 2, since, until, over, is_told: false };
        let line = (*b"address 192.0.2.7 due=5\n").into();
        let partition = Partition::new(9).unwrap();
        let known = Known { partition, lent: vec![lent], due: at(2), pause_us: 3, line };
        (TicketKey::of_address("192.0.2.7".parse().unwrap()), known)
    }

    #[test]
    fn the_next_process_knows_what_was_lent_and_after_another_start_of_the_machine_nothing() {
        let path = std::env::temp_dir().join(format!("nephila-tickets-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let (one, two) = (known(1, 60), known(2, 70));
        let host = (TicketKey::of_host("a.example").unwrap(), Known { lent: Vec::new(), ..known(1, 9).1 });
        let mut file = TicketFile::new(path.clone(), Boot::Simulated);
        assert_eq!(file.read(Now::ZERO), None, "there is none");
        file.keep(vec![one.clone()], || vec![one.clone()], Now::ZERO).unwrap();
        file.keep(vec![two.clone(), host.clone()], || unreachable!("it is short"), Now::ZERO).unwrap();
        let next = TicketFile::new(path.clone(), Boot::Simulated);
        assert_eq!(next.read(Now::ZERO), Some(vec![one.clone(), two.clone(), host.clone()]));
        // A kill in the middle of a line; what was not written whole was told to nobody.
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        assert_eq!(next.read(Now::ZERO), Some(vec![one.clone(), two.clone()]));
        let mut bad = whole.clone();
        bad[whole.len() / 2] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert_eq!(next.read(Now::ZERO), None, "damage is no knowledge");
        let other = String::from_utf8(whole).unwrap().replace("simulated", "another start");
        fs::write(&path, other).unwrap();
        assert_eq!(next.read(Now::ZERO), None);
        // It is written anew when it is long, with what holds; and it is gone if that is refused.
        file.opened.as_mut().unwrap().bytes = BYTES_MAX;
        file.keep(vec![two.clone()], || vec![two.clone()], Now::ZERO).unwrap();
        assert_eq!(next.read(Now::ZERO), Some(vec![two.clone()]));
        file.drop_all();
        assert_eq!(next.read(Now::ZERO), None);
        file.keep(vec![one], || vec![two.clone()], Now::ZERO).unwrap();
        assert_eq!(next.read(Now::ZERO), Some(vec![two]), "it is begun with all that holds");
        file.opened.as_mut().unwrap().bytes = BYTES_MAX;
        fs::create_dir(path.with_extension("new")).unwrap();
        assert!(file.keep(vec![], Vec::new, Now::ZERO).is_err());
        assert_eq!(next.read(Now::ZERO), None);
        fs::remove_dir(path.with_extension("new")).unwrap();
    }

    #[test]
    fn times_are_those_of_the_machine() {
        let path = std::env::temp_dir().join(format!("nephila-tickets-m-{}", std::process::id()));
        let mut file = TicketFile::new(path.clone(), Boot::Machine);
        let (key, lent) = known(1, 60);
        let now = Now::from_us(5_000_000);
        file.keep(vec![(key, lent.clone())], || vec![(known(1, 60).0, lent)], now).unwrap();
        // A process whose clock is at 1 s at this moment.
        let next = TicketFile::new(path.clone(), Boot::Machine);
        let read = next.read(Now::from_us(1_000_000)).unwrap();
        let over = read[0].1.lent[0].over.us();
        // 55 s were left, and some milliseconds have passed.
        assert!((50_000_000..=56_000_000).contains(&over), "{over}");
        fs::remove_file(&path).unwrap();
    }
}
