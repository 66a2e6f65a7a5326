use std::fmt;

/// What a URL is fetched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DocKind {
    /// A page, or whatever a link leads to.
    #[default]
    Content = 0,
    /// A list of new pages, asked for again and again.
    Feed = 1,
    /// The rules of a host. The url server asks for these itself.
    Robots = 2,
    /// A list of pages, or of such lists.
    Sitemap = 3,
}

impl DocKind {
    pub const ALL: [DocKind; 4] = [DocKind::Content, DocKind::Feed, DocKind::Robots, DocKind::Sitemap];

    pub fn name(self) -> &'static str {
        match self {
            DocKind::Content => "content",
            DocKind::Feed => "feed",
            DocKind::Robots => "robots",
            DocKind::Sitemap => "sitemap",
        }
    }

    pub fn from_name(name: &str) -> Option<DocKind> {
        DocKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// From the two lowest bits.
    pub fn from_bits(bits: u8) -> DocKind {
        DocKind::ALL[usize::from(bits & 3)]
    }
}

impl fmt::Display for DocKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
