//! How a document goes over the wire: with its length or in chunks, as it is or in gzip.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::answer::{HTML, PageRequest, Then, push_body, push_measured};
use super::rng::{Purpose, Rng};
use super::site::Site;

const CHUNK_BYTES_MAX: u32 = 4096;

/// Packs documents, one after the other in the same memory.
#[derive(Default)]
pub struct Packer {
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Packer {
    /// What `fill` appends, in gzip. The same bytes make the same bytes: there is neither a name nor a time in it.
    fn pack(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.plain.clear();
        self.packed.clear();
        fill(&mut self.plain);
        let mut encoder = GzEncoder::new(&mut self.packed, Compression::fast());
        let done = encoder.write_all(&self.plain).and_then(|()| encoder.finish().map(|_| ()));
        done.expect("memory takes all bytes");
        &self.packed
    }
}

impl Site {
    /// Whether a document comes in chunks.
    pub fn is_chunked(&self, host: u32, page: u32) -> bool {
        self.spec.chunked > 0.0
            && Rng::of_page(self.spec.seed, Purpose::Framing, host, page).unit() < self.spec.chunked
    }

    /// Whether a document comes in gzip, to a client that takes it.
    pub fn is_gzip(&self, host: u32, page: u32) -> bool {
        self.spec.gzip > 0.0
            && Rng::of_page(self.spec.seed, Purpose::Coding, host, page).unit() < self.spec.gzip
    }

    /// The answer of a page that is a document.
    pub(super) fn push_framed(
        &self,
        request: PageRequest,
        packer: Option<&mut Packer>,
        out: &mut Vec<u8>,
    ) -> Then {
        let PageRequest { host, page, port, head_only } = request;
        let body = |out: &mut Vec<u8>| self.push_document(host, page, port, out);
        let is_gzip = self.is_gzip(host, page);
        let packed = packer.filter(|_| is_gzip).map(|packer| packer.pack(body));
        self.push_head(200, HTML, out);
        if is_gzip {
            // Whether or not this client takes it.
            out.extend_from_slice(b"Vary: Accept-Encoding\r\n");
        }
        if packed.is_some() {
            out.extend_from_slice(b"Content-Encoding: gzip\r\n");
        }
        match packed {
            _ if self.is_chunked(host, page) => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                if !head_only {
                    let start = out.len();
                    match packed {
                        Some(packed) => out.extend_from_slice(packed),
                        None => body(out),
                    }
                    chunk(out, start, &mut Rng::of_page(self.spec.seed, Purpose::Framing, host, page));
                }
            }
            Some(packed) => push_body(packed, head_only, out),
            None => push_measured(self.document_bytes(host, page), head_only, out, body),
        }
        self.then()
    }
}

/// Whether the value of an Accept-Encoding field takes gzip.
pub(super) fn takes_gzip(accepted: &[u8]) -> bool {
    accepted.split(|&byte| byte == b',').any(|coding| {
        let mut parts = coding.split(|&byte| byte == b';').map(|part| part.trim_ascii());
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        is_gzip && !parts.any(is_never)
    })
}

/// A weight of nothing: `q=0`, with up to three zeros behind its point.
fn is_never(weight: &[u8]) -> bool {
    let value = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="));
    value.is_some_and(|value| {
        value.first() == Some(&b'0') && value.iter().all(|digit| matches!(digit, b'0' | b'.'))
    })
}

