use super::LogError;
use super::run_rules::RunRules;
use super::stamp::{push_compact, read_compact};
use std::io::Write;

/// Rules that hold on one shard from a moment on, in place of those that the run began with or that were set before.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleChange {
    /// Microseconds since 1970. What the shard decides from here on keeps to them.
    pub at_us: u64,
    pub shard: u16,
    pub rules: RunRules,
}

/// What follows the beginning that all such lines share.
const WORD: &str = "set ";

impl RuleChange {
    /// Appends the line and its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(RunRules::PREFIX.as_bytes());
        out.extend_from_slice(WORD.as_bytes());
        push_compact(out, self.at_us);
        write!(out, " #{:03}", self.shard).expect("a vector takes any text");
        self.rules.write_settings(out);
    }

    /// Reads a comment line; `None` for one that changes no rules.
    pub fn parse(line: &[u8]) -> Result<Option<RuleChange>, LogError> {
        let rest = line.strip_prefix(RunRules::PREFIX.as_bytes());
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix(WORD.as_bytes())) else { return Ok(None) };
        let rest = str::from_utf8(rest).map_err(|_| LogError::NotText)?.trim_ascii_end();
        let mut words = rest.split(' ');
        let at_us = words.next().and_then(|time| read_compact(time.as_bytes()));
        let at_us = at_us.ok_or(LogError::Setting("time"))?;
        let shard = words.next().and_then(|word| word.strip_prefix('#')?.parse().ok());
        let shard = shard.ok_or(LogError::Setting("shard"))?;
        let rules = RunRules::read_settings(words, at_us)?;
        Ok(Some(RuleChange { at_us, shard, rules }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_was_written() {
        let rules = RunRules {
            started_us: 1_800_000_000_123_456,
            req_host_per_sec: 0.25,
            req_ip_concurrent: 3,
            agent: Some("bot".into()),
            ..RunRules::default()
        };
        let change = RuleChange { at_us: rules.started_us, shard: 7, rules };
        let mut line = Vec::new();
        change.write(&mut line);
        assert!(line.starts_with(b"# nephila set 2027"), "{}", String::from_utf8_lossy(&line));
        assert_eq!(RuleChange::parse(&line), Ok(Some(change)));
        // Who does not know such lines sees a comment.
        assert_eq!(RunRules::parse(&line), Ok(None));
        let mut opens = Vec::new();
        RunRules::default().write(&mut opens);
        assert_eq!(RuleChange::parse(&opens), Ok(None));
        for (text, name) in [
            ("# nephila set x #1 req_host_per_sec=1 req_host_concurrent=1", "time"),
            ("# nephila set 20261115051026994018 1 req_host_per_sec=1 req_host_concurrent=1", "shard"),
            ("# nephila set 20261115051026994018 #1 req_host_per_sec=-1", "req_host_per_sec"),
            ("# nephila set 20261115051026994018 #1 req_host_per_sec=1", "req_host_concurrent"),
        ] {
            assert_eq!(RuleChange::parse(text.as_bytes()), Err(LogError::Setting(name)), "{text}");
        }
    }
}
