use super::database::{DatabaseAccess, DatabaseUrl};
use super::section::{Value, settings};
use super::units::{Bytes, Rate, Seconds};
use crate::master::epoch::DomainBy;
use crate::master::map::{Assign, ServerState};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A week is more than any of its times.
const WEEK_S: u64 = 7 * 86_400;
/// A partition and its buffers.
const MEMORY_BYTES_MIN: u64 = 32 << 20;

/// The numbers above stand for no server.
pub const SERVER_ID_MAX: u16 = u16::MAX - 2;

settings! {
    /// The master, `nephila master run`: where logs of URLs come in, and how they are dealt to nodes.
    "[master]" MasterSettings {
        /// Where nodes dial in for their queues, like "0.0.0.0:7190".
        listen: Option<SocketAddr> = None, told once;
        /// Where lines of a reflog are taken over TCP, too; unset, only files of the spool are.
        intake: Option<SocketAddr> = None, told once;
        /// Where files are renamed in that are to be taken; unset, the folder spool of data.
        spool: Option<PathBuf> = None, told once;
        /// The master's data directory: journal, logs, map and queues.
        data: PathBuf = PathBuf::from("./nephila-master"), told once;
        /// A file of the spool that has not changed for this long is whole, for senders that cannot rename; unset, only what
        /// is renamed in or closed after writing is.
        settle: Option<Seconds> = None, in 1 to WEEK_S, told once, live now;
        /// Bytes of memory for an epoch.
        memory: Bytes = Bytes(1 << 30), in MEMORY_BYTES_MIN to u64::MAX, told once, live now;
        /// Threads that join partitions; unset, one for each core.
        workers: Option<usize> = None, in 1 to 1_024, told once;
        /// A URL is sent again when so much time has gone by since it was sent.
        resend_after: Seconds = Seconds(3_600), in 1 to WEEK_S, told once;
        /// Hits of a URL that was not sent again are kept for this long.
        keep_repeats: Seconds = Seconds(36_000), in 1 to WEEK_S, told once;
        /// An epoch begins when files come, and while rows wait to expire at least this often.
        epoch_max: Seconds = Seconds(60), in 1 to 3_600, told once, live now;
        /// Who gets a new domain: "least_loaded" the server with the least to do, "rendezvous" the one that its name falls to.
        assign: Assign = Assign::LeastLoaded, told once;
        /// What goes to one server as a whole: "domain" a registrable domain, "host" a host.
        by: DomainBy = DomainBy::Registrable, told once;
        /// The PostgreSQL database with partner_domain, like "postgres://nephila@db.example.org/nephila"; unset, the map is
        /// kept in data.
        database: Option<DatabaseUrl> = None, told once;
        /// A file whose first line is the password for the database; unset, NEPHILA_DATABASE_PASSWORD of the environment is.
        database_password_file: Option<PathBuf> = None, told once;
        /// Where the other master listens, like "10.0.0.2:7190".
        peer: Option<String> = None, told once;
        /// A node that was silent for this long gives its place to another one of its number.
        timeout_node: Seconds = Seconds(30), in 3 to 3_600, told once, live now;
        /// Bytes of a queue beyond which what is for its server waits.
        queue_bytes_max: Bytes = Bytes(64 << 30), in 1 to u64::MAX, told once, live now;
        /// Bytes of lines that cannot be sent, as their domains are not placed or their queues are full, beyond which files
        /// wait in the spool.
        held_bytes_max: Bytes = Bytes(4 << 30), in 1 to u64::MAX, told once, live now;
    }
}

settings! {
    /// A node that gets URLs from the master; an entry for each.
    "[[server]]" ServerEntry {
        /// Its number, by which map and queues name it.
        id: Option<u16> = None, live now;
        /// How much it can do, beside the others.
        capacity: Rate = Rate(1.0), in 0.001 to 1_000_000, live now;
        /// "active" gets new domains, "draining" keeps those that it has, "down" gets nothing new and is not waited for.
        state: ServerState = ServerState::Active, live now;
    }
}

impl Value for Assign {}
impl Value for DomainBy {}
impl Value for ServerState {}

/// A node that gets URLs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    pub id: u16,
    pub capacity: f64,
    pub state: ServerState,
}

impl ServerEntry {
    pub fn server(self) -> Result<Server, String> {
        let id = self.id.ok_or("id is missing (like id = 7)")?;
        if id > SERVER_ID_MAX {
            return Err(format!("id must be at most {SERVER_ID_MAX}"));
        }
        Ok(Server { id, capacity: self.capacity.0, state: self.state })
    }
}

impl From<Server> for ServerEntry {
    fn from(Server { id, capacity, state }: Server) -> ServerEntry {
        ServerEntry { id: Some(id), capacity: Rate(capacity), state }
    }
}

impl MasterSettings {
    /// Where files are renamed in.
    pub fn spool(&self) -> PathBuf {
        self.spool.clone().unwrap_or_else(|| self.data.join("spool"))
    }

