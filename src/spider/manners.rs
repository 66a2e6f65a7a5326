use super::request::Request;
use crate::base::fingerprint;
use crate::proto::auth::{Challenge, Sites};
use crate::proto::cookies::CookieJar;
use crate::proto::http1::{Head, Method};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::sync::Arc;

/// What servers have shown of how they want to be asked. None of it goes to another scheme, host or port.
pub(super) struct Manners {
    sites: Arc<Sites>,
    /// What each site wants to be told, by its number.
    told: Vec<Told>,
    jar: Option<CookieJar>,
    /// Origins that do not answer HEAD, or answer it with a body.
    without_head: RapidHashSet<u64>,
    /// Draws the client's part of a nonce.
    nonce: u64,
}

struct Told {
    challenge: Option<Challenge>,
    /// Answers to a challenge that only brought another one.
    in_vain: u8,
}

/// How a URL was asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub method: Method,
    /// With credentials.
    pub authorized: bool,
}

/// Origins without HEAD that are remembered; past that all are forgotten, which costs each a second request.
const WITHOUT_HEAD_MAX: usize = 65_536;
/// Cookies are kept for this many origins.
const JARS_MAX: usize = 65_536;
/// A server that finds every nonce stale is believed this often.
const IN_VAIN_MAX: u8 = 3;

impl Manners {
    pub fn new(sites: Arc<Sites>, cookies: bool, seed: u64) -> Manners {
        let told = sites.iter().map(|site| Told { challenge: Challenge::preemptive(site.kind), in_vain: 0 });
        Manners {
            told: told.collect(),
            sites,
            jar: cookies.then(|| CookieJar::new(JARS_MAX)),
            without_head: RapidHashSet::default(),
            nonce: seed,
        }
    }

    /// With what method a URL is asked for of which only the head is wanted.
    pub fn method_for_head(&self, url: &CrawlUrl) -> Method {
        let refused = self.without_head.contains(&fingerprint(url.origin().as_bytes()));
        if refused { Method::Get } else { Method::Head }
    }

    /// Adds what this origin, and only this one, is to be told. True if it is told who we are.
    pub fn adorn(&mut self, request: &mut Request<'_>, now_unix_s: u64) -> bool {
        let url = request.url;
        if let Some(jar) = &mut self.jar {
            jar.write(url, now_unix_s, &mut request.cookie);
        }
        let Some(site) = self.sites.of(url.origin(), url.path_and_query()) else { return false };
        let Some(challenge) = &mut self.told[site.number].challenge else { return false };
        self.nonce = self.nonce.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let cnonce = fingerprint(&self.nonce.to_le_bytes());
        let (method, target) = (request.method.name(), url.path_and_query());
        challenge.answer(&site.credentials, method, target, cnonce, &mut request.authorization);
        true
    }

    /// Reads what a head says to whoever asks next. True if this very URL is worth asking for again, differently.
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
                    self.told[site.number].in_vain = 0;
                }
                false
            }
        }
    }

    /// HEAD is of no use with this origin.
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
        let told = &mut self.told[site.number];
        if asked.authorized {
            // What we said was wrong, and will be the next time.
            if !challenge.is_stale() || told.in_vain >= IN_VAIN_MAX {
                return false;
            }
            told.in_vain += 1;
        }
        told.challenge = Some(challenge);
        true
    }
}
