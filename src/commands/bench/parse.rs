use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use crate::commands::shared::{Failure, cores, on_cores};
use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};
use clap::Args;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// Read response heads with our parser and with httparse, and print what a head costs each
///
/// Both get the whole head in one slice. httparse checks every byte and lists the headers; ours looks for line ends and
/// colons, and also knows the headers a crawl acts upon and what they say: framing, keep-alive, spans of the others.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench parse --rounds 101 --record bench/runs/my-machine-parse.json\n\nThe two take turns on one core; the figure to look at is the ratio, the median over all pairs of turns."
)]
pub(super) struct ParseBenchArgs {
    /// Pairs of turns for each kind of head; the median is reported
    #[arg(long, value_name = "N", default_value_t = 51)]
    rounds: usize,
    /// Heads read in one turn
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    heads: u32,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct ParseBenchReport {
    rounds: usize,
    heads_per_turn: u32,
    kinds: Vec<Kind>,
    /// Over all kinds, each counted once: the geometric mean of their ratios.
    ratio: f64,
}

/// What one kind of head came to.
#[derive(Serialize)]
struct Kind {
    name: &'static str,
    head_bytes: usize,
    headers: usize,
    ours_ns: f64,
    httparse_ns: f64,
    ours_mb_per_s: f64,
    httparse_mb_per_s: f64,
    /// Our time over httparse's; below 1 ours is faster.
    ratio: f64,
}

/// As httparse's own documentation has it, with room for what the longest of these heads needs.
const HTTPARSE_HEADERS: usize = 100;

/// Heads as servers send them.
const HEADS: [(&str, &str); 7] = [
    ("tiny 1.0", "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"),
    (
        "nginx",
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nContent-Type: text/html\r\n\
         Content-Length: 10000\r\nLast-Modified: Sat, 14 Nov 2026 19:03:11 GMT\r\nConnection: keep-alive\r\n\
         ETag: \"6917a2df-2710\"\r\nAccept-Ranges: bytes\r\n\r\n",
    ),
    (
        "Apache",
        "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nServer: Apache/2.4.62 (Debian)\r\n\
         Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\nCache-Control: no-store, no-cache, must-revalidate\r\n\
         Pragma: no-cache\r\nLink: <https://www.example.org/wp-json/>; rel=\"https://api.w.org/\"\r\n\
         Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\nKeep-Alive: timeout=5, max=100\r\nConnection: Keep-Alive\r\n\
         Transfer-Encoding: chunked\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n",
    ),
    (
        "not modified",
        "HTTP/1.1 304 Not Modified\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nETag: \"6917a2df-2710\"\r\n\
         Last-Modified: Sat, 14 Nov 2026 19:03:11 GMT\r\nCache-Control: max-age=3600\r\nVary: Accept-Encoding\r\n\r\n",
    ),
    (
        "redirect",
        "HTTP/1.1 301 Moved Permanently\r\nserver: openresty\r\ndate: Sun, 15 Nov 2026 05:10:27 GMT\r\n\
         content-type: text/html; charset=iso-8859-1\r\ncontent-length: 234\r\nlocation: https://www.example.org/en/\r\n\
         x-redirect-by: rules\r\nstrict-transport-security: max-age=31536000\r\n\r\n",
    ),
    (
        "CDN",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 48213\r\nContent-Type: text/html; charset=utf-8\r\n\
         x-amz-id-2: Jb1nQ0aV3m9sYt0c7kq0m2yqJt6xkXhV0t4n7bV2cJw8p9u3d1r5e6f7g8h9i0j1\r\nx-amz-request-id: 7K2M9Q4R8T1V3W5X\r\n\
         Last-Modified: Sat, 14 Nov 2026 19:03:11 GMT\r\nETag: \"5f2c0a9b8e7d6c5b4a39281706f5e4d3\"\r\n\
         x-amz-server-side-encryption: AES256\r\nServer: AmazonS3\r\nVia: 1.1 varnish, 1.1 varnish\r\n\
         Cache-Control: public, max-age=300, stale-while-revalidate=60\r\nAccept-Ranges: bytes\r\nAge: 217\r\n\
         Date: Sun, 15 Nov 2026 05:10:27 GMT\r\nX-Served-By: cache-iad-kiad7000101-IAD, cache-fra-eddf8230083-FRA\r\n\
         X-Cache: HIT, HIT\r\nX-Cache-Hits: 12, 3\r\nX-Timer: S1763183427.125013,VS0,VE1\r\n\
         Vary: Accept-Encoding, Cookie\r\nStrict-Transport-Security: max-age=31536000; includeSubDomains; preload\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: SAMEORIGIN\r\nReferrer-Policy: strict-origin-when-cross-origin\r\n\
         Access-Control-Allow-Origin: *\r\nAlt-Svc: h3=\":443\"; ma=86400\r\n\
         NEL: {\"report_to\":\"default\",\"max_age\":2592000}\r\nTiming-Allow-Origin: *\r\n\r\n",
    ),
    (
        "long values",
        "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 05:10:27 GMT\r\nContent-Type: text/html; charset=utf-8\r\n\
         Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\
         Set-Cookie: session=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c; Path=/; Expires=Mon, 15 Nov 2027 05:10:27 GMT; HttpOnly; Secure; SameSite=Lax\r\n\
         Set-Cookie: visitor=0f8fad5b-d9cb-469f-a165-70867728950e; Path=/; Domain=.example.org; Max-Age=31536000; Secure\r\n\
         Content-Security-Policy: default-src 'self'; script-src 'self' 'unsafe-inline' https://static.example.org https://www.googletagmanager.com https://www.google-analytics.com; style-src 'self' 'unsafe-inline' https://fonts.googleapis.com; img-src 'self' data: https: blob:; font-src 'self' https://fonts.gstatic.com; connect-src 'self' https://api.example.org wss://live.example.org; frame-ancestors 'none'; base-uri 'self'; form-action 'self'; report-uri https://report.example.org/csp\r\n\
         Permissions-Policy: accelerometer=(), camera=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), payment=(), usb=()\r\n\
         Cache-Control: private, no-cache, no-store, must-revalidate, max-age=0\r\nVary: Accept-Encoding\r\n\r\n",
    ),
];

impl ParseBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.rounds == 0 || self.heads == 0 {
            return Err(Failure::Usage("measure at least once (--rounds, --heads)".into()));
        }
        let measure = || HEADS.iter().map(|(name, head)| self.measure(name, head.as_bytes()));
        let kinds: Vec<Kind> = on_cores(&cores()[..1], || measure().collect::<Result<_, Failure>>())??;
        let ratio = kinds.iter().map(|kind| kind.ratio.ln()).sum::<f64>() / kinds.len() as f64;
        let report =
            ParseBenchReport { rounds: self.rounds, heads_per_turn: self.heads, kinds, ratio: ratio.exp() };
        self.record.tell(&report, ParseBenchReport::text)
    }

    fn measure(&self, name: &'static str, head: &[u8]) -> Result<Kind, Failure> {
        let turns = |round| {
            in_turns(round, |side| {
                Ok(if side == 0 { self.turn(head, ours) } else { self.turn(head, theirs) })
            })
        };
        // One turn each to warm up.
        turns(0)?;
        let turns = (0..self.rounds).map(turns).collect::<Result<Vec<_>, Failure>>()?;
        let ours_ns = median(turns.iter().map(|(ours, _)| *ours));
        let httparse_ns = median(turns.iter().map(|(_, theirs)| *theirs));
        let mb_per_s = |ns: f64| head.len() as f64 * 1e3 / ns;
        Ok(Kind {
            name,
            head_bytes: head.len(),
            headers: head.split(|byte| *byte == b'\n').count() - 3,
            ours_ns,
            httparse_ns,
            ours_mb_per_s: mb_per_s(ours_ns),
            httparse_mb_per_s: mb_per_s(httparse_ns),
            ratio: median(turns.iter().map(|(ours, theirs)| ours / theirs)),
        })
    }

    /// Nanoseconds per head.
    fn turn(&self, head: &[u8], read: impl Fn(&[u8]) -> bool) -> f64 {
        let begun = Instant::now();
        let mut whole = 0;
        for _ in 0..self.heads {
            whole += u32::from(read(black_box(head)));
        }
        let ns = begun.elapsed().as_nanos() as f64;
        assert_eq!(whole, self.heads, "a good head is read");
        ns / f64::from(self.heads)
    }
}

