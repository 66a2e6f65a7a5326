use super::super::epoch::DomainBy;
use super::super::keeping::{Kept, Master};
use super::super::map::{NewDomain, Placing, Server, ServerState};
use super::super::partner_domain::{MapRow, ServerId};
use super::super::queue::QueueError;
use super::desk::{MoveCommit, MoveDesk};
use crate::proto::reflog::Stamp;
use memchr::memmem;
use std::io;

/// The directory of a master, as moves use it.
pub struct MasterDesk<'a> {
    pub master: &'a mut Master,
    pub by: DomainBy,
    pub now_s: u32,
}

impl MoveDesk for MasterDesk<'_> {
    fn row(&self, domain: &str) -> Option<MapRow> {
        self.master.map().get(domain)
    }

    fn fenced(&self, told: &mut dyn FnMut(MapRow)) {
        self.master.map().rows().filter(|row| row.moving_to.is_some()).for_each(told);
    }

    fn domains_of(&self, server: ServerId, max: usize) -> Vec<Box<str>> {
        let free = self.master.map().rows().filter(|row| row.server == server && row.moving_to.is_none());
        free.map(|row| row.domain).take(max).collect()
    }

    fn knows(&self, server: ServerId) -> bool {
        self.master.servers().iter().any(|known| known.id == server)
    }

    fn by(&self) -> DomainBy {
        self.by
    }

    fn now_s(&self) -> u32 {
        self.now_s
    }

    fn drains(&self, server: ServerId) -> bool {
        let drains = |known: &Server| known.id == server && known.state == ServerState::Draining;
        self.master.servers().iter().any(drains)
    }

    fn place(&mut self, domain: &str, not: &dyn Fn(ServerId) -> bool) -> Option<ServerId> {
        let servers: Vec<Server> = self
            .master
            .servers()
            .into_iter()
            .filter(|server| !not(server.id) && server.state == ServerState::Active)
            .collect();
        let assign = self.master.rules().assign;
        let mut placing = Placing::new(&servers, assign, self.master.map().loads(), |_| 0, self.now_s);
        placing.place(&[NewDomain { domain, urls: 1 }])?.first().copied()
    }

    fn mark(&self, server: ServerId) -> Stamp {
        let reader = self.master.reader(server);
        reader.map_or(Stamp::from_s(0), |reader| reader.believed_mark(reader.position(), self.now_s))
    }

    fn lines_of(
        &self,
        server: ServerId,
        domain: &str,
        since: Option<Stamp>,
        told: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let Some(mut reader) = self.master.reader(server) else { return Ok(()) };
        let mut seq = since.map_or(reader.position(), |since| reader.seq_since(since));
        let finder = memmem::Finder::new(domain);
        while seq < reader.next_seq() {
            let read = reader.blocks(seq, |_, lines| {
                for line in lines.split(|byte| *byte == b'\n') {
                    if finder.find(line).is_some() && self.by.is_line_of(line, domain) {
                        told(line);
                    }
                }
                true
            });
            seq = match read {
                Ok(next) => next,
                // What is lost is told of where the queue is opened.
                Err(QueueError::Damaged { next, .. }) | Err(QueueError::Gone { first: next, .. }) => next,
                Err(QueueError::Io(error)) => return Err(error),
                Err(other) => return Err(io::Error::other(other.to_string())),
            };
        }
        Ok(())
    }

    fn commit(&mut self, commit: &MoveCommit) -> io::Result<()> {
        let entries = commit.entries.iter().map(|entry| (entry.server, entry.line.clone())).collect();
        self.master.keep(&Kept { rows: commit.rows.clone(), entries, ..Kept::default() }, self.now_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::keeping::MasterRules;
    use super::super::super::partner_domain::By;
    use super::super::domain_moves::{Closed, MoveNews, MoveOrder, Moves};
    use super::*;
    use crate::proto::lines::Handed;
    use std::path::{Path, PathBuf};

    fn open(folder: &Path) -> Master {
        let rules = MasterRules { servers: vec![Server::new(1), Server::new(2)], ..MasterRules::default() };
        Master::open(folder, rules).unwrap().0
    }

    fn line(at_s: u32, url: &str) -> Vec<u8> {
        let at = Stamp::from_s(at_s).digits();
        [b"1\t5\t", &at[..], b"\t7\t", url.as_bytes(), b"\t1\t"].concat()
    }

    fn entries(master: &Master, server: u16, from: u64) -> Vec<String> {
        let mut found = Vec::new();
        let mut reader = master.reader(ServerId(server)).unwrap();
        reader
            .read(from, 100, 1 << 20, |line| found.push(String::from_utf8_lossy(line).into_owned()))
            .unwrap();
        found
    }

    #[test]
    fn a_move_outlives_the_master_and_a_node_of_the_other_one_hears_of_it() {
        let folder: PathBuf = std::env::temp_dir().join(format!("nephila-moves-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut master = open(&folder);
        let row = MapRow {
            domain: "a.ru".into(),
            server: ServerId(1),
            moving_to: None,
            page: 7,
            since_s: 5,
            by: By::Rule,
            fence: 0,
        };
        let lines =
            [line(900, "http://www.a.ru/x"), line(901, "http://b.ru/?a.ru"), line(902, "http://a.ru/y")];
        let entries_of = |server: u16| lines.iter().map(|line| (ServerId(server), line.clone())).collect();
        let kept = Kept { rows: vec![row], entries: entries_of(1), ..Kept::default() };
        master.keep(&kept, 1_000).unwrap();
        let reader = master.reader(ServerId(1)).unwrap();
        assert_eq!(reader.mark(0), Stamp::from_s(0), "lines count by their own time");

        let mut desk = MasterDesk { master: &mut master, by: DomainBy::Registrable, now_s: 2_000 };
        let mut moves = Moves::new(&desk);
        let order = MoveOrder { domain: "a.ru", to: ServerId(2), force: false };
        moves.order(order, &mut desk, None).unwrap();
        assert_eq!(entries(&master, 1, 3), ["CLOSE a.ru 1"]);
        assert!(master.map().find("a.ru").unwrap().is_fenced);
        let since = master.reader(ServerId(1)).unwrap().seq_since(Stamp::from_s(9_000));
        assert!(
            since <= 3,
            "a node that comes from the other master with a later time is told to close it: {since}"
        );
        drop(master);

        let mut master = open(&folder);
        let mut desk = MasterDesk { master: &mut master, by: DomainBy::Registrable, now_s: 3_000 };
        let mut moves = Moves::new(&desk);
        assert_eq!(moves.closing().collect::<Vec<_>>(), ["a.ru"]);
        moves.hand(4, "a.ru", Handed::Nice(b"{}"));
        moves.hand(4, "a.ru", Handed::Url(&lines[2]));
        moves.closed(Closed { link: 4, server: ServerId(1), domain: "a.ru".into() });
        moves.step(&mut desk, None).unwrap();
        let fenced = MoveNews::Fenced { link: 4, server: ServerId(1), domain: "a.ru".into() };
        assert!(moves.news().contains(&fenced));
        let handed = String::from_utf8(lines[2].clone()).unwrap();
        assert_eq!(entries(&master, 2, 0), ["NICE a.ru {}", "OPEN a.ru 2", &handed]);
        assert_eq!(master.map().get("a.ru").unwrap().since_s, 3_000, "since it is there");

        // The node of server 2 is gone for good, and has taken nothing.
        let mut desk = MasterDesk { master: &mut master, by: DomainBy::Registrable, now_s: 4_000 };
        let order = MoveOrder { domain: "a.ru", to: ServerId(1), force: true };
        moves.order(order, &mut desk, None).unwrap();
        assert_eq!(entries(&master, 1, 4), ["OPEN a.ru 4", &handed]);
        assert_eq!(master.map().get("a.ru").unwrap().since_s, 4_000);
        drop(master);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
