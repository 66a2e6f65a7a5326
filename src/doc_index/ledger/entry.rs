use super::origin::Origin;
use crate::base::front_code::{put_text, take_text};
use crate::base::varint::take_bytes;

/// One thing that the ledger tells. The first byte of each has a tag in its three lowest bits, and for URLs the kind
/// and flags above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    /// A URL that was new; its number is the next.
    Doc { origin: Origin, url: &'a str },
    /// A URL of which only the disk could tell whether it is known. It counts unless a `Resolved` follows.
    Unresolved { origin: Origin, url: &'a str },
    /// All unresolved URLs up to here were resolved.
    Resolved,
    /// Where a seed's redirects ended: in scope.
    Scope { url: &'a str },
    /// A process began to work on this, by these rules.
    Run { rules: u64 },
    /// In scope, as another node says.
    PeerScope { url: &'a str },
}

const TAG: u8 = 7;
pub(crate) const DOC: u8 = 0;
const UNRESOLVED: u8 = 1;
const RESOLVED: u8 = 2;
const SCOPE: u8 = 3;
const RUN: u8 = 4;
const PEER_SCOPE: u8 = 5;

impl Entry<'_> {
    /// Writes an entry. A URL is told by how much of it is as in the one before, `last`, and the rest.
    pub fn write(&self, out: &mut Vec<u8>, last: &mut String) {
        match self {
            Entry::Doc { origin, url } | Entry::Unresolved { origin, url } => {
                origin.write(out, if matches!(self, Entry::Doc { .. }) { DOC } else { UNRESOLVED });
                put_text(out, url, last);
            }
            Entry::Resolved => out.push(RESOLVED),
            Entry::Scope { url } | Entry::PeerScope { url } => {
                out.push(if matches!(self, Entry::Scope { .. }) { SCOPE } else { PEER_SCOPE });
                put_text(out, url, last);
            }
            Entry::Run { rules } => {
                out.push(RUN);
                out.extend_from_slice(&rules.to_le_bytes());
            }
        }
    }

    /// Takes an entry off the front. `last` is the URL before, and becomes this one.
    pub fn read<'a>(bytes: &mut &[u8], last: &'a mut String) -> Option<Entry<'a>> {
        let first = take_bytes(bytes, 1)?[0];
        Some(match first & TAG {
            tag @ (DOC | UNRESOLVED) => {
                let origin = Origin::read(first, bytes)?;
                let url = take_text(bytes, last)?;
                if tag == DOC { Entry::Doc { origin, url } } else { Entry::Unresolved { origin, url } }
            }
            RESOLVED => Entry::Resolved,
            SCOPE => Entry::Scope { url: take_text(bytes, last)? },
            PEER_SCOPE => Entry::PeerScope { url: take_text(bytes, last)? },
            RUN => Entry::Run { rules: u64::from_le_bytes(take_bytes(bytes, 8)?.try_into().ok()?) },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{DocKind, Provenance};

    #[test]
    fn entries_come_back_as_they_went() {
        let provenance = Provenance {
            kind: DocKind::Sitemap,
            depth: u16::MAX,
            hops: 10,
            seed_chain: false,
            head_only: true,
        };
        let odd = Origin { via: u32::MAX, provenance, priority: 15, hits: u32::MAX };
        let entries = [
            Entry::Run { rules: u64::MAX },
            Entry::Doc { origin: Origin::SEED, url: "http://a.test/one" },
            Entry::Doc { origin: odd, url: "http://a.test/one/two" },
            Entry::Scope { url: "http://a.test/" },
            Entry::PeerScope { url: "http://a.test/there" },
            Entry::Unresolved { origin: Origin::link(7, 2), url: "http://ä.test/ö" },
            Entry::Unresolved { origin: Origin::link(7, 2), url: "http://ä.test/õ" },
            Entry::Resolved,
        ];
        let (mut out, mut last) = (Vec::new(), String::new());
        entries.iter().for_each(|entry| entry.write(&mut out, &mut last));
        let (mut rest, mut last) = (&out[..], String::new());
        for entry in &entries {
            assert_eq!(Entry::read(&mut rest, &mut last).as_ref(), Some(entry));
        }
        assert!(rest.is_empty());
        // Cut anywhere, it is never taken for something else.
        for cut in 0..out.len() {
            let (mut rest, mut last) = (&out[..cut], String::new());
            for entry in &entries {
                match Entry::read(&mut rest, &mut last) {
                    Some(read) => assert_eq!(&read, entry),
                    None => break,
                }
            }
        }
    }
}
