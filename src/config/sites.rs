use super::ConfigError;
use super::hints::nearest;
use crate::base::shown;
use crate::limits::{CREDENTIAL_BYTES_MAX, SITES_MAX, URL_BYTES_MAX};
use std::fmt;
use std::io::Read;
use std::path::Path;

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

/// How a site may be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthKind {
    /// Sent with the first request already: the site is known to take it.
    Basic,
    /// Only ever a digest: the password does not leave this process.
    Digest,
    /// Whatever the site asks for, once it has asked.
    #[default]
    Any,
}

/// `[[auth]]`: credentials for one origin, below one path.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its place among all sites, from 0 without gaps, for whoever keeps something by site.
    pub number: usize,
    pub credentials: Credentials,
    pub kind: AuthKind,
    /// Scheme, host and port in normal form, as they begin a URL; a default port is not written.
    origin: Box<str>,
    /// Begins with a slash; in normal form.
    path: Box<str>,
}

impl Site {
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether a path, with or without a query, is this site's path or lies below it. `/private` is not the
    /// beginning of `/privateer`.
    fn covers(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        path.strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/'))
    }
}

/// Every site that we have credentials for. A look-up compares the whole origin, so that credentials cannot get
/// to another scheme, host or port.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// By origin; in one origin the longest path first.
    sites: Vec<Site>,
}

impl Sites {
    /// The site that a request belongs to: `origin` as it begins the normal form of a URL, `target` the path and
    /// query that follow. Of several paths of one origin the longest wins.
    pub fn of(&self, origin: &str, target: &str) -> Option<&Site> {
        let from = self.sites.partition_point(|site| *site.origin < *origin);
        self.sites[from..].iter().take_while(|site| *site.origin == *origin).find(|site| site.covers(target))
    }

    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    pub fn len(&self) -> usize {
        self.sites.len()
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
            .filter(|site| site.kind != AuthKind::Digest && site.origin.starts_with("http://"))
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

    /// The entries of a settings file. `path` is the file, for what is said about it.
    pub(super) fn read(value: &toml::Value, path: &Path) -> Result<Sites, ConfigError> {
        let Some(entries) = value.as_array() else {
            return Err(ConfigError::Type {
                path: path.to_path_buf(),
                name: "auth".to_string(),
                expected: "a list: each entry begins with [[auth]]",
            });
        };
        let mut sites: Vec<Site> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let wrong = |cause| ConfigError::Auth { path: path.to_path_buf(), entry: at + 1, cause };
            if at == SITES_MAX {
                return Err(wrong(format!("at most {SITES_MAX} entries are read (drop some)")));
            }
            let site = Site::read(entry).map_err(wrong)?;
            let same = |other: &Site| (&other.origin, &other.path) == (&site.origin, &site.path);
            if let Some(first) = sites.iter().position(same) {
                return Err(wrong(format!(
                    "{} with path {} is entry {} already (drop one, or give it another path)",
                    site.origin,
                    shown(&site.path, 100),
                    first + 1
                )));
            }
            sites.push(site);
        }
        sites.sort_by(|a, b| a.origin.cmp(&b.origin).then(b.path.len().cmp(&a.path.len())));
        for (number, site) in sites.iter_mut().enumerate() {
            site.number = number;
        }
        Ok(Sites { sites })
    }
}

/// Sites named in a notice; the rest is counted.
const NOTICE_SITES: usize = 3;

const KEYS: [&str; 6] = ["site", "user", "password", "password_file", "scheme", "path"];