    /// How to get to the database.
    pub fn database_access(&self, environment: Option<String>) -> Result<Option<DatabaseAccess>, String> {
        let file = self.database_password_file.as_deref();
        self.database.as_ref().map(|url| url.access("database", file, environment)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::config::Fault;
    use crate::config::file::{ConfigError, Reading};
    use std::path::Path;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let reading = Reading::of_text(text, Path::new("c.toml"));
        reading.verdict(reading.config.faults(), |_| false)?;
        Ok(reading.config)
    }

    fn said(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_master_as_the_manual_has_it() {
        let config = read(
            "[master]\nlisten = \"127.0.0.1:7190\"\ndata = \"/d\"\nsettle = \"5s\"\nassign = \"rendezvous\"\nby = \"host\"\npeer = \"b:7190\"\n\
             [[server]]\nid = 7\n[[server]]\nid = 8\ncapacity = 2.5\nstate = \"draining\"\n",
        )
        .unwrap();
        assert_eq!(
            (config.master.spool(), config.master.settle),
            (PathBuf::from("/d/spool"), Some(Seconds(5)))
        );
        assert_eq!((config.master.assign, config.master.by), (Assign::Rendezvous, DomainBy::Host));
        assert_eq!(
            config.servers,
            [
                Server { id: 7, capacity: 1.0, state: ServerState::Active },
                Server { id: 8, capacity: 2.5, state: ServerState::Draining }
            ]
        );
    }

    #[test]
    fn mistakes_name_the_mend() {
        for (text, expected) in [
            ("[[server]]\ncapacity = 2\n", "c.toml:1:server[1]: id is missing (like id = 7)"),
            (
                "[[server]]\nid = 7\n[[server]]\nid = 7\n",
                "c.toml:3:server[2]: server 7 is entry 1 already (give each its own id)",
            ),
            ("[[server]]\nid = 70000\n", "c.toml:2:server[1].id: must be a whole number of at most 65535"),
            ("[[server]]\nid = 65534\n", "c.toml:1:server[1]: id must be at most 65533"),
            (
                "[[server]]\nid = 7\nstate = \"up\"\n",
                "c.toml:3:server[1].state: must be \"active\", \"draining\" or \"down\"",
            ),
            (
                "[server]\n",
                "c.toml:1:server: must be a list: each entry begins with [[server]] (the setting of this name belongs below [crawl])",
            ),
            (
                "[master]\npeer = \"b:1\"\n",
                "c.toml:2:master.peer: two masters with assign = \"least_loaded\" and no database could give one domain to two servers (set database, or assign = \"rendezvous\" in both)",
            ),
            (
                "[master]\nkeep_repeats = 60\n",
                "c.toml:2:master.keep_repeats: keep_repeats (1min) must be at least resend_after (1h)",
            ),
            (
                "[master]\nspool = \"/d/\"\ndata = \"/d\"\n",
                "c.toml:2:master.spool: spool and data are one directory (give each its own)",
            ),
            (
                "[master]\ndatabase = \"mysql://x\"\n",
                "c.toml:2:master.database: must be like \"postgres://nephila@db.example.org/nephila\", or \"host=/run/postgresql user=nephila dbname=nephila\"",
            ),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
        // An entry that is wrong is one mistake: that there is no server follows from it.
        let reading = Reading::of_text("[[server]]\nid = \"x\"\n", Path::new("c.toml"));
        let follows = Fault { keys: vec!["server".to_string()], cause: "no server".to_string() };
        assert_eq!(reading.mistakes_with(vec![follows], |_| false).len(), 1);
        assert!(read("[master]\npeer = \"b:1\"\ndatabase = \"postgres://a@b/c\"\n").is_ok());
    }

    #[test]
    fn the_password_of_a_database_is_never_shown() {
        let config = read("[master]\ndatabase = \"postgres://u:hunter2@h:5432/d?x=1\"\n").unwrap();
        let told = format!("{config:?} {:?} {}", config.written(), config.master.database.as_ref().unwrap());
        assert!(!told.contains("hunter2") && told.contains("postgres://u@h:5432/d?x=1"), "{told}");
        let access = config.master.database_access(Some("other".to_string())).unwrap().unwrap();
        assert_eq!(access.0, "postgres://u:hunter2@h:5432/d?x=1");
        assert!(!format!("{access:?}").contains("hunter2"));
        for text in ["postgres://u@h/d?password=hunter2", "postgres://u:hunter2 @h", "hunter2"] {
            let said = said(&format!("[master]\ndatabase = \"{text}\"\n"));
            assert!(!said.contains("hunter2"), "{said}");
        }
        let config = read("[master]\ndatabase = \"postgres://u@h\"\n").unwrap();
        let access =
            |password: &str| config.master.database_access(Some(password.to_string())).unwrap().unwrap();
        assert_eq!(access("a&").0, "postgres://u@h?password=%61%26");
        let config = read("[master]\ndatabase = \"host=/run/postgresql dbname=d\"\n").unwrap();
        let access = config.master.database_access(Some("it's".to_string())).unwrap().unwrap();
        assert_eq!(access.0, "host=/run/postgresql dbname=d password='it\\'s'");
    }
}
