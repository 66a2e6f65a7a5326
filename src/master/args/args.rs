use super::evidence::{Evidence, PROBE_EVERY, Verdict};
use super::journal::Journal;
use super::pairs::Pairs;
use super::query::{NAME_BYTES_MAX, PARTS_MAX, PATH_BYTES_MAX, Query, folded, name_of};
use crate::master::epoch::UrlCanon;
use crate::proto::robots::{CLEAN_PARAMS_MAX, CleanParam};
use crate::proto::url::{Canon, CrawlUrl};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Verdicts over parameters, and what they rest on.
#[derive(Default)]
pub struct Args {
    configured: Canon,
    declared: HashMap<Box<str>, Vec<Declared>>,
    domains: HashMap<Box<str>, DomainArgs>,
    /// Rows of evidence in all domains.
    rows: usize,
    /// Whatever may change a URL: rules declared, words said, verdicts learned to drop.
    deciding: usize,
    pairs: Option<Pairs>,
    journal: Option<Journal>,
    /// Lines and rows that are not in the journal yet.
    unwritten: Vec<String>,
    changed: Vec<(Box<str>, u64)>,
}

struct Declared {
    text: Box<str>,
    rule: CleanParam,
}

#[derive(Default)]
struct DomainArgs {
    /// By persons.
    said: Vec<(Box<str>, Verdict)>,
    /// By path and name.
    rows: HashMap<u64, ArgRow>,
    /// Rows that say so.
    drops: usize,
}

struct ArgRow {
    path: Box<str>,
    arg: Box<str>,
    evidence: Evidence,
    is_changed: bool,
}

/// What stands for a parameter of a domain, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgLine {
    /// With digits folded; `*` for all.
    pub path: String,
    pub arg: String,
    pub verdict: Verdict,
    /// `person` or `learned`.
    pub by: &'static str,
    pub pairs: u32,
    pub values: usize,
    pub same: u32,
    pub differ: u32,
}

/// A rule that a site declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeclaredLine {
    pub origin: String,
    pub rule: String,
}

const ORIGINS_MAX: usize = 100_000;
const DOMAINS_MAX: usize = 100_000;
/// 40 MB; in tests it is soon reached.
const ROWS_MAX: usize = if cfg!(test) { 2_000 } else { 200_000 };
const ROWS_PER_DOMAIN_MAX: usize = 256;
const ORIGIN_BYTES_MAX: usize = 300;
/// Names between dots that are looked up.
const LABELS_MAX: usize = 8;
/// Evidence with no more pairs goes first when there is no room.
const PAIRS_FEW: u32 = 2;

/// They page through lists, or hold what was searched for: never dropped by learning alone.
const NEVER_LEARNED: [&str; 5] = ["page", "p", "offset", "q", "query"];

impl Args {
    /// With what a directory of a master knows; it is made there if there is nothing.
    pub fn open(folder: &Path, configured: Canon) -> io::Result<Args> {
        let mut args = Args { configured, journal: Some(Journal::open(folder)?), ..Args::default() };
        args.flush()?;
        Ok(args)
    }

    /// As a directory has it, to look at.
    pub fn view(folder: &Path) -> io::Result<Args> {
        let mut args = Args::default();
        if let Some(mut journal) = Journal::view(folder)? {
            journal.read(|line| args.restore(line))?;
        }
        Ok(args)
    }

