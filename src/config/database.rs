use super::auth::first_line;
use super::section::Value;
use crate::base::shown;
use crate::limits::CREDENTIAL_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::path::Path;

/// Where a database is; a password in it is not shown, wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

/// How to get to a database, its password included; not shown, wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseAccess(pub String);

impl DatabaseUrl {
    fn new(text: String) -> Result<DatabaseUrl, &'static str> {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || !is_url && byte == b' ');
        if !is_plain || text.len() > 2 * CREDENTIAL_BYTES_MAX || !is_url && !text.contains("host=") {
            return Err(
                "must be like \"postgres://nephila@db.example.org/nephila\", or \"host=/run/postgresql user=nephila dbname=nephila\"",
            );
        }
        // The driver reads all before the @ as the user and its password; so does whoever hides that.
        let before_at = text.split_once("://").and_then(|(_, rest)| Some(rest.rsplit_once('@')?.0));
        if before_at.is_some_and(|before| before.contains(['/', '?', '@'])) {
            return Err("must have every / ? and @ of a user or password written as %2F, %3F and %40");
        }
        match text.contains("password") {
            true => Err("must not name a password by its word (name a file of it in its password_file)"),
            false => Ok(DatabaseUrl(text)),
        }
    }

    /// From its beginning to the password, and what follows that, if it has one.
    fn around_password(&self) -> Option<(&str, &str)> {
        let start = self.0.find("://")? + 3;
        let end = self.0[start..].find(['/', '?']).map_or(self.0.len(), |at| start + at);
        let at = start + self.0[start..end].rfind('@')?;
        let colon = start + self.0[start..at].find(':')?;
        Some((&self.0[..colon], &self.0[at..]))
    }

    /// How to get to it; its password may stand in it, in a file, or in the environment. `setting` is what it is called.
    pub fn access(
        &self,
        setting: &str,
        password_file: Option<&Path>,
        environment: Option<String>,
    ) -> Result<DatabaseAccess, String> {
        let password = match (password_file, self.holds_password()) {
            (Some(_), true) => {
                return Err(format!(
                    "{setting} has a password, and so has {setting}_password_file (keep one)"
                ));
            }
            (Some(file), false) => Some(first_line(file)?),
            (None, true) => None,
            (None, false) => environment,
        };
        let Some(password) = password else { return Ok(DatabaseAccess(self.0.clone())) };
        Ok(DatabaseAccess(match self.0.split_once("://") {
            None => {
                let escaped = password.replace('\\', "\\\\").replace('\'', "\\'");
                format!("{} password='{escaped}'", self.0)
            }
            Some((_, rest)) => {
                let mark = if rest.contains('?') { '&' } else { '?' };
                let escaped: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
                format!("{}{mark}password={escaped}", self.0)
            }
        }))
    }

    pub fn holds_password(&self) -> bool {
        self.around_password().is_some()
    }

    fn without_password(&self) -> String {
        match self.around_password() {
            Some((before, after)) => format!("{before}{after}"),
            None => self.0.clone(),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&shown(&self.without_password(), 2 * CREDENTIAL_BYTES_MAX))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", self.without_password())
    }
}

impl fmt::Debug for DatabaseAccess {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("DatabaseAccess(…)")
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.without_password())
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DatabaseUrl, D::Error> {
        DatabaseUrl::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Value for DatabaseUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_a_password_is_never_shown() {
        let url =
            DatabaseUrl::new("postgres://u:geheim%2Fgeheim@h/d?application_name=x".to_string()).unwrap();
        assert!(url.holds_password() && !format!("{url} {url:?}").contains("geheim"));
        for odd in ["postgres://u:geh/eim@h/d", "postgres://u:geh?eim@h/d", "postgres://u:geh@eim@h/d"] {
            assert!(DatabaseUrl::new(odd.to_string()).unwrap_err().contains("%2F"), "{odd}");
        }
    }
}
