//! What crosses several parts of a crawl, without threads.

mod scheduler;
mod stored_pages;
