//! One URL for documents that differ by parameters nobody reads.

use crate::base::shown;
use crate::limits::{QUERY_DROPS_MAX, RULE_BYTES_MAX};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// What is taken out of a query, and how the rest is put in order, by the settings.
///
/// The normal form of a URL keeps whatever a standard does not call equivalent: an empty query (`/a?`), empty parts
/// (`?a&&b`), the order of parameters, and a host with a dot at its end. This goes further, and only when told to: with
/// any rule set, named parameters and empty parts are dropped, a query that comes out empty goes with its question mark,
/// and parameters may be sorted. The host stays as it is even then; names with a dot at their end are rare, and servers
/// do tell them apart.
#[derive(Clone, Debug, Default)]
pub struct Canon {
    /// Names that are dropped, in lower case.
    drop_names: Box<[Box<str>]>,
    /// Beginnings of names that are dropped, in lower case.
    drop_prefixes: Box<[Box<str>]>,
    sort: bool,
}

impl Canon {
    /// Of the way URLs are brought into their form, normal form included. Another version may give a URL another form.
    pub const VERSION: u16 = 1;

    pub fn new(drop: &QueryDrop, sort: bool) -> Canon {
        let (prefixes, names): (Vec<&String>, Vec<&String>) =
            drop.0.iter().partition(|name| name.ends_with('*'));
        let set = |names: Vec<&String>| {
            let mut names: Vec<Box<str>> =
                names.iter().map(|name| name.trim_end_matches('*').to_ascii_lowercase().into()).collect();
            names.sort();
            names.dedup();
            names.into_boxed_slice()
        };
        Canon { drop_names: set(names), drop_prefixes: set(prefixes), sort }
    }

    /// Whether every URL is left as it is.
    pub fn is_identity(&self) -> bool {
        !self.sort && self.drop_names.is_empty() && self.drop_prefixes.is_empty()
    }

    /// A number that tells two sets of rules apart, the same in every process: what was made by other rules can be known.
    /// The order in which names are written does not matter.
    pub fn signature(&self) -> u64 {
        let mut text = format!("{} {}", Canon::VERSION, u8::from(self.sort));
        for name in &self.drop_names {
            text.push('&');
            text.push_str(name);
        }
        for prefix in &self.drop_prefixes {
            text.push('&');
            text.push_str(prefix);
            text.push('*');
        }
        xxh3_64(text.as_bytes())
    }

    /// The form of a URL that is in normal form. Nothing is copied unless something changes.
    pub fn apply<'a>(&self, url: &'a str, scratch: &'a mut String) -> &'a str {
        if self.is_identity() {
            return url;
        }
        match memchr::memchr(b'?', url.as_bytes()) {
            Some(mark) => self.apply_to_query(url, mark, scratch),
            None => url,
        }
    }

    fn apply_to_query<'a>(&self, url: &'a str, mark: usize, scratch: &'a mut String) -> &'a str {
        let query = &url[mark + 1..];
        let mut changes = query.is_empty();
        let mut before = "";
        for part in query.split('&') {
            let name = name_of(part);
            changes |= !self.keeps(part) || (self.sort && name < before);
            before = name;
        }
        if !changes {
            return url;
        }
        scratch.clear();
        scratch.push_str(&url[..mark]);
        let kept = query.split('&').filter(|part| self.keeps(part));
        let mut add = |part: &str| {
            scratch.push(if scratch.len() == mark { '?' } else { '&' });
            scratch.push_str(part);
        };
        if self.sort {
            let mut parts: Vec<&str> = kept.collect();
            // Values of one name keep their order, which may mean something.
            parts.sort_by_key(|part| name_of(part));
            parts.into_iter().for_each(&mut add);
        } else {
            kept.for_each(&mut add);
        }
        scratch
    }

