use super::config::Config;
use super::kept::texts;
use super::reference::live_of;
use super::section::Live;
use crate::base::{SortedSet, rfc3339};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// What becomes of a process that runs when its settings are read again.
#[derive(Debug)]
pub struct Change {
    /// What it goes by from now on: what it went by before, with what was taken.
    pub config: Config,
    pub taken: Vec<Changed>,
    /// What holds after a restart only.
    pub waiting: Vec<Changed>,
}

/// A setting that was said anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// `section.name`.
    pub key: String,
    /// As a file would have them; `None` if it was or is unset, or is nothing to be shown.
    pub old: Option<String>,
    pub new: Option<String>,
}

/// Credentials are told apart, and never shown.
const AUTH: &str = "auth";

impl Change {
    /// Between what a process was told, and what it would be told now. `running` is what it goes by, and `takes` says
    /// whether it can take a change of a setting at all.
    pub fn new(running: &Config, told: &Config, wanted: &Config, takes: impl Fn(&str) -> bool) -> Change {
        let (old, new) = (texts(told), texts(wanted));
        let keys: SortedSet<&String> = old.keys().chain(new.keys()).collect();
        let keys = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
        let changed = keys.map(|key| Changed {
            key: key.clone(),
            old: old.get(key).cloned(),
            new: new.get(key).cloned(),
        });
        let is_live = |changed: &Changed| live_of(&changed.key) != Live::Restart && takes(&changed.key);
        let (mut taken, mut waiting): (Vec<Changed>, Vec<Changed>) = changed.partition(is_live);
        if told.auth != wanted.auth {
            waiting.push(Changed { key: AUTH.to_string(), old: None, new: None });
        }
        loop {
            let mut config = running.clone();
            taken.iter().for_each(|changed| config.adopt(&changed.key, wanted));
            // What does not go together without something that needs a restart waits for it.
            let faults = config.faults();
            let at_fault = |changed: &Changed| faults.iter().any(|fault| fault.keys.contains(&changed.key));
            let (wait, go): (Vec<Changed>, Vec<Changed>) = taken.into_iter().partition(at_fault);
            taken = go;
            if wait.is_empty() {
                return Change { config, taken, waiting };
            }
            waiting.extend(wait);
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.taken.is_empty() && self.waiting.is_empty()
    }

    /// Notes what was taken in the log of a data directory: it is on disk when this returns, or nothing of it is.
    pub fn write_down(&self, directory: &Path, who: &str, reason: &str, unix_ms: u64) -> io::Result<()> {
        let mut lines = Vec::new();
        for Changed { key, old, new } in &self.taken {
            let (time, old, new) = (rfc3339(unix_ms), old.as_deref(), new.as_deref());
            serde_json::to_writer(&mut lines, &Line { time, who, key, old, new, reason })?;
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        let path = directory.join(SETTINGS_LOG);
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let before = file.metadata()?.len();
        let written = file.write_all(&lines).and_then(|()| file.sync_data());
        written.inspect_err(|_| drop(file.set_len(before)))?;
        std::fs::File::open(directory)?.sync_all()
    }
}

/// Every change that a crawl took while it ran.
const SETTINGS_LOG: &str = "settings.log";

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    who: &'a str,
    key: &'a str,
    old: Option<&'a str>,
    new: Option<&'a str>,
    reason: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("c.toml")).unwrap()
    }

    fn keys(changed: &[Changed]) -> Vec<&str> {
        changed.iter().map(|changed| changed.key.as_str()).collect()
    }

    #[test]
    fn what_can_change_is_taken_and_the_rest_waits() {
        let told = config("[url_server]\nreq_host_per_sec = 1\nqueue_len = 10\n");
        let mut running = told.clone();
        // As the machine had it.
        running.spider.fetches_max = 7;
        let wanted =
            config("[url_server]\nreq_host_per_sec = 5\nqueue_len = 20\n[spider]\ntimeout_req = \"30s\"\n");
        let change = Change::new(&running, &told, &wanted, |_| true);
        assert_eq!(keys(&change.taken), ["spider.timeout_req", "url_server.req_host_per_sec"]);
        assert_eq!(keys(&change.waiting), ["url_server.queue_len"]);
        assert_eq!(
            (change.taken[1].old.as_deref(), change.taken[1].new.as_deref()),
            (Some("1.0"), Some("5.0"))
        );
        let config = &change.config;
        assert_eq!((config.url_server.req_host_per_sec.0, config.url_server.queue_len), (5.0, 10));
        assert_eq!((config.spider.fetches_max, config.spider.timeout_req.0), (7, 30_000));
        assert!(Change::new(&running, &told, &told, |_| true).is_nothing());
        // A process that takes none.
        let change = Change::new(&running, &told, &wanted, |_| false);
        assert_eq!((change.taken.len(), change.waiting.len()), (0, 3));
    }

    #[test]
    fn what_needs_a_restart_to_be_possible_waits_for_it() {
        let told = config("");
        let wanted = config(
            "[spider]\nmax_doc_size = \"64MiB\"\nkeep_alive = \"1s\"\n[store]\nsegment_bytes = \"128MiB\"\n",
        );
        assert!(wanted.faults().is_empty());
        let change = Change::new(&told, &told, &wanted, |_| true);
        assert_eq!(keys(&change.taken), ["spider.keep_alive"]);
        assert_eq!(keys(&change.waiting), ["store.segment_bytes", "spider.max_doc_size"]);
        assert!(change.config.faults().is_empty());
    }

    #[test]
    fn credentials_need_a_restart_and_are_not_shown() {
        let auth = |password: &str| {
            config(&format!("[[auth]]\nsite = \"https://a.test\"\nuser = \"u\"\npassword = \"{password}\"\n"))
        };
        let (told, wanted) = (auth("hunter2"), auth("hunter3"));
        let change = Change::new(&told, &told, &wanted, |_| true);
        assert_eq!(change.waiting, [Changed { key: "auth".to_string(), old: None, new: None }]);
        assert!(!format!("{:?} {:?}", change.taken, change.waiting).contains("hunter"));
    }
}
