use super::question::{Question, RecordKind};
use crate::base::Transport;
use crate::limits::ADDRESSES_PER_NAME_MAX;
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::message::RecordSection;
use domain::base::wire::ParseError;
use domain::base::{Message, ParsedName, ToName, Ttl};
use domain::rdata::{A, Aaaa, Cname, Soa};
use std::net::IpAddr;

/// What some bytes from a name server say about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No answer to this question. The answer may still come.
    Stray,
    /// An answer to this question that tells nothing; over TCP it may be better.
    Unfit(Unfit),
    /// The server does not know EDNS, or says so.
    NotUnderstood,
    /// The server cannot or will not answer.
    Fault(u8),
    /// There is no such name, for so long as far as the server knows.
    NoSuchName { ttl_s: Option<u32> },
    /// The name is there, without an address of the kind that was asked for.
    NoAddress { ttl_s: Option<u32> },
    /// The addresses at the end of the chain of aliases, each once, in the server's order. The time is that of the
    /// shortest-lived record on the way.
    Addresses { addresses: Vec<IpAddr>, ttl_s: u32 },
}

/// Why an answer tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    Truncated,
    /// The name came back in another case than it was sent.
    Spelling,
    /// It cannot be read, or its aliases run in a circle.
    Malformed,
}

/// Aliases followed to an address.
const ALIASES_MAX: usize = 16;
/// Aliases and addresses of one answer that are looked at; the rest is only read through, so that a cut shows.
const FACTS_MAX: usize = 512;
/// No message of 64 KiB holds more records: each takes at least eleven bytes.
const RECORDS_MAX: usize = (1 << 16) / 11;

type Parsed<'a> = ParsedName<&'a [u8]>;

/// A record of the answer section that matters, with its owner and its time.
struct Fact<'a> {
    owner: Parsed<'a>,
    ttl_s: u32,
    what: What<'a>,
}

enum What<'a> {
    Alias(Parsed<'a>),
    Address(IpAddr),
}

impl Question {
    /// Reads what came from the server that was asked.
    pub fn read(&self, bytes: &[u8], over: Transport) -> Reply {
        let Ok(message) = Message::from_octets(bytes) else {
            return Reply::Stray;
        };
        let header = message.header();
        if header.id() != self.id || !header.qr() || header.opcode() != Opcode::QUERY {
            return Reply::Stray;
        }
        let rcode = header.rcode();
        if message.header_counts().qdcount() == 0 {
            // Some servers repeat no question that they did not understand. All it can bring about is that
            // somebody else is asked.
            return match fault(rcode) {
                Some(reply) => reply,
                None => Reply::Stray,
            };
        }
        let Ok(question) = message.sole_question() else {
            return Reply::Stray;
        };
        let same = question.qname().name_eq(&self.name)
            && question.qtype() == self.kind.rtype()
            && question.qclass() == Class::IN;
        if !same {
            return Reply::Stray;
        }
        if let Some(reply) = fault(rcode) {
            return reply;
        }
        let as_spelled =
            question.qname().iter().zip(self.name.iter()).all(|(a, b)| a.as_slice() == b.as_slice());
        if over == Transport::Udp && !as_spelled {
            return Reply::Unfit(Unfit::Spelling);
        }
        if header.tc() {
            return Reply::Unfit(Unfit::Truncated);
        }
        self.records(&message).unwrap_or(Reply::Unfit(Unfit::Malformed))
    }

    fn records(&self, message: &Message<&[u8]>) -> Result<Reply, ParseError> {
        let header = message.header();
        if header.rcode() == Rcode::NXDOMAIN {
            let (ttl_s, _) = authority(message)?;
            return Ok(Reply::NoSuchName { ttl_s });
        }
        let facts = facts(message.answer()?, self.kind)?;
        let Some((addresses, ttl_s)) = follow(&self.name, &facts) else {
            return Ok(Reply::Unfit(Unfit::Malformed));
        };
        if !addresses.is_empty() {
            return Ok(Reply::Addresses { addresses, ttl_s });
        }
        let (ttl_s, referred) = authority(message)?;
        // Pointing at other servers is not an answer (RFC 2308, 2.2.1): this one does not resolve for us.
        if ttl_s.is_none() && referred && !header.aa() {
            return Ok(Reply::Fault(Rcode::NOERROR.to_int()));
        }
        Ok(Reply::NoAddress { ttl_s })
    }
}

