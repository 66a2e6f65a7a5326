//! Lists of feeds, as programs hand them on: OPML 1.0 and 2.0, in and out.
//!
//! ```text
//!   <outline text="News">                                          a folder
//!     <outline type="rss" text="Daily" xmlUrl="http://…"/>          a feed in it
//! ```
//!
//! What is not well-formed is read as far as it makes sense. URLs are told as they are written, with their line: whether one
//! can be asked for is for the caller to say, and to whom.

use super::decode::decode;
use super::entities;
use super::lexer::{Lexer, Tag, Token, attributes};
use super::plain::plain;
use std::borrow::Cow;
use thiserror::Error;

/// Feeds of one list, bytes of a name, and folders inside each other whose names count.
const FEEDS_MAX: u32 = 1_000_000;
const NAME_BYTES_MAX: usize = 1_024;
const FOLDERS_MAX: usize = 8;

/// A feed of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpmlFeed<'a> {
    /// As it is written: it may be no URL, or one of a file.
    pub url: Cow<'a, str>,
    /// Plain text; empty if it has none.
    pub title: Cow<'a, str>,
    /// The site that it is of.
    pub site: Option<Cow<'a, str>>,
    /// The names of the folders that it is in, from the outside, with a `/` between them; empty for none.
    pub folder: Cow<'a, str>,
    /// Where it stands, from 1; when written it means nothing.
    pub line: u32,
}

/// How a list was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpmlSummary {
    /// Told to the caller.
    pub feeds: u32,
    /// What is wrong with it: feeds before that count.
    pub damage: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum OpmlError {
    #[error("it is not OPML: there is no outline in it")]
    Unknown,
}

/// Tells `each` the feeds of a list in its order.
pub fn read(bytes: &[u8], mut each: impl FnMut(OpmlFeed<'_>)) -> Result<OpmlSummary, OpmlError> {
    let (text, damage) = decode(bytes, None);
    let mut lexer = Lexer::new(&text);
    let mut folders = Folders::default();
    let mut lines = Lines { text: &text, at: 0, line: 1 };
    let (mut feeds, mut outlines) = (0, 0u64);
    loop {
        let at = lexer.at();
        let Some(token) = lexer.next() else { break };
        match token {
            Token::Start(tag) if tag.name.eq_ignore_ascii_case("outline") => {
                outlines += 1;
                let outline = Outline::new(&tag);
                let is_feed = !outline.url.is_empty();
                if is_feed {
                    if feeds == FEEDS_MAX {
                        lexer.note("it has more feeds than are read");
                        break;
                    }
                    feeds += 1;
                    each(OpmlFeed {
                        url: outline.url,
                        title: outline.title.clone(),
                        site: outline.site,
                        folder: Cow::Borrowed(&folders.path),
                        line: lines.of(at),
                    });
                }
                if !tag.is_empty {
                    folders.open(if is_feed { "" } else { &outline.title });
                }
            }
            Token::End(name) if name.eq_ignore_ascii_case("outline") => folders.close(),
            _ => {}
        }
    }
    match outlines {
        0 => Err(OpmlError::Unknown),
        _ => Ok(OpmlSummary { feeds, damage: damage.or(lexer.damage()) }),
    }
}

#[derive(Default)]
struct Outline<'a> {
    url: Cow<'a, str>,
    title: Cow<'a, str>,
    site: Option<Cow<'a, str>>,
}

impl<'a> Outline<'a> {
    fn new(tag: &Tag<'a>) -> Outline<'a> {
        let mut outline = Outline::default();
        let (mut plain_url, mut is_rss) = (None, false);
        for (name, raw) in attributes(tag.attributes) {
            let value = || entities::decode(raw);
            let name_of = || plain(entities::decode(&raw[..raw.floor_char_boundary(NAME_BYTES_MAX)]), true);
            match name.to_ascii_lowercase().as_str() {
                "xmlurl" => outline.url = plain(value(), false),
                "htmlurl" => outline.site = Some(plain(value(), false)).filter(|site| !site.is_empty()),
                "url" => plain_url = Some(plain(value(), false)),
                "type" => {
                    is_rss = matches!(raw.trim().to_ascii_lowercase().as_str(), "rss" | "atom" | "feed")
                }
                // What people see counts before what is meant for programs.
                "title" if outline.title.is_empty() => outline.title = name_of(),
                "text" => {
                    let text = name_of();
                    if !text.is_empty() {
                        outline.title = text;
                    }
                }
                _ => {}
            }
        }
        if outline.url.is_empty() && is_rss {
            outline.url = plain_url.unwrap_or_default();
        }
        outline
    }
}

/// The outlines that are open.
#[derive(Default)]
struct Folders {
    /// Lengths of the path before each of them.
    before: Vec<usize>,
    path: String,
    /// Open beyond those.
    deeper: usize,
}

impl Folders {
    fn open(&mut self, name: &str) {
        if self.before.len() == FOLDERS_MAX {
            self.deeper += 1;
            return;
        }
        self.before.push(self.path.len());
        if !name.is_empty() {
            if !self.path.is_empty() {
                self.path.push('/');
            }
            self.path.push_str(name);
        }
    }

    fn close(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(before) = self.before.pop() {
            self.path.truncate(before);
        }
    }
}

/// Counts lines as it goes.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl Lines<'_> {
    fn of(&mut self, at: usize) -> u32 {
        self.line += memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.at..at]).count() as u32;
        self.at = at;
        self.line
    }
}

/// A list of feeds as OPML 2.0. Those of one folder belong together if they come together.
pub fn write<'a>(title: &str, feeds: impl IntoIterator<Item = OpmlFeed<'a>>) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n  <head>\n    <title>",
    );
    push_escaped(&mut out, title);
    out.push_str("</title>\n  </head>\n  <body>\n");
    let mut open: Option<Cow<'_, str>> = None;
    for feed in feeds {
        if open.as_ref() != Some(&feed.folder) {
            if open.as_ref().is_some_and(|folder| !folder.is_empty()) {
                out.push_str("    </outline>\n");
            }
            if !feed.folder.is_empty() {
                out.push_str("    <outline text=\"");
                push_escaped(&mut out, &feed.folder);
                out.push_str("\">\n");
            }
        }
        out.push_str(if feed.folder.is_empty() { "    " } else { "      " });
        out.push_str("<outline type=\"rss\" text=\"");
        push_escaped(&mut out, &feed.title);
        out.push_str("\" xmlUrl=\"");
        push_escaped(&mut out, &feed.url);
        if let Some(site) = &feed.site {
            out.push_str("\" htmlUrl=\"");
            push_escaped(&mut out, site);
        }
        out.push_str("\"/>\n");
        open = Some(feed.folder);
    }
    if open.is_some_and(|folder| !folder.is_empty()) {
        out.push_str("    </outline>\n");
    }
    out + "  </body>\n</opml>\n"
}

/// Text for XML: what it cannot hold is left out.
fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
}
