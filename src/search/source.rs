use std::io;

/// A story as it is indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchDoc {
    pub story: u64,
    pub source: String,
    pub url: String,
    pub title: String,
    pub text: String,
    /// As it was found, like `en`, `eng` or `en-GB`; empty if it is not known.
    pub language: String,
    pub published_s: Option<i64>,
    /// The place in the source behind it.
    pub after: u64,
}

/// Where stories come from, in one order for ever; what is added comes at the end.
pub trait SearchSource {
    /// Goes to a place that a story told; 0 is the beginning. False if it has no such place: it was made anew.
    fn seek(&mut self, place: u64) -> io::Result<bool>;
    /// Where it is; at an end, behind what it passed over as well.
    fn place(&self) -> u64;
    /// The next one, or none yet. A story may come again, with another text.
    fn next(&mut self) -> io::Result<Option<SearchDoc>>;
}
