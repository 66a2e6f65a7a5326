use xxhash_rust::xxh3::xxh3_64;

/// A URL in normal form that has a query.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub url: &'a str,
    /// Up to the question mark.
    pub base: &'a str,
    pub origin: &'a str,
    pub host: &'a str,
    pub path: &'a str,
    pub query: &'a str,
}

/// A URL with more parameters than this teaches nothing.
pub(super) const PARTS_MAX: usize = 16;
/// The longest name of a parameter, and the longest path, of which something is learned.
pub(super) const NAME_BYTES_MAX: usize = 64;
pub(super) const PATH_BYTES_MAX: usize = 256;

impl<'a> Query<'a> {
    /// `None` if there is no query.
    pub fn of(url: &'a str) -> Option<Query<'a>> {
        let mark = memchr::memchr(b'?', url.as_bytes())?;
        let (base, query) = (&url[..mark], &url[mark + 1..]);
        let host_at = base.find("://")? + 3;
        let path_at = host_at + base[host_at..].find('/')?;
        let authority = &base[host_at..path_at];
        let is_port = |digits: &str| digits.bytes().all(|octet| octet.is_ascii_digit());
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if is_port(port) => host,
            _ => authority,
        };
        (!query.is_empty()).then_some(Query {
            url,
            base,
            origin: &base[..path_at],
            host,
            path: &base[path_at..],
            query,
        })
    }

    pub fn parts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.query.split('&')
    }

    /// One in so many URLs, always the same ones.
    pub fn is_one_in(&self, count: u64) -> bool {
        xxh3_64(self.url.as_bytes()).is_multiple_of(count)
    }

    /// The host and what it lies in, the longest first: `a.b.ru`, `b.ru`, `ru`.
    pub fn domains(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut next = Some(self.host);
        std::iter::from_fn(move || {
            let domain = next?;
            next = domain.split_once('.').map(|(_, parent)| parent).filter(|parent| !parent.is_empty());
            Some(domain)
        })
    }
}

pub(super) fn name_of(part: &str) -> &str {
    part.split_once('=').map_or(part, |(name, _)| name)
}

/// A path with every run of digits as one `0`: pages of a kind have one.
pub(super) fn folded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut in_digits = false;
    for c in path.chars() {
        let is_digit = c.is_ascii_digit();
        match (is_digit, in_digits) {
            (true, true) => {}
            (true, false) => out.push('0'),
            (false, _) => out.push(c),
        }
        in_digits = is_digit;
    }
    out
}