#[inline(never)]
fn ours(head: &[u8]) -> bool {
    let mut parser = HeadParser::new(HeadLimits::default(), Method::Get);
    matches!(black_box(parser.parse(head)), Ok(HeadStep::Done(_)))
}

#[inline(never)]
fn theirs(head: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; HTTPARSE_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let status = response.parse(head);
    black_box(&response);
    matches!(status, Ok(httparse::Status::Complete(_)))
}

impl ParseBenchReport {
    fn text(&self) -> String {
        let mut text = String::from(
            "              bytes  headers    ours ns   MB/s    httparse ns   MB/s    ours / httparse\n",
        );
        for Kind {
            name,
            head_bytes,
            headers,
            ours_ns,
            httparse_ns,
            ours_mb_per_s,
            httparse_mb_per_s,
            ratio,
        } in &self.kinds
        {
            text += &format!(
                "{name:<13} {head_bytes:>5} {headers:>8} {ours_ns:>10.0} {ours_mb_per_s:>6.0} {httparse_ns:>14.0} {httparse_mb_per_s:>6.0} {ratio:>18.2}\n"
            );
        }
        let Self { rounds, ratio, .. } = self;
        text += &format!("\none core, median of {rounds} pairs of turns; over all kinds {ratio:.2} x\n");
        text + "httparse checks every byte and lists the headers; ours knows what framing, keep-alive and the headers a crawl\nacts upon say, and leaves the list to whoever walks it\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_read_every_head_whole() {
        for (name, head) in HEADS {
            assert!(ours(head.as_bytes()) && theirs(head.as_bytes()), "{name}");
        }
    }
}
