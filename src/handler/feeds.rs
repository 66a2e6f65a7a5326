//! Feeds: what the answer to a poll says, and the feeds that pages name.

use super::handler::{Handled, Handler, Page, is_html};
use crate::base::named_enum;
use crate::proto::feed::discovery::{self, Discovered};
use crate::proto::feed::{self, FeedError, FeedFacts, FeedLimits, FeedSource};
use crate::proto::http1::{Head, http_date};
use crate::proto::record::ResultCode;
use crate::proto::url::{CrawlUrl, LinkBase};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What is stored in place of a feed that names the same URLs as before.
pub const REDUNDANT_FEED: &[u8] = b"(redundant feed)";

/// Feeds that one page names; the rest are not told.
const LINKS_MAX: usize = 16;

named_enum! {
    /// What becomes of feeds that pages name.
    #[derive(Default)]
    pub enum Discover {
        #[default]
        Off = "off",
        Note = "note",
        Add = "add",
    }
}

/// By what feeds are read and looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedReading {
    pub limits: FeedLimits,
    pub discover: Discover,
}

/// What the answer to a poll says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FeedAnswer {
    /// What the feed lists; `None` where nothing came, or the very bytes of the last time.
    pub listing: Option<FeedListing>,
    /// Of the body; 0 where there is none, or it is not known.
    pub digest: u64,
    /// It is the same as the last time, by its bytes or by the URLs that it lists.
    pub is_redundant: bool,
    /// Why what came is no feed.
    pub fault: Option<FeedError>,
    /// For how long the answer is fresh, by its head.
    pub max_age_s: Option<u32>,
    /// How long the server asks us to wait.
    pub retry_after_s: Option<u32>,
    /// It is elsewhere for good.
    pub has_moved: bool,
}

/// What a feed lists.
#[derive(Debug, PartialEq, Eq)]
pub struct FeedListing {
    pub facts: FeedFacts,
    pub items: Vec<FeedItem>,
    /// XXH3 of the sorted URLs; not 0.
    pub checksum: u64,
    /// Entries without a URL that could be asked for.
    pub skipped: u32,
}

/// An entry of a feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FeedItem {
    /// In the form in which it is asked for.
    pub url: Box<str>,
    pub guid: Box<str>,
    pub title: Box<str>,
    pub published_s: Option<i64>,
}

/// A feed that a page names.
#[derive(Debug, PartialEq, Eq)]
pub struct FeedLink {
    pub url: CrawlUrl,
    pub title: Box<str>,
}

impl FeedAnswer {
    /// What the head alone says.
    pub fn of(head: &Head, head_bytes: &[u8]) -> FeedAnswer {
        FeedAnswer {
            max_age_s: fresh_s(head, head_bytes),
            has_moved: matches!(head.status, 301 | 308),
            ..FeedAnswer::default()
        }
    }
}

impl Handler {
    /// Reads a document as a feed, unless it is the same as the last time.
    pub(super) fn read_feed(&mut self, page: &Page<'_>, head: &Head, handled: &mut Handled) {
        let mut answer = FeedAnswer::of(head, page.head_bytes);
        if page.result.is_success() && page.result != ResultCode::NotModified {
            let (digest, checksum) =
                page.candidate.poll.as_ref().map_or((0, 0), |poll| (poll.digest, poll.checksum));
            // A record of ours that is read again.
            let is_word = page.document == REDUNDANT_FEED;
            answer.digest = if is_word { 0 } else { xxh3_64(page.document).max(1) };
            answer.is_redundant = is_word || answer.digest == digest;
            if !answer.is_redundant {
                match self.read_listing(page, head) {
                    Ok(listing) => {
                        answer.is_redundant = listing.checksum == checksum;
                        answer.listing = Some(listing);
                    }
                    Err(fault) => {
                        answer.fault = Some(fault);
                        // It may be a page that was taken for one of its feeds.
                        if is_html(head.content_type.of(page.head_bytes), page.document) {
                            self.find_feeds(page.document, page, head, handled);
                        }
                    }
                }
            }
        }
        handled.feed = Some(Box::new(answer));
    }

