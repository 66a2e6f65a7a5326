//! The crawl log: one line per finished fetch, close to what Heritrix users know.
//!
//! ```text
//!   2026-11-15T05:10:27.125Z 200 1843 http://a.test/x?y L http://a.test/ text/html #003
//!       20261115051026994018+130241 xxh3:00…ff 192.0.2.7:80,ok,doc=17
//! ```
//!
//! Eleven fields with one space between them, printable ASCII only, so that `grep`, `cut` and `awk` see what we
//! meant and a terminal shows what is there:
//!
//! | field   | holds                                                                                         |
//! |---------|-----------------------------------------------------------------------------------------------|
//! | time    | when the line was made, RFC 3339 in UTC with milliseconds                                     |
//! | status  | the HTTP status, else a negative code: [`code_without_status`]                                |
//! | size    | bytes of the document                                                                         |
//! | url     | in normal form                                                                                |
//! | path    | `P` robots.txt, `-` a seed, else an `L` per link from a seed and an `R` per redirect after it; of more than [`PATH_LETTERS_MAX`] the last ones, behind the number left out: `60+LLL…` |
//! | via     | the URL it was found on, or `-`                                                               |
//! | type    | Content-Type without parameters, lower case, or `-`                                           |
//! | shard   | `#003`                                                                                        |
//! | timings | when the request was on the wire, `YYYYMMDDhhmmss` and microseconds, `+` microseconds until it ended. If the connection never stood, when it was tried; `-` if nothing was |
//! | digest  | `xxh3:` and 32 hex digits of the document, as the store has it if it is stored here, or `-`   |
//! | notes   | separated by commas, see below                                                                |
//!
//! The first note is the address and port, or `-`; the second the result code's name (`nephila store codes`).
//! Then come, in any order:
//!
//! | note              | means                                                                               |
//! |-------------------|-------------------------------------------------------------------------------------|
//! | `doc=N`           | the document's number                                                               |
//! | `wait=US`         | microseconds from the decision to ask until the request was on the wire; an answer that came in between could not be heeded |
//! | `retry-after=S`   | what the answer asked for                                                           |
//! | `for=ORIGIN`      | of robots.txt: whose rules these are, which a redirect may have led elsewhere; a comma in it is `%2C` |
//! | `rules=known`     | of robots.txt: from the end of this fetch on, pages of that origin may be asked for |
//! | `rules=unreachable` | of robots.txt: nothing may be asked for                                           |
//! | `rules=hop`       | of robots.txt: a redirect, the rules are elsewhere                                  |
//! | `due=S`           | of a feed: not to be asked before this second since 1970                            |
//! | `why=NAME`        | of a feed: what put it there, as `nephila feeds show` explains it                   |
//! | `crawl-delay=MS`  | of robots.txt: the pause that the rules ask for                                     |
//!
//! A reader skips notes that it does not know. Lines that begin with `#` are comments; one of them opens every run
//! and tells the rules that it kept, which `nephila audit` holds it to:
//!
//! ```text
//!   # nephila 0.1.0 run 2026-11-15T05:10:26.000Z req_host_per_sec=1 req_host_concurrent=1 req_ip_per_sec=1
//!       req_ip_concurrent=1 delay_factor=1 agent=nephila part=1                               (all on one line)
//! ```
//!
//! Rules that are changed while a crawl runs are told by a line of each shard, at the moment from which it keeps them.
//! They hold for what that shard decides from then on, wherever in the log its lines stand:
//!
//! ```text
//!   # nephila set 20261115051030000000 #003 req_host_per_sec=20 …       (and the rest, as above)
//! ```
//!
//! A log is written in parts: `crawl.log.1`, `crawl.log.2` and so on, and `crawl.log`, the last. Each begins with the line
//! of the run that writes it; `part` is the number that its file has, or will have. A run that goes on in another part tells
//! the same time.
//!
//! What a server sent is hostile. A byte of a URL that is not printable ASCII is written `%XX`, one of a type that
//! is not a token's is written `_`, and both have a bound: no answer can break a line, or colour a terminal.

mod digits;
mod error;
mod line;
mod parse;
mod part_name;
mod rule_change;
mod run_rules;
mod stamp;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use error::LogError;
pub(crate) use line::{LINE_BYTES_MAX, PATH_LETTERS_MAX, PollNote, Rules, Timing};
pub use line::{LogLine, Path};
pub(crate) use part_name::{CRAWL_LOG, PartName};
pub(crate) use rule_change::RuleChange;
pub use run_rules::RunRules;
pub(crate) use status::code_without_status;
