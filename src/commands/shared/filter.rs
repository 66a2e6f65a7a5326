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

    /// Whether anything is left out.
    pub fn is_set(&self) -> bool {
        let Self { host, prefix, result, since, limit: _ } = self;
        host.is_some() || prefix.is_some() || result.is_some() || since.is_some()
    }

    /// Why no record of a store may be asked for, as far as the filters themselves tell.
    pub fn why_none(&self) -> String {
        let scheme = self.prefix.as_ref().filter(|prefix| !prefix.contains("://"));
        match (self.result, scheme) {
            (Some(result), _) if !leaves_record(result) => format!(
                "no record matches: {} leaves none (nephila index pending lists what is to be fetched, nephila explain URL says why one is not)",
                result.name()
            ),
            (_, Some(prefix)) => {
                format!("no record matches: --prefix {} has no scheme, like http://", shown(prefix, 200))
            }
            _ => "no record matches".to_string(),
        }
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

/// What no spider was given has no record.
fn leaves_record(result: ResultCode) -> bool {
    !matches!(
        result,
        ResultCode::RobotsDenied
            | ResultCode::BlockedAddress
            | ResultCode::DnsFailed
            | ResultCode::BadUrl
            | ResultCode::HostSetAside
    )
}

fn read_result(text: &str) -> Result<ResultCode, String> {
    let found = ResultCode::ALL.iter().copied().find(|code| code.name() == text);
    found.ok_or_else(|| {
        let nearest = ResultCode::ALL.iter().map(|code| code.name()).min_by_key(|name| edits(text, name));
        let nearest = nearest.filter(|name| edits(text, name) <= name.len().max(text.len()) / 2);
        let hint = nearest.map_or(String::new(), |name| format!("did you mean {name}? "));
        format!("{} is no result ({hint}nephila store codes lists all)", shown(text, 60))
    })
}