    fn keeps(&self, part: &str) -> bool {
        let name = name_of(part);
        let begins = |prefix: &str| {
            name.as_bytes()
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        !part.is_empty()
            && !self.drop_names.iter().any(|dropped| name.eq_ignore_ascii_case(dropped))
            && !self.drop_prefixes.iter().any(|prefix| begins(prefix))
    }
}

/// Names of parameters that are dropped from every URL; with a `*` at its end a name stands for all that begin so.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct QueryDrop(Vec<String>);

impl TryFrom<Vec<String>> for QueryDrop {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<QueryDrop, String> {
        if names.len() > QUERY_DROPS_MAX {
            return Err(format!("at most {QUERY_DROPS_MAX} names are read (drop some)"));
        }
        let wrong = |octet: u8| !octet.is_ascii_graphic() || matches!(octet, b'&' | b'=' | b'#' | b'*');
        let is_wrong = |name: &&String| {
            let bare = name.strip_suffix('*').unwrap_or(name);
            name.is_empty() || name.len() > RULE_BYTES_MAX || bare.bytes().any(wrong)
        };
        match names.iter().find(is_wrong) {
            Some(name) => Err(format!(
                "{:?} is no name of a parameter (as it stands in a URL, with a * at its end only)",
                shown(name, 60)
            )),
            None => Ok(QueryDrop(names)),
        }
    }
}

impl From<QueryDrop> for Vec<String> {
    fn from(names: QueryDrop) -> Vec<String> {
        names.0
    }
}

fn name_of(part: &str) -> &str {
    &part[..memchr::memchr(b'=', part.as_bytes()).unwrap_or(part.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::url::CrawlUrl;
    use proptest::prelude::*;

    fn canon(drop: &[&str], query_sort: bool) -> Canon {
        let names: Vec<String> = drop.iter().map(|name| name.to_string()).collect();
        Canon::new(&QueryDrop::try_from(names).unwrap(), query_sort)
    }

    fn applied(canon: &Canon, url: &str) -> String {
        canon.apply(url, &mut String::from("left over")).to_string()
    }

    #[test]
    fn parameters_nobody_reads_are_dropped() {
        let canon = canon(&["utm_*", "SID"], false);
        for (url, expected) in [
            ("http://h/a", "http://h/a"),
            ("http://h/a?b=1", "http://h/a?b=1"),
            ("http://h/a?sid=1", "http://h/a"),
            ("http://h/a?Sid=1&b=2&UTM_source=x&c", "http://h/a?b=2&c"),
            ("http://h/a?sid", "http://h/a"),
            ("http://h/a?sids=1&utm=2", "http://h/a?sids=1&utm=2"),
            ("http://h/a?b=sid=1&c=utm_x", "http://h/a?b=sid=1&c=utm_x"),
            ("http://h/a?z=1&a=2", "http://h/a?z=1&a=2"),
            ("http://h/a?", "http://h/a"),
            ("http://h/a?&&sid=1&", "http://h/a"),
            ("http://h/a?b&&c", "http://h/a?b&c"),
            ("http://h/a?=x&sid=1", "http://h/a?=x"),
            ("http://h/a?b?sid=1", "http://h/a?b?sid=1"),
        ] {
            assert_eq!(applied(&canon, url), expected, "{url}");
        }
        assert_eq!(applied(&self::canon(&["*"], false), "http://h/?a=1&b"), "http://h/");
    }

    #[test]
    fn parameters_are_sorted_by_name_and_stay_in_order_within_one() {
        let canon = canon(&["x"], true);
        for (url, expected) in [
            ("http://h/?b=1&a=2", "http://h/?a=2&b=1"),
            ("http://h/?b=2&a&b=1&x&a=0", "http://h/?a&a=0&b=2&b=1"),
            ("http://h/?a=1&b=2", "http://h/?a=1&b=2"),
            ("http://h/?a-b=1&a=2", "http://h/?a=2&a-b=1"),
        ] {
            assert_eq!(applied(&canon, url), expected, "{url}");
        }
    }

    #[test]
    fn without_rules_nothing_changes() {
        let canon = Canon::default();
        assert!(canon.is_identity());
        for url in ["http://h/?", "http://h/?b&&a", "http://h/a?utm_x=1"] {
            assert_eq!(applied(&canon, url), url);
        }
    }

    #[test]
    fn a_signature_is_that_of_the_rules() {
        let of = |drop: &[&str], sort| canon(drop, sort).signature();
        assert_eq!(of(&["a", "B", "c*"], true), of(&["c*", "b", "A", "a"], true));
        let all =
            [of(&[], false), of(&[], true), of(&["a"], false), of(&["a*"], false), of(&["a", "b"], false)];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
        // It goes to disk: it may change with VERSION only.
        assert_eq!(of(&["utm_*", "sid"], false), 1_097_617_393_561_322_619);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]
        #[test]
        fn a_form_is_its_own_and_still_a_url(
            drop in prop::collection::vec("[abA]{1,2}[*]?", 0..3),
            sort in any::<bool>(),
            url in "http://h/[ab]?(\\?([abA]{0,2}(=[ab=?]{0,2})?&?){0,5})?",
        ) {
            let names: Vec<&str> = drop.iter().map(String::as_str).collect();
            let canon = canon(&names, sort);
            let normal = CrawlUrl::parse(&url).unwrap();
            let once = applied(&canon, normal.as_str());
            prop_assert_eq!(&applied(&canon, &once), &once);
            let parsed = CrawlUrl::parse(&once).unwrap();
            prop_assert_eq!(parsed.as_str(), &once);
            prop_assert!(once.len() <= normal.as_str().len());
            prop_assert!(canon.is_identity() || !once.ends_with('?') || once[..once.len() - 1].contains('?'));
        }
    }
}
