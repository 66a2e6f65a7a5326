use hashbrown::HashMap;
use memchr::memrchr;
use rapidhash::fast::GlobalState;
use std::sync::LazyLock;

/// Its licence stands in its first lines.
static LIST: &str = include_str!("public_suffixes.txt");
/// Read when the first host is asked about: in less than a millisecond.
static SUFFIXES: LazyLock<PublicSuffixes> = LazyLock::new(|| PublicSuffixes::read(LIST));

/// The part of a host that somebody registered: a public suffix and the label before it. None of a suffix itself. A dot
/// at the end of the host is left out.
pub(super) fn registered(host: &str) -> Option<&str> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let before = SUFFIXES.suffix_at(name).checked_sub(1)?;
    let at = memrchr(b'.', &name.as_bytes()[..before]).map_or(0, |dot| dot + 1);
    (at < before).then(|| &name[at..])
}

/// The names below which anybody may register: every end of a rule by its text, and what the list says of it.
struct PublicSuffixes(HashMap<&'static str, Said, GlobalState>);

/// What the list says of a name.
#[derive(Clone, Copy, Default)]
struct Said {
    is_suffix: bool,
    /// Every name right below it is a suffix (`*.name`) ...
    all_below: bool,
    /// ... but for this one (`!name`).
    is_exception: bool,
    /// Longer rules end with it.
    has_longer: bool,
}

impl PublicSuffixes {
    fn read(list: &'static str) -> PublicSuffixes {
        let mut names: HashMap<&'static str, Said, GlobalState> = HashMap::default();
        for rule in list.lines().filter(|line| !line.starts_with("//")) {
            let mut name = rule.trim_start_matches(['!', '*']).trim_start_matches('.');
            let said = names.entry(name).or_default();
            match rule.as_bytes().first() {
                Some(b'*') => said.all_below = true,
                Some(b'!') => said.is_exception = true,
                _ => said.is_suffix = true,
            }
            while let Some((_, end)) = name.split_once('.') {
                names.entry(end).or_default().has_longer = true;
                name = end;
            }
        }
        PublicSuffixes(names)
    }

    /// Where the suffix of a name begins: that of the longest rule, or its last label where there is none.
    fn suffix_at(&self, name: &str) -> usize {
        let mut end = name.len();
        let mut suffix = None;
        let mut all_here = false;
        loop {
            let dot = memrchr(b'.', &name.as_bytes()[..end]);
            let at = dot.map_or(0, |dot| dot + 1);
            let said = self.0.get(&name[at..]).copied().unwrap_or_default();
            if said.is_exception {
                return (end + 1).min(name.len());
            }
            if said.is_suffix || all_here || suffix.is_none() {
                suffix = Some(at);
            }
            all_here = said.all_below;
            match dot.filter(|_| said.has_longer || said.all_below) {
                Some(dot) => end = dot,
                None => return suffix.unwrap_or(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_registered_is_a_suffix_and_the_label_before_it() {
        for (host, domain) in [
            ("com", None),
            ("example.com", Some("example.com")),
            ("a.b.example.com", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("www.example.com.", Some("example.com")),
            // A name below which there is no rule.
            ("localhost", None),
            ("example.example", Some("example.example")),
            ("b.example.example", Some("example.example")),
            // Rules of several labels.
            ("uk.com", None),
            ("a.b.example.uk.com", Some("example.uk.com")),
            ("co.uk", None),
            ("www.example.co.uk", Some("example.co.uk")),
            ("c.kobe.jp", None),
            ("b.c.kobe.jp", Some("b.c.kobe.jp")),
            ("a.b.c.kobe.jp", Some("b.c.kobe.jp")),
            ("city.kobe.jp", Some("city.kobe.jp")),
            ("www.city.kobe.jp", Some("city.kobe.jp")),
            ("kobe.jp", Some("kobe.jp")),
            ("test.ck", None),
            ("b.test.ck", Some("b.test.ck")),
            ("www.ck", Some("www.ck")),
            ("www.www.ck", Some("www.ck")),
            ("k12.ak.us", None),
            ("www.test.k12.ak.us", Some("test.k12.ak.us")),
            // A name between two rules is none itself.
            ("s3.amazonaws.com", None),
            ("bucket.s3.amazonaws.com", Some("bucket.s3.amazonaws.com")),
            ("amazonaws.com", Some("amazonaws.com")),
            // In ASCII, as hosts are in a URL.
            ("xn--85x722f.com.cn", Some("xn--85x722f.com.cn")),
            ("www.xn--85x722f.xn--55qx5d.cn", Some("xn--85x722f.xn--55qx5d.cn")),
            ("xn--55qx5d.cn", None),
            ("shishi.xn--fiqs8s", Some("shishi.xn--fiqs8s")),
            // No label before the suffix.
            ("", None),
            (".", None),
            (".com", None),
            ("a..com", None),
        ] {
            assert_eq!(registered(host), domain, "{host}");
        }
    }

    #[test]
    fn every_rule_of_the_list_is_its_own_suffix() {
        let mut rules = 0;
        for rule in LIST.lines().filter(|line| !line.starts_with("//")) {
            rules += 1;
            match rule.strip_prefix('!') {
                Some(exception) => assert_eq!(registered(exception), Some(exception), "{rule}"),
                None => {
                    let suffix = rule.replace('*', "any-label-at-all");
                    assert_eq!(registered(&suffix), None, "{rule}");
                    let name = format!("in-no-rule.{suffix}");
                    assert_eq!(registered(&format!("www.{name}")), Some(&name[..]), "{rule}");
                }
            }
        }
        assert!(rules > 10_000);
    }
}
