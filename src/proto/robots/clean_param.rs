//! Clean-param, an extension of Yandex': parameters that do not change a page.

use super::parse::{key_and_value, whole_lines};
use super::pattern;

/// How many rules of a file are read.
pub const CLEAN_PARAMS_MAX: usize = 128;
/// The longest rule; Yandex reads no longer ones either.
pub const CLEAN_PARAM_BYTES_MAX: usize = 500;

/// The rules of a file, as they are written, each once. They belong to no group, and end none.
pub fn clean_params(bytes: &[u8]) -> Vec<&str> {
    let mut rules: Vec<&str> = Vec::new();
    for (key, value) in
        whole_lines(bytes).split(|octet| matches!(octet, b'\r' | b'\n')).filter_map(key_and_value)
    {
        if rules.len() == CLEAN_PARAMS_MAX {
            break;
        }
        if key.eq_ignore_ascii_case(b"clean-param")
            && let Ok(rule) = str::from_utf8(value)
            && CleanParam::parse(rule).is_some()
            && !rules.contains(&rule)
        {
            rules.push(rule);
        }
    }
    rules
}

/// One rule: `ref&sid /path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanParam {
    names: Box<str>,
    /// In canonical escapes.
    pattern: Box<[u8]>,
}

impl CleanParam {
    /// Names with `&` between them, and the beginning of the paths that it holds for; without one it holds for all.
    pub fn parse(rule: &str) -> Option<CleanParam> {
        let mut words = rule.split_ascii_whitespace();
        let (names, path) = (words.next()?, words.next().unwrap_or("/"));
        let is_wrong = |octet: u8| !octet.is_ascii_graphic() || matches!(octet, b'=' | b'#' | b'?' | b'/');
        let is_name = |name: &str| !name.is_empty() && !name.bytes().any(is_wrong);
        let is_good = rule.len() <= CLEAN_PARAM_BYTES_MAX && words.next().is_none();
        if !is_good || !names.split('&').all(is_name) {
            return None;
        }
        let mut pattern = Vec::new();
        pattern::push_canonical_pattern(path.as_bytes(), &mut pattern);
        Some(CleanParam { names: names.into(), pattern: pattern.into() })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.split('&')
    }

    /// Whether it holds for a path, without its query.
    pub fn holds_for(&self, path: &str) -> bool {
        let path = pattern::canonical_path(path.as_bytes());
        match pattern::has_operators(&self.pattern) {
            true => pattern::matches(&self.pattern, &path),
            false => path.starts_with(&self.pattern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_wherever_they_stand() {
        let file = "Clean-param: sid\nUser-agent: *\nDisallow: /a\nclean-PARAM : ref&sid /path # why\r\n\
                    Clean-param:\nClean-param: a b c\nClean-param: a=b\nClean-param: &a\nClean-param: sid\n";
        assert_eq!(clean_params(file.as_bytes()), ["sid", "ref&sid /path"]);
        let many: String = (0..500).map(|number| format!("Clean-param: a{number}\n")).collect();
        assert_eq!(clean_params(many.as_bytes()).len(), CLEAN_PARAMS_MAX);
        let long = format!("Clean-param: {}\n", "a".repeat(CLEAN_PARAM_BYTES_MAX + 1));
        assert!(clean_params(long.as_bytes()).is_empty());
        assert!(clean_params(b"Clean-param: \xff\n").is_empty());
    }

    #[test]
    fn a_rule_holds_for_paths_that_begin_so() {
        let rule = CleanParam::parse("ref&sid  /forum*/show").unwrap();
        assert_eq!(rule.names().collect::<Vec<_>>(), ["ref", "sid"]);
        for (path, holds) in
            [("/forum/show.php", true), ("/forum2/a/show", true), ("/forum", false), ("/a", false)]
        {
            assert_eq!(rule.holds_for(path), holds, "{path}");
        }
        let all = CleanParam::parse("sid").unwrap();
        assert!(all.holds_for("/") && all.holds_for("/x"));
        assert!(CleanParam::parse("sid /a%7eb").unwrap().holds_for("/a~b/c"));
    }
}
