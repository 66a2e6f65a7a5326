//! The parsers that find the text of an article, and what they are told. No other file knows them.

use super::extractor::{ExtractDepth, Found};
use super::language::two_letters;

pub(super) const IS_THERE: bool = true;

/// A tree that is deeper is not walked: some of what walks it is recursive.
const DEPTH_MAX: usize = 2_000;
const TOO_DEEP: &str = "its elements are nested too deep";
const NO_TEXT: &str = "no text was found";

/// Finds title, author and text of a page. Its date is looked for only if asked, which costs as much as the rest.
pub(super) fn find(
    depth: ExtractDepth,
    html: &str,
    url: &str,
    with_date: bool,
) -> Result<Found, &'static str> {
    match depth {
        ExtractDepth::Off => Err("extraction is off"),
        ExtractDepth::Fast => fast(html, url),
        ExtractDepth::Full => full(html, url, with_date),
    }
}

fn full(html: &str, url: &str, with_date: bool) -> Result<Found, &'static str> {
    use trafilatura::dom::Document;
    use trafilatura::{HtmlDateMode, Options};

    let document = Document::parse(html);
    let mut left = vec![(document.root(), 0)];
    while let Some((node, depth)) = left.pop() {
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        left.extend(document.child_nodes(node).into_iter().map(|child| (child, depth + 1)));
    }
    let mut options = Options::default()
        .with_fallback(true)
        .with_exclude_comments(true)
        .with_html_date_mode(if with_date { HtmlDateMode::Default } else { HtmlDateMode::Disabled });
    options.original_url = url::Url::parse(url).ok();
    let result = trafilatura::extract_document(document, &options).map_err(|_| NO_TEXT)?;
    let date = result.metadata.date;
    Ok(Found {
        title: result.metadata.title,
        author: result.metadata.author,
        text: result.content_text,
        published_s: date.and_then(|date| date.and_hms_opt(0, 0, 0)).map(|date| date.and_utc().timestamp()),
    })
}

fn fast(html: &str, url: &str) -> Result<Found, &'static str> {
    use dom_smoothie::{Config, Readability, TextMode};

    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    // A URL that it does not take is none that it needs.
    let mut reading = Readability::new(html, Some(url), Some(config.clone()))
        .or_else(|_| Readability::new(html, None, Some(config)))
        .map_err(|_| NO_TEXT)?;
    let root = reading.doc.root();
    let (mut node, mut depth) = (Some(root), 0);
    while let Some(here) = node {
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        if let Some(child) = here.first_child() {
            (node, depth) = (Some(child), depth + 1);
            continue;
        }
        let mut up = Some(here);
        node = loop {
            let Some(at) = up else { break None };
            if let Some(next) = at.next_sibling() {
                break Some(next);
            }
            (up, depth) = (at.parent(), depth.saturating_sub(1));
        };
    }
    let article = reading.parse().map_err(|_| NO_TEXT)?;
    Ok(Found {
        title: article.title,
        author: article.byline.unwrap_or_default(),
        text: article.text_content.to_string(),
        published_s: None,
    })
}

/// The language of a text, by two letters; empty if it cannot be told.
pub(super) fn language(text: &str) -> &'static str {
    match whatlang::detect(text) {
        Some(told) if told.is_reliable() || text.len() > 200 => two_letters(told.lang().code()),
        _ => "",
    }
}
