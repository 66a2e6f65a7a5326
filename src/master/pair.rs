use crate::base::{fingerprint, shown};
use crate::storage;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// What two masters must have in common if nothing but a hash says who gets a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairTerms {
    /// `least_loaded` or `rendezvous`.
    pub assign: String,
    /// `domain` or `host`.
    pub by: String,
    /// Each server with everything that the hash goes by, like `7 capacity 1 active`.
    pub servers: Vec<String>,
}

/// The terms that a directory was used with.
const FILE: &str = "pair";
const MAGIC: &str = "nephila pair 1";
const TEXT_BYTES_MAX: u64 = 4 << 20;

impl PairTerms {
    /// The same for two masters that agree, whatever the order of their lists.
    pub fn signature(&self) -> u64 {
        fingerprint(self.text().as_bytes())
    }

    fn text(&self) -> String {
        let mut servers: Vec<&String> = self.servers.iter().collect();
        servers.sort_unstable();
        let mut text = format!("{MAGIC}\nassign {}\nby {}\n", self.assign, self.by);
        for server in servers {
            let _ = writeln!(text, "server {server}");
        }
        text
    }

    /// Domains that were placed by one list of servers and those placed by another could be with two nodes, one at each
    /// master: a directory of one of two masters keeps the terms that it began with. The error is one line with the mend.
    pub fn keep(&self, data: &Path) -> io::Result<Result<(), String>> {
        let path = data.join(FILE);
        let text = self.text();
        let before = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > TEXT_BYTES_MAX => String::new(),
            Ok(_) => String::from_utf8_lossy(&std::fs::read(&path)?).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                storage::replace(&path, text.as_bytes())?;
                return Ok(Ok(()));
            }
            Err(error) => return Err(error),
        };
        if before == text {
            return Ok(Ok(()));
        }
        let lacks = |one: &str, other: &str| -> Vec<String> {
            let missing = one.lines().filter(|line| !other.lines().any(|there| there == *line));
            missing.map(|line| shown(line, 80)).take(8).collect()
        };
        Ok(Err(format!(
            "{} says that this master has dealt domains by other terms (then: {}; now: {}), and the other master could have \
             given the same domains to other nodes: set them back, or set database for both, or stop both, bring their maps \
             together (map export, map import) and remove the file pair of both",
            path.display(),
            or_nothing(&lacks(&before, &text)),
            or_nothing(&lacks(&text, &before)),
        )))
    }
}

fn or_nothing(lines: &[String]) -> String {
    if lines.is_empty() { "nothing more".to_string() } else { lines.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(servers: &[&str]) -> PairTerms {
        let servers = servers.iter().map(ToString::to_string).collect();
        PairTerms { assign: "rendezvous".to_string(), by: "domain".to_string(), servers }
    }

    #[test]
    fn terms_are_the_same_in_any_order_and_differ_in_every_part() {
        let ours = terms(&["1 capacity 1 active", "2 capacity 1 active"]);
        assert_eq!(ours.signature(), terms(&["2 capacity 1 active", "1 capacity 1 active"]).signature());
        for other in [
            terms(&["1 capacity 1 active"]),
            terms(&["1 capacity 1 active", "2 capacity 2 active"]),
            terms(&["1 capacity 1 active", "2 capacity 1 down"]),
            PairTerms { by: "host".to_string(), ..ours.clone() },
            PairTerms { assign: "least_loaded".to_string(), ..ours.clone() },
        ] {
            assert_ne!(ours.signature(), other.signature(), "{other:?}");
        }
    }

    #[test]
    fn the_servers_of_a_directory_do_not_change_silently() {
        let data = std::env::temp_dir().join(format!("nephila-pair-{}", std::process::id()));
        std::fs::create_dir_all(&data).unwrap();
        let ours = terms(&["1 capacity 1 active", "2 capacity 1 active"]);
        for _ in 0..2 {
            assert_eq!(ours.keep(&data).unwrap(), Ok(()));
        }
        let other = terms(&["1 capacity 1 active", "3 capacity 1 active"]);
        let why = other.keep(&data).unwrap().unwrap_err();
        assert!(why.contains("then: server 2 capacity 1 active; now: server 3 capacity 1 active"), "{why}");
        assert_eq!(why.lines().count(), 1);
        assert_eq!(ours.keep(&data).unwrap(), Ok(()), "a refusal changes nothing");
        std::fs::remove_dir_all(data).unwrap();
    }
}