    /// Writes what is not written yet, durably, and takes in what commands have written.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(mut journal) = self.journal.take() else {
            self.unwritten.clear();
            self.changed.clear();
            return Ok(());
        };
        let mut lines = self.unwritten.clone();
        lines.extend(self.changed.iter().filter_map(|(domain, key)| {
            let row = self.domains.get(domain)?.rows.get(key)?;
            Some(row.line(domain))
        }));
        let mut written = journal.append(&lines, |line| self.restore(line));
        if written.is_ok() {
            self.unwritten.clear();
            for (domain, key) in std::mem::take(&mut self.changed) {
                if let Some(row) = self.domains.get_mut(&domain).and_then(|known| known.rows.get_mut(&key)) {
                    row.is_changed = false;
                }
            }
            if journal.is_long() {
                written = journal.compact(self.all_lines());
            }
        }
        self.journal = Some(journal);
        written
    }

    /// A page with a query was fetched: by which URL, with which status, and a digest of its text.
    pub fn saw_page(&mut self, url: &str, status: u16, digest: u64, canonical: Option<&str>) {
        if status != 200 || !url.bytes().all(|octet| octet.is_ascii_graphic()) {
            return;
        }
        let (Ok(known), Some(query)) = (CrawlUrl::from_normal(url), Query::of(url)) else { return };
        let parts: Vec<&str> = query.parts().collect();
        let path = folded(query.path);
        // What stands alone is what the page is asked for by.
        if parts.len() < 2 || parts.len() > PARTS_MAX || path.len() > PATH_BYTES_MAX {
            return;
        }
        let domain = known.registrable_domain();
        let is_probe = query.is_one_in(PROBE_EVERY);
        for (place, part) in parts.iter().enumerate() {
            let name = name_of(part);
            let is_twice = parts.iter().filter(|other| name_of(other) == name).count() > 1;
            if is_twice || !is_learned(name) {
                continue;
            }
            let value = xxh3_64(part.as_bytes()) as u32;
            let pair =
                self.pairs.get_or_insert_default().see(key_without(&query, place, name), value, digest);
            let key = row_key(&path, name);
            if let Some(pair) = pair {
                self.count(domain, key, (&path, name), (pair.is_same, &pair.values), is_probe);
            }
            if canonical.is_some_and(|canonical| leaves_out(&query, &parts, name, canonical)) {
                self.count(domain, key, (&path, name), (true, &[value]), is_probe);
            }
        }
    }

    /// A robots.txt declares a rule. `false` if it is none, or there is no room.
    pub fn clean_param(&mut self, origin: &str, rule: &str) -> bool {
        let text = rule.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_origin = host.is_some_and(|host| {
            !host.is_empty() && host.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'/')
        });
        let Some(rule) = CleanParam::parse(&text).filter(|_| is_origin && origin.len() <= ORIGIN_BYTES_MAX)
        else {
            return false;
        };
        let is_full = self.declared.len() >= ORIGINS_MAX && !self.declared.contains_key(origin);
        if is_full {
            return false;
        }
        let rules = self.declared.entry(origin.into()).or_default();
        if rules.iter().any(|known| *known.text == *text) {
            return true;
        }
        if rules.len() >= CLEAN_PARAMS_MAX {
            return false;
        }
        self.unwritten.push(format!("C\t{origin}\t{text}"));
        rules.push(Declared { text: text.into(), rule });
        self.deciding += 1;
        true
    }

    /// A person says what becomes of a parameter of a domain and of what lies in it; `unknown` takes the word back.
    pub fn set(&mut self, domain: &str, arg: &str, verdict: Verdict) -> Result<(), &'static str> {
        let is_text = |text: &str, max: usize, not: &[u8]| {
            (1..=max).contains(&text.len())
                && text.bytes().all(|octet| octet.is_ascii_graphic() && !not.contains(&octet))
        };
        if !is_text(domain, 253, b"/?#:@&=") {
            return Err("not a domain (as it stands in a URL, like example.org)");
        }
        if !is_text(arg, NAME_BYTES_MAX, b"&=#") {
            return Err("not the name of a parameter (as it stands in a URL)");
        }
        self.say(domain, arg, verdict).ok_or("there is no room for more")?;
        self.unwritten.push(format!("S\t{domain}\t{arg}\t{}", verdict.name()));
        Ok(())
    }

    /// What makes the document: the URL without the parameters that are dropped.
    pub fn identity<'a>(&self, url: &'a str) -> Cow<'a, str> {
        let mut scratch = String::new();
        match self.apply(url, &mut scratch) {
            same if std::ptr::eq(same, url) => Cow::Borrowed(url),
            changed => Cow::Owned(changed.to_string()),
        }
    }

    /// What is known of the parameters of a domain and what lies in it, those with most pairs first.
    pub fn lines(&self, domain: &str) -> Vec<ArgLine> {
        let mut lines = Vec::new();
        for (name, known) in &self.domains {
            if !lies_in(name, domain) {
                continue;
            }
            lines.extend(known.said.iter().map(|(arg, verdict)| ArgLine {
                path: "*".to_string(),
                arg: arg.to_string(),
                verdict: *verdict,
                by: "person",
                pairs: 0,
                values: 0,
                same: 0,
                differ: 0,
            }));
            lines.extend(known.rows.values().map(ArgRow::shown));
        }
        lines.sort_by(|a, b| {
            b.by.cmp(a.by).then(b.pairs.cmp(&a.pairs)).then_with(|| (&a.path, &a.arg).cmp(&(&b.path, &b.arg)))
        });
        lines
    }

    /// What the sites of a domain declare.
    pub fn declared(&self, domain: &str) -> Vec<DeclaredLine> {
        let host = |origin: &str| {
            let host = origin.split_once("://").map_or(origin, |(_, host)| host);
            host.split_once(':').map_or(host, |(host, _)| host).to_string()
        };
        let of_domain = self.declared.iter().filter(|(origin, _)| lies_in(&host(origin), domain));
        let mut lines: Vec<DeclaredLine> = of_domain
            .flat_map(|(origin, rules)| {
                rules
                    .iter()
                    .map(|known| DeclaredLine { origin: origin.to_string(), rule: known.text.to_string() })
            })
            .collect();
        lines.sort_by(|a, b| (&a.origin, &a.rule).cmp(&(&b.origin, &b.rule)));
        lines
    }

    fn count(
        &mut self,
        domain: &str,
        key: u64,
        (path, arg): (&str, &str),
        (is_same, values): (bool, &[u32]),
        is_probe: bool,
    ) {
        let Some(row) = self.row(domain, key, path, arg) else { return };
        // While it is dropped, pages of one document come with any value: only those sent in full are evidence.
        if row.evidence.verdict == Verdict::Drop && !is_probe {
            return;
        }
        let before = row.evidence.verdict;
        row.evidence.count(is_same, values);
        let after = row.evidence.verdict;
        if !std::mem::replace(&mut row.is_changed, true) {
            self.changed.push((domain.into(), key));
        }
        self.note_drop(domain, before, after);
    }

    fn note_drop(&mut self, domain: &str, before: Verdict, after: Verdict) {
        let Some(known) = self.domains.get_mut(domain) else { return };
        if before != Verdict::Drop && after == Verdict::Drop {
            known.drops += 1;
            self.deciding += 1;
        } else if before == Verdict::Drop && after != Verdict::Drop {
            known.drops -= 1;
            self.deciding -= 1;
        }
    }

    /// The row of a parameter, made if there is room.
    fn row(&mut self, domain: &str, key: u64, path: &str, arg: &str) -> Option<&mut ArgRow> {
        let is_known = self.domains.get(domain).is_some_and(|known| known.rows.contains_key(&key));
        if !is_known {
            if self.rows >= ROWS_MAX {
                self.sweep();
            }
            let has_room = match self.domains.get(domain) {
                Some(known) => known.rows.len() < ROWS_PER_DOMAIN_MAX,
                None => self.domains.len() < DOMAINS_MAX,
            };
            if !has_room || self.rows >= ROWS_MAX {
                return None;
            }
            self.rows += 1;
            let row = ArgRow {
                path: path.into(),
                arg: arg.into(),
                evidence: Evidence::default(),
                is_changed: false,
            };
            self.domains.entry(domain.into()).or_default().rows.insert(key, row);
        }
        self.domains.get_mut(domain)?.rows.get_mut(&key)
    }

    /// Makes room: evidence of which little is known goes, and all that decides nothing if that is not enough.
    fn sweep(&mut self) {
        for pairs_max in [PAIRS_FEW, u32::MAX] {
            for known in self.domains.values_mut() {
                known.rows.retain(|_, row| {
                    row.evidence.verdict != Verdict::Unknown || row.evidence.pairs > pairs_max
                });
            }
            self.domains.retain(|_, known| !known.rows.is_empty() || !known.said.is_empty());
            self.rows = self.domains.values().map(|known| known.rows.len()).sum();
            if self.rows < ROWS_MAX * 3 / 4 {
                return;
            }
        }
    }

    fn say(&mut self, domain: &str, arg: &str, verdict: Verdict) -> Option<()> {
        if self.domains.len() >= DOMAINS_MAX && !self.domains.contains_key(domain) {
            return None;
        }
        let said = &mut self.domains.entry(domain.into()).or_default().said;
        let before = said.len();
        said.retain(|(known, _)| **known != *arg);
        if verdict != Verdict::Unknown && said.len() < ROWS_PER_DOMAIN_MAX {
            said.push((arg.into(), verdict));
        }
        self.deciding = self.deciding + said.len() - before;
        Some(())
    }

    /// Takes a line of the journal. `false` if it is none.
    fn restore(&mut self, line: &str) -> bool {
        let fields: Vec<&str> = line.split('\t').collect();
        let verdict = |name: &str| Verdict::ALL.iter().copied().find(|verdict| verdict.name() == name);
        match fields[..] {
            ["C", origin, rule] => {
                let unwritten = self.unwritten.len();
                self.clean_param(origin, rule);
                self.unwritten.truncate(unwritten);
                true
            }
            ["S", domain, arg, said] => verdict(said).is_some_and(|said| {
                self.say(domain, arg, said);
                true
            }),
            ["E", domain, path, arg, pairs, same, differ, since, said, values] => {
                let number = |text: &str| text.parse::<u32>().ok();
                let values = values.split(',').filter(|value| !value.is_empty());
                let values: Option<Vec<u32>> =
                    values.map(|value| u32::from_str_radix(value, 16).ok()).collect();
                let (Some(pairs), Some(same), Some(differ), Some(since), Some(said), Some(values)) =
                    (number(pairs), number(same), number(differ), number(since), verdict(said), values)
                else {
                    return false;
                };
                if let Some(row) = self.row(domain, row_key(path, arg), path, arg) {
                    let before = row.evidence.verdict;
                    row.evidence = Evidence::restore([pairs, same, differ, since], said, values);
                    self.note_drop(domain, before, said);
                }
                true
            }
            _ => false,
        }
    }

    fn all_lines(&self) -> impl Iterator<Item = String> {
        let declared = self.declared.iter().flat_map(|(origin, rules)| {
            rules.iter().map(move |known| format!("C\t{origin}\t{}", known.text))
        });
        let domains = self.domains.iter().flat_map(|(domain, known)| {
            let said = known
                .said
                .iter()
                .map(move |(arg, verdict)| format!("S\t{domain}\t{arg}\t{}", verdict.name()));
            said.chain(known.rows.values().map(move |row| row.line(domain)))
        });
        declared.chain(domains)
    }
}

