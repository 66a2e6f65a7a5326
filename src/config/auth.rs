use super::section::settings;
use super::units::Secret;
use crate::base::shown;
use crate::limits::CREDENTIAL_BYTES_MAX;
use crate::proto::auth::{AuthKind, Credentials, Site};
use std::io::Read;
use std::path::{Path, PathBuf};

settings! {
    /// Credentials; an entry for each site.
    "[[auth]]" AuthEntry {
        /// Scheme, host and port, like "https://example.org"; the credentials go there and nowhere else.
        site: Option<String> = None;
        /// Who we are there.
        user: Option<String> = None;
        /// What proves it.
        password: Option<Secret> = None;
        /// A file whose first line is the password.
        password_file: Option<PathBuf> = None;
        /// How to answer: "basic" with the first request, "digest" only, or "any" that the site asks for.
        scheme: AuthKind = AuthKind::default();
        /// Send the credentials to this path and below it only.
        path: String = "/".to_string();
    }
}

impl AuthEntry {
    /// The site, or what is wrong with it and how to mend it.
    pub fn site(self) -> Result<Site, String> {
        let site = self.site.ok_or("site is missing (like site = \"https://example.org\")")?;
        let user = self.user.ok_or("user is missing (like user = \"name\")")?;
        let password = match (self.password, self.password_file) {
            (Some(password), None) => password.0,
            (None, Some(file)) => first_line(&file)?,
            (Some(_), Some(_)) => return Err("has password and password_file (keep one)".to_string()),
            (None, None) => {
                return Err(
                    "has no password (give password, or password_file whose first line it is)".to_string()
                );
            }
        };
        Site::new(&site, &self.path, self.scheme, Credentials { user, password })
    }
}

pub(super) fn first_line(path: &Path) -> Result<String, String> {
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
    use crate::config::file::ConfigError;
    use crate::proto::auth::Sites;

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("c.toml"))
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
        let (place, said) = said.split_once(":auth[2]").unwrap_or_else(|| panic!("{said}"));
        assert!(place.starts_with("c.toml:"), "{place}");
        said.trim_start_matches(": ").trim_start_matches('.').to_string()
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
        assert_eq!((site.kind, site.origin()), (AuthKind::Basic, "https://example.org"));
        assert!(config.auth.of("https://example.org", "/").is_none());
        let site = config.auth.of("http://127.0.0.1:8080", "/").unwrap();
        assert_eq!(site.kind, AuthKind::Any);
        assert_eq!(config.auth.iter().count(), 2);
        assert!(config.auth.iter().enumerate().all(|(at, site)| site.number == at));
        assert_eq!(read("").unwrap().auth.iter().count(), 0);
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
        assert_eq!(said("sites = \"http://h\""), "sites: unknown setting (did you mean site?)");
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
        assert_eq!(said("site = 1"), "site: must be a text in quotes");
        assert_eq!(
            said("site = \"http://h\"\nscheme = \"ntlm\""),
            "scheme: must be \"basic\", \"digest\" or \"any\""
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
        assert_eq!(whole("[auth]\n"), "c.toml:1:auth: must be a list: each entry begins with [[auth]]");
        assert_eq!(whole("auth = [1]"), "c.toml:1:auth[1]: must be a section (begin it with [[auth]])");
        assert_eq!(whole("[[aut]]\n"), "c.toml:1:aut: unknown setting (did you mean auth?)");
        assert_eq!(
            whole("[[auth]]\nsite = \"http://h\"\npassword = \"\""),
            "c.toml:1:auth[1]: user is missing (like user = \"name\")"
        );
        assert_eq!(
            whole("[[auth]]\nsite = \"http://h\"\nuser = \"\""),
            "c.toml:1:auth[1]: has no password (give password, or password_file whose first line it is)"
        );
    }

    #[test]
    fn no_password_is_ever_said() {
        for entry in [
            "site = \"http://u:hunter2@h\"",
            "site = \"htp://u:hunter2@h\"",
            "site = \"http://h\"\npassword = \"hunter2\\n\"",
            "site = \"http://h\"\npassword = [\"hunter2\"]",
            "site = \"http://h\"\nscheme = \"hunter2\"",
            "site = [\"http://h\", \"hunter2\"]",
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
