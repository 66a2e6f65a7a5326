use super::index::is_pending;
use super::shared::{DataArg, Failure, Standing, counted, now_ms, sized, tell, with_age};
use crate::base::{SortedMap, fingerprint, rfc3339, shown};
use crate::doc_index::{DocState, Row};
use crate::engine::{CrawlRules, index_folder};
use rapidhash::fast::RapidHashSet;
use serde::Serialize;
use std::ops::ControlFlow;

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
    /// Of other nodes: known here, and for them to fetch.
    foreign: u64,
    /// The reasons that are told apart are bounded.
    excluded_reasons: SortedMap<String, u64>,
    hosts: u64,
    kinds: SortedMap<&'static str, u64>,
    error_results: SortedMap<&'static str, u64>,
    ledger_bytes: u64,
    documents_bytes: u64,
    seen_bytes: u64,
    bytes_per_url: f64,
    /// How probable it is that two of the URLs share a fingerprint, so that one of them is never fetched.
    collision_odds: f64,
    rules: Option<CrawlRules>,
}

pub(super) fn stat(data: &DataArg, json: bool) -> Result<(), Failure> {
    let owned = data.view_of_pending()?;
    let view = &owned.view;
    let now_s = now_ms() / 1_000;
    let (mut counted, mut hosts, mut next_due_s) = (Counted::default(), RapidHashSet::default(), u32::MAX);
    view.each(|doc_id, discovered, row| {
        counted.known += 1;
        *counted.kinds.entry(discovered.origin.provenance.kind.name()).or_default() += 1;
        hosts.insert(fingerprint(origin_of(&discovered.url).as_bytes()));
        let Standing::Here(row) = owned.standing(&discovered.url, row) else {
            counted.foreign += 1;
            return ControlFlow::Continue(());
        };
        next_due_s = next_due_s.min(counted.count(row.as_ref(), now_s));
        if let Some(row) = row.filter(|row| row.state == DocState::Excluded) {
            let note = view.note(doc_id, &row).unwrap_or_default();
            counted.count_excluded(note.reason.as_deref().unwrap_or("unknown"));
        }
        ControlFlow::Continue(())
    })?;
    counted.hosts = hosts.len() as u64;
    counted.next_due_at = (next_due_s < u32::MAX).then(|| rfc3339(u64::from(next_due_s) * 1_000));
    [counted.ledger_bytes, counted.documents_bytes, counted.seen_bytes] = view.disk_bytes();
    let bytes = counted.ledger_bytes + counted.documents_bytes + counted.seen_bytes;
    counted.bytes_per_url = bytes as f64 / counted.known.max(1) as f64;
    counted.collision_odds = collision_odds(counted.known);
    counted.rules = CrawlRules::read(&index_folder(&data.path))?;
    tell(&counted, json, Counted::text)
}

/// Scheme and authority of a URL in normal form.
pub(super) fn origin_of(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..].find('/').map_or(url.len(), |at| authority + at);
    &url[..path]
}

/// The probability that two of this many fingerprints of 64 bits are equal.
fn collision_odds(urls: u64) -> f64 {
    let pairs = urls as f64 * (urls.saturating_sub(1)) as f64 / 2.0;
    -(-pairs / 2f64.powi(64)).exp_m1()
}

/// Reasons told apart.
const REASONS_MAX: usize = 20;

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
            DocState::Excluded => {}
            DocState::Pending | DocState::HandedOut => {}
        }
        self.waiting += u64::from(row.due_s > 0);
        if row.due_s > 0 { row.due_s } else { u32::MAX }
    }

    fn count_excluded(&mut self, reason: &str) {
        self.excluded += 1;
        let is_one_more =
            self.excluded_reasons.len() < REASONS_MAX || self.excluded_reasons.contains_key(reason);
        let reason = if is_one_more { reason } else { "other reasons" };
        *self.excluded_reasons.entry(reason.to_string()).or_default() += 1;
    }

    fn text(&self) -> String {
        let Self { known, hosts, pending, waiting, success, errors, excluded, bytes_per_url, .. } = self;
        let due =
            self.next_due_at.as_ref().map_or(String::new(), |at| format!(", the next at {}", with_age(at)));
        let mut text = format!(
            "known      {} of {}\n\
             pending    {pending} to fetch; {waiting} wait until they are due{due}\n\
             success    {success}\n\
             errors     {errors}\n",
            counted(*known, "URL"),
            counted(*hosts, "host")
        );
        for (name, count) in &self.error_results {
            text += &format!("  {name:<18} {count}\n");
        }
        if self.foreign > 0 {
            text += &format!("others'    {}: other nodes of the cluster fetch them\n", self.foreign);
        }
        let kinds: Vec<String> = self.kinds.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let [ledger, documents, seen] = [self.ledger_bytes, self.documents_bytes, self.seen_bytes].map(sized);
        text += &format!("excluded   {excluded}\n");
        for (reason, count) in &self.excluded_reasons {
            text += &format!("  {count:<8} {}\n", shown(reason, 200));
        }
        text += &format!(
            "kinds      {}\n\
             on disk    ledger {ledger}, documents {documents}, seen {seen}: {bytes_per_url:.1} bytes a URL\n\
             odds       {:.1e} that two of them share a fingerprint\n",
            kinds.join(", "),
            self.collision_odds
        );
        if let Some(rules) = &self.rules {
            let depth = if rules.depth == u16::MAX { "any".to_string() } else { rules.depth.to_string() };
            let (allow, deny) = (rules.doc_index.allow.texts().len(), rules.doc_index.deny.texts().len());
            let (scope, agent) = (rules.scope.name(), shown(&rules.user_agent, 200));
            text +=
                &format!("rules      scope {scope}, depth {depth}, {allow} allow, {deny} deny, as {agent}\n");
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
