use super::request::Request;
use crate::base::fingerprint;
use crate::limits::COOKIE_HOSTS_MAX;
use crate::proto::auth::{Challenge, Sites};
use crate::proto::cookies::CookieJar;
use crate::proto::http1::{Head, Method};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::sync::Arc;

/// What origins have shown about the requests they want. None of it goes to another scheme, host or port.
pub(super) struct OriginPolicy {
    sites: Arc<Sites>,
    /// The authentication of each site, by its number.
    auth: Vec<SiteAuth>,
    jar: Option<CookieJar>,
    /// Origins that do not answer HEAD, or answer it with a body.
    without_head: RapidHashSet<u64>,
    /// Source of the client's part of a nonce.
    nonce: u64,
}

struct SiteAuth {
    challenge: Option<Challenge>,
    /// Answers to a challenge that only brought another challenge.
    in_vain: u8,
}

/// How a URL was requested.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub method: Method,
    /// With credentials.
    pub authorized: bool,
}

/// Origins without HEAD that are remembered; past that all are forgotten, which costs each a second request.
const WITHOUT_HEAD_MAX: usize = 65_536;
/// A server that calls every nonce stale gets this many answers.
const IN_VAIN_MAX: u8 = 3;

impl OriginPolicy {
    pub fn new(sites: Arc<Sites>, cookies: bool, seed: u64) -> OriginPolicy {
        let auth =
            sites.iter().map(|site| SiteAuth { challenge: Challenge::preemptive(site.kind), in_vain: 0 });
        OriginPolicy {
            auth: auth.collect(),
            sites,
            jar: cookies.then(|| CookieJar::new(COOKIE_HOSTS_MAX)),
            without_head: RapidHashSet::default(),
            nonce: seed,
        }
    }

    /// The method for a URL of which only the head is wanted.
    pub fn method_for_head(&self, url: &CrawlUrl) -> Method {
        let refused = self.without_head.contains(&fingerprint(url.origin().as_bytes()));
        if refused { Method::Get } else { Method::Head }
    }

    /// Adds the headers that are for this origin only. True if credentials are among them.
    pub fn apply(&mut self, request: &mut Request<'_>, now_unix_s: u64) -> bool {
        let url = request.url;
        if let Some(jar) = &mut self.jar {
            jar.write(url, now_unix_s, &mut request.cookie);
        }
        let Some(site) = self.sites.of(url.origin(), url.path_and_query()) else { return false };
        let Some(challenge) = &mut self.auth[site.number].challenge else { return false };
        self.nonce = self.nonce.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let cnonce = fingerprint(&self.nonce.to_le_bytes());
        let (method, target) = (request.method.name(), url.path_and_query());
        challenge.answer(&site.credentials, method, target, cnonce, &mut request.authorization);
        true
    }

    /// Reads what a head means for later requests. True if this URL is worth another, different request.
    pub fn learn(
        &mut self,
        url: &CrawlUrl,
        asked: Asked,
        head: &Head,
        head_bytes: &[u8],
        now_unix_s: u64,
    ) -> bool {
        let values_of = |wanted: &'static [u8]| {
            let headers = head.headers(head_bytes).filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            headers.map(|(_, value)| value)
        };
        if let Some(jar) = &mut self.jar {
            values_of(b"set-cookie").for_each(|value| jar.store(url, &value, now_unix_s));
        }
        match head.status {
            401 => {
                let values: Vec<_> = values_of(b"www-authenticate").collect();
                self.challenged(url, asked, values.iter().map(|value| value.as_ref()))
            }
            405 | 501 if asked.method == Method::Head => {
                self.refuses_head(url);
                true
            }
            _ => {
                if asked.authorized
                    && let Some(site) = self.sites.of(url.origin(), url.path_and_query())
                {
                    self.auth[site.number].in_vain = 0;
                }
                false
            }
        }
    }

    /// HEAD is of no use with this origin: its next requests are GET.
    pub fn refuses_head(&mut self, url: &CrawlUrl) {
        if self.without_head.len() >= WITHOUT_HEAD_MAX {
            self.without_head.clear();
        }
        self.without_head.insert(fingerprint(url.origin().as_bytes()));
    }

    fn challenged<'a>(
        &mut self,
        url: &CrawlUrl,
        asked: Asked,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> bool {
        let Some(site) = self.sites.of(url.origin(), url.path_and_query()) else { return false };
        let Some(challenge) = Challenge::choose(values, site.kind) else { return false };
        let auth = &mut self.auth[site.number];
        if asked.authorized {
            // The credentials are wrong, and will be the next time.
            if !challenge.is_stale() || auth.in_vain >= IN_VAIN_MAX {
                return false;
            }
            auth.in_vain += 1;
        }
        auth.challenge = Some(challenge);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::COOKIE_JAR_BYTES_MAX;
    use crate::proto::http1::{HeadLimits, HeadParser, HeadStep};

    #[test]
    fn cookies_are_kept_for_as_many_hosts_as_their_memory_holds() {
        let mut policy = OriginPolicy::new(Arc::default(), true, 1);
        let response = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
        let Ok(HeadStep::Done(head)) = HeadParser::new(HeadLimits::default(), Method::Get).parse(response)
        else {
            panic!("a whole head");
        };
        let asked = Asked { method: Method::Get, authorized: false };
        for n in 0..COOKIE_HOSTS_MAX + 100 {
            let url = CrawlUrl::parse(&format!("http://h{n}.test/")).unwrap();
            policy.learn(&url, asked, &head, response, 1);
        }
        let jar = policy.jar.unwrap();
        assert!(jar.hosts() <= COOKIE_HOSTS_MAX && jar.bytes() <= COOKIE_JAR_BYTES_MAX, "{jar:?}");
        assert!(jar.hosts() > COOKIE_HOSTS_MAX / 10 * 8, "{jar:?}");
    }
}