impl UrlCanon for Args {
    fn is_identity(&self) -> bool {
        self.deciding == 0 && self.configured.is_identity()
    }

    fn apply<'a>(&self, url: &'a str, scratch: &'a mut String) -> &'a str {
        if !self.configured.is_identity() {
            let mut first = String::new();
            let configured = self.configured.apply(url, &mut first);
            if !std::ptr::eq(configured, url) {
                return match self.without_dropped(configured, scratch) {
                    true => scratch,
                    false => {
                        scratch.clear();
                        scratch.push_str(configured);
                        scratch
                    }
                };
            }
        }
        match self.without_dropped(url, scratch) {
            true => scratch,
            false => url,
        }
    }
}

impl Args {
    /// Writes the URL without the parameters that are dropped. `false`, and nothing is written, if there are none.
    fn without_dropped(&self, url: &str, out: &mut String) -> bool {
        if self.deciding == 0 {
            return false;
        }
        let Some(query) = Query::of(url) else { return false };
        let declared = self.declared.get(query.origin).map_or(&[][..], Vec::as_slice);
        let mut domains = [None; LABELS_MAX];
        let mut count = 0;
        for domain in query.domains().take(LABELS_MAX) {
            if let Some(known) =
                self.domains.get(domain).filter(|known| !known.said.is_empty() || known.drops > 0)
            {
                domains[count] = Some(known);
                count += 1;
            }
        }
        let domains = || domains[..count].iter().flatten();
        if count == 0 && declared.is_empty() {
            return false;
        }
        let holding: Vec<&CleanParam> =
            declared.iter().map(|known| &known.rule).filter(|rule| rule.holds_for(query.path)).collect();
        let is_alone = !query.query.contains('&');
        let learns = !is_alone && domains().any(|known| known.drops > 0) && !query.is_one_in(PROBE_EVERY);
        let path = if learns { folded(query.path) } else { String::new() };
        let is_dropped = |part: &str| {
            let name = name_of(part);
            let said = domains().flat_map(|known| &known.said).find(|(arg, _)| **arg == *name);
            match said {
                Some((_, verdict)) => *verdict == Verdict::Drop,
                None if name.is_empty() => false,
                None => {
                    holding.iter().any(|rule| rule.names().any(|dropped| dropped == name))
                        || (learns
                            && is_learned(name)
                            && domains().any(|known| known.has_dropped(&path, name)))
                }
            }
        };
        if !query.parts().any(is_dropped) {
            return false;
        }
        out.clear();
        out.push_str(query.base);
        let mut mark = '?';
        for part in query.parts().filter(|part| !is_dropped(part)) {
            out.push(mark);
            out.push_str(part);
            mark = '&';
        }
        true
    }
}

