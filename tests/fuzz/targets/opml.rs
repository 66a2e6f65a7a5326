use nephila::proto::feed::opml::{OpmlFeed, read, write};

/// What is told, without lines.
fn feeds(bytes: &[u8]) -> Option<Vec<OpmlFeed<'static>>> {
    let (mut found, mut line) = (Vec::new(), 1);
    let summary = read(bytes, |feed| {
        assert!(feed.line >= line && !feed.url.is_empty(), "{feed:?}");
        line = feed.line;
        found.push(OpmlFeed {
            url: feed.url.into_owned().into(),
            title: feed.title.into_owned().into(),
            site: feed.site.map(|site| site.into_owned().into()),
            folder: feed.folder.into_owned().into(),
            line: 0,
        });
    });
    let summary = summary.ok()?;
    assert_eq!(summary.feeds as usize, found.len());
    Some(found)
}

pub fn run(bytes: &[u8]) {
    let Some(found) = feeds(bytes) else { return };
    if found.is_empty() {
        return;
    }
    // What is written is read the same. A folder's name may be one that was made of several, and is cut to one's length.
    let again = feeds(write("list", found.clone()).as_bytes()).expect("what was written");
    assert_eq!(again.len(), found.len());
    for (again, found) in again.iter().zip(&found) {
        assert_eq!((&again.url, &again.site), (&found.url, &found.site));
    }
    assert_eq!(feeds(write("list", again.clone()).as_bytes()).expect("what was written").len(), again.len());
}
