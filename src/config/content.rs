use super::database::{DatabaseAccess, DatabaseUrl};
use super::section::{Value, settings};
use super::units::Seconds;
use crate::base::shown;
use crate::limits::CREDENTIAL_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use url::Url;

/// No process waits longer at its end.
const DAY_S: u64 = 86_400;

settings! {
    /// Followers: where documents are copied to from every sealed segment, beside the store.
    "[content]" ContentSettings {
        /// The PostgreSQL database whose table content gets every document, like
        /// "postgres://nephila@db.example.org/nephila"; unset, none does.
        postgres: Option<DatabaseUrl> = None;
        /// A file whose first line is the password for it; unset, NEPHILA_DATABASE_PASSWORD of the environment is.
        postgres_password_file: Option<PathBuf> = None;
        /// The S3 bucket, and what names begin with in it, that gets every document in WARC files, like
        /// "https://s3.eu-central-1.amazonaws.com/bucket/node7"; unset, none does.
        s3: Option<S3Url> = None;
        /// The region of the bucket; unset, AWS_REGION of the environment is, or us-east-1.
        s3_region: Option<String> = None;
        /// A file with aws_access_key_id and aws_secret_access_key, as ~/.aws/credentials has them; unset,
        /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment are.
        s3_credentials_file: Option<PathBuf> = None;
        /// A crawl that ends by itself waits for so long until all is copied.
        catch_up: Seconds = Seconds(60), in 0 to DAY_S, live now;
    }
}

/// A bucket in S3: the endpoint, its name, and what the names of objects begin with. Nothing secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    text: String,
    /// Scheme, host and port.
    pub endpoint: Url,
    pub bucket: String,
    /// Without slashes around it; may be empty.
    pub prefix: String,
}

/// What proves to S3 who we are; not shown, wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Access {
    pub key: String,
    pub secret: String,
    pub token: Option<String>,
    pub region: String,
}

/// A file of credentials has a few lines.
const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;
const LIKE: &str = "must be like \"https://s3.eu-central-1.amazonaws.com/bucket/prefix\"";

impl S3Url {
    fn new(text: String) -> Result<S3Url, String> {
        let wrong = || LIKE.to_string();
        let url = Url::parse(&text).map_err(|_| wrong())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "must have no credentials in it (name a file of them in s3_credentials_file)".to_string()
            );
        }
        let is_plain =
            text.len() <= 2 * CREDENTIAL_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_whole = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_plain || !is_whole || url.query().is_some() || url.fragment().is_some() || text.contains('%') {
            return Err(wrong());
        }
        let (bucket, prefix) = url.path()[1..].split_once('/').unwrap_or((&url.path()[1..], ""));
        let (bucket, prefix) = (bucket.to_string(), prefix.trim_matches('/').to_string());
        if bucket.is_empty() || prefix.contains("//") {
            return Err(wrong());
        }
        let mut endpoint = url;
        endpoint.set_path("/");
        Ok(S3Url { text, endpoint, bucket, prefix })
    }
}

impl fmt::Display for S3Url {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&shown(&self.text, 2 * CREDENTIAL_BYTES_MAX))
    }
}

impl fmt::Debug for S3Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("S3Access(…)")
    }
}

