use super::LogError;
use super::stamp::{push_rfc3339, read_rfc3339};
use crate::proto::robots::product_token;
use std::io::Write;

/// The rules of niceness that a run kept, as the line that opens it tells them.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRules {
    /// Microseconds since 1970; written with milliseconds.
    pub started_us: u64,
    /// 0 = no limit.
    pub req_host_per_sec: f64,
    pub req_host_concurrent: u32,
    /// 0 = no limit.
    pub req_ip_per_sec: f64,
    pub req_ip_concurrent: u32,
    pub delay_factor: f64,
    /// Our name in robots.txt: letters, `_` and `-`. `None` if the line does not tell.
    pub agent: Option<Box<str>>,
}

impl Default for RunRules {
    /// What a crawl keeps if it is told nothing.
    fn default() -> RunRules {
        RunRules {
            started_us: 0,
            req_host_per_sec: 1.0,
            req_host_concurrent: 1,
            req_ip_per_sec: 1.0,
            req_ip_concurrent: 1,
            delay_factor: 1.0,
            agent: None,
        }
    }
}

impl RunRules {
    /// How the line begins.
    pub const PREFIX: &'static str = "# nephila ";

    /// Appends the line and its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(RunRules::PREFIX.as_bytes());
        out.extend_from_slice(concat!(env!("CARGO_PKG_VERSION"), " run ").as_bytes());
        push_rfc3339(out, self.started_us);
        self.write_settings(out);
    }

    /// Appends the rules themselves and the line end.
    pub(super) fn write_settings(&self, out: &mut Vec<u8>) {
        write!(
            out,
            " req_host_per_sec={} req_host_concurrent={} req_ip_per_sec={} req_ip_concurrent={} delay_factor={}",
            self.req_host_per_sec,
            self.req_host_concurrent,
            self.req_ip_per_sec,
            self.req_ip_concurrent,
            self.delay_factor
        )
        .expect("a vector takes any text");
        if let Some(agent) = &self.agent {
            out.extend_from_slice(b" agent=");
            out.extend_from_slice(agent.as_bytes());
        }
        out.push(b'\n');
    }

    /// The less strict of two rules, each taken by itself.
    pub fn or_less(&self, other: &RunRules) -> RunRules {
        // Without a limit, any rate is too low.
        let rate = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a.max(b) };
        RunRules {
            req_host_per_sec: rate(self.req_host_per_sec, other.req_host_per_sec),
            req_host_concurrent: self.req_host_concurrent.max(other.req_host_concurrent),
            req_ip_per_sec: rate(self.req_ip_per_sec, other.req_ip_per_sec),
            req_ip_concurrent: self.req_ip_concurrent.max(other.req_ip_concurrent),
            delay_factor: self.delay_factor.min(other.delay_factor),
            ..other.clone()
        }
    }

    /// Reads a comment line. `None` for one that does not open a run. Settings that are not known are skipped;
    /// those of the address are the host's if they are missing.
    pub fn parse(line: &[u8]) -> Result<Option<RunRules>, LogError> {
        let Some(rest) = line.strip_prefix(RunRules::PREFIX.as_bytes()) else {
            return Ok(None);
        };
        let rest = str::from_utf8(rest).map_err(|_| LogError::NotText)?.trim_ascii_end();
        let mut words = rest.split(' ');
        if words.next().is_none_or(str::is_empty) || words.next() != Some("run") {
            return Ok(None);
        }
        let started_us =
            words.next().and_then(|time| read_rfc3339(time.as_bytes())).ok_or(LogError::Setting("time"))?;
        RunRules::read_settings(words, started_us).map(Some)
    }

    /// The rules that the rest of a line tells.
    pub(super) fn read_settings<'a>(
        words: impl Iterator<Item = &'a str> + Clone,
        started_us: u64,
    ) -> Result<RunRules, LogError> {
        let setting =
            |name: &'static str| words.clone().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let rate = |name: &'static str| match setting(name).map(str::parse::<f64>) {
            Some(Ok(rate)) if rate.is_finite() && rate >= 0.0 => Ok(Some(rate)),
            None => Ok(None),
            Some(_) => Err(LogError::Setting(name)),
        };
        let count = |name: &'static str| match setting(name).map(str::parse::<u32>) {
            Some(Ok(count @ 1..)) => Ok(Some(count)),
            None => Ok(None),
            Some(_) => Err(LogError::Setting(name)),
        };
        let need = LogError::Setting;
        let req_host_per_sec = rate("req_host_per_sec")?.ok_or(need("req_host_per_sec"))?;
        let req_host_concurrent = count("req_host_concurrent")?.ok_or(need("req_host_concurrent"))?;
        let agent = setting("agent");
        if agent.is_some_and(|agent| product_token(agent) != agent) {
            return Err(LogError::Setting("agent"));
        }
        Ok(RunRules {
            started_us,
            req_host_per_sec,
            req_host_concurrent,
            req_ip_per_sec: rate("req_ip_per_sec")?.unwrap_or(req_host_per_sec),
            req_ip_concurrent: count("req_ip_concurrent")?.unwrap_or(req_host_concurrent),
            delay_factor: rate("delay_factor")?.unwrap_or(1.0),
            agent: agent.map(Box::from),
        })
    }
}