/// Codes that say nothing about the name.
fn fault(rcode: Rcode) -> Option<Reply> {
    match rcode {
        Rcode::NOERROR | Rcode::NXDOMAIN => None,
        Rcode::FORMERR | Rcode::NOTIMP => Some(Reply::NotUnderstood),
        other => Some(Reply::Fault(other.to_int())),
    }
}

/// The aliases and addresses of an answer.
fn facts<'a>(section: RecordSection<'a, &'a [u8]>, kind: RecordKind) -> Result<Vec<Fact<'a>>, ParseError> {
    let mut facts = Vec::new();
    for record in section.take(RECORDS_MAX) {
        let record = record?;
        if record.class() != Class::IN || facts.len() == FACTS_MAX {
            continue;
        }
        let what = match (record.rtype(), kind) {
            (Rtype::CNAME, _) => record
                .to_record::<Cname<Parsed<'a>>>()?
                .map(|record| What::Alias(record.into_data().into_cname())),
            (Rtype::A, RecordKind::A) => {
                record.to_record::<A>()?.map(|record| What::Address(record.data().addr().into()))
            }
            (Rtype::AAAA, RecordKind::Aaaa) => {
                record.to_record::<Aaaa>()?.map(|record| What::Address(record.data().addr().into()))
            }
            _ => None,
        };
        if let Some(what) = what {
            facts.push(Fact { owner: record.owner().deref_octets(), ttl_s: seconds(record.ttl()), what });
        }
    }
    Ok(facts)
}

/// Goes from alias to alias until there are addresses or no further alias. `None` if that takes too long, as it
/// does in a circle.
fn follow(from: &impl ToName, facts: &[Fact<'_>]) -> Option<(Vec<IpAddr>, u32)> {
    let mut alias: Option<&Parsed<'_>> = None;
    let mut ttl_s = u32::MAX;
    for _ in 0..=ALIASES_MAX {
        let is_here = |fact: &&Fact<'_>| match alias {
            None => fact.owner.name_eq(from),
            Some(name) => fact.owner.name_eq(name),
        };
        let mut next = None;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for fact in facts.iter().filter(is_here) {
            match &fact.what {
                What::Address(ip) => {
                    ttl_s = ttl_s.min(fact.ttl_s);
                    if addresses.len() < ADDRESSES_PER_NAME_MAX && !addresses.contains(ip) {
                        addresses.push(*ip);
                    }
                }
                What::Alias(name) => next = next.or(Some((name, fact.ttl_s))),
            }
        }
        match next {
            Some((name, alias_ttl_s)) if addresses.is_empty() => {
                ttl_s = ttl_s.min(alias_ttl_s);
                alias = Some(name);
            }
            _ => return Some((addresses, ttl_s)),
        }
    }
    None
}

/// How long a "no" holds by the zone's SOA (RFC 2308), and whether other servers are named.
fn authority(message: &Message<&[u8]>) -> Result<(Option<u32>, bool), ParseError> {
    let mut referred = false;
    for record in message.authority()?.take(RECORDS_MAX) {
        let record = record?;
        match record.rtype() {
            Rtype::SOA => {
                if let Some(soa) = record.to_record::<Soa<Parsed<'_>>>()? {
                    return Ok((Some(seconds(soa.ttl()).min(seconds(soa.data().minimum()))), referred));
                }
            }
            Rtype::NS => referred = true,
            _ => {}
        }
    }
    Ok((None, referred))
}

/// A time with its top bit set is none at all (RFC 2181, 8).
fn seconds(ttl: Ttl) -> u32 {
    let seconds = ttl.as_secs();
    if seconds > i32::MAX as u32 { 0 } else { seconds }
}