impl DomainArgs {
    fn has_dropped(&self, path: &str, arg: &str) -> bool {
        let row = self.rows.get(&row_key(path, arg));
        row.is_some_and(|row| row.evidence.verdict == Verdict::Drop && *row.path == *path && *row.arg == *arg)
    }
}

impl ArgRow {
    fn line(&self, domain: &str) -> String {
        let ArgRow { path, arg, evidence, .. } = self;
        let Evidence { pairs, same, differ, differ_since, verdict, .. } = evidence;
        let values: Vec<String> = evidence.value_hashes().iter().map(|value| format!("{value:x}")).collect();
        format!(
            "E\t{domain}\t{path}\t{arg}\t{pairs}\t{same}\t{differ}\t{differ_since}\t{}\t{}",
            verdict.name(),
            values.join(",")
        )
    }

    fn shown(&self) -> ArgLine {
        let ArgRow { path, arg, evidence, .. } = self;
        ArgLine {
            path: path.to_string(),
            arg: arg.to_string(),
            verdict: evidence.verdict,
            by: "learned",
            pairs: evidence.pairs,
            values: evidence.values(),
            same: evidence.same,
            differ: evidence.differ,
        }
    }
}

fn is_learned(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !NEVER_LEARNED.iter().any(|never| name.eq_ignore_ascii_case(never))
}

fn lies_in(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn row_key(path: &str, arg: &str) -> u64 {
    xxh3_64(format!("{path}?{arg}").as_bytes())
}

/// A number of the URL without the value of one parameter.
fn key_without(query: &Query<'_>, place: usize, name: &str) -> u64 {
    let mut text = String::with_capacity(query.url.len());
    text.push_str(query.base);
    for (at, part) in query.parts().enumerate() {
        text.push('&');
        text.push_str(if at == place { name } else { part });
        // Told apart from a parameter without a value.
        text.push(if at == place { '*' } else { '=' });
    }
    xxh3_64(text.as_bytes())
}

/// Whether the page's own word for its URL differs from it by parameters only, of which this one is missing.
fn leaves_out(query: &Query<'_>, parts: &[&str], name: &str, canonical: &str) -> bool {
    let (base, kept) = canonical.split_once('?').unwrap_or((canonical, ""));
    let mut kept = kept.split('&').filter(|part| !part.is_empty());
    base == query.base && kept.all(|part| name_of(part) != name && parts.contains(&part))
}