impl Site {
    /// One entry, or what is wrong with it and how to mend it. What is said never holds a password, so a site that
    /// may have one inside is not repeated.
    fn read(entry: &toml::Value) -> Result<Site, String> {
        let Some(table) = entry.as_table() else {
            return Err("must be a section (begin it with [[auth]])".to_string());
        };
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let known: Vec<String> = KEYS.iter().map(|key| (*key).to_string()).collect();
            return Err(format!("unknown setting {}{}", shown(key, 60), nearest(key, &known)));
        }
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("{key} must be a text in quotes")),
        };
        let kind = match text("scheme")? {
            None | Some("any") => AuthKind::Any,
            Some("basic") => AuthKind::Basic,
            Some("digest") => AuthKind::Digest,
            Some(_) => return Err("scheme must be \"basic\", \"digest\" or \"any\"".to_string()),
        };
        let site = text("site")?.ok_or("site is missing (like site = \"https://example.org\")")?;
        let mut url = site_url(site)?;
        let origin: Box<str> = url[..url::Position::BeforePath].into();
        let path = site_path(&mut url, text("path")?.unwrap_or("/"))?;
        let user = text("user")?.ok_or("user is missing (like user = \"name\")")?.to_string();
        let password = match (text("password")?, text("password_file")?) {
            (Some(password), None) => password.to_string(),
            (None, Some(file)) => first_line(Path::new(file))?,
            (Some(_), Some(_)) => return Err("has password and password_file (keep one)".to_string()),
            (None, None) => {
                return Err(
                    "has no password (give password, or password_file whose first line it is)".to_string()
                );
            }
        };
        for (key, text) in [("user", &user), ("password", &password)] {
            if text.len() > CREDENTIAL_BYTES_MAX {
                return Err(format!("{key} is longer than {CREDENTIAL_BYTES_MAX} bytes (shorten it)"));
            }
            if text.chars().any(char::is_control) {
                return Err(format!(
                    "{key} has a control character in it (no scheme can carry one: drop it)"
                ));
            }
        }
        if user.contains(':') && kind != AuthKind::Digest {
            return Err("user has a colon, which basic cannot carry (set scheme = \"digest\")".to_string());
        }
        let credentials = Credentials { user, password };
        Ok(Site { number: 0, credentials, kind, origin, path })
    }
}

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

