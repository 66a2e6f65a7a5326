use super::super::epoch::DomainBy;
use super::super::partner_domain::{By, DatabaseError, MapRow, PartnerDomain, ServerId};
use super::desk::{MoveCommit, MoveDesk, QueueEntry};
use super::handover::Handover;
use super::transition::{Transition, arrived, held, is_closing, transition};
use crate::limits::MASTER_OVERLAP_S;
use crate::proto::lines::{Handed, MasterWord};
use crate::proto::reflog::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

/// Domains that move, and what they wait for.
#[derive(Default)]
pub struct Moves {
    /// Rows of the table that this master does not go by yet.
    waiting: BTreeMap<Box<str>, MapRow>,
    /// Why some of them have to wait, told once.
    troubles: BTreeMap<Box<str>, Trouble>,
    /// Domains that their server has been told to close.
    closing: BTreeSet<Box<str>>,
    /// What nodes handed over, by link.
    handed: BTreeMap<(u64, Box<str>), Handover>,
    /// Closed at their node, and not answered.
    closed: Vec<Closed>,
    draining: BTreeSet<ServerId>,
    /// Where the last look for forgotten handovers ended.
    looked_at: Option<Box<str>>,
    news: Vec<MoveNews>,
}

/// A node says that nothing of a domain is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub link: u64,
    pub server: ServerId,
    pub domain: Box<str>,
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug)]
pub struct MoveOrder<'a> {
    pub domain: &'a str,
    pub to: ServerId,
    /// The node that has it is gone for good, and is not waited for.
    pub force: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveNews {
    /// To be said to the node: what the domain brings along is durable.
    Fenced {
        link: u64,
        server: ServerId,
        domain: Box<str>,
    },
    Closing {
        domain: Box<str>,
        at: ServerId,
        to: ServerId,
    },
    Moved {
        domain: Box<str>,
        to: ServerId,
    },
    /// Nothing of the domain is sent.
    Held {
        domain: Box<str>,
        why: Trouble,
    },
    /// Lines of a handover that were too many.
    LeftOut {
        domain: Box<str>,
        lines: u64,
    },
}

/// Why a row of the table cannot be gone by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It names a server that is not configured.
    NoServer(ServerId),
    /// It gives the domain to another server, and no handover says that the one before has closed it.
    NoHandover(ServerId),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NoServer(ServerId::STRANGER) => write!(f, "its row names what can be no server"),
            Trouble::NoServer(server) => {
                write!(f, "its row names server {}, which is not configured", server.0)
            }
            Trouble::NoHandover(server) => write!(
                f,
                "its row was given to server {} by hand; `nephila master map move --force` says that no other has it",
                server.0
            ),
        }
    }
}

#[derive(Debug)]
pub enum MoveError {
    /// It cannot be done, with the mend.
    Refused(String),
    Database(DatabaseError),
    Disk(io::Error),
}

impl From<DatabaseError> for MoveError {
    fn from(error: DatabaseError) -> MoveError {
        MoveError::Database(error)
    }
}

impl From<io::Error> for MoveError {
    fn from(error: io::Error) -> MoveError {
        MoveError::Disk(error)
    }
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveError::Refused(why) => f.write_str(why),
            MoveError::Database(error) => error.fmt(f),
            MoveError::Disk(error) => error.fmt(f),
        }
    }
}

/// Handovers that are looked for in a step: they are found only after a master was killed.
const LOOKS_MAX: usize = 8;
/// Domains of a drained server that move at once.
const DRAINED_AT_ONCE: usize = 256;
const CLOSED_MAX: usize = 65_536;

