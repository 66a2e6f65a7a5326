use super::section::{Value, settings};
use super::units::{Bytes, Millis};
use crate::limits::FETCHES_PER_SHARD_MAX;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// No time is longer than a week.
pub(super) const WEEK_MS: u64 = 7 * 86_400_000;

settings! {
    /// Fetches: who asks, how long an answer may take and how large it may be. Times take a unit, like 30s; a bare number is milliseconds.
    "[spider]" SpiderSettings {
        /// The User-Agent; its first word is our name in robots.txt.
        user_agent: String = concat!("nephila/", env!("CARGO_PKG_VERSION")).to_string(), flag "S";
        /// Where we can be reached, a URL or a mail address; it is added to the user agent as `(+contact)`.
        contact: Option<Contact> = None, flag "URL|MAIL";
        /// Time between two WORKING messages about an open fetch.
        timeout_update: Millis = Millis(20_000), in 1 to WEEK_MS, flag "MS", live new_fetches;
        /// Time that a fetch may take.
        timeout_req: Millis = Millis(60_000), in 1 to WEEK_MS, flag "MS", live new_fetches;
        /// Time until a connection is made, with TLS.
        timeout_connect: Millis = Millis(10_000), in 0 to WEEK_MS, live new_fetches;
        /// Time from the request to the first byte of its answer.
        timeout_first_byte: Millis = Millis(30_000), in 0 to WEEK_MS, live new_fetches;
        /// Time until a host with several addresses is tried at the next one.
        fallback_delay: Millis = Millis(300), in 1 to WEEK_MS, flag "MS", live new_fetches;
        /// Time without a byte inside an answer.
        timeout_read: Millis = Millis(30_000), in 0 to WEEK_MS, live new_fetches;
        /// Bytes a second that a server must send on average once it sends; 0 = no such rule.
        min_rate: Bytes = Bytes(100), in 0 to 1 << 30, live new_fetches;
        /// Time that an idle connection is kept for the next request.
        keep_alive: Millis = Millis(15_000), in 0 to WEEK_MS, live new_fetches;
        /// Longer documents are cut at this size, in bytes; a store server refuses them.
        max_doc_size: Bytes = Bytes(16 << 20), in 1 to 1 << 30, flag "BYTES", live new_fetches;
        /// Memory in bytes for documents on their way, over all shards; when it is used up, new fetches wait.
        body_memory: Bytes = Bytes(1 << 30), live new_fetches;
        /// Trust these certificates (PEM) besides those of the web.
        ca_file: Option<PathBuf> = None, flag "PEM";
        /// Accept bad certificates, and flag the documents.
        insecure_tls: bool = false, flag "";
        /// Fetches open at once per shard.
        fetches_max: usize = 16_384, in 1 to FETCHES_PER_SHARD_MAX, flag "N";
        /// Tell a URL server in another process status, milliseconds and Retry-After with each DONE.
        report: bool = false, told once;
        /// Where URL servers may dial in to `nephila spider`, as by --listen.
        listen: Option<SocketAddr> = None, told once;
        /// URL servers that `nephila spider` dials, as by --urlserver.
        urlserver: Vec<String> = Vec::new(), told once;
        /// A store server that `nephila spider` sends documents to, as by --store; unset, they stay in the data directory.
        store: Option<String> = None, told once;
        /// Keep cookies until the crawl ends, each for the scheme, host and port that set it.
        cookies: bool = false, flag "";
    }
}

impl SpiderSettings {
    /// The agent that requests, records and robots rules go by: `product/version (+contact)`.
    pub fn agent(&self) -> String {
        match &self.contact {
            Some(Contact(contact)) if !self.user_agent.contains(contact) => {
                format!("{} (+{contact})", self.user_agent)
            }
            _ => self.user_agent.clone(),
        }
    }

    /// Whether the agent says how to reach whoever runs it: by a contact, or by what looks like one in its own text.
    pub fn has_contact(&self) -> bool {
        self.contact.is_some() || self.user_agent.contains("://") || self.user_agent.contains('@')
    }
}

/// Where the operator of a crawl can be reached. It goes into a comment of a header field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Contact(String);

const CONTACT_BYTES_MAX: usize = 200;

impl Value for Contact {}

impl FromStr for Contact {
    type Err = String;

    fn from_str(text: &str) -> Result<Contact, String> {
        let is_url = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        let is_mail = text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
        let fits = text.len() <= CONTACT_BYTES_MAX
            && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'(' | b')'));
        match fits && (is_url || is_mail) {
            true => Ok(Contact(text.to_string())),
            false => Err(format!(
                "must be an http or https URL or a mail address, printable ASCII without parentheses and at most {CONTACT_BYTES_MAX} bytes"
            )),
        }
    }
}

impl TryFrom<String> for Contact {
    type Error = String;

    fn try_from(text: String) -> Result<Contact, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    #[test]
    fn a_contact_is_a_url_or_an_address() {
        for good in ["https://example.org/bot?a", "http://[::1]/", "mailto:me@example.org", "me@example.org"]
        {
            assert!(good.parse::<Contact>().is_ok(), "{good}");
        }
        let long = format!("https://example.org/{}", "a".repeat(CONTACT_BYTES_MAX - 19));
        for bad in [
            "",
            "example.org",
            "ftp://example.org/",
            "@",
            "me@",
            "me@a\nX: 1",
            "me@a)",
            "(me@a",
            "m\u{fc}@a",
            &long,
        ] {
            assert!(bad.parse::<Contact>().is_err(), "{bad}");
        }
        assert!(long[..CONTACT_BYTES_MAX].parse::<Contact>().is_ok());
        let said =
            Config::parse("[spider]\ncontact = \"here\"", Path::new("c.toml")).unwrap_err().to_string();
        assert!(
            said.starts_with("c.toml:2:spider.contact: must be an http or https URL or a mail"),
            "{said}"
        );
    }

    #[test]
    fn a_contact_is_added_to_the_agent_once() {
        let agent =
            |text: &str| Config::parse(&format!("[spider]\n{text}"), Path::new("c")).unwrap().spider.agent();
        let plain = SpiderSettings::default().user_agent;
        assert_eq!(agent(""), plain);
        assert_eq!(agent("contact = \"me@a.test\""), format!("{plain} (+me@a.test)"));
        assert_eq!(agent("contact = \"me@a.test\"\nuser_agent = \"Bot/1\""), "Bot/1 (+me@a.test)");
        let own = "Bot/1 (see me@a.test)";
        assert_eq!(agent(&format!("contact = \"me@a.test\"\nuser_agent = \"{own}\"")), own);
    }
}
