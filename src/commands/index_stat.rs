use super::Failure;
use super::index::{is_pending, now_ms, view};
use super::output::print;
use crate::base::{fingerprint, rfc3339, shown};
use crate::doc_index::{DocState, Row};
use crate::engine::{CrawlRules, index_folder};
use rapidhash::fast::RapidHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// What `index stat` counts.
#[derive(Serialize, Default)]
struct Counted {
    known: u64,
    pending: u64,
    /// For a retry, or to be looked at again.
    waiting: u64,
    next_due_at: Option<String>,
    success: u64,
    errors: u64,
    excluded: u64,
    hosts: u64,
    kinds: BTreeMap<&'static str, u64>,
    error_results: BTreeMap<&'static str, u64>,
    ledger_bytes: u64,
    documents_bytes: u64,
    seen_bytes: u64,
    bytes_per_url: f64,
    /// How probable it is that two of the URLs share a fingerprint, so that one of them is never fetched.
    collision_odds: f64,
    rules: Option<CrawlRules>,
}

pub fn stat(data: &Path, json: bool) -> Result<(), Failure> {
    let view = view(data)?;
    let now_s = now_ms() / 1_000;
    let (mut counted, mut hosts, mut next_due_s) = (Counted::default(), RapidHashSet::default(), u32::MAX);
    view.each(|_, discovered, row| {
        counted.known += 1;
        *counted.kinds.entry(discovered.origin.kind.name()).or_default() += 1;
        hosts.insert(fingerprint(origin_of(&discovered.url).as_bytes()));
        next_due_s = next_due_s.min(counted.count(row, now_s));
        ControlFlow::Continue(())
    })
    .map_err(Failure::cannot_run)?;
    counted.hosts = hosts.len() as u64;
    counted.next_due_at = (next_due_s < u32::MAX).then(|| rfc3339(u64::from(next_due_s) * 1_000));
    [counted.ledger_bytes, counted.documents_bytes, counted.seen_bytes] = view.disk_bytes();
    let bytes = counted.ledger_bytes + counted.documents_bytes + counted.seen_bytes;
    counted.bytes_per_url = bytes as f64 / counted.known.max(1) as f64;
    counted.collision_odds = collision_odds(counted.known);
    counted.rules = CrawlRules::read(&index_folder(data)).map_err(Failure::cannot_run)?;
    match json {
        true => print(&(serde_json::to_string(&counted).map_err(Failure::cannot_run)? + "\n")),
        false => print(&counted.text()),
    }
}

/// Scheme and authority of a URL in normal form.
pub fn origin_of(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..].find('/').map_or(url.len(), |at| authority + at);
    &url[..path]
}

/// Of so many fingerprints of 64 bits, that any two are equal.
fn collision_odds(urls: u64) -> f64 {
    let pairs = urls as f64 * (urls.saturating_sub(1)) as f64 / 2.0;
    -(-pairs / 2f64.powi(64)).exp_m1()
}

impl Counted {
    /// Counts a document, and says when it is due if that is to come.
    fn count(&mut self, row: Option<&Row>, now_s: u64) -> u32 {
        if is_pending(row, now_s) {
            self.pending += 1;
            return u32::MAX;
        }
        let Some(row) = row else { return u32::MAX };
        match row.state {
            DocState::Success => self.success += 1,
            DocState::Error => {
                self.errors += 1;
                let result = row.result.map_or("unknown", |result| result.name());
                *self.error_results.entry(result).or_default() += 1;
            }
            DocState::Excluded => self.excluded += 1,
            DocState::Pending | DocState::Fetching => {}
        }
        self.waiting += u64::from(row.due_s > 0);
        if row.due_s > 0 { row.due_s } else { u32::MAX }
    }

    fn text(&self) -> String {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let due = self.next_due_at.as_ref().map_or(String::new(), |at| format!(", the next at {at}"));
        let mut text = format!("known      {} URLs of {} hosts\n", self.known, self.hosts);
        text +=
            &format!("pending    {} to fetch; {} wait until they are due{due}\n", self.pending, self.waiting);
        text += &format!("success    {}\n", self.success);
        text += &format!("errors     {}\n", self.errors);
        for (name, count) in &self.error_results {
            text += &format!("  {name:<18} {count}\n");
        }
        text += &format!("excluded   {}\n", self.excluded);
        let kinds: Vec<String> = self.kinds.iter().map(|(name, count)| format!("{name} {count}")).collect();
        text += &format!("kinds      {}\n", kinds.join(", "));
        text += &format!(
            "on disk    ledger {:.1} MB, documents {:.1} MB, seen {:.1} MB: {:.1} bytes a URL\n",
            mb(self.ledger_bytes),
            mb(self.documents_bytes),
            mb(self.seen_bytes),
            self.bytes_per_url
        );
        text += &format!("odds       {:.1e} that two of them share a fingerprint\n", self.collision_odds);
        if let Some(rules) = &self.rules {
            let depth = if rules.depth == u16::MAX { "any".to_string() } else { rules.depth.to_string() };
            text += &format!(
                "rules      scope {}, depth {depth}, {} allow, {} deny, as {}\n",
                rules.scope.name(),
                rules.doc_index.allow.texts().len(),
                rules.doc_index.deny.texts().len(),
                shown(&rules.user_agent, 200)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_grow_with_the_square_of_the_urls() {
        assert_eq!((collision_odds(0), collision_odds(1)), (0.0, 0.0));
        let billion = collision_odds(1_000_000_000);
        assert!((0.026..0.028).contains(&billion), "{billion}");
        assert!((collision_odds(1_000_000) / 2.71e-8 - 1.0).abs() < 0.01);
    }

    #[test]
    fn an_origin_ends_where_the_path_begins() {
        assert_eq!(origin_of("http://a:80/b/c"), "http://a:80");
        assert_eq!(origin_of("nonsense"), "nonsense");
    }
}