type Table<'a> = Option<&'a mut (dyn PartnerDomain + 'static)>;

impl Moves {
    /// Goes on with what the map of a master says.
    pub fn new(desk: &dyn MoveDesk) -> Moves {
        let mut moves = Moves::default();
        desk.fenced(&mut |row| {
            if is_closing(&row) {
                moves.closing.insert(row.domain);
            }
        });
        moves
    }

    /// What has happened since this was last asked.
    pub fn news(&mut self) -> Vec<MoveNews> {
        std::mem::take(&mut self.news)
    }

    /// Domains that move, and those whose rows make trouble.
    pub fn closing(&self) -> impl Iterator<Item = &str> {
        self.closing.iter().map(|domain| &**domain)
    }

    pub fn troubles(&self) -> impl Iterator<Item = (&str, Trouble)> {
        self.troubles.iter().map(|(domain, trouble)| (&**domain, *trouble))
    }

    pub fn is_draining(&self, server: ServerId) -> bool {
        self.draining.contains(&server)
    }

    /// Whether there is a server that the domains of this one can go to: if not, why it cannot be drained.
    pub fn may_drain(&self, server: ServerId, desk: &mut dyn MoveDesk) -> Result<(), MoveError> {
        let number = server.0;
        let why = if !desk.knows(server) {
            format!("server {number} is not configured")
        } else if self.draining.contains(&server) {
            return Ok(());
        } else if desk.place("", &|other| other == server || self.draining.contains(&other)).is_none() {
            format!(
                "server {number} is the last that takes domains: its own could go nowhere (add another [[server]] first)"
            )
        } else {
            return Ok(());
        };
        Err(MoveError::Refused(why))
    }

    /// Moves every domain of a server away, a few at a time; no new one may be given to it.
    pub fn drain(&mut self, server: ServerId) {
        self.draining.insert(server);
    }

    /// A line of what a closed domain brings along. Two nodes may have closed the same one, at different times: what
    /// each hands over is its own.
    pub fn hand(&mut self, link: u64, domain: &str, handed: Handed<'_>) {
        self.handed.entry((link, domain.into())).or_default().push(handed);
    }

    /// The same, as lines of `URL …` and `NICE …`.
    pub fn hand_lines(&mut self, link: u64, domain: &str, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some(line) = line.strip_prefix(b"URL ") {
                self.hand(link, domain, Handed::Url(line));
            } else if let Some(line) = line.strip_prefix(b"NICE ") {
                self.hand(link, domain, Handed::Nice(line));
            }
        }
    }

    /// That was all of it; it is answered with [`MoveNews::Fenced`] when it is durable.
    pub fn closed(&mut self, closed: Closed) {
        let Moves { closed: all, handed, .. } = self;
        all.retain(|before| {
            let is_said_again = (before.server, &before.domain) == (closed.server, &closed.domain);
            if is_said_again && before.link != closed.link {
                handed.remove(&(before.link, before.domain.clone()));
            }
            !is_said_again
        });
        if self.closed.len() < CLOSED_MAX {
            self.closed.push(closed);
        }
    }

    /// A node that dials again sends everything again.
    pub fn link_gone(&mut self, link: u64) {
        self.handed.retain(|(of, _), _| *of != link);
        self.closed.retain(|closed| closed.link != link);
    }

    /// Starts a move. The domain is held from now on; the rest is done in steps.
    pub fn order(
        &mut self,
        order: MoveOrder<'_>,
        desk: &mut dyn MoveDesk,
        mut table: Table<'_>,
    ) -> Result<(), MoveError> {
        self.begin(order, desk, table.as_deref_mut())?;
        self.apply(desk, table)
    }

    fn begin(
        &mut self,
        order: MoveOrder<'_>,
        desk: &dyn MoveDesk,
        table: Table<'_>,
    ) -> Result<(), MoveError> {
        let MoveOrder { domain, to, force } = order;
        let refused = |why: String| Err(MoveError::Refused(why));
        let Some(row) = self.waiting.get(domain).cloned().or_else(|| desk.row(domain)) else {
            return refused(format!("{domain} is in no row of the map"));
        };
        if !desk.knows(to) {
            return refused(format!("server {} is not configured", to.0));
        }
        if self.draining.contains(&to) || desk.drains(to) {
            return refused(format!("server {} is drained, and takes no domains (move it to another)", to.0));
        }
        if !force {
            match row.moving_to {
                Some(already) if already == to && row.server != to => return Ok(()),
                Some(already) if is_closing(&row) => {
                    return refused(format!(
                        "{domain} moves to server {} and waits for server {} to close it; if that is gone for good, --force",
                        already.0, row.server.0
                    ));
                }
                _ if self.troubles.contains_key(domain) => {
                    return refused(format!("{domain} is held: {}", self.troubles[domain]));
                }
                _ if row.server == to => return Ok(()),
                _ => {}
            }
        }
        let next = match force {
            true => MapRow {
                server: to,
                moving_to: None,
                since_s: desk.now_s(),
                fence: forced_handover(&row) + 1,
                by: By::Person,
                ..row.clone()
            },
            false => MapRow { moving_to: Some(to), fence: row.fence + 1, by: By::Person, ..row.clone() },
        };
        if let Some(table) = table {
            if force {
                table.keep_handover(domain, forced_handover(&row), b"")?;
            }
            if !table.change(&next, row.fence)? {
                return refused(format!("{domain} was changed by somebody else just now: look at it again"));
            }
        }
        self.waiting.insert(domain.into(), next);
        Ok(())
    }

    /// Does what can be done now.
    pub fn step(&mut self, desk: &mut dyn MoveDesk, mut table: Table<'_>) -> Result<(), MoveError> {
        if let Some(table) = table.as_deref_mut() {
            let rows = table.changes()?;
            self.take(rows, desk);
        }
        self.apply(desk, table.as_deref_mut())?;
        if let Some(table) = table.as_deref_mut() {
            self.look(desk, table)?;
        }
        let mut failed = Ok(());
        for closed in std::mem::take(&mut self.closed) {
            match failed.is_ok().then(|| self.close(&closed, desk, table.as_deref_mut())) {
                Some(Ok(true)) => continue,
                Some(Err(error)) => failed = Err(error),
                Some(Ok(false)) | None => {}
            }
            let is_answered = self.news.iter().any(
                |news| matches!(news, MoveNews::Fenced { link, domain, .. } if *link == closed.link && *domain == closed.domain),
            );
            if !is_answered {
                self.closed.push(closed);
            }
        }
        failed?;
        self.drain_some(desk, table)
    }

    /// Rows of the table that this master does not go by yet; also those that placing was told of.
    pub fn take(&mut self, rows: Vec<MapRow>, desk: &dyn MoveDesk) {
        for row in rows {
            let own = desk.row(&row.domain);
            if own.is_some_and(|own| own == row || own.fence > row.fence) {
                self.waiting.remove(&row.domain);
            } else {
                self.waiting.insert(row.domain.clone(), row);
            }
        }
    }

    /// Goes by the rows of the table, in one commit.
    fn apply(&mut self, desk: &mut dyn MoveDesk, mut table: Table<'_>) -> Result<(), MoveError> {
        let mut commit = MoveCommit::default();
        let mut news = Vec::new();
        let mut troubled = BTreeMap::new();
        for (domain, told) in &self.waiting {
            // A server that is not configured has been sent nothing.
            let own = desk.row(domain).filter(|own| desk.knows(own.server));
            let mut trouble = [Some(told.server), told.moving_to]
                .into_iter()
                .flatten()
                .find(|server| !desk.knows(*server))
                .map(Trouble::NoServer);
            if own.as_ref().is_some_and(|own| own.fence == told.fence && own.server != told.server) {
                trouble = trouble.or(Some(Trouble::NoHandover(told.server)));
            }
            let change = transition(own.as_ref(), told).unwrap_or_default();
            let mut handover = None;
            if let (None, Some(arrival), Some(table)) = (trouble, &change.arrives, table.as_deref_mut()) {
                handover = table.handover(domain, arrival.handover)?.map(Handover::from_lines);
                if handover.is_none() && arrival.is_needed {
                    trouble = Some(Trouble::NoHandover(told.server));
                }
            }
            match trouble {
                Some(why) => {
                    let hold = held(own.as_ref().unwrap_or(&MapRow { fence: 0, ..told.clone() }));
                    // A domain whose server has been told to close it is held as it is.
                    if own.as_ref().is_none_or(|own| own.moving_to.is_none()) {
                        commit.rows.push(hold);
                    }
                    if self.troubles.get(domain) != Some(&why) {
                        news.push(MoveNews::Held { domain: domain.clone(), why });
                    }
                    troubled.insert(domain.clone(), why);
                }
                None => {
                    write_entries(&change, told, handover.as_ref(), true, desk, &mut commit)?;
                    news.extend(said(&change, told));
                    commit.rows.push(told.clone());
                }
            }
        }
        if !commit.is_empty() {
            desk.commit(&commit)?;
        }
        self.waiting.retain(|domain, _| troubled.contains_key(domain));
        self.troubles = troubled;
        commit.rows.iter().for_each(|row| self.note(row));
        self.news.extend(news);
        Ok(())
    }

    /// Goes by a row that this master has made itself, without a table.
    fn go_by(
        &mut self,
        next: &MapRow,
        handover: Option<Handover>,
        resend: bool,
        desk: &mut dyn MoveDesk,
    ) -> Result<(), MoveError> {
        let own = desk.row(&next.domain);
        let Some(change) = transition(own.as_ref(), next) else { return Ok(()) };
        let mut commit = MoveCommit::default();
        write_entries(&change, next, handover.as_ref(), resend, desk, &mut commit)?;
        commit.rows.push(next.clone());
        desk.commit(&commit)?;
        self.note(next);
        self.news.extend(said(&change, next));
        Ok(())
    }

    fn note(&mut self, row: &MapRow) {
        match is_closing(row) {
            true => self.closing.insert(row.domain.clone()),
            false => self.closing.remove(&row.domain),
        };
    }

    /// A node has closed a domain. `false` if it cannot be answered yet.
    fn close(
        &mut self,
        closed: &Closed,
        desk: &mut dyn MoveDesk,
        table: Table<'_>,
    ) -> Result<bool, MoveError> {
        let Closed { link, server, domain } = closed;
        let key = (*link, domain.clone());
        if self.waiting.contains_key(domain) {
            return Ok(false);
        }
        let Some(row) = desk.row(domain) else {
            // Nothing is known of it; what it brings along waits for its row.
            let is_nothing = self.handed.get(&key).is_none_or(Handover::is_empty);
            if is_nothing {
                self.fenced(closed);
            }
            return Ok(is_nothing);
        };
        let to = row.moving_to.filter(|_| is_closing(&row));
        match to {
            Some(to) if row.server == *server => {
                let mut handover = self.handed.get(&key).cloned().unwrap_or_default();
                handover.set_mark(desk.mark(*server));
                let next = arrives(&row, to, desk.now_s());
                let left_out = handover.left_out();
                match table {
                    Some(table) => {
                        // A part of it is kept already: the rest goes to where the domain is, as soon as it is there.
                        if table.handover(domain, row.fence)?.is_some() {
                            return Ok(false);
                        }
                        table.keep_handover(domain, row.fence, handover.lines())?;
                        self.fenced(closed);
                        // If this is not heard, any master finds the handover and does it.
                        let _ = table.change(&next, row.fence)?;
                    }
                    None => {
                        self.go_by(&next, Some(handover), false, desk)?;
                        self.fenced(closed);
                    }
                }
                if left_out > 0 {
                    self.news.push(MoveNews::LeftOut { domain: domain.clone(), lines: left_out });
                }
                Ok(true)
            }
            // It moves on from another server, and has not come to rest.
            Some(_) => Ok(false),
            None if row.moving_to.is_some() => Ok(false),
            // A CLOSE of long ago, read again at another master: what was taken from the domain goes to where it is.
            None => {
                let handover = self.handed.get(&key).cloned().unwrap_or_default();
                if row.server == *server || !handover.is_empty() {
                    let mut commit = MoveCommit::default();
                    open(&handover, &row, desk.by(), &mut commit);
                    desk.commit(&commit)?;
                }
                self.fenced(closed);
                Ok(true)
            }
        }
    }

    fn fenced(&mut self, closed: &Closed) {
        self.handed.remove(&(closed.link, closed.domain.clone()));
        let Closed { link, server, domain } = closed.clone();
        self.news.push(MoveNews::Fenced { link, server, domain });
    }

    /// A master that was killed between the handover and the row: whoever finds it goes on.
    fn look(&mut self, desk: &dyn MoveDesk, table: &mut dyn PartnerDomain) -> Result<(), MoveError> {
        let last = self.looked_at.take();
        let rest = self.closing.iter().filter(|domain| last.as_ref().is_none_or(|last| *domain > last));
        let some: Vec<Box<str>> = rest.take(LOOKS_MAX).cloned().collect();
        self.looked_at = some.last().filter(|_| some.len() == LOOKS_MAX).cloned();
        for domain in some {
            let Some(row) = desk.row(&domain).filter(is_closing) else { continue };
            let Some(to) = row.moving_to else { continue };
            if table.handover(&domain, row.fence)?.is_some() {
                let next = arrives(&row, to, desk.now_s());
                table.change(&next, row.fence)?;
            }
        }
        Ok(())
    }

    fn drain_some(&mut self, desk: &mut dyn MoveDesk, mut table: Table<'_>) -> Result<(), MoveError> {
        for server in self.draining.clone() {
            let under_way = self.closing.len();
            for domain in desk.domains_of(server, DRAINED_AT_ONCE.saturating_sub(under_way)) {
                let draining = self.draining.clone();
                let Some(to) = desk.place(&domain, &|other| draining.contains(&other)) else { return Ok(()) };
                let order = MoveOrder { domain: &domain, to, force: false };
                match self.begin(order, desk, table.as_deref_mut()) {
                    Err(MoveError::Refused(_)) | Ok(()) => {}
                    failed => return failed,
                }
            }
        }
        self.apply(desk, table)
    }
}

