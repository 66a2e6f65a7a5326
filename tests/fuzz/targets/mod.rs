//! What bytes from outside must never do to us. Each target takes any bytes and asserts what holds of them.
//!
//! | target     | bytes are                               | and it holds that                                        |
//! |------------|-----------------------------------------|----------------------------------------------------------|
//! | `head`     | a response up to its body               | cuts change nothing; httparse reads the same or we know why |
//! | `body`     | framing and a limit, then a body        | cuts change nothing; no byte of the document is made up   |
//! | `response` | a whole response                        | `parse` says the same however it came in                 |
//! | `coding`   | a Content-Encoding, LF, a coded body    | never more than the limit; nothing shows of the last use |
//! | `robots`   | a robots.txt                            | the longest match decides; CR LF is LF                   |
//! | `lines`    | a stream of spider or master protocol   | cuts change nothing; what is written is read the same    |
//! | `reflog`   | a reflog                                | cuts change nothing; what is written is read the same    |
//! | `record`   | a stream of records for a store server  | cuts change nothing; what is read is what was written    |
//! | `peer`     | a mode, then frames between nodes       | cuts change nothing; what is written is read the same    |
//! | `url`      | a URL, LF, a link                       | a normal form is its own; links resolve by the standard  |
//! | `html`     | a page                                  | a page cut short has fewer facts and no others           |
//! | `sitemap`  | a sitemap or a feed                     | limits hold; a cut takes entries away, and changes none  |
//! | `feed`     | a feed, a page or a Link header         | limits hold; a cut takes entries away, and changes none  |
//! | `opml`     | a list of feeds                         | what is written is read the same                         |
//! | `date`     | a date of a feed                        | within four digits of a year, whatever blanks are around |
//! | `title`    | a source, LF, a title                   | a normal form has no case, punctuation or blanks to spare |
//! | `dns`      | an answer to a fixed question           | strangers are strays; addresses are bounded and of the kind |
//! | `names`    | a question to the farm's name server    | only questions are answered, in a few bytes, with one record |
//! | `etcd`     | an answer of an etcd                    | a cut is no other answer; values are what was sent       |
//! | `log`      | lines of a crawl log                    | what is written is read the same                         |
//! | `warc`     | a WARC file                             | cuts change nothing; blocks are as long as their heads say |
//! | `queue`    | a mode, then blocks of a master's queue | no entry without its checksums; numbers rise by one      |
//! | `current`  | a mode, then a current_log               | every row that was written, or damage is told            |
//! | `segment`  | a mode, then records of a segment       | no record without its checksums, no document not promised |
//!
//! Two runners share them: a short one with fixed seeds in the test suite (`tests/blackbox/fuzz.rs`), and a long one
//! guided by coverage (`tests/fuzz/run TARGET SECONDS`). The corpora in `tests/fuzz/corpus` start both. A target more is
//! a function here, a line in [`TARGETS`] and a folder of inputs.

mod body;
mod coding;
mod current;
mod date;
mod dns;
mod etcd;
mod feed;
mod head;
mod html;
mod lines;
mod log;
mod names;
mod opml;
mod peer;
mod queue;
mod record;
mod reflog;
mod response;
mod robots;
mod segment;
mod sitemap;
mod title;
mod url;
mod warc;

pub type Target = fn(&[u8]);

pub const TARGETS: [(&str, Target); 24] = [
    ("head", head::run),
    ("body", body::run),
    ("response", response::run),
    ("coding", coding::run),
    ("robots", robots::run),
    ("lines", lines::run),
    ("record", record::run),
    ("reflog", reflog::run),
    ("peer", peer::run),
    ("url", url::run),
    ("html", html::run),
    ("sitemap", sitemap::run),
    ("feed", feed::run),
    ("opml", opml::run),
    ("date", date::run),
    ("title", title::run),
    ("dns", dns::run),
    ("names", names::run),
    ("etcd", etcd::run),
    ("log", log::run),
    ("queue", queue::run),
    ("segment", segment::run),
    ("warc", warc::run),
    ("current", current::run),
];

/// Ways to cut some bytes in pieces: one by one, and in two at a few places spread over them.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let step = bytes.len() / 16 + 1;
    let in_two = (1..bytes.len()).step_by(step).map(|at| vec![&bytes[..at], &bytes[at..]]);
    in_two.chain([bytes.chunks(1).collect(), bytes.chunks(7).collect()])
}
