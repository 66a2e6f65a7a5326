//! The stream of tags of a sitemap or a feed.

use super::entry::{SitemapEnd, SitemapEntry, SitemapError, SitemapFormat, SitemapLimits, SitemapSummary};
use super::lastmod;
use crate::limits::URL_BYTES_MAX;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// What an entry is gathered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    /// `url`
    Page,
    /// `sitemap`
    Sitemap,
    /// `item`, `entry`
    Item,
}

/// A child of a container whose text counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Loc,
    Lastmod,
}

/// A date longer than this is none.
const DATE_BYTES_MAX: usize = 64;

/// Where in the document we are, and the entry that is being gathered.
///
/// ```text
///   depth   1        2      3
///           urlset > url  > loc       what lies deeper is none of ours
///                    container  field
/// ```
struct Walk {
    depth: usize,
    format: Option<SitemapFormat>,
    /// And the depth it opened at.
    container: Option<(Container, usize)>,
    field: Option<Field>,
    loc: String,
    date: String,
    /// The URL is too long, or has an entity that is none.
    spoilt: bool,
}

/// What a tag came to.
enum Step {
    On,
    /// An entry is complete.
    Entry(Container),
}

pub(super) fn read(
    text: &str,
    limits: &SitemapLimits,
    mut each: impl FnMut(SitemapEntry<'_>),
) -> Result<SitemapSummary, SitemapError> {
    let mut reader = Reader::from_str(text);
    // Sitemaps are full of `?a=1&b=2`.
    reader.config_mut().allow_dangling_amp = true;
    let mut walk = Walk {
        depth: 0,
        format: None,
        container: None,
        field: None,
        loc: String::new(),
        date: String::new(),
        spoilt: false,
    };
    let (mut entries, mut skipped) = (0, 0);
    let end = loop {
        let step = match reader.read_event() {
            Err(_) => break SitemapEnd::Broken,
            Ok(Event::Eof) if walk.depth > 0 => break SitemapEnd::Broken,
            Ok(Event::Eof) => break SitemapEnd::Whole,
            Ok(Event::DocType(kind)) => {
                if declares(&kind) {
                    return Err(SitemapError::Entities);
                }
                Step::On
            }
            Ok(Event::Start(tag)) => walk.open(&tag)?,
            Ok(Event::Empty(tag)) => match walk.open(&tag)? {
                Step::On => walk.close(),
                entry => entry,
            },
            Ok(Event::End(_)) => walk.close(),
            Ok(Event::Text(part)) => walk.text(&part),
            Ok(Event::CData(part)) => walk.text(&part),
            Ok(Event::GeneralRef(name)) => walk.reference(&name),
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => Step::On,
        };
        if walk.depth > limits.elements_deep_max {
            break SitemapEnd::Limit;
        }
        if let Step::Entry(container) = step {
            let loc = walk.loc.trim();
            if loc.is_empty() || walk.spoilt {
                skipped += 1;
                continue;
            }
            if entries == limits.entries_max {
                break SitemapEnd::Limit;
            }
            entries += 1;
            let lastmod = lastmod::seconds(&walk.date);
            each(match container {
                Container::Sitemap => SitemapEntry::Sitemap { loc, lastmod },
                Container::Page | Container::Item => SitemapEntry::Page { loc, lastmod },
            });
        }
    };
    let format = walk.format.ok_or(SitemapError::Unknown)?;
    Ok(SitemapSummary { format, entries, skipped, end })
}

/// Whether a DOCTYPE declares anything by itself.
fn declares(kind: &str) -> bool {
    let word = b"ENTITY";
    kind.contains('[') || kind.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

impl Walk {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<Step, SitemapError> {
        self.depth += 1;
        let name = tag.local_name();
        let name = name.as_ref();
        if self.depth == 1 {
            if self.format.is_some() {
                // A second root: whatever follows is not part of the document.
                return Ok(Step::On);
            }
            self.format = Some(match name {
                "urlset" => SitemapFormat::Pages,
                "sitemapindex" => SitemapFormat::Index,
                "rss" | "feed" | "RDF" => SitemapFormat::Feed,
                _ => return Err(SitemapError::Unknown),
            });
            return Ok(Step::On);
        }
        match self.container {
            None => {
                let container = match name {
                    "url" => Container::Page,
                    "sitemap" => Container::Sitemap,
                    "item" | "entry" => Container::Item,
                    _ => return Ok(Step::On),
                };
                self.container = Some((container, self.depth));
                self.loc.clear();
                self.date.clear();
                self.spoilt = false;
            }
            Some((container, opened)) if self.depth == opened + 1 => self.open_field(container, name, tag),
            Some(_) => {}
        }
        Ok(Step::On)
    }

    /// Of several fields of one name the first that says something counts.
    fn open_field(&mut self, container: Container, name: &str, tag: &BytesStart<'_>) {
        self.field = match (container, name) {
            (Container::Page | Container::Sitemap, "loc") if self.loc.trim().is_empty() => Some(Field::Loc),
            (Container::Item, "link") if self.loc.trim().is_empty() => {
                self.loc.clear();
                match link_target(tag) {
                    Some(Ok(target)) => {
                        self.put(Field::Loc, &target);
                        None
                    }
                    // The feed itself, a stylesheet, comments.
                    Some(Err(())) => None,
                    None => Some(Field::Loc),
                }
            }
            (Container::Page | Container::Sitemap, "lastmod") | (Container::Item, "updated" | "date")
                if self.date.is_empty() =>
            {
                Some(Field::Lastmod)
            }
            _ => None,
        };
    }

    fn close(&mut self) -> Step {
        self.depth = self.depth.saturating_sub(1);
        match self.container {
            Some((container, opened)) if self.depth < opened => {
                (self.container, self.field) = (None, None);
                Step::Entry(container)
            }
            Some((_, opened)) if self.depth == opened => {
                self.field = None;
                Step::On
            }
            _ => Step::On,
        }
    }

    fn text(&mut self, part: &str) -> Step {
        if let Some(field) = self.open_here() {
            self.put(field, part);
        }
        Step::On
    }

    /// The field that text belongs to: that of an element deeper than it is none of it.
    fn open_here(&self) -> Option<Field> {
        let (_, opened) = self.container?;
        self.field.filter(|_| self.depth == opened + 1)
    }

    /// Numbers and the five names of XML; whoever uses another has a URL that nobody knows.
    fn reference(&mut self, name: &BytesRef<'_>) -> Step {
        let Some(field) = self.open_here() else { return Step::On };
        match (name.resolve_char_ref(), resolve_xml_entity(name)) {
            (Ok(Some(c)), _) => self.put(field, c.encode_utf8(&mut [0; 4])),
            (_, Some(text)) => self.put(field, text),
            _ => self.spoilt |= field == Field::Loc,
        }
        Step::On
    }

    fn put(&mut self, field: Field, part: &str) {
        match field {
            Field::Loc => {
                // The blanks around a URL do not count, and those before it are not kept.
                let part = if self.loc.is_empty() { part.trim_start() } else { part };
                if self.loc.len() + part.trim_end().len() > URL_BYTES_MAX {
                    self.spoilt = true;
                } else {
                    self.loc.push_str(part);
                }
            }
            Field::Lastmod => {
                if self.date.len() + part.len() <= DATE_BYTES_MAX {
                    self.date.push_str(part);
                }
            }
        }
    }
}

/// What a `<link href>` of a feed leads to: an error if it is not the page of the entry. None without an href.
fn link_target(tag: &BytesStart<'_>) -> Option<Result<String, ()>> {
    let mut href = None;
    for attribute in tag.attributes().with_checks(false).flatten().take(16) {
        match attribute.key.local_name().as_ref() {
            "rel" if &*attribute.value != "alternate" => return Some(Err(())),
            "href" => href = Some(attribute.value.into_owned()),
            _ => {}
        }
    }
    Some(href.map(|href| unescaped(&href))?.ok_or(()))
}

/// A value with the entities of XML undone; None with any other.
fn unescaped(value: &str) -> Option<String> {
    if value.len() > 6 * URL_BYTES_MAX {
        return None;
    }
    quick_xml::escape::unescape(value).ok().map(|value| value.into_owned())
}