/// A row whose domain has come to where it moves.
fn arrives(row: &MapRow, to: ServerId, since_s: u32) -> MapRow {
    MapRow { server: to, moving_to: None, since_s, fence: row.fence + 1, ..row.clone() }
}

/// The fence under which an empty handover is kept for a server that will never answer.
fn forced_handover(row: &MapRow) -> u32 {
    if is_closing(row) { row.fence } else { row.fence + 1 }
}

fn said(change: &Transition, row: &MapRow) -> Option<MoveNews> {
    let domain = row.domain.clone();
    match (is_closing(row), row.moving_to, &change.arrives) {
        (true, Some(to), _) => Some(MoveNews::Closing { domain, at: row.server, to }),
        (false, _, Some(_)) => Some(MoveNews::Moved { domain, to: row.server }),
        _ => None,
    }
}

/// The entries that a change of rows calls for, in their order.
fn write_entries(
    change: &Transition,
    told: &MapRow,
    handover: Option<&Handover>,
    resend: bool,
    desk: &dyn MoveDesk,
    commit: &mut MoveCommit,
) -> io::Result<()> {
    if let Some((server, fence)) = change.leaves {
        entry(server, MasterWord::Close { domain: &told.domain, fence }, commit);
    }
    if let Some(arrival) = &change.arrives {
        open(handover.unwrap_or(&Handover::default()), told, desk.by(), commit);
        if let Some(from) = arrival.lines_at.filter(|_| resend) {
            let mark = handover.and_then(Handover::mark);
            let since = mark.map(|mark| Stamp::from_s(mark.s().saturating_sub(MASTER_OVERLAP_S)));
            let entries = &mut commit.entries;
            desk.lines_of(from, &told.domain, since, &mut |line| {
                entries.push(QueueEntry { server: told.server, line: line.to_vec() });
            })?;
        }
    }
    if let Some(server) = change.closes {
        entry(server, MasterWord::Close { domain: &told.domain, fence: told.fence }, commit);
    }
    Ok(())
}

/// NICE, OPEN, URLs.
fn open(handover: &Handover, row: &MapRow, by: DomainBy, commit: &mut MoveCommit) {
    for line in handover.nice() {
        entry(row.server, MasterWord::Nice { domain: &row.domain, line }, commit);
    }
    entry(row.server, MasterWord::Open { domain: &row.domain, fence: arrived(row) }, commit);
    for line in handover.urls(&row.domain, by) {
        entry(row.server, MasterWord::Line(line), commit);
    }
}

fn entry(server: ServerId, word: MasterWord<'_>, commit: &mut MoveCommit) {
    let mut line = Vec::new();
    // What does not go into a line was no line of ours.
    if word.write(&mut line).is_ok() {
        line.pop();
        commit.entries.push(QueueEntry { server, line });
    }
}
