use std::io;
use std::ops::ControlFlow;

/// The ledger of stories, as extraction asks it.
pub(crate) trait Ledger {
    /// Shows stories from a number on, in the order of their numbers, until `show` breaks. What it says of a story holds
    /// after the loss of power, too.
    fn each(&mut self, from: u32, show: &mut dyn FnMut(u32, StoryWork) -> ControlFlow<()>) -> io::Result<()>;
}

/// How far a story is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoryWork {
    /// Nothing will come, or not soon: the whole ledger is looked at now and then.
    Settled,
    /// Its page is not there yet.
    Pending,
    /// Its page is in the store, durably.
    Fetched(FetchedStory),
}

/// A story whose page can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchedStory {
    pub story: u32,
    pub doc_id: u32,
    pub url: Box<str>,
    pub title: Box<str>,
    /// As its feed says, if it does.
    pub published_s: Option<i64>,
    pub language: Box<str>,
}

/// Where pages of stories are read.
pub(crate) trait Pages {
    /// Shows the page of each story; `None` if it is not there. An error is the store's, and says nothing of a page.
    fn read(&mut self, stories: &[FetchedStory], show: &mut dyn FnMut(usize, Option<Page>))
    -> io::Result<()>;
}

/// A page as it was fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub content_type: Vec<u8>,
    pub body: Vec<u8>,
    pub fetched_s: i64,
}
