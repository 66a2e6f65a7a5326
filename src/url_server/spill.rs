use crate::base::{u32_at, u64_at};
use crate::proto::http1::Validators;
use crate::proto::job::{Candidate, Chain, DocKind, Held, Job, Poll, Provenance};
use crate::proto::url::CrawlUrl;
use std::net::{IpAddr, Ipv6Addr};

/// What the disk is asked to do with leftovers. The role never touches a file; the engine does, and answers with
/// [`SpillEvent`].
#[derive(Debug, PartialEq, Eq)]
pub enum SpillAsk {
    /// Keep these bytes under this number; answered by `Written`, or by nothing if there is no room.
    Write { chunk: u32, bytes: Vec<u8> },
    /// Give the bytes of this number back and forget them; answered by `Read`.
    Read { chunk: u32 },
    /// Forget the bytes of this number, if they are there: they were taken back before they were written. Answered by
    /// nothing.
    Forget { chunk: u32 },
}

#[derive(Debug, PartialEq, Eq)]
pub enum SpillEvent {
    Written { chunk: u32 },
    Read { chunk: u32, bytes: Vec<u8> },
}

/// A run of leftovers in the order they came, as bytes. They are kept until the disk has them.
pub(super) struct Chunk {
    pub number: u32,
    pub urls: u32,
    bytes: Option<Vec<u8>>,
}

// A job: doc_id 4, depth 2, hops 1, flags 1, address 16, url length 2, via length 2, kind 1, then both texts. Of further
// addresses there are a byte with their count and for each a flag and 16 bytes. Then comes the chain; it is as long as
// there are hops, with 8 bytes each. Of what the store holds there are a segment 8, two lengths of 2, and two texts; of a
// poll its due time 4, digest 8, checksum 8, a length of 1, and its reason.
const FIXED: usize = 29;
const SEED_CHAIN: u8 = 1;
const HAS_VIA: u8 = 2;
const IS_V4: u8 = 4;
const HEAD_ONLY: u8 = 8;
const HAS_CHAIN: u8 = 16;
const HAS_OTHERS: u8 = 32;
/// Beside the kind.
const HAS_HELD: u8 = 4;
const HAS_POLL: u8 = 8;
const ADDRESS: usize = 17;

impl Chunk {
    pub fn new(number: u32, jobs: &[Job]) -> Chunk {
        let mut bytes = Vec::new();
        for Job { candidate, ip, others } in jobs {
            let via = candidate.via.as_deref();
            let Provenance { kind, depth, hops, seed_chain, head_only } = candidate.provenance;
            let mut flags = if seed_chain { SEED_CHAIN } else { 0 };
            flags |= if via.is_some() { HAS_VIA } else { 0 };
            flags |= if head_only { HEAD_ONLY } else { 0 };
            let chain = candidate.chain.as_ref().map(|chain| &chain.0).filter(|chain| !chain.is_empty());
            flags |= if chain.is_some() { HAS_CHAIN } else { 0 };
            debug_assert!(chain.is_none_or(|chain| chain.len() == usize::from(hops)));
            flags |= if others.is_some() { HAS_OTHERS } else { 0 };
            let (v4, octets) = address_bytes(*ip);
            flags |= v4;
            let (url, via) = (candidate.url.as_str(), via.unwrap_or_default());
            bytes.extend_from_slice(&candidate.doc_id.to_le_bytes());
            bytes.extend_from_slice(&depth.to_le_bytes());
            bytes.extend_from_slice(&[hops, flags]);
            bytes.extend_from_slice(&octets);
            // A URL has at most 8,000 bytes.
            bytes.extend_from_slice(&(url.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&(via.len() as u16).to_le_bytes());
            let held = candidate.held.as_deref();
            let poll = candidate.poll.as_deref();
            let bit = |set: bool, bit: u8| if set { bit } else { 0 };
            bytes.push(kind as u8 | bit(held.is_some(), HAS_HELD) | bit(poll.is_some(), HAS_POLL));
            bytes.extend_from_slice(url.as_bytes());
            bytes.extend_from_slice(via.as_bytes());
            if let Some(others) = others {
                let others = &others[..others.len().min(usize::from(u8::MAX))];
                bytes.push(others.len() as u8);
                for &other in others {
                    let (v4, octets) = address_bytes(other);
                    bytes.push(v4);
                    bytes.extend_from_slice(&octets);
                }
            }
            for print in chain.into_iter().flatten() {
                bytes.extend_from_slice(&print.to_le_bytes());
            }
            if let Some(Held { validators, segment }) = held {
                let Validators { etag, last_modified } = validators;
                bytes.extend_from_slice(&segment.to_le_bytes());
                bytes.extend_from_slice(&(etag.len() as u16).to_le_bytes());
                bytes.extend_from_slice(&(last_modified.len() as u16).to_le_bytes());
                bytes.extend_from_slice(etag);
                bytes.extend_from_slice(last_modified);
            }
            if let Some(Poll { due_s, why, digest, checksum }) = poll {
                bytes.extend_from_slice(&due_s.to_le_bytes());
                bytes.extend_from_slice(&digest.to_le_bytes());
                bytes.extend_from_slice(&checksum.to_le_bytes());
                let why = &why.as_bytes()[..why.len().min(usize::from(u8::MAX))];
                bytes.push(why.len() as u8);
                bytes.extend_from_slice(why);
            }
        }
        Chunk { number, urls: jobs.len() as u32, bytes: Some(bytes) }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.clone().unwrap_or_default()
    }

    /// Whether it never left memory.
    pub fn is_held(&self) -> bool {
        self.bytes.is_some()
    }

    pub fn forget_bytes(&mut self) {
        self.bytes = None;
    }

    /// The jobs of a chunk that is held.
    pub fn jobs(self) -> Vec<Job> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        self.jobs_in(bytes)
    }

