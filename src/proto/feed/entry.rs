//! One entry on its way.

use super::facts::FeedEntry;
use super::links;
use super::plain::{looks_like_html, plain};
use std::borrow::Cow;

/// What is known of the entry that is open.
#[derive(Default)]
pub(super) struct Gathered<'a> {
    /// The name of its tag, as it is written.
    pub container: &'a str,
    /// Its own xml:base, against that of the feed.
    pub base: Option<String>,
    pub language: Option<Cow<'a, str>>,
    pub author: Option<Cow<'a, str>>,
    pub published_s: Option<i64>,
    pub updated_s: Option<i64>,
    pub created_s: Option<i64>,
    link: Option<Cow<'a, str>>,
    /// A link that is not to a page, or not said to be the entry's.
    other_link: Option<Cow<'a, str>>,
    enclosure: Option<Cow<'a, str>>,
    guid: Option<Cow<'a, str>>,
    /// `rdf:about`
    about: Option<Cow<'a, str>>,
    title: Title<'a>,
}

#[derive(Default)]
struct Title<'a> {
    text: Cow<'a, str>,
    rank: TitleRank,
}

/// Whose title it is: the entry's own counts before that of its picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TitleRank {
    #[default]
    None,
    Media,
    Own,
}

/// How the text of a title is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    Plain,
    Html,
    /// Nobody says, and so it is looked at.
    Guess,
}

/// What a link is to its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// Its page.
    Page,
    /// A page in another format.
    Other,
    Enclosure,
}

impl<'a> Gathered<'a> {
    pub fn new(container: &'a str) -> Gathered<'a> {
        Gathered { container, ..Gathered::default() }
    }

    /// Of several of a kind the first counts.
    pub fn link(&mut self, url: Option<Cow<'a, str>>, kind: LinkKind) {
        let slot = match kind {
            LinkKind::Page => &mut self.link,
            LinkKind::Other => &mut self.other_link,
            LinkKind::Enclosure => &mut self.enclosure,
        };
        if slot.is_none() {
            *slot = url;
        }
    }

    pub fn guid(&mut self, guid: Cow<'a, str>) {
        let guid = match guid {
            Cow::Borrowed(guid) => Cow::Borrowed(guid.trim()),
            Cow::Owned(guid) => Cow::Owned(guid.trim().to_string()),
        };
        if self.guid.is_none() && !guid.is_empty() {
            self.guid = Some(guid);
        }
    }

    pub fn about(&mut self, about: Cow<'a, str>) {
        self.about = Some(about).filter(|about| !about.is_empty());
    }

    pub fn title(&mut self, text: Cow<'a, str>, markup: Markup, rank: TitleRank) {
        if rank > self.title.rank {
            let text = plain_title(text, markup);
            if !text.is_empty() {
                self.title = Title { text, rank };
            }
        }
    }

    /// The entry, when it is closed. A guid that is a URL is a link where there is no other, whatever it says of itself;
    /// what is to be played is better than nothing.
    pub fn told(self) -> FeedEntry<'a> {
        let guid = self.guid.or(self.about);
        let by_guid = || guid.as_ref().filter(|guid| links::is_web(guid)).cloned();
        let url = self.link.or(self.other_link).or_else(by_guid).or(self.enclosure);
        FeedEntry {
            url,
            guid,
            title: self.title.text,
            published_s: self.published_s.or(self.created_s),
            updated_s: self.updated_s,
            author: self.author,
            language: self.language,
        }
    }
}

pub(super) fn plain_title(text: Cow<'_, str>, markup: Markup) -> Cow<'_, str> {
    let is_html = match markup {
        Markup::Plain => false,
        Markup::Html => true,
        Markup::Guess => looks_like_html(&text),
    };
    plain(text, is_html)
}