impl Serialize for S3Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for S3Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<S3Url, D::Error> {
        S3Url::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Value for S3Url {}

impl ContentSettings {
    /// How to get to the database; what the environment has is asked for by name.
    pub fn postgres_access(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<DatabaseAccess>, String> {
        let file = self.postgres_password_file.as_deref();
        let password = environment("NEPHILA_DATABASE_PASSWORD");
        self.postgres.as_ref().map(|url| url.access("postgres", file, password)).transpose()
    }

    /// How to get to the bucket.
    pub fn s3_access(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<(S3Url, S3Access)>, String> {
        let Some(url) = &self.s3 else { return Ok(None) };
        let environment = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        let said = match &self.s3_credentials_file {
            Some(path) => credentials(path)?,
            None => ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"].map(environment),
        };
        let [Some(key), Some(secret), token] = said else {
            return Err(match &self.s3_credentials_file {
                Some(path) => format!(
                    "{}: has no aws_access_key_id or no aws_secret_access_key (a line each)",
                    shown(&path.display().to_string(), 200)
                ),
                None => {
                    "s3 is set, and no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the \
                         environment, or name a file of them in s3_credentials_file"
                        .to_string()
                }
            });
        };
        let region = self.s3_region.clone().or_else(|| environment("AWS_REGION"));
        let region = region.or_else(|| environment("AWS_DEFAULT_REGION")).unwrap_or("us-east-1".to_string());
        Ok(Some((url.clone(), S3Access { key, secret, token, region })))
    }
}

/// Key, secret and token of the first profile in a file as other tools of S3 have it.
fn credentials(path: &Path) -> Result<[Option<String>; 3], String> {
    let name = || shown(&path.display().to_string(), 200);
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(CREDENTIALS_BYTES_MAX).read_to_string(&mut text))
        .map_err(|cause| format!("cannot read {}: {cause} (name another s3_credentials_file)", name()))?;
    let mut found = [None, None, None];
    let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') && found.iter().any(Option::is_some) {
            break;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        if let Some(at) = names.iter().position(|known| known.eq_ignore_ascii_case(name.trim())) {
            found[at] = Some(value.trim().to_string()).filter(|value| !value.is_empty());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::file::{ConfigError, Reading};

    fn read(text: &str) -> Result<Config, ConfigError> {
        let reading = Reading::of_text(text, Path::new("c.toml"));
        reading.verdict(reading.config.faults(), |_| false)?;
        Ok(reading.config)
    }

    #[test]
    fn a_bucket_as_the_manual_has_it() {
        let config = read("[content]\ns3 = \"http://127.0.0.1:5000/pages/a/b/\"\n").unwrap();
        let url = config.content.s3.unwrap();
        assert_eq!(
            (url.endpoint.as_str(), &*url.bucket, &*url.prefix),
            ("http://127.0.0.1:5000/", "pages", "a/b")
        );
        for bad in [
            "s3://bucket/prefix",
            "https://s3.example.org/",
            "https://s3.example.org/b/a//c",
            "https://s3.example.org/b?x=1",
            "https://s3.example.org/b/%41",
            "bucket",
            "",
        ] {
            let said = read(&format!("[content]\ns3 = \"{bad}\"\n")).unwrap_err().to_string();
            assert_eq!(said, format!("c.toml:2:content.s3: {LIKE}"), "{bad}");
        }
        let said =
            read("[content]\ns3 = \"https://key:hunter2@s3.example.org/b\"\n").unwrap_err().to_string();
        assert!(said.contains("s3_credentials_file") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn what_is_secret_is_taken_from_files_and_environment_and_shown_nowhere() {
        let none = |_: &str| None;
        let text = "[content]\npostgres = \"postgres://u:hunter2@h/d\"\ns3 = \"https://s3.example.org/b\"\n";
        let mut config = read(text).unwrap();
        let told = format!("{config:?} {:?}", config.written());
        assert!(!told.contains("hunter2") && told.contains("postgres://u@h/d"), "{told}");
        assert_eq!(config.content.postgres_access(none).unwrap().unwrap().0, "postgres://u:hunter2@h/d");
        let said = config.content.s3_access(none).unwrap_err();
        assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
        let environment = |name: &str| match name {
            "AWS_REGION" => Some(" ".to_string()),
            "AWS_SESSION_TOKEN" => None,
            name => Some(format!("of {name}")),
        };
        let (_, access) = config.content.s3_access(environment).unwrap().unwrap();
        assert_eq!((&*access.key, &*access.secret), ("of AWS_ACCESS_KEY_ID", "of AWS_SECRET_ACCESS_KEY"));
        assert_eq!((access.token.as_deref(), &*access.region), (None, "of AWS_DEFAULT_REGION"));
        assert!(!format!("{access:?}").contains("AWS"));
        let path = std::env::temp_dir().join(format!("nephila-s3-{}", std::process::id()));
        let file = "# c\n[default]\naws_access_key_id=K\naws_secret_access_key = S=S\n[other]\naws_access_key_id = X\n";
        std::fs::write(&path, file).unwrap();
        config.content.s3_credentials_file = Some(path.clone());
        let (_, access) = config.content.s3_access(none).unwrap().unwrap();
        assert_eq!((&*access.key, &*access.secret, &*access.region), ("K", "S=S", "us-east-1"));
        std::fs::write(&path, "[default]\naws_access_key_id = K\n").unwrap();
        let said = config.content.s3_access(none).unwrap_err();
        assert!(said.contains("aws_secret_access_key"), "{said}");
        std::fs::remove_file(path).unwrap();
    }
}
