use super::waiting::{FetchedStory, Page};
use crate::base::shown;
use crate::extractor::{Extracted, Extractor, Hints, RULES, StoryText};
use crate::proto::charset::CharsetReader;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A page whose text is to be found.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub story: FetchedStory,
    pub page: Page,
}

/// What people are shown of a panic.
const PANIC_CHARS_MAX: usize = 200;

impl Job {
    /// Finds the text. A panic of a parser is a mark on the page.
    pub fn run(&self, extract: impl FnOnce(&str, &str, &Hints<'_>) -> Extracted) -> StoryText {
        let found = catch_unwind(AssertUnwindSafe(|| self.extracted(extract)));
        match found {
            Ok(found) => self.text(found),
            Err(panic) => failed_text(&self.story, format!("the parser panicked: {}", said(&*panic))),
        }
    }

    fn extracted(&self, extract: impl FnOnce(&str, &str, &Hints<'_>) -> Extracted) -> Extracted {
        let Job { story, page } = self;
        let hints = Hints {
            title: &story.title,
            published_s: story.published_s,
            language: &story.language,
            fetched_s: page.fetched_s,
        };
        if !is_html(&page.content_type) {
            let essence = String::from_utf8_lossy(essence(&page.content_type)).into_owned();
            let why = format!("the page is not HTML but {}", shown(&essence, PANIC_CHARS_MAX));
            return Extracted {
                title: hints.title.to_string(),
                failed: Some(why.into()),
                ..Extracted::default()
            };
        }
        let host = story.url.split('/').nth(2).unwrap_or_default();
        let tld = host.rsplit('.').next().filter(|tld| tld.bytes().all(|octet| octet.is_ascii_alphabetic()));
        let mut charsets = CharsetReader::new();
        let text = charsets.read(&page.body, &page.content_type, tld);
        extract(&String::from_utf8_lossy(text.bytes), &story.url, &hints)
    }

    fn text(&self, found: Extracted) -> StoryText {
        StoryText {
            story: self.story.story,
            doc_id: self.story.doc_id,
            rules: RULES,
            title: found.title,
            author: found.author,
            published_s: found.published_s,
            date_from: found.date_from,
            language: found.language,
            text: found.text,
            failed: found.failed.map(Into::into),
        }
    }

    /// The same by the product's own extractor.
    pub fn run_by(&self, extractor: &Extractor) -> StoryText {
        self.run(|html, url, hints| extractor.extract(html, url, hints))
    }
}

/// A text that says why there is none.
pub(crate) fn failed_text(story: &FetchedStory, why: impl Into<String>) -> StoryText {
    StoryText {
        story: story.story,
        doc_id: story.doc_id,
        rules: RULES,
        title: story.title.to_string(),
        failed: Some(why.into()),
        ..StoryText::default()
    }
}

fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|&octet| octet == b';').next().unwrap_or_default().trim_ascii()
}

/// A page without a type was fetched as a page.
fn is_html(content_type: &[u8]) -> bool {
    let essence = essence(content_type);
    let html: [&[u8]; 3] = [b"", b"text/html", b"application/xhtml+xml"];
    html.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    shown(&text, PANIC_CHARS_MAX)
}