    /// The jobs in what the disk gave back. It is our own file, written moments ago: bytes that differ from what was
    /// written are a fault of the machine, and URLs would be lost silently if the process continued.
    pub fn jobs_in(&self, bytes: &[u8]) -> Vec<Job> {
        let mut jobs = Vec::with_capacity(self.urls as usize);
        let mut rest = bytes;
        while let Some(job) = read_job(&mut rest) {
            jobs.push(job);
        }
        assert!(
            rest.is_empty() && jobs.len() == self.urls as usize,
            "a chunk of leftovers came back damaged"
        );
        jobs
    }
}

fn read_job(rest: &mut &[u8]) -> Option<Job> {
    let (fixed, texts) = rest.split_at_checked(FIXED)?;
    let u16_at = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
    let (url_len, via_len) = (usize::from(u16_at(24)), usize::from(u16_at(26)));
    let (url, texts) = texts.split_at_checked(url_len)?;
    let (via, mut after) = texts.split_at_checked(via_len)?;
    let flags = fixed[7];
    let ip = address_in(flags, &fixed[8..24])?;
    let mut others = None;
    if flags & HAS_OTHERS != 0 {
        let (&count, rest) = after.split_first()?;
        let (addresses, rest) = rest.split_at_checked(usize::from(count) * ADDRESS)?;
        let read = addresses.chunks_exact(ADDRESS).map(|bytes| address_in(bytes[0], &bytes[1..]));
        others = Some(read.collect::<Option<_>>()?);
        after = rest;
    }
    let chain_len = if flags & HAS_CHAIN != 0 { usize::from(fixed[6]) } else { 0 };
    let (chain, after) = after.split_at_checked(8 * chain_len)?;
    let chain: Vec<u64> =
        chain.chunks_exact(8).filter_map(|print| Some(u64::from_le_bytes(print.try_into().ok()?))).collect();
    let (held, after) = if fixed[28] & HAS_HELD != 0 { read_held(after)? } else { (None, after) };
    let (poll, after) = if fixed[28] & HAS_POLL != 0 { read_poll(after)? } else { (None, after) };
    let provenance = Provenance {
        kind: DocKind::from_bits(fixed[28]),
        depth: u16_at(4),
        hops: fixed[6],
        seed_chain: flags & SEED_CHAIN != 0,
        head_only: flags & HEAD_ONLY != 0,
    };
    let candidate = Candidate {
        doc_id: u32::from_le_bytes(fixed[..4].try_into().ok()?),
        url: CrawlUrl::from_normal(str::from_utf8(url).ok()?).ok()?,
        provenance,
        held,
        chain: (!chain.is_empty()).then(|| Box::new(Chain(chain))),
        via: if flags & HAS_VIA != 0 { Some(str::from_utf8(via).ok()?.into()) } else { None },
        // Of use until its name has resolved.
        host_had: false,
        poll,
    };
    *rest = after;
    Some(Job { candidate, ip, others })
}

