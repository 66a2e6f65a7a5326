use super::times::read_since;
use crate::base::{edits, shown};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use clap::Args;

/// Which URLs of many are listed.
#[derive(Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only of this host, by its name or its origin
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only URLs that begin like this
    #[arg(long, value_name = "URL")]
    prefix: Option<String>,
    /// Only those whose last fetch ended so (nephila store codes lists all)
    #[arg(long, value_name = "RESULT", value_parser = read_result)]
    result: Option<ResultCode>,
    /// Only since then: 90s, 30min, 2h or 7d ago, a day like 2026-01-01, or a time of it in UTC
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<u64>,
    /// At most this many [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl FilterArgs {
    pub fn limit(&self) -> u64 {
        self.limit.unwrap_or(u64::MAX)
    }

    /// Whether a URL is asked for; `at_ms` is when what is listed of it happened.
    pub fn takes(&self, url: &str, result: Option<ResultCode>, at_ms: u64) -> bool {
        self.result.is_none_or(|wanted| result == Some(wanted))
            && self.since.is_none_or(|since| at_ms >= since)
            && self.prefix.as_ref().is_none_or(|prefix| url.starts_with(prefix.as_str()))
            && self.host.as_ref().is_none_or(|host| is_of_host(url, host))
    }
}

/// Whether a URL is of a host that was named: by its origin, by its authority or by its bare name.
pub(crate) fn is_of_host(url: &str, host: &str) -> bool {
    let Ok(url) = CrawlUrl::from_normal(url) else { return false };
    [url.origin(), url.authority(), url.host(), url.host_bare()].contains(&host)
}

fn read_result(text: &str) -> Result<ResultCode, String> {
    let found = ResultCode::ALL.iter().copied().find(|code| code.name() == text);
    found.ok_or_else(|| {
        let nearest = ResultCode::ALL.iter().map(|code| code.name()).min_by_key(|name| edits(text, name));
        let nearest = nearest.filter(|name| edits(text, name) <= name.len().max(2));
        let hint = nearest.map_or(String::new(), |name| format!("did you mean {name}? "));
        format!("{} is no result ({hint}nephila store codes lists all)", shown(text, 60))
    })
}
