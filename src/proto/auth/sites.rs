use super::places::AuthPlace;
use crate::base::{named_enum, shown};
use crate::limits::{CREDENTIAL_BYTES_MAX, SITES_MAX, URL_BYTES_MAX};
use std::fmt;

/// A user and what proves it. The password is not shown, wherever this is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

named_enum! {
    /// How a site may be answered.
    #[derive(Default)]
    pub enum AuthKind {
        /// Sent with the first request already: the site is known to take it.
        Basic = "basic",
        /// Only ever a digest: the password does not leave this process.
        Digest = "digest",
        /// Whatever the site asks for, once it has asked.
        #[default]
        Any = "any",
    }
}

/// Credentials for one origin, below one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its place among all sites, from 0 without gaps, so that state can be kept by site.
    pub number: usize,
    pub credentials: Credentials,
    pub kind: AuthKind,
    place: AuthPlace,
}

impl Site {
    /// A site as typed: an origin, and a path below it. An error says how to mend it, and never holds a password: a
    /// site that may have one inside is not repeated.
    pub fn new(site: &str, path: &str, kind: AuthKind, credentials: Credentials) -> Result<Site, String> {
        let mut url = site_url(site)?;
        let origin: Box<str> = url[..url::Position::BeforePath].into();
        let path = site_path(&mut url, path)?;
        for (name, text) in [("user", &credentials.user), ("password", &credentials.password)] {
            if text.len() > CREDENTIAL_BYTES_MAX {
                return Err(format!("{name} is longer than {CREDENTIAL_BYTES_MAX} bytes (shorten it)"));
            }
            if text.chars().any(char::is_control) {
                return Err(format!(
                    "{name} has a control character in it (no scheme can carry one: drop it)"
                ));
            }
        }
        if credentials.user.contains(':') && kind != AuthKind::Digest {
            return Err("user has a colon, which basic cannot carry (set scheme = \"digest\")".to_string());
        }
        Ok(Site { number: 0, credentials, kind, place: AuthPlace { origin, path } })
    }

    pub fn origin(&self) -> &str {
        self.place.origin()
    }

    pub fn place(&self) -> &AuthPlace {
        &self.place
    }
}

/// Every site that we have credentials for. A look-up compares the whole origin, so that credentials cannot get
/// to another scheme, host or port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// By origin; in one origin the longest path first.
    sites: Vec<Site>,
}

impl Sites {
    /// All sites, in the order that they are written in; an error tells which one of them it is about, from 0.
    pub fn new(mut sites: Vec<Site>) -> Result<Sites, (usize, String)> {
        if sites.len() > SITES_MAX {
            return Err((SITES_MAX, format!("at most {SITES_MAX} entries are read (drop some)")));
        }
        for (at, site) in sites.iter().enumerate() {
            let same = |other: &Site| other.place == site.place;
            if let Some(first) = sites[..at].iter().position(same) {
                let (path, first) = (shown(&site.place.path, 100), first + 1);
                return Err((
                    at,
                    format!(
                        "{} with path {path} is entry {first} already (drop one, or give it another path)",
                        site.origin()
                    ),
                ));
            }
        }
        sites.sort_by(|Site { place: a, .. }, Site { place: b, .. }| {
            a.origin.cmp(&b.origin).then(b.path.len().cmp(&a.path.len()))
        });
        for (number, site) in sites.iter_mut().enumerate() {
            site.number = number;
        }
        Ok(Sites { sites })
    }

    /// The site that a request belongs to: `origin` as it begins the normal form of a URL, `target` the path and
    /// query that follow. Of several paths of one origin the longest wins.
    pub fn of(&self, origin: &str, target: &str) -> Option<&Site> {
        let from = self.sites.partition_point(|site| site.origin() < origin);
        let mut ours = self.sites[from..].iter().take_while(|site| site.origin() == origin);
        ours.find(|site| site.place.covers(target))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    /// One line on passwords that others on the way can read. That is allowed, as it is how some intranets are,
    /// but not unsaid.
    pub fn notice(&self) -> Option<String> {
        let readable: Vec<&str> = self
            .sites
            .iter()
            .filter(|site| site.kind != AuthKind::Digest && site.origin().starts_with("http://"))
            .map(Site::origin)
            .collect();
        let more = match readable.len().saturating_sub(NOTICE_SITES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!readable.is_empty()).then(|| {
            format!(
                "auth: basic over plain http can be read on the way: {}{more} (https, or scheme = \"digest\", prevents it)",
                readable[..readable.len().min(NOTICE_SITES)].join(", ")
            )
        })
    }
}

/// Sites named in a notice; the rest is counted.
const NOTICE_SITES: usize = 3;

/// A site as typed: an origin and nothing else.
fn site_url(text: &str) -> Result<url::Url, String> {
    if text.contains('@') {
        return Err("site must not hold a user or password (give them as user and password)".to_string());
    }
    let wrong = || {
        format!("site must be like \"https://example.org\" or \"http://host:8080\", not {}", shown(text, 100))
    };
    let url = url::Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(wrong)?;
    if url.query().is_some() || url.fragment().is_some() || text.len() > URL_BYTES_MAX {
        return Err(wrong());
    }
    if url.path() != "/" {
        return Err(format!(
            "site must end after its host and port (give path = \"{}\" beside it)",
            shown(url.path(), 100)
        ));
    }
    Ok(url)
}

/// A path as typed, in the normal form that paths of URLs have.
fn site_path(url: &mut url::Url, text: &str) -> Result<Box<str>, String> {
    let plain = text.starts_with('/') && !text.contains(['?', '#']) && !text.chars().any(char::is_control);
    if !plain || text.len() > URL_BYTES_MAX {
        return Err(format!(
            "path must begin with a slash and have no query, like \"/private/\", not {}",
            shown(text, 100)
        ));
    }
    url.set_path(text);
    Ok(url.path().into())
}