    fn read_listing(&mut self, page: &Page<'_>, head: &Head) -> Result<FeedListing, FeedError> {
        let about = FeedSource {
            url: page.candidate.url.as_str(),
            content_type: Some(head.content_type.of(page.head_bytes)).filter(|value| !value.is_empty()),
        };
        let base = LinkBase::new(&page.candidate.url);
        let limits = self.feed_rules.limits;
        let (mut items, mut skipped) = (Vec::new(), 0);
        let facts = feed::read(page.document, &about, &limits, |entry| {
            let is_link = |url: &str| base.resolve(url.as_bytes(), &mut self.resolved).is_ok();
            if !entry.url.as_deref().is_some_and(is_link) {
                skipped += 1;
                return;
            }
            let url = self.scope.canon().apply(&self.resolved, &mut self.canonical);
            if CrawlUrl::from_normal(url).is_err() {
                skipped += 1;
                return;
            }
            items.push(FeedItem {
                url: url.into(),
                guid: entry.guid.unwrap_or_default().into(),
                title: entry.title.into(),
                published_s: entry.published_s.or(entry.updated_s),
            });
        })?;
        let checksum = checksum(&items);
        Ok(FeedListing { facts, items, checksum, skipped })
    }

    /// Feeds that a page or its head names.
    pub(super) fn find_feeds(&mut self, html: &[u8], page: &Page<'_>, head: &Head, handled: &mut Handled) {
        let base = &page.candidate.url;
        let mut told = |found: Discovered<'_>| {
            if handled.feeds.len() < LINKS_MAX
                && let Ok(url) = CrawlUrl::from_normal(found.url)
                && handled.feeds.iter().all(|known| known.url != url)
            {
                handled.feeds.push(FeedLink { url, title: found.title.into() });
            }
        };
        for (_, value) in head.headers(page.head_bytes).filter(|(name, _)| name.eq_ignore_ascii_case(b"link"))
        {
            discovery::find_in_header(&value, base, &mut told);
        }
        discovery::find(html, base, told);
    }
}

/// XXH3 of the sorted URLs; not 0.
fn checksum(items: &[FeedItem]) -> u64 {
    let mut urls: Vec<&str> = items.iter().map(|item| &*item.url).collect();
    urls.sort_unstable();
    let mut hash = Xxh3::new();
    for url in urls {
        hash.update(url.as_bytes());
        hash.update(b"\n");
    }
    hash.digest().max(1)
}