fn read_held(bytes: &[u8]) -> Option<(Option<Box<Held>>, &[u8])> {
    let (fixed, texts) = bytes.split_at_checked(12)?;
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
    let (etag, texts) = texts.split_at_checked(u16_at(8))?;
    let (last_modified, after) = texts.split_at_checked(u16_at(10))?;
    let validators = Validators { etag: etag.into(), last_modified: last_modified.into() };
    let segment = u64::from_le_bytes(fixed[..8].try_into().ok()?);
    Some((Some(Box::new(Held { validators, segment })), after))
}

fn read_poll(bytes: &[u8]) -> Option<(Option<Box<Poll>>, &[u8])> {
    let (fixed, after) = bytes.split_at_checked(21)?;
    let (why, after) = after.split_at_checked(usize::from(fixed[20]))?;
    let poll = Poll {
        due_s: u32_at(fixed, 0),
        why: str::from_utf8(why).ok()?.into(),
        digest: u64_at(fixed, 4),
        checksum: u64_at(fixed, 12),
    };
    Some((Some(Box::new(poll)), after))
}

/// An address of either kind in the room of the longer one, and the flag that tells them apart.
fn address_bytes(ip: IpAddr) -> (u8, [u8; 16]) {
    match ip {
        IpAddr::V4(v4) => (IS_V4, v4.to_ipv6_mapped().octets()),
        IpAddr::V6(v6) => (0, v6.octets()),
    }
}

fn address_in(flags: u8, octets: &[u8]) -> Option<IpAddr> {
    let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?);
    Some(match v6.to_ipv4_mapped() {
        Some(v4) if flags & IS_V4 != 0 => IpAddr::V4(v4),
        _ => IpAddr::V6(v6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_back_as_they_went() {
        let url = |text: &str| CrawlUrl::parse(text).unwrap();
        let seed = Job::at("1.2.3.4".parse().unwrap(), Candidate::seed(7, url("http://a/")));
        let mut found = seed.clone();
        let kind = DocKind::Sitemap;
        found.candidate.provenance =
            Provenance { kind, depth: 3, hops: 2, seed_chain: false, head_only: true };
        found.candidate.via = Some("http://b/x?y".into());
        let validators = Validators { etag: (*b"\"x\"").into(), last_modified: Box::default() };
        found.candidate.held = Some(Box::new(Held { validators, segment: 1 << 40 }));
        let (due_s, why) = (u32::MAX, "backoff".into());
        found.candidate.poll = Some(Box::new(Poll { due_s, why, digest: 1 << 63, checksum: 7 }));
        found.candidate.chain = Some(Box::new(Chain(vec![1, u64::MAX])));
        found.ip = "::ffff:1.2.3.4".parse().unwrap();
        let mut far = seed.clone();
        far.ip = "2001:db8::1".parse().unwrap();
        far.others = Some(["::ffff:9.9.9.9", "9.9.9.9", "::1"].map(|ip| ip.parse().unwrap()).into());
        let jobs = vec![seed.clone(), found, far, seed];
        let chunk = Chunk::new(3, &jobs);
        assert_eq!(chunk.jobs_in(&chunk.bytes()), jobs);
        assert_eq!(chunk.jobs(), jobs);
    }

    #[test]
    #[should_panic(expected = "damaged")]
    fn a_damaged_chunk_is_never_taken_for_a_short_one() {
        let url = CrawlUrl::parse("http://a/").unwrap();
        let job = Job::at("1.2.3.4".parse().unwrap(), Candidate::seed(1, url));
        let chunk = Chunk::new(0, &[job.clone(), job]);
        let bytes = chunk.bytes();
        chunk.jobs_in(&bytes[..bytes.len() - 1]);
    }
}
