use super::DocKind;

/// How a URL was reached and what it is wanted for. It travels whole: from the doc index to the handler, and in its next
/// hop back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub kind: DocKind,
    /// Links followed from a seed; redirects do not count.
    pub depth: u16,
    /// Redirects followed from the first URL of this chain.
    pub hops: u8,
    /// A seed, or reached from one by redirects alone: its final host comes into scope.
    pub seed_chain: bool,
    /// Only whether it is there and has changed is asked (HEAD).
    pub head_only: bool,
}

impl Provenance {
    /// Of a URL that an operator typed.
    pub const SEED: Provenance =
        Provenance { kind: DocKind::Content, depth: 0, hops: 0, seed_chain: true, head_only: false };

    /// Of a link on a page.
    pub const fn link(depth: u16) -> Provenance {
        Provenance { depth, seed_chain: false, ..Provenance::SEED }
    }

    /// Whether it was asked for by name by a feed, or led to by such a one: it is fetched wherever links may lead, and spans
    /// no scope. What a link leads to is one deep at least.
    pub fn is_story(&self) -> bool {
        self.depth == 0 && !self.seed_chain && self.kind == DocKind::Content
    }

    /// Whether it was typed, rather than redirected to.
    pub fn is_seed(&self) -> bool {
        self.seed_chain && self.hops == 0
    }

    /// Of the URL that this one redirects to.
    pub fn next_hop(self) -> Provenance {
        Provenance { hops: self.hops + 1, ..self }
    }

    /// How many links it is from a seed, if it was reached by links. The depth of a sitemap counts sitemaps.
    pub fn links_followed(&self) -> Option<u16> {
        (!self.seed_chain && self.kind != DocKind::Sitemap).then_some(self.depth)
    }

    /// The depth of the links on it. What a sitemap names is one deep: a sitemap is no page.
    pub fn links_depth(&self) -> u16 {
        if self.kind == DocKind::Sitemap { 1 } else { self.depth.saturating_add(1) }
    }
}