/// Turns the body that starts at `start` into chunks of drawn lengths, and ends it.
fn chunk(out: &mut Vec<u8>, start: usize, rng: &mut Rng) {
    let end = out.len();
    let mut at = start;
    while at < end {
        let bytes = (1 + rng.below(CHUNK_BYTES_MAX) as usize).min(end - at);
        push_hex(out, bytes as u32);
        out.extend_from_slice(b"\r\n");
        out.extend_from_within(at..at + bytes);
        out.extend_from_slice(b"\r\n");
        at += bytes;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out.drain(start..end);
}

fn push_hex(out: &mut Vec<u8>, number: u32) {
    let digits = number.checked_ilog2().map_or(1, |bits| bits / 4 + 1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Asked;
    use super::super::site_spec::SiteSpec;
    use super::*;
    use std::io::Read;

    const PORT: u16 = 8080;

    /// Head and body of a page.
    fn answer(site: &Site, page: u32, head_only: bool, packer: Option<&mut Packer>) -> (String, Vec<u8>) {
        let target = format!("/p/{page}.html");
        let mut out = Vec::new();
        site.answer_asked(
            Asked { host: 1, target: target.as_bytes(), port: PORT, head_only, packer },
            &mut out,
        );
        let end = out.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body = out.split_off(end);
        (String::from_utf8(out).unwrap(), body)
    }

    /// The body of chunks, and how many they were.
    fn joined(mut rest: &[u8]) -> (Vec<u8>, usize) {
        let (mut body, mut chunks) = (Vec::new(), 0);
        loop {
            let line = rest.windows(2).position(|two| two == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            rest = &rest[line + 2..];
            if size == 0 {
                assert_eq!(rest, b"\r\n");
                return (body, chunks);
            }
            body.extend_from_slice(&rest[..size]);
            rest = rest[size..].strip_prefix(b"\r\n").unwrap();
            chunks += 1;
        }
    }

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
        plain
    }

    #[test]
    fn chunks_join_to_the_document() {
        let site = Site::new(SiteSpec { chunked: 1.0, ..SiteSpec::default() }).unwrap();
        let (head, body) = answer(&site, 2, false, None);
        assert!(head.ends_with("Transfer-Encoding: chunked\r\n\r\n"));
        let (body, chunks) = joined(&body);
        assert!(chunks > 2);
        assert_eq!(body, site.document(1, 2, PORT));
    }

    #[test]
    fn gzip_is_the_document_with_or_without_a_length() {
        let mut packer = Packer::default();
        for chunked in [0.0, 1.0] {
            let site = Site::new(SiteSpec { gzip: 1.0, chunked, ..SiteSpec::default() }).unwrap();
            for page in [2, 7, 2] {
                let (head, body) = answer(&site, page, false, Some(&mut packer));
                assert_eq!(head.matches("Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\n").count(), 1);
                let packed = match chunked > 0.0 {
                    true => joined(&body).0,
                    false => {
                        assert!(head.ends_with(&format!("Content-Length: {}\r\n\r\n", body.len())), "{head}");
                        body
                    }
                };
                assert!(packed.len() < 6_000, "{} bytes", packed.len());
                assert_eq!(unpacked(&packed), site.document(1, page, PORT));
                assert_eq!(answer(&site, page, true, Some(&mut packer)), (head, Vec::new()));
            }
        }
    }

    #[test]
    fn only_who_takes_gzip_gets_it() {
        let site = Site::new(SiteSpec { gzip: 1.0, ..SiteSpec::default() }).unwrap();
        let (head, body) = answer(&site, 2, false, None);
        assert!(head.contains("Vary: Accept-Encoding\r\n") && !head.contains("Content-Encoding"), "{head}");
        assert_eq!(body, site.document(1, 2, PORT));
        let plain = Site::new(SiteSpec::default()).unwrap();
        let (head, body) = answer(&plain, 2, false, Some(&mut Packer::default()));
        assert!(!head.contains("Vary") && !head.contains("Content-Encoding"), "{head}");
        assert_eq!(body, plain.document(1, 2, PORT));
        for (accepted, takes) in [
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0.001", true),
            ("", false),
            ("identity", false),
            ("br, gzip;q=0", false),
            ("gzip; q=0.000, br", false),
            ("gzipped", false),
        ] {
            assert_eq!(takes_gzip(accepted.as_bytes()), takes, "{accepted}");
        }
    }

    #[test]
    fn codings_and_chunks_are_drawn_apart() {
        let site = Site::new(SiteSpec { gzip: 0.6, chunked: 0.3, ..SiteSpec::default() }).unwrap();
        let all: Vec<(u32, u32)> = (0..1000).flat_map(|host| (0..20).map(move |page| (host, page))).collect();
        let share = |of: &dyn Fn(u32, u32) -> bool| {
            all.iter().filter(|(host, page)| of(*host, *page)).count() as f64 / all.len() as f64
        };
        for (found, expected) in [
            (share(&|host, page| site.is_gzip(host, page)), 0.6),
            (share(&|host, page| site.is_chunked(host, page)), 0.3),
            (share(&|host, page| site.is_gzip(host, page) && site.is_chunked(host, page)), 0.18),
        ] {
            assert!((found - expected).abs() < 0.01, "{found} for {expected}");
        }
    }

    #[test]
    fn hexadecimals() {
        for number in [0, 1, 15, 16, 255, 256, 4096, u32::MAX] {
            let mut out = Vec::new();
            push_hex(&mut out, number);
            assert_eq!(out, format!("{number:x}").as_bytes());
        }
    }
}
