use super::super::*;
use crate::proto::record::ResultCode;

#[test]
fn placeholder() {
    let mut feeds = Feeds::in_memory(FeedRules::default(), 1).unwrap();
    let added = feeds.add(&NewFeed { url: "http://a.example/feed", ..NewFeed::default() }, 1_000).unwrap();
    feeds.bind(added.feed, 7);
    assert_eq!(feeds.at(7), Some(added.feed));
    let outcome = PollOutcome::new(ResultCode::Ok, 200, 1_000);
    assert_eq!(feeds.polled(added.feed, &outcome, 1_000).due_s, 4_600);
}
