use super::Credentials;
use crate::limits::CHALLENGE_PARAM_BYTES_MAX;
use std::io::Write;

/// A challenge of the Digest scheme (RFC 7616), complete and checked: none of its texts has a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    hash: Hash,
    /// What is hashed for user and password covers the nonces too, once for all answers.
    session: bool,
    /// The challenge names its algorithm; only then does the answer.
    named: bool,
    /// Protection of the request line with a count. Without it the answer is that of RFC 2069.
    qop_auth: bool,
    userhash: bool,
    utf8: bool,
    pub stale: bool,
    /// Answers given to this nonce.
    count: u32,
    /// The client's nonce in the first answer, which a session keeps.
    first_cnonce: Option<u64>,
}

/// From weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hash {
    Md5,
    Sha256,
    Sha512_256,
}

/// One request, as the digest covers it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub method: &'a str,
    pub target: &'a str,
}

impl Digest {
    /// The larger, the better it keeps the password.
    pub fn strength(&self) -> u8 {
        1 + 2 * self.hash as u8 + u8::from(self.qop_auth)
    }

    pub fn answer(
        &mut self,
        credentials: &Credentials,
        request: Request<'_>,
        cnonce: u64,
        out: &mut Vec<u8>,
    ) {
        // Some servers remember what a session began with, others look at each answer alone. Both see the same if
        // the client's nonce stays.
        let cnonce = match self.session {
            true => *self.first_cnonce.get_or_insert(cnonce),
            false => cnonce,
        };
        self.answer_with(credentials, request, format!("{cnonce:016x}").as_bytes(), out);
    }

    pub fn answer_with(
        &mut self,
        credentials: &Credentials,
        request: Request<'_>,
        cnonce: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.count = self.count.saturating_add(1);
        let count = format!("{:08x}", self.count);
        let response = self.response(credentials, request, cnonce, count.as_bytes());

        out.extend_from_slice(b"Digest ");
        self.write_user(credentials, out);
        write_quoted(b", realm=", &self.realm, out);
        write_quoted(b", uri=", request.target.as_bytes(), out);
        if self.named {
            out.extend_from_slice(b", algorithm=");
            out.extend_from_slice(self.hash.name(self.session).as_bytes());
        }
        write_quoted(b", nonce=", &self.nonce, out);
        if self.qop_auth {
            out.extend_from_slice(b", qop=auth, nc=");
            out.extend_from_slice(count.as_bytes());
        }
        // A session needs the client's nonce even where there is no qop.
        if self.qop_auth || self.session {
            write_quoted(b", cnonce=", cnonce, out);
        }
        write_quoted(b", response=", response.as_bytes(), out);
        if let Some(opaque) = &self.opaque {
            write_quoted(b", opaque=", opaque, out);
        }
        if self.userhash {
            out.extend_from_slice(b", userhash=true");
        }
    }

    fn response(
        &self,
        credentials: &Credentials,
        request: Request<'_>,
        cnonce: &[u8],
        count: &[u8],
    ) -> String {
        let (user, password) = (credentials.user.as_bytes(), credentials.password.as_bytes());
        let mut secret = self.hash.of(&[user, &self.realm, password]);
        if self.session {
            secret = self.hash.of(&[secret.as_bytes(), &self.nonce, cnonce]);
        }
        let asked = self.hash.of(&[request.method.as_bytes(), request.target.as_bytes()]);
        match self.qop_auth {
            true => {
                let parts =
                    [secret.as_bytes(), &self.nonce, count, cnonce, b"auth".as_slice(), asked.as_bytes()];
                self.hash.of(&parts)
            }
            false => self.hash.of(&[secret.as_bytes(), &self.nonce, asked.as_bytes()]),
        }
    }

    /// The user hashed, if the site wishes; percent-encoded where it knows UTF-8 and the name needs it; else plain.
    fn write_user(&self, credentials: &Credentials, out: &mut Vec<u8>) {
        let user = credentials.user.as_bytes();
        if self.userhash {
            write_quoted(b"username=", self.hash.of(&[user, &self.realm]).as_bytes(), out);
        } else if user.iter().any(|byte| byte.is_ascii_control() || (self.utf8 && !byte.is_ascii())) {
            out.extend_from_slice(b"username*=UTF-8''");
            for &byte in user {
                match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    true => out.push(byte),
                    false => write!(out, "%{byte:02X}").expect("a Vec takes all"),
                }
            }
        } else {
            write_quoted(b"username=", user, out);
        }
    }
}