/// For how long an answer is fresh: `max-age`, else `Expires` after `Date`. What is not to be kept is not fresh at all.
fn fresh_s(head: &Head, head_bytes: &[u8]) -> Option<u32> {
    let (mut max_age, mut expires, mut date) = (None, None, None);
    for (name, value) in head.headers(head_bytes) {
        if name.eq_ignore_ascii_case(b"cache-control") {
            for directive in value.split(|&octet| octet == b',').map(<[u8]>::trim_ascii) {
                let is = |name: &[u8]| directive.eq_ignore_ascii_case(name);
                if is(b"no-cache") || is(b"no-store") {
                    return None;
                }
                if let Some((name, seconds)) = directive.split_at_checked(8)
                    && name.eq_ignore_ascii_case(b"max-age=")
                {
                    let digits = seconds.strip_prefix(b"\"").unwrap_or(seconds);
                    let digits = digits.strip_suffix(b"\"").unwrap_or(digits);
                    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                    let number = str::from_utf8(digits).ok().filter(|_| is_number);
                    max_age = max_age.or(number.map(|number| number.parse().unwrap_or(u32::MAX)));
                }
            }
        } else if name.eq_ignore_ascii_case(b"expires") {
            expires = http_date(&value);
        } else if name.eq_ignore_ascii_case(b"date") {
            date = http_date(&value);
        }
    }
    max_age.or_else(|| {
        let seconds = expires?.checked_sub(date?)?;
        Some(u32::try_from(seconds).unwrap_or(u32::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Scope, ScopeKind};
    use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};
    use crate::proto::job::{Candidate, DocKind, Poll, Provenance};
    use std::sync::Arc;

    const FEED: &str = "<rss version='2.0'><channel><title>T</title>\
        <item><link>/b</link><guid>2</guid><title>Two</title></item>\
        <item><link>http://b.test/a#x</link><title>One</title></item>\
        <item><title>None</title></item></channel></rss>";

    fn handled(lines: &str, result: ResultCode, document: &str, poll: Poll) -> Handled {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        let parsed = HeadParser::new(HeadLimits::default(), Method::Get).parse(text.as_bytes());
        let Ok(HeadStep::Done(head)) = parsed else { panic!("{parsed:?}") };
        let provenance = Provenance { kind: DocKind::Feed, ..Provenance::SEED };
        let url = CrawlUrl::parse("http://a.test/feed").unwrap();
        let candidate = Candidate { provenance, poll: Some(Box::new(poll)), ..Candidate::seed(1, url) };
        let scope = Arc::new(Scope::new(ScopeKind::Host, 0));
        let handled = Handler::new(scope, "nephila".to_string()).handle(&Page {
            candidate: &candidate,
            result,
            head: Some(&head),
            head_bytes: text.as_bytes(),
            decoded: false,
            document: document.as_bytes(),
        });
        assert!(handled.links.is_empty() && handled.new_url.is_none() && !handled.into_scope);
        handled
    }

    fn answer(lines: &str, result: ResultCode, document: &str, poll: Poll) -> FeedAnswer {
        *handled(lines, result, document, poll).feed.unwrap()
    }

    #[test]
    fn entries_are_told_with_their_urls_in_normal_form_and_their_order_changes_no_checksum() {
        let read = answer("", ResultCode::Ok, FEED, Poll::default());
        let listing = read.listing.as_ref().unwrap();
        let urls: Vec<&str> = listing.items.iter().map(|item| &*item.url).collect();
        assert_eq!((&urls[..], listing.skipped), (&["http://a.test/b", "http://b.test/a"][..], 1));
        assert_eq!((&*listing.items[0].guid, &*listing.items[1].title), ("2", "One"));
        assert!(!read.is_redundant && read.digest != 0);
        let turned = "<rss><channel><item><link>http://b.test/a</link></item><item><link>/b</link></item></channel></rss>";
        let poll = Poll { checksum: listing.checksum, digest: read.digest, ..Poll::default() };
        let same = answer("", ResultCode::Ok, turned, poll.clone());
        assert!(same.is_redundant && same.listing.is_some() && same.digest != read.digest);
        let bytes = answer("", ResultCode::Ok, FEED, poll.clone());
        assert!(bytes.is_redundant && bytes.listing.is_none(), "not even read");
        let word = answer("", ResultCode::Ok, "(redundant feed)", poll);
        assert!(word.is_redundant && word.fault.is_none());
    }

    #[test]
    fn what_is_no_feed_is_told_and_a_304_is_not_read() {
        let page = answer("", ResultCode::Ok, "<html><body>Not here</body></html>", Poll::default());
        assert!(page.fault.is_some() && page.listing.is_none() && !page.is_redundant);
        let same = answer("Cache-Control: max-age=77\r\n", ResultCode::NotModified, "", Poll::default());
        assert_eq!((same.max_age_s, same.digest, same.fault), (Some(77), 0, None));
    }

    #[test]
    fn a_page_in_place_of_a_feed_tells_the_feeds_that_it_names() {
        let html =
            "<html><head><link rel=alternate type='application/rss+xml' href=/rss title=News></head></html>";
        let page = handled("Content-Type: text/html\r\n", ResultCode::Ok, html, Poll::default());
        let named: Vec<(&str, &str)> =
            page.feeds.iter().map(|link| (link.url.as_str(), &*link.title)).collect();
        assert_eq!(named, [("http://a.test/rss", "News")]);
        let feed = handled("Link: </rss>; rel=alternate\r\n", ResultCode::Ok, FEED, Poll::default());
        assert!(
            feed.feeds.is_empty() && feed.feed.unwrap().fault.is_none(),
            "a feed is looked for nowhere else"
        );
    }

    #[test]
    fn freshness_is_read_from_either_header_and_lies_do_no_harm() {
        for (lines, fresh_s) in [
            ("Cache-Control: public, MAX-AGE=\"60\", x=1\r\n", Some(60)),
            ("Cache-Control: max-age=99999999999999999999\r\n", Some(u32::MAX)),
            ("Cache-Control: max-age=60, no-store\r\n", None),
            ("Cache-Control: max-age=-1\r\n", None),
            ("Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", Some(60)),
            ("Expires: Sun, 06 Nov 1994 08:48:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", None),
            ("Expires: 0\r\n", None),
            ("", None),
        ] {
            assert_eq!(
                answer(lines, ResultCode::NotModified, "", Poll::default()).max_age_s,
                fresh_s,
                "{lines}"
            );
        }
    }
}
