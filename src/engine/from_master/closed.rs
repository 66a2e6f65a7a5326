use crate::storage::replace;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Domains that are with another server, and those that came from one: `master.closed` in the data directory, replaced
/// whole. The number is the fence of the last word on the domain: an older one says nothing.
///
/// ```text
///   nephila master.closed 1
///   closed example.com 3
///   leaving example.org 5 10.0.0.1:7190 4711
///   open example.net 8
///   crc32c 1f2e3d4c
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedDomains(BTreeMap<String, Moved>);

/// What became of a domain that moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moved {
    fence: u32,
    /// It came here.
    is_open: bool,
    leaving: Leaving,
}

/// Where a domain was closed and no master has confirmed what it brings along: DONE stays at these entries. Empty for
/// one that is confirmed.
pub(super) type Leaving = BTreeMap<String, u64>;

const FILE: &str = "master.closed";
const HEAD: &str = "nephila master.closed 1";

impl ClosedDomains {
    /// An empty one for a directory that never closed a domain.
    pub fn read(directory: &Path) -> Result<ClosedDomains, String> {
        let path = directory.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => ClosedDomains::parse(&text).map_err(|what| {
                format!(
                    "{} is damaged: {what} (it says which domains were moved to other servers; restore it, or remove it and move them again)",
                    path.display()
                )
            }),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(ClosedDomains::default()),
            Err(cause) => Err(format!("{}: {cause}", path.display())),
        }
    }

    /// Durable when it returns.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        replace(&directory.join(FILE), self.text().as_bytes())
    }

    /// Those that are with other servers.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Leaving)> {
        let closed = self.0.iter().filter(|(_, moved)| !moved.is_open);
        closed.map(|(domain, moved)| (domain.as_str(), &moved.leaving))
    }

    /// The last word on each domain that ever moved, and whether it came here.
    pub fn fences(&self) -> impl Iterator<Item = (&str, u32, bool)> {
        self.0.iter().map(|(domain, moved)| (domain.as_str(), moved.fence, moved.is_open))
    }

    /// Those that no master has confirmed.
    pub fn leaving(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, leaving)| !leaving.is_empty()).map(|(domain, _)| domain)
    }

    /// A master says that a domain is to be closed; what it was told before counts as done.
    pub fn close(&mut self, domain: &str, fence: u32, (master, seq): (&str, u64)) {
        let moved = self.0.entry(domain.to_string()).or_default();
        (moved.fence, moved.is_open) = (fence, false);
        moved.leaving.entry(master.to_string()).or_insert(seq);
    }

    pub fn open(&mut self, domain: &str, fence: u32) {
        self.0.insert(domain.to_string(), Moved { fence, is_open: true, leaving: Leaving::default() });
    }

    /// A master has what it brings along. False if that was not waited for.
    pub fn fenced(&mut self, domain: &str) -> bool {
        match self.0.get_mut(domain) {
            Some(moved) => !std::mem::take(&mut moved.leaving).is_empty(),
            None => false,
        }
    }

    /// How far a master may be told that all is done.
    pub fn done_max(&self, master: &str) -> u64 {
        let held = self.0.values().filter_map(|moved| moved.leaving.get(master).copied());
        held.min().unwrap_or(u64::MAX)
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (domain, Moved { fence, is_open, leaving }) in &self.0 {
            if leaving.is_empty() {
                let state = if *is_open { "open" } else { "closed" };
                let _ = writeln!(text, "{state} {domain} {fence}");
            }
            for (master, seq) in leaving {
                let _ = writeln!(text, "leaving {domain} {fence} {master} {seq}");
            }
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "crc32c {crc:08x}");
        text
    }

    fn parse(text: &[u8]) -> Result<ClosedDomains, &'static str> {
        let text = str::from_utf8(text).map_err(|_| "it is no text")?;
        let (said, crc) = text.split_at(text.rfind("crc32c ").ok_or("its end is missing")?);
        if crc != format!("crc32c {:08x}\n", crc32c::crc32c(said.as_bytes())) {
            return Err("its checksum does not match");
        }
        let mut lines = said.lines();
        if lines.next() != Some(HEAD) {
            return Err("it is another file, or of another version of nephila");
        }
        let mut closed = ClosedDomains::default();
        for line in lines {
            let unread = "a line cannot be read";
            let number = |word: &str| word.parse::<u64>().map_err(|_| unread);
            let [state, domain, fence, ref rest @ ..] = line.split(' ').collect::<Vec<_>>()[..] else {
                return Err(unread);
            };
            let moved = closed.0.entry(domain.to_string()).or_default();
            moved.fence = fence.parse().map_err(|_| unread)?;
            match (state, rest) {
                ("closed", []) => {}
                ("open", []) => moved.is_open = true,
                ("leaving", [master, seq]) => _ = moved.leaving.insert(master.to_string(), number(seq)?),
                _ => return Err(unread),
            }
        }
        Ok(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_written_and_read_and_holds_done_back_until_it_is_fenced() {
        let mut closed = ClosedDomains::default();
        closed.close("a.ru", 3, ("m:1", 10));
        closed.close("a.ru", 3, ("m:1", 30));
        closed.close("a.ru", 3, ("n:1", 4));
        closed.close("b.ru", 1, ("m:1", 20));
        assert_eq!(
            (closed.done_max("m:1"), closed.done_max("n:1"), closed.done_max("o:1")),
            (10, 4, u64::MAX)
        );
        assert_eq!(ClosedDomains::parse(closed.text().as_bytes()), Ok(closed.clone()));
        assert!(closed.fenced("a.ru") && !closed.fenced("a.ru") && !closed.fenced("c.ru"));
        assert_eq!((closed.done_max("m:1"), closed.count()), (20, 2));
        assert_eq!(closed.leaving().collect::<Vec<_>>(), ["b.ru"]);
        let text = closed.text();
        assert_eq!(ClosedDomains::parse(text.as_bytes()), Ok(closed.clone()));
        for at in 0..text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[at] ^= 0x11;
            assert!(
                ClosedDomains::parse(&flipped).is_err()
                    && ClosedDomains::parse(&text.as_bytes()[..at]).is_err()
            );
        }
        closed.open("b.ru", 2);
        assert_eq!((closed.count(), closed.done_max("m:1")), (1, u64::MAX));
        assert_eq!(ClosedDomains::parse(closed.text().as_bytes()), Ok(closed.clone()));
        assert_eq!(closed.fences().collect::<Vec<_>>(), [("a.ru", 3, false), ("b.ru", 2, true)]);
    }
}
