use std::fmt;

/// Where credentials are for: one origin, below one path. It says nothing of the credentials themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuthPlace {
    /// Scheme, host and port in normal form, as they begin a URL; a default port is not written.
    pub(super) origin: Box<str>,
    /// Begins with a slash; in normal form.
    pub(super) path: Box<str>,
}

impl AuthPlace {
    /// A place as it is shown: an origin, with a path unless it is all of it.
    pub fn parse(text: &str) -> Option<AuthPlace> {
        let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_place = is_plain && url.query().is_none() && url.fragment().is_none();
        is_place
            .then(|| AuthPlace { origin: url[..url::Position::BeforePath].into(), path: url.path().into() })
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether a path of its origin, with or without a query, is its path or lies below it. `/private` is not the
    /// beginning of `/privateer`.
    pub(super) fn covers(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        path.strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/'))
    }
}

impl fmt::Display for AuthPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if &*self.path == "/" { "" } else { &self.path };
        write!(f, "{}{path}", self.origin)
    }
}

/// Places that there were credentials for once and are none now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingAuth {
    missing: Vec<AuthPlace>,
    given: Vec<AuthPlace>,
}

impl MissingAuth {
    /// Out of all that are known, those that are not among the given.
    pub fn new(
        known: impl IntoIterator<Item = AuthPlace>,
        given: impl IntoIterator<Item = AuthPlace>,
    ) -> MissingAuth {
        let given: Vec<AuthPlace> = given.into_iter().collect();
        let missing = known.into_iter().filter(|place| !given.contains(place)).collect();
        MissingAuth { missing, given }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &AuthPlace> {
        self.missing.iter()
    }

    /// The place whose credentials a request lacks: `origin` as it begins the normal form of a URL, `target` the path and
    /// query that follow. As with [`super::Sites::of`], the longest path says whose request it is.
    pub fn of(&self, origin: &str, target: &str) -> Option<&AuthPlace> {
        let longest = |places: &'_ [AuthPlace]| {
            let ours = places.iter().enumerate();
            let ours = ours.filter(|(_, place)| &*place.origin == origin && place.covers(target));
            ours.max_by_key(|(_, place)| place.path.len()).map(|(at, place)| (at, place.path.len()))
        };
        let (at, bytes) = longest(&self.missing)?;
        let is_given = longest(&self.given).is_some_and(|(_, given)| given > bytes);
        (!is_given).then(|| &self.missing[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(texts: &[&str]) -> Vec<AuthPlace> {
        texts.iter().map(|text| AuthPlace::parse(text).unwrap_or_else(|| panic!("{text}"))).collect()
    }

    #[test]
    fn a_place_comes_back_as_it_is_shown() {
        for (text, shown) in [
            ("https://a.test", "https://a.test"),
            ("https://A.test:443/", "https://a.test"),
            ("http://a.test:8080/private/", "http://a.test:8080/private/"),
            ("http://a.test/gr\u{fc}n", "http://a.test/gr%C3%BCn"),
        ] {
            let place = AuthPlace::parse(text).unwrap();
            assert_eq!(place.to_string(), shown);
            assert_eq!(AuthPlace::parse(shown), Some(place));
        }
        for text in
            ["", "a.test", "ftp://a.test", "http://u:p@a.test/", "http://u@a.test/", "http://a.test/?q"]
        {
            assert_eq!(AuthPlace::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_path_says_whose_a_request_is() {
        let known = places(&["http://h", "http://h/a", "http://h/a/b/", "http://g/x/"]);
        let missing = MissingAuth::new(known, places(&["http://h/a", "http://i"]));
        assert_eq!(missing.iter().len(), 3);
        for (origin, target, place) in [
            ("http://h", "/", Some("http://h")),
            ("http://h", "/ab", Some("http://h")),
            ("http://h", "/a", None),
            ("http://h", "/a/x?y", None),
            ("http://h", "/a/b/x", Some("http://h/a/b/")),
            ("http://g", "/", None),
            ("http://g", "/x/?q", Some("http://g/x/")),
            ("https://h", "/", None),
            ("http://i", "/", None),
        ] {
            let found = missing.of(origin, target).map(ToString::to_string);
            assert_eq!(found.as_deref(), place, "{origin}{target}");
        }
        assert!(MissingAuth::default().of("http://h", "/").is_none());
    }
}
