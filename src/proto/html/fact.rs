//! What a page tells a crawler.

use std::borrow::Cow;

/// One finding, in page order.
///
/// Targets are as the author wrote them, relative or not, and may be empty: character references decoded,
/// white space trimmed, tabs and line ends taken out. They borrow from the page unless one of these
/// changed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// `<base href>`: what the page's targets are relative to, also those before it. Told once.
    Base(Cow<'a, [u8]>),
    /// A reference to another document.
    Link {
        element: Element,
        target: Cow<'a, [u8]>,
        /// Its rel has the token nofollow.
        nofollow: bool,
    },
    /// `<link rel=canonical href>` before the body: the URL that the page would rather be known by. Told once, after the
    /// link that it is, too.
    Canonical(Cow<'a, [u8]>),
    /// `<meta http-equiv=refresh>` to somewhere else, soon. If there are several, the first counts.
    Refresh { delay_s: u32, target: Cow<'a, [u8]> },
    /// `<meta name=robots>` that forbids something. If there are several, each adds.
    Robots(RobotsMeta),
}

/// The element that a link was found on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    A,
    Area,
    Link,
    Frame,
    Iframe,
}

/// What a page forbids to crawlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RobotsMeta {
    /// Its links are not to be discovered.
    pub nofollow: bool,
    /// It is not to be shown in an index.
    pub noindex: bool,
}
