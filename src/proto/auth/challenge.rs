use super::base64::write_base64;
use super::digest::{Digest, DigestDraft, Request};
use super::items::{Item, Items};
use super::{AuthKind, Credentials};
use crate::limits::CHALLENGE_BYTES_MAX;

/// What a site wants, and how often it was answered. It holds no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: Scheme,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Basic,
    Digest(Box<Digest>),
}

impl Challenge {
    /// The strongest challenge that we can answer among all WWW-Authenticate values of a 401; of equals the first.
    pub fn choose<'a>(values: impl Iterator<Item = &'a [u8]>, allowed: AuthKind) -> Option<Challenge> {
        let mut best: Option<Challenge> = None;
        let mut offer = |draft: Draft| {
            let stronger =
                |found: &Challenge| best.as_ref().is_none_or(|best| found.strength() > best.strength());
            if let Some(found) = draft.finish(allowed).filter(stronger) {
                best = Some(found);
            }
        };
        for value in values.filter(|value| value.len() <= CHALLENGE_BYTES_MAX) {
            let mut draft = Draft::Other;
            for item in Items::new(value) {
                match item {
                    Item::Scheme(name) => offer(std::mem::replace(&mut draft, Draft::begin(name))),
                    Item::Param { name, value } => draft.set(name, &value),
                    Item::Broken => draft = Draft::Other,
                }
            }
            offer(draft);
        }
        best
    }

    /// What goes with the first request already, before any challenge.
    pub fn preemptive(kind: AuthKind) -> Option<Challenge> {
        (kind == AuthKind::Basic).then_some(Challenge { scheme: Scheme::Basic })
    }

    /// Appends the value of the Authorization header for one request. `target` is the path and query as the request
    /// line has them; `cnonce` is random, and another one for every request.
    pub fn answer(
        &mut self,
        credentials: &Credentials,
        method: &str,
        target: &str,
        cnonce: u64,
        out: &mut Vec<u8>,
    ) {
        match &mut self.scheme {
            Scheme::Basic => {
                out.extend_from_slice(b"Basic ");
                write_base64(format!("{}:{}", credentials.user, credentials.password).as_bytes(), out);
            }
            Scheme::Digest(digest) => digest.answer(credentials, Request { method, target }, cnonce, out),
        }
    }

    /// Of a challenge that came after an answer: only the nonce was too old, and another try is worth it. The site
    /// may say so for ever, so it is for the caller to count tries.
    pub fn is_stale(&self) -> bool {
        matches!(&self.scheme, Scheme::Digest(digest) if digest.stale)
    }

    /// Basic is the weakest.
    fn strength(&self) -> u8 {
        match &self.scheme {
            Scheme::Basic => 0,
            Scheme::Digest(digest) => digest.strength(),
        }
    }
}

/// A challenge while its parameters come in.
enum Draft {
    /// A scheme that we do not speak, or none yet.
    Other,
    /// Its realm tells nothing that an answer needs.
    Basic,
    Digest(Box<DigestDraft>),
}

impl Draft {
    fn begin(scheme: &[u8]) -> Draft {
        if scheme.eq_ignore_ascii_case(b"digest") {
            Draft::Digest(Box::default())
        } else if scheme.eq_ignore_ascii_case(b"basic") {
            Draft::Basic
        } else {
            Draft::Other
        }
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        if let Draft::Digest(draft) = self {
            draft.set(name, value);
        }
    }

    fn finish(self, allowed: AuthKind) -> Option<Challenge> {
        let scheme = match self {
            Draft::Basic if allowed != AuthKind::Digest => Scheme::Basic,
            Draft::Digest(draft) if allowed != AuthKind::Basic => Scheme::Digest(Box::new(draft.finish()?)),
            _ => return None,
        };
        Some(Challenge { scheme })
    }
}

#[cfg(test)]
impl Challenge {
    /// An answer with a client's nonce as an RFC has it.
    pub(super) fn answer_with(
        &mut self,
        credentials: &Credentials,
        method: &str,
        target: &str,
        cnonce: &str,
    ) -> String {
        let Scheme::Digest(digest) = &mut self.scheme else { panic!("not a digest") };
        let mut out = Vec::new();
        digest.answer_with(credentials, Request { method, target }, cnonce.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }
}