/// The first line of a file.
fn first_line(path: &Path) -> Result<String, String> {
    let name = || shown(&path.display().to_string(), 200);
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(CREDENTIAL_BYTES_MAX as u64 + 3).read_to_end(&mut bytes))
        .map_err(|cause| format!("cannot read {}: {cause} (name another password_file)", name()))?;
    if bytes.is_empty() {
        return Err(format!("{} is empty (its first line is the password)", name()));
    }
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Cut at the limit, it may end inside a character.
    if line.len() > CREDENTIAL_BYTES_MAX {
        return Err(format!(
            "the first line of {} is longer than {CREDENTIAL_BYTES_MAX} bytes (shorten it)",
            name()
        ));
    }
    str::from_utf8(line)
        .map(str::to_string)
        .map_err(|_| format!("the first line of {} is not UTF-8 (write it as such)", name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        config.read_text(text, Path::new("c.toml"))?;
        Ok(config)
    }

    /// One entry after the other, each with a user and a password unless it has its own.
    fn sites(entries: &[&str]) -> Result<Sites, String> {
        let entry = |lines: &&str| {
            let user = if lines.contains("user =") { "" } else { "user = \"u\"\n" };
            let password = if lines.contains("password") { "" } else { "password = \"hunter2\"\n" };
            format!("[[auth]]\n{lines}\n{user}{password}")
        };
        read(&entries.iter().map(entry).collect::<String>())
            .map(|config| config.auth)
            .map_err(|e| e.to_string())
    }

    fn said(entry: &str) -> String {
        let said = sites(&["site = \"http://fine.test\"", entry]).unwrap_err();
        said.strip_prefix("c.toml: [[auth]] entry 2: ").unwrap_or_else(|| panic!("{said}")).to_string()
    }

    fn scratch_file(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("nephila-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn an_entry_as_the_manual_has_it() {
        let config = read(
            "[[auth]]\nsite = \"https://Example.ORG:443\"\nuser = \"u\"\npassword = \"p\"\nscheme = \"basic\"\npath = \"/private/\"\n\
             [[auth]]\nsite = \"http://127.1:8080/\"\nuser = \"\"\npassword = \"\"\n",
        )
        .unwrap();
        let site = config.auth.of("https://example.org", "/private/x?y").unwrap();
        assert_eq!((site.credentials.user.as_str(), site.credentials.password.as_str()), ("u", "p"));
        assert_eq!(
            (site.kind, site.path(), site.origin()),
            (AuthKind::Basic, "/private/", "https://example.org")
        );
        let site = config.auth.of("http://127.0.0.1:8080", "/").unwrap();
        assert_eq!((site.kind, site.path()), (AuthKind::Any, "/"));
        assert_eq!(config.auth.len(), 2);
        assert!(config.auth.iter().enumerate().all(|(at, site)| site.number == at));
        assert!(read("").unwrap().auth.is_empty());
    }

    #[test]
    fn credentials_go_exactly_there_and_nowhere_else() {
        let sites = sites(&["site = \"https://example.org\""]).unwrap();
        assert!(sites.of("https://example.org", "/x").is_some());
        for other in [
            "http://example.org",
            "https://example.org:444",
            "https://www.example.org",
            "https://example.org.evil.test",
            "https://example.or",
            "https://evil.test",
            "",
        ] {
            assert!(sites.of(other, "/").is_none(), "{other}");
        }
    }

    #[test]
    fn the_longest_path_wins_and_ends_at_a_slash() {
        let sites = sites(&[
            "site = \"http://h\"\npath = \"/a\"\nuser = \"a\"",
            "site = \"http://h\"\npath = \"/a/b c/../b/\"\nuser = \"ab\"",
            "site = \"http://g\"\nuser = \"g\"",
            "site = \"http://i\"\npath = \"/gr\u{fc}n\"\nuser = \"i\"",
        ])
        .unwrap();
        for (origin, target, user) in [
            ("http://h", "/", None),
            ("http://h", "/a", Some("a")),
            ("http://h", "/a?q", Some("a")),
            ("http://h", "/a/x", Some("a")),
            ("http://h", "/ab", None),
            ("http://h", "/?/a/", None),
            ("http://h", "/a/b", Some("a")),
            ("http://h", "/a/b/", Some("ab")),
            ("http://h", "/a/b/c", Some("ab")),
            ("http://g", "/a/b/", Some("g")),
            ("http://i", "/gr%C3%BCn/x", Some("i")),
            ("http://i", "/", None),
        ] {
            let found = sites.of(origin, target).map(|site| site.credentials.user.as_str());
            assert_eq!(found, user, "{origin}{target}");
        }
    }

    #[test]
    fn the_password_may_stand_in_a_file() {
        let entry = |path: &Path| format!("site = \"http://h\"\npassword_file = \"{}\"", path.display());
        for (bytes, password) in [
            (b"hunter2\nmore\n".as_slice(), "hunter2"),
            (b"hunter2\r\n", "hunter2"),
            (b" spaced ", " spaced "),
            (b"\n", ""),
        ] {
            let path = scratch_file("password", bytes);
            let sites = sites(&[&entry(&path)]).unwrap();
            assert_eq!(sites.of("http://h", "/").unwrap().credentials.password, password);
            std::fs::remove_file(path).unwrap();
        }
        for (bytes, about) in [
            (b"".to_vec(), "is empty (its first line is the password)"),
            (b"hunter2\xff\n".to_vec(), "is not UTF-8 (write it as such)"),
            ("hunter2".repeat(999).into_bytes(), "is longer than 1024 bytes (shorten it)"),
            (b"hunter2\x1b\n".to_vec(), "password has a control character in it"),
        ] {
            let path = scratch_file("password-bad", &bytes);
            let said = said(&entry(&path));
            assert!(said.contains(about) && !said.contains("hunter2"), "{said}");
            std::fs::remove_file(path).unwrap();
        }
        let said = said(&entry(Path::new("/nowhere/at all")));
        assert!(
            said.starts_with("cannot read /nowhere/at all: ")
                && said.ends_with("(name another password_file)")
        );
    }

    #[test]
    fn mistakes_name_the_entry_and_the_mend() {
        assert_eq!(said("sight = \"http://h\""), "unknown setting sight (did you mean site?)");
        assert_eq!(said(""), "site is missing (like site = \"https://example.org\")");
        for site in ["ftp://h", "example.org", "", "http://", "http://h?q", "http://h/#f", "https:// h"] {
            let said = said(&format!("site = \"{site}\""));
            assert!(said.starts_with("site must be like \"https://example.org\" or "), "{site}: {said}");
        }
        assert_eq!(
            said("site = \"http://h/x/\""),
            "site must end after its host and port (give path = \"/x/\" beside it)"
        );
        for path in ["x", "", "/x?q", "/x#f", "/x\\ny"] {
            let said = said(&format!("site = \"http://h\"\npath = \"{path}\""));
            assert!(
                said.starts_with("path must begin with a slash and have no query, like "),
                "{path}: {said}"
            );
        }
        assert_eq!(said("site = 1"), "site must be a text in quotes");
        assert_eq!(
            said("site = \"http://h\"\nscheme = \"ntlm\""),
            "scheme must be \"basic\", \"digest\" or \"any\""
        );
        assert_eq!(
            said("site = \"http://h\"\npassword = \"hunter2\"\npassword_file = \"f\""),
            "has password and password_file (keep one)"
        );
        assert_eq!(
            said("site = \"http://FINE.test:80/\""),
            "http://fine.test with path / is entry 1 already (drop one, or give it another path)"
        );
        assert_eq!(
            said("site = \"http://h\"\nuser = \"a:b\""),
            "user has a colon, which basic cannot carry (set scheme = \"digest\")"
        );
        assert!(sites(&["site = \"http://h\"\nuser = \"a:b\"\nscheme = \"digest\""]).is_ok());
        let whole = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(whole("[auth]\n"), "c.toml: auth must be a list: each entry begins with [[auth]]");
        assert_eq!(
            whole("auth = [1]"),
            "c.toml: [[auth]] entry 1: must be a section (begin it with [[auth]])"
        );
        assert_eq!(whole("[[aut]]\n"), "c.toml: unknown setting aut (did you mean auth?)");
        assert_eq!(
            whole("[[auth]]\nsite = \"http://h\"\npassword = \"\""),
            "c.toml: [[auth]] entry 1: user is missing (like user = \"name\")"
        );
        assert_eq!(
            whole("[[auth]]\nsite = \"http://h\"\nuser = \"\""),
            "c.toml: [[auth]] entry 1: has no password (give password, or password_file whose first line it is)"
        );
    }

    #[test]
    fn no_password_is_ever_said() {
        for entry in [
            "site = \"http://u:hunter2@h\"",
            "site = \"htp://u:hunter2@h\"",
            "site = \"http://h\"\npassword = \"hunter2\\n\"",
            "site = \"http://h\"\npassword = [\"hunter2\"]",
            "site = \"http://h\"\npassword = hunter2",
            "site = \"http://h\"\npassword = \"hunter2",
            "site = \"http://h\"\npassword = \"hunter2\"\npassword = \"hunter2\"",
            "site = \"http://h\"\npassword = \"hunter2\\q\"",
            "site = \"http://h\"\npassword = \"hunter2\" hunter2",
        ] {
            let said = sites(&[entry]).unwrap_err();
            assert!(!said.contains("hunter2") && !said.contains('\n'), "{said}");
        }
        let config = read("[[auth]]\nsite = \"http://h\"\nuser = \"u\"\npassword = \"hunter2\"").unwrap();
        for shown in [format!("{config:?}"), format!("{config:#?}")] {
            assert!(shown.contains("Credentials") && !shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn readable_passwords_are_noticed_in_one_line() {
        let notice = |entries: &[&str]| sites(entries).unwrap().notice();
        let (plain, safe) = ("site = \"http://h\"", "site = \"https://h\"\nscheme = \"basic\"");
        assert_eq!(notice(&[safe, "site = \"http://h\"\nscheme = \"digest\""]), None);
        assert_eq!(
            notice(&[safe, plain]).as_deref(),
            Some(
                "auth: basic over plain http can be read on the way: http://h (https, or scheme = \"digest\", prevents it)"
            )
        );
        let many: Vec<String> =
            (0..5).map(|n| format!("site = \"http://h{n}\"\nscheme = \"basic\"")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(notice(&many).unwrap().contains("http://h0, http://h1, http://h2 and 2 more ("));
    }
}