/// Appends a name with its equals sign, and a quoted string. A control character would end our header line or garble
/// it; there is none in what a challenge or a URL holds, and one from elsewhere is left out.
fn write_quoted(name: &[u8], text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(b'"');
    for &byte in text.iter().filter(|byte| !byte.is_ascii_control()) {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

impl Hash {
    /// An algorithm by its name, and whether it is for a session.
    fn named(name: &[u8]) -> Option<(Hash, bool)> {
        [Hash::Md5, Hash::Sha256, Hash::Sha512_256]
            .into_iter()
            .flat_map(|hash| [(hash, false), (hash, true)])
            .find(|(hash, session)| hash.name(*session).as_bytes().eq_ignore_ascii_case(name))
    }

    fn name(self, session: bool) -> &'static str {
        match (self, session) {
            (Hash::Md5, false) => "MD5",
            (Hash::Md5, true) => "MD5-sess",
            (Hash::Sha256, false) => "SHA-256",
            (Hash::Sha256, true) => "SHA-256-sess",
            (Hash::Sha512_256, false) => "SHA-512-256",
            (Hash::Sha512_256, true) => "SHA-512-256-sess",
        }
    }

    /// The hash of these parts with colons between them, in lower-case hex.
    fn of(self, parts: &[&[u8]]) -> String {
        match self {
            Hash::Md5 => hex_of::<md5::Md5>(parts),
            Hash::Sha256 => hex_of::<sha2::Sha256>(parts),
            Hash::Sha512_256 => hex_of::<sha2::Sha512_256>(parts),
        }
    }
}

fn hex_of<H: sha2::Digest>(parts: &[&[u8]]) -> String {
    let mut hash = H::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hash.update(b":");
        }
        hash.update(part);
    }
    let nibble = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    hash.finalize().iter().flat_map(|byte| [nibble(byte >> 4), nibble(byte & 15)]).collect()
}

/// A challenge as it is read, parameter by parameter.
#[derive(Default)]
pub(super) struct DigestDraft {
    realm: Option<Vec<u8>>,
    nonce: Option<Vec<u8>>,
    opaque: Option<Vec<u8>>,
    algorithm: Option<Vec<u8>>,
    qop: Option<Vec<u8>>,
    stale: Option<Vec<u8>>,
    userhash: Option<Vec<u8>>,
    charset: Option<Vec<u8>>,
    /// A control character, a text too long, or a parameter twice, which would leave two readings.
    bad: bool,
}

impl DigestDraft {
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.bad |= value.iter().any(u8::is_ascii_control);
        let place = match name.to_ascii_lowercase().as_slice() {
            b"realm" => &mut self.realm,
            b"nonce" => &mut self.nonce,
            b"opaque" => &mut self.opaque,
            b"algorithm" => &mut self.algorithm,
            b"qop" => &mut self.qop,
            b"stale" => &mut self.stale,
            b"userhash" => &mut self.userhash,
            b"charset" => &mut self.charset,
            _ => return,
        };
        self.bad |= place.is_some() || value.len() > CHALLENGE_PARAM_BYTES_MAX;
        if !self.bad {
            *place = Some(value.to_vec());
        }
    }

    /// The challenge, if it is one that we can answer.
    pub fn finish(self) -> Option<Digest> {
        let is = |value: &Option<Vec<u8>>, word: &str| {
            value.as_ref().is_some_and(|value| value.eq_ignore_ascii_case(word.as_bytes()))
        };
        if self.bad {
            return None;
        }
        let (hash, session) = match &self.algorithm {
            Some(name) => Hash::named(name)?,
            None => (Hash::Md5, false),
        };
        let qop = self.qop.unwrap_or_default();
        let mut offers =
            qop.split(|byte| matches!(byte, b',' | b' ' | b'\t')).filter(|word| !word.is_empty());
        let qop_auth = match offers.clone().next() {
            // The body under protection too (auth-int) is asked for by nobody who serves a GET.
            Some(_) => offers.any(|word| word.eq_ignore_ascii_case(b"auth")).then_some(true)?,
            None => false,
        };
        Some(Digest {
            realm: self.realm?,
            nonce: self.nonce.filter(|nonce| !nonce.is_empty())?,
            opaque: self.opaque,
            hash,
            session,
            named: self.algorithm.is_some(),
            qop_auth,
            userhash: is(&self.userhash, "true"),
            utf8: is(&self.charset, "utf-8"),
            stale: is(&self.stale, "true"),
            count: 0,
            first_cnonce: None,
        })
    }
}
